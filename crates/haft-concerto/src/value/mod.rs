//! Values of a running program.
//!
//! A [`Value`] is 16 bytes: numbers, Bools, nil and short texts lie in it, everything else is shared
//! behind a count. Assigning copies the value, never what it refers to; whoever changes an array that
//! somebody else still sees changes a copy ([`std::sync::Arc::make_mut`]). Values may be handed to
//! other threads: tools of a program are called from an asynchronous engine.

mod arithmetic;
mod array;
mod build;
mod cast;
mod display;
mod equal;
mod hash;
mod index;
mod json;
mod map;
mod object;
mod parse;
mod reference;
mod size;
mod text;

use std::collections::HashSet;
use std::sync::Arc;

pub use array::{Array, Boxed};
pub use json::JsonError;
pub use map::Map;
pub use object::{Enum, Struct, StructDef, VariantDef};
pub use reference::{Builder, Closure, Range, RefKind, Reference};
pub use size::Sizer;
pub use text::Text;

pub(crate) use arithmetic::{Binary, compare, compare_metered};
pub(crate) use build::{Items, Writer};
pub(crate) use equal::equal;
pub(crate) use hash::Unique;
pub(crate) use index::{
    get_field, get_index, grow, own_array, own_map, set_field, set_index, slice_from,
};
pub(crate) use text::brief;

use crate::natives::Native;
use crate::vm::Iter;

/// A value of a running program.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// `nil`.
    #[default]
    Nil,
    /// `true`, `false`.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Float(f64),
    /// Text.
    Text(Text),
    /// Values in order.
    Array(Arc<Array>),
    /// Values by text, in the order they were put in.
    Map(Arc<Map>),
    /// Named fields.
    Struct(Arc<Struct>),
    /// One variant of several.
    Enum(Arc<Enum>),
    /// `Ok(v)`.
    Ok(Arc<Boxed>),
    /// `Err(v)`.
    Err(Arc<Boxed>),
    /// `Some(v)`.
    Some(Arc<Boxed>),
    /// `None`.
    None,
    /// `a..b`.
    Range(Arc<Range>),
    /// A function of the program, with what it captured.
    Function(Arc<Closure>),
    /// A built-in function.
    Native(&'static Native),
    /// A model, schema, tool, server, store, pipeline or agent.
    Ref(Arc<Reference>),
    /// A model or an agent with what one call of it shall have.
    Builder(Arc<Builder>),
    /// The state of a loop; no program sees it.
    #[doc(hidden)]
    Iter(Box<Iter>),
    /// A parameter that was left out, a field that is not there; no program sees it.
    #[doc(hidden)]
    Absent,
}

impl Value {
    /// Text.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(text.into())
    }

    /// An array.
    pub fn array(items: Vec<Value>) -> Self {
        Self::Array(Arc::new(Array::new(items)))
    }

    /// A map.
    pub fn map(map: Map) -> Self {
        Self::Map(Arc::new(map))
    }

    /// `Ok(value)`.
    pub fn ok(value: Value) -> Self {
        Self::Ok(Arc::new(Boxed::new(value)))
    }

    /// `Err(value)`.
    pub fn err(value: Value) -> Self {
        Self::Err(Arc::new(Boxed::new(value)))
    }

    /// `Some(value)`.
    pub fn some(value: Value) -> Self {
        Self::Some(Arc::new(Boxed::new(value)))
    }

    /// `Some(value)` or `None`.
    pub fn option(value: Option<Value>) -> Self {
        value.map_or(Self::None, Self::some)
    }

    /// `Ok(value)` or `Err(text)`.
    pub fn result(value: Result<Value, String>) -> Self {
        match value {
            Ok(value) => Self::ok(value),
            Err(text) => Self::err(Self::text(text)),
        }
    }

    /// A struct that no source declares, such as `Response`.
    pub fn record(name: &str, fields: Vec<(&str, Value)>) -> Self {
        let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        let def = StructDef::new(name, names.into_iter().map(Arc::from).collect());
        Self::Struct(Arc::new(Struct::new(Arc::new(def), values)))
    }

    /// Whether it counts as true (§4).
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Nil | Self::None | Self::Err(_) | Self::Absent => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Array(array) => !array.items().is_empty(),
            Self::Map(map) => !map.is_empty(),
            _ => true,
        }
    }

    /// What `typeof` gives.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Nil | Self::Absent => "Nil",
            Self::Bool(_) => "Bool",
            Self::Int(_) => "Int",
            Self::Float(_) => "Float",
            Self::Text(_) => "String",
            Self::Array(_) => "Array",
            Self::Map(_) => "Map",
            Self::Struct(value) => &value.def().name,
            Self::Enum(value) => &value.def().type_name,
            Self::Ok(_) | Self::Err(_) => "Result",
            Self::Some(_) | Self::None => "Option",
            Self::Range(_) => "Range",
            Self::Function(_) | Self::Native(_) => "Function",
            Self::Ref(reference) => reference.kind.type_name(),
            Self::Builder(_) => "ModelBuilder",
            Self::Iter(_) => "Iterator",
        }
    }

    /// Whether it is a function of the program, or holds one.
    pub(crate) fn holds_function(&self) -> bool {
        // What is shared is looked at once.
        let mut seen = HashSet::new();
        let mut open = vec![self];
        while let Some(value) = open.pop() {
            if value.shared().is_some_and(|place| !seen.insert(place)) {
                continue;
            }
            match value {
                Self::Function(_) | Self::Builder(_) => return true,
                Self::Array(array) => open.extend(array.items()),
                Self::Map(map) => open.extend(map.iter().map(|(_, value)| value)),
                Self::Struct(object) => open.extend(object.values()),
                Self::Enum(object) => open.extend(object.values()),
                Self::Ok(inner) | Self::Err(inner) | Self::Some(inner) => open.push(inner.get()),
                _ => {}
            }
        }
        false
    }

    /// Where it lies, if others may refer to it as well.
    fn shared(&self) -> Option<usize> {
        fn place<T>(value: &Arc<T>) -> Option<usize> {
            (Arc::strong_count(value) > 1).then(|| Arc::as_ptr(value).cast::<u8>() as usize)
        }
        match self {
            Self::Array(array) => place(array),
            Self::Map(map) => place(map),
            Self::Struct(object) => place(object),
            Self::Enum(object) => place(object),
            Self::Ok(inner) | Self::Err(inner) | Self::Some(inner) => place(inner),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Makes it an Int; what was one needs not be dropped.
    #[allow(clippy::inline_always)] // the loop's most frequent write
    #[inline(always)]
    pub(crate) fn set_int(&mut self, value: i64) {
        match self {
            Self::Int(slot) => *slot = value,
            slot => *slot = Self::Int(value),
        }
    }

    /// Lets go of what it holds. Plain values may stay: nobody reads them again.
    #[allow(clippy::inline_always)] // the loop's most frequent write
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        match self {
            Self::Nil | Self::Bool(_) | Self::Int(_) | Self::Float(_) => {}
            slot => *slot = Self::Nil,
        }
    }

    /// The value, with nothing left in its place.
    pub(crate) fn take(&mut self) -> Value {
        std::mem::take(self)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_two_words() {
        assert_eq!(size_of::<Value>(), 16);
    }
}
