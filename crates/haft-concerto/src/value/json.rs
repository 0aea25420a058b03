//! Values from and to JSON (§4): members in ascending order of their keys both ways.

use std::fmt::Write;

use serde_json::Value as Json;
use thiserror::Error;

use super::{Map, Value};

/// How deep JSON is written.
const DEPTH: usize = 128;

/// How long it becomes: a value that is shared within itself may be much longer than it takes in
/// memory.
const LONGEST: usize = 256 << 20;

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

    /// The value of a JSON text.
    pub fn parse_json(text: &str) -> Result<Value, String> {
        serde_json::from_str::<Json>(text)
            .map(|json| Value::from_json(&json))
            .map_err(|error| format!("invalid JSON: {error}"))
    }

    /// JSON without blanks.
    pub fn to_json(&self) -> Result<String, JsonError> {
        let mut out = String::new();
        Writer {
            out: &mut out,
            pretty: false,
        }
        .value(self, 0)?;
        Ok(out)
    }

    /// JSON over lines, with two blanks per level.
    pub fn to_json_pretty(&self) -> Result<String, JsonError> {
        let mut out = String::new();
        Writer {
            out: &mut out,
            pretty: true,
        }
        .value(self, 0)?;
        Ok(out)
    }

    /// What a tool's result is for a model (§9.1): `Ok` and `Some` are what they hold.
    pub fn to_tool_json(&self) -> Result<String, JsonError> {
        match self {
            Value::Ok(inner) | Value::Some(inner) => inner.get().to_tool_json(),
            other => other.to_json(),
        }
    }
}

struct Writer<'a> {
    out: &'a mut String,
    pretty: bool,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), JsonError> {
        if depth > DEPTH {
            return Err(JsonError::Depth);
        }
        if self.out.len() > LONGEST {
            return Err(JsonError::Size);
        }
        match value {
            Value::Nil | Value::None | Value::Absent => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            // Writing to a String does not fail.
            Value::Int(value) => {
                let _ = write!(self.out, "{value}");
            }
            Value::Float(value) => self.out.push_str(&Json::from(*value).to_string()),
            Value::Text(text) => self.text(text),
            Value::Array(array) => self.list(array.items(), depth)?,
            Value::Map(map) => {
                self.object(map.iter().map(|(key, value)| (key.as_str(), value)), depth)?;
            }
            Value::Struct(object) => {
                self.object(object.fields().map(|(name, value)| (&**name, value)), depth)?;
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
                    self.object(std::iter::once((&*def.name, &inner)), depth)?;
                } else if let [one] = object.values() {
                    self.object(std::iter::once((&*def.name, one)), depth)?;
                } else if object.values().is_empty() {
                    self.text(&def.name);
                } else {
                    let inner = Value::array(object.values().to_vec());
                    self.object(std::iter::once((&*def.name, &inner)), depth)?;
                }
            }
            Value::Ok(inner) => self.object(std::iter::once(("Ok", inner.get())), depth)?,
            Value::Err(inner) => self.object(std::iter::once(("Err", inner.get())), depth)?,
            Value::Some(inner) => self.object(std::iter::once(("Some", inner.get())), depth)?,
            Value::Range(_)
            | Value::Function(_)
            | Value::Native(_)
            | Value::Ref(_)
            | Value::Builder(_)
            | Value::Iter(_) => self.text(&value.to_string()),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(&Json::from(text).to_string());
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<(), JsonError> {
        self.out.push('[');
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.out.push(',');
            }
            self.line(depth + 1);
            self.value(item, depth + 1)?;
        }
        if !items.is_empty() {
            self.line(depth);
        }
        self.out.push(']');
        Ok(())
    }

    fn object<'v>(
        &mut self,
        members: impl Iterator<Item = (&'v str, &'v Value)>,
        depth: usize,
    ) -> Result<(), JsonError> {
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|(key, _)| *key);
        self.out.push('{');
        for (place, (key, value)) in members.iter().enumerate() {
            if place > 0 {
                self.out.push(',');
            }
            self.line(depth + 1);
            self.text(key);
            self.out.push_str(if self.pretty { ": " } else { ":" });
            self.value(value, depth + 1)?;
        }
        if !members.is_empty() {
            self.line(depth);
        }
        self.out.push('}');
        Ok(())
    }

    /// A new line of the pretty form.
    fn line(&mut self, depth: usize) {
        if self.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", depth));
        }
    }
}
