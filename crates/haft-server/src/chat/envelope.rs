//! A body that goes on as it is, but for the name of the model.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{ApiError, ErrorCode};
use crate::wire::read::Read;
use crate::wire::read::fields::wrong_type;
use crate::wire::read::forms::{Form as _, Text};

/// What a body says about where it goes. Nothing else of it is looked at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The model that it names.
    pub(crate) model: Option<String>,
    /// Whether the answer shall come in pieces.
    pub(crate) is_streamed: bool,
    /// How many messages and tools it brings.
    pub(crate) messages: usize,
    pub(crate) tools: usize,
    /// Where the name stands, or would.
    place: Place,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// The value of `model`.
    Value(Range<usize>),
    /// Behind the opening brace of an object; whether other members follow.
    Start { at: usize, has_others: bool },
}

#[derive(Deserialize)]
struct Members<'b> {
    #[serde(borrow, default, deserialize_with = "given")]
    model: Option<&'b RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    stream: Option<&'b RawValue>,
    #[serde(default)]
    messages: Count,
    #[serde(default)]
    tools: Count,
}

/// How many entries a list has; what is no list has none.
#[derive(Default)]
struct Count(usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
        let mut count = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Count(count))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Count, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count(0))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
        Ok(Count(0))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Count, E> {
        Ok(Count(0))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Count, E> {
        Ok(Count(0))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Count, E> {
        Ok(Count(0))
    }

    fn visit_str<E>(self, _: &str) -> Result<Count, E> {
        Ok(Count(0))
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(0))
    }
}

/// A value that is there, `null` included.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Envelope {
    /// Reads the envelope of a body, which must be a JSON object.
    pub(crate) fn read(body: &[u8]) -> Read<Self> {
        let text = std::str::from_utf8(body).map_err(|error| {
            let message = format!("the body is not valid JSON: {error}");
            ApiError::new(ErrorCode::InvalidJson, message)
        })?;
        let start = text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len();
        if !text[start..].starts_with('{') {
            let value: Value =
                serde_json::from_str(text).map_err(|error| ApiError::of_json(&error))?;
            return Err(wrong_type("", "an object", &value));
        }
        let members: Members<'_> =
            serde_json::from_str(text).map_err(|error| ApiError::of_json(&error))?;
        let place = match members.model {
            Some(raw) => {
                // What was borrowed lies inside the body.
                let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
                Place::Value(start..start + raw.get().len())
            }
            None => Place::Start {
                at: start + 1,
                has_others: !text[start + 1..].trim_start().starts_with('}'),
            },
        };
        let model = match members.model.map(RawValue::get) {
            None | Some("null") => None,
            Some(raw) => {
                let value = serde_json::from_str(raw).map_err(|error| ApiError::of_json(&error))?;
                Some(Text.read(value, "model")?)
            }
        };
        Ok(Self {
            model,
            is_streamed: members.stream.is_some_and(|raw| raw.get() == "true"),
            messages: members.messages.0,
            tools: members.tools.0,
            place,
        })
    }

    /// The body with this name for the model; every other byte stays.
    pub(crate) fn addressed(&self, body: &[u8], model: &str) -> Bytes {
        let name = Value::from(model).to_string();
        let (before, name, after) = match &self.place {
            Place::Value(range) => (&body[..range.start], name, &body[range.end..]),
            Place::Start { at, has_others } => {
                let comma = if *has_others { "," } else { "" };
                (
                    &body[..*at],
                    format!("\"model\":{name}{comma}"),
                    &body[*at..],
                )
            }
        };
        [before, name.as_bytes(), after].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(body: &str) -> (Option<String>, bool, String) {
        let envelope = Envelope::read(body.as_bytes()).unwrap();
        let addressed = envelope.addressed(body.as_bytes(), "the \"one\"");
        let addressed = String::from_utf8(addressed.to_vec()).unwrap();
        (envelope.model, envelope.is_streamed, addressed)
    }

    #[test]
    fn only_the_name_of_the_model_changes() {
        for (body, model, is_streamed, addressed) in [
            (
                r#" { "a" : 1.10, "model" : "m\u0031" , "stream":true, "z":[ 1e2 ]}"#,
                Some("m1"),
                true,
                r#" { "a" : 1.10, "model" : "the \"one\"" , "stream":true, "z":[ 1e2 ]}"#,
            ),
            (
                r#"{"model":null,"stream":null}"#,
                None,
                false,
                r#"{"model":"the \"one\"","stream":null}"#,
            ),
            (
                "\n{ \"b\":{\"model\":\"inner\"}}",
                None,
                false,
                "\n{\"model\":\"the \\\"one\\\"\", \"b\":{\"model\":\"inner\"}}",
            ),
            ("{ }", None, false, "{\"model\":\"the \\\"one\\\"\" }"),
        ] {
            let (found, streamed, result) = passed(body);
            assert_eq!((found.as_deref(), streamed), (model, is_streamed), "{body}");
            assert_eq!(result, addressed);
            serde_json::from_str::<Value>(&result).unwrap();
        }
    }

    #[test]
    fn messages_and_tools_are_counted_whatever_they_are() {
        for (list, count) in [
            ("[]", 0),
            (r#"[1,[2,3],{"a":[4]},"x",null]"#, 5),
            (r#"{"a":[1,2]}"#, 0),
            ("null", 0),
            ("true", 0),
            ("-1", 0),
            ("1.5", 0),
            (r#""\n text""#, 0),
        ] {
            let body = format!(r#"{{"tools":{list},"model":"m","messages":{list}}}"#);
            let envelope = Envelope::read(body.as_bytes()).unwrap();
            assert_eq!(
                (envelope.messages, envelope.tools),
                (count, count),
                "{body}"
            );
        }
    }

    #[test]
    fn what_is_no_object_or_has_two_names_is_refused() {
        for (body, code, param) in [
            (&b"{"[..], "invalid_json", None),
            (b"", "invalid_json", None),
            (b"{\"a\":\"\xff\"}", "invalid_json", None),
            (br#"{"model":"a","model":"b"}"#, "invalid_json", None),
            (br#"{"messages":[}"#, "invalid_json", None),
            (br#"["m",true]"#, "invalid_type", None),
            (br#"{"model":["m"]}"#, "invalid_type", Some("model")),
        ] {
            let error = Envelope::read(body).unwrap_err();
            assert_eq!(
                (error.code.as_str(), error.param.as_deref()),
                (code, param),
                "{error}"
            );
        }
    }
}
