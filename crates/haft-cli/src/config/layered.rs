//! One table out of two layers: what a file says, and the variables above it.
//!
//! Values of a file keep their kinds; a variable is text, read as whatever is asked for.

use std::fmt;
use std::ops::Range;

use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::variables::Variables;

/// What cannot be read, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) at: Option<Spot>,
}

/// Where something was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spot {
    File(Range<usize>),
    Variable(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            at: None,
        }
    }
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        Self {
            message: error.message().to_owned(),
            at: error.span().map(Spot::File),
        }
    }
}

impl Fault {
    /// The fault at this place, unless a closer one is known.
    fn or_at(mut self, spot: Option<Spot>) -> Self {
        self.at = self.at.or(spot);
        self
    }
}

impl Spot {
    fn of_variable(variables: &Variables) -> Self {
        Self::Variable(variables.some_name().to_owned())
    }
}

/// A table of a file below a table of variables.
pub(super) struct Layered<'l> {
    pub(super) file: Option<&'l DeTable<'l>>,
    pub(super) variables: Option<&'l Variables>,
}

impl<'de> Deserializer<'de> for Layered<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let file = self.file.into_iter().flat_map(DeTable::keys);
        let mut file: Vec<_> = file.map(|key| (key.span().start, key.get_ref())).collect();
        // The first mistake in the file is the one to tell.
        file.sort_unstable();
        let mut keys: Vec<&str> = file.into_iter().map(|(_, key)| key.as_ref()).collect();
        for key in self.variables.into_iter().flat_map(Variables::keys) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        visitor.visit_map(Entries {
            table: self,
            keys: keys.into_iter(),
            current: "",
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The keys of both layers, one after the other.
struct Entries<'l> {
    table: Layered<'l>,
    keys: std::vec::IntoIter<&'l str>,
    current: &'l str,
}

impl<'l> Entries<'l> {
    fn variables(&self) -> Option<&'l Variables> {
        self.table.variables?.get(self.current)
    }

    /// Where the current key stands.
    fn spot(&self) -> Option<Spot> {
        let in_file = self
            .table
            .file
            .and_then(|it| it.get_key_value(self.current));
        match in_file {
            Some((key, _)) => Some(Spot::File(key.span())),
            None => self.variables().map(Spot::of_variable),
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(key) = self.keys.next() else {
            return Ok(None);
        };
        self.current = key;
        let key: StrDeserializer<'_, Fault> = key.into_deserializer();
        let read = seed.deserialize(key);
        read.map(Some).map_err(|fault| fault.or_at(self.spot()))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let variables = self.variables();
        let in_file = self.table.file.and_then(|it| it.get(self.current));
        let spot_in_file = in_file.map(|value| Spot::File(value.span()));
        let spot = variables.map(Spot::of_variable);
        match (variables, in_file.map(toml::Spanned::get_ref)) {
            (Some(Variables::Value { text, .. }), _) => {
                seed.deserialize(Text(text)).map_err(|it| it.or_at(spot))
            }
            (_, Some(DeValue::Table(table))) => {
                let file = Some(table);
                let read = seed.deserialize(Layered { file, variables });
                read.map_err(|it| it.or_at(spot_in_file))
            }
            (_, Some(value)) => {
                let span = in_file.map(toml::Spanned::span).unwrap_or_default();
                let value = toml::Spanned::new(span, value.clone());
                let read = seed.deserialize(ValueDeserializer::from(value));
                read.map_err(|error| Fault::from(error).or_at(spot_in_file))
            }
            (variables, None) => {
                let file = None;
                let read = seed.deserialize(Layered { file, variables });
                read.map_err(|it| it.or_at(spot))
            }
        }
    }
}

/// The text of a variable, read as what is asked for.
struct Text<'t>(&'t str);

macro_rules! parsed {
    ($($ask:ident => $visit:ident, $what:literal;)*) => {$(
        fn $ask<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match self.0.trim().parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Fault::custom(format!("`{}` is {}", self.0, $what))),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Fault;

    parsed! {
        deserialize_bool => visit_bool, "neither `true` nor `false`";
        deserialize_i8 => visit_i8, "no whole number, or too large";
        deserialize_i16 => visit_i16, "no whole number, or too large";
        deserialize_i32 => visit_i32, "no whole number, or too large";
        deserialize_i64 => visit_i64, "no whole number, or too large";
        deserialize_u8 => visit_u8, "no whole number, or too large";
        deserialize_u16 => visit_u16, "no whole number, or too large";
        deserialize_u32 => visit_u32, "no whole number, or too large";
        deserialize_u64 => visit_u64, "no whole number, or too large";
        deserialize_f32 => visit_f32, "no number";
        deserialize_f64 => visit_f64, "no number";
    }

    /// For those who take what comes: a number if it is one, else text.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.parse() {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => visitor.visit_borrowed_str(self.0),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    /// A list is written with commas.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let parts = self.0.split(',').map(str::trim);
        let parts = parts.filter(|part| !part.is_empty()).map(Text);
        visitor.visit_seq(SeqDeserializer::new(parts))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple_struct map struct identifier
        ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Fault> for Text<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
