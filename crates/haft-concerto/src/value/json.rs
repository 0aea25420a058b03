//! Values from and to JSON (§4): members in ascending order of their keys both ways.

use serde_json::Value as Json;
use thiserror::Error;

use super::build::{Sink, Writer};
use super::{Map, Value};
use crate::vm::{Failure, Fault, Meter, Outcome};

/// How deep JSON is written.
const DEPTH: usize = 128;

/// How long it becomes where nobody meters it: a value that is shared within itself may be much longer
/// than it takes in memory.
const LONGEST: usize = 64 << 20;

/// How much text is escaped at once.
const PIECE: usize = 16 << 10;

/// Why a value has no JSON.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonError {
    /// Nested too deep.
    #[error("value is nested deeper than {DEPTH}: it cannot be written as JSON")]
    Depth,
    /// Longer than any JSON should be.
    #[error("value is too large to be written as JSON")]
    Size,
}

impl Value {
    /// The value of a JSON value.
    pub fn from_json(json: &Json) -> Value {
        match json {
            Json::Null => Value::Nil,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                // Whatever is no i64 is a number that a double comes near.
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::from(text.as_str()),
            Json::Array(items) => Value::array(items.iter().map(Value::from_json).collect()),
            Json::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(key, _)| *key);
                Value::map(
                    members
                        .into_iter()
                        .map(|(key, value)| (key.as_str(), Value::from_json(value)))
                        .collect::<Map>(),
                )
            }
        }
    }

    /// JSON without blanks, for hosts; that of a program is metered.
    pub fn to_json(&self) -> Result<String, JsonError> {
        let mut out = Plain(String::new());
        let mut form = Form {
            out: &mut out,
            pretty: false,
        };
        form.value(self, 0)?;
        Ok(out.0)
    }

    /// JSON, over lines with two blanks per level if it shall be pretty.
    pub(crate) fn write_json(&self, pretty: bool, meter: &mut Meter) -> Outcome<String> {
        let mut out = Writer::new(meter);
        let mut form = Form {
            out: &mut out,
            pretty,
        };
        form.value(self, 0)?;
        out.finish()
    }

    /// What a tool's result is for a model (§9.1): `Ok` and `Some` are what they hold.
    pub fn to_tool_json(&self) -> Result<String, JsonError> {
        let mut value = self;
        while let Value::Ok(inner) | Value::Some(inner) = value {
            value = inner.get();
        }
        value.to_json()
    }
}

impl From<JsonError> for Box<Failure> {
    fn from(error: JsonError) -> Self {
        Fault::type_error(error.to_string())
    }
}

/// Text that nobody meters.
struct Plain(String);

impl Sink for Plain {
    type Stop = JsonError;

    fn put(&mut self, text: &str) -> Result<(), JsonError> {
        if self.0.len() + text.len() > LONGEST {
            return Err(JsonError::Size);
        }
        self.0.push_str(text);
        Ok(())
    }

    fn step(&mut self) -> Result<(), JsonError> {
        Ok(())
    }
}

struct Form<'a, S> {
    out: &'a mut S,
    pretty: bool,
}

impl<S: Sink<Stop: From<JsonError>>> Form<'_, S> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), S::Stop> {
        if depth > DEPTH {
            return Err(JsonError::Depth.into());
        }
        self.out.step()?;
        match value {
            Value::Nil | Value::None | Value::Absent => self.out.put("null"),
            Value::Bool(true) => self.out.put("true"),
            Value::Bool(false) => self.out.put("false"),
            Value::Int(value) => self.out.put(&value.to_string()),
            Value::Float(value) => self.out.put(&Json::from(*value).to_string()),
            Value::Text(text) => self.text(text),
            Value::Array(array) => self.list(array.items(), depth),
            Value::Map(map) => {
                self.object(map.iter().map(|(key, value)| (key.as_str(), value)), depth)
            }
            Value::Struct(object) => {
                self.object(object.fields().map(|(name, value)| (&**name, value)), depth)
            }
            Value::Enum(object) => {
                let def = object.def();
                if !def.fields.is_empty() {
                    let inner = Value::map(
                        def.fields
                            .iter()
                            .map(|name| &**name)
                            .zip(object.values().iter().cloned())
                            .collect(),
                    );
                    self.object(std::iter::once((&*def.name, &inner)), depth)
                } else if let [one] = object.values() {
                    self.object(std::iter::once((&*def.name, one)), depth)
                } else if object.values().is_empty() {
                    self.text(&def.name)
                } else {
                    let inner = Value::array(object.values().to_vec());
                    self.object(std::iter::once((&*def.name, &inner)), depth)
                }
            }
            Value::Ok(inner) => self.object(std::iter::once(("Ok", inner.get())), depth),
            Value::Err(inner) => self.object(std::iter::once(("Err", inner.get())), depth),
            Value::Some(inner) => self.object(std::iter::once(("Some", inner.get())), depth),
            Value::Range(_)
            | Value::Function(_)
            | Value::Native(_)
            | Value::Ref(_)
            | Value::Builder(_)
            | Value::Iter(_) => self.text(&value.to_string()),
        }
    }

    /// Text in quotes. Each character is escaped by itself, so that it goes piece by piece.
    fn text(&mut self, text: &str) -> Result<(), S::Stop> {
        self.out.put("\"")?;
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE));
            let quoted = Json::from(piece).to_string();
            self.out.put(&quoted[1..quoted.len() - 1])?;
            rest = more;
        }
        self.out.put("\"")
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<(), S::Stop> {
        self.out.put("[")?;
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.out.put(",")?;
            }
            self.line(depth + 1)?;
            self.value(item, depth + 1)?;
        }
        if !items.is_empty() {
            self.line(depth)?;
        }
        self.out.put("]")
    }

    fn object<'v>(
        &mut self,
        members: impl Iterator<Item = (&'v str, &'v Value)>,
        depth: usize,
    ) -> Result<(), S::Stop> {
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|(key, _)| *key);
        self.out.put("{")?;
        for (place, (key, value)) in members.iter().enumerate() {
            if place > 0 {
                self.out.put(",")?;
            }
            self.line(depth + 1)?;
            self.text(key)?;
            self.out.put(if self.pretty { ": " } else { ":" })?;
            self.value(value, depth + 1)?;
        }
        if !members.is_empty() {
            self.line(depth)?;
        }
        self.out.put("}")
    }

    /// A new line of the pretty form.
    fn line(&mut self, depth: usize) -> Result<(), S::Stop> {
        if self.pretty {
            self.out.put("\n")?;
            for _ in 0..depth {
                self.out.put("  ")?;
            }
        }
        Ok(())
    }
}
