//! Durations as a file writes them: `"500ms"`, `"2m"`, or whole milliseconds.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// The form of a duration, for whoever describes a configuration.
pub(crate) struct Written;

impl JsonSchema for Written {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "title": "duration", "type": ["string", "integer"] })
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a duration such as \"500ms\" or \"2m\", or whole milliseconds"
)]
enum Form {
    Milliseconds(u64),
    Text(String),
}

pub(crate) fn serialize<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    match Form::deserialize(deserializer)? {
        Form::Milliseconds(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        Form::Text(text) => humantime::parse_duration(&text).map_err(|error| {
            let text = haft_core::cut(&text);
            D::Error::custom(format!("`{text}` is no duration: {error}"))
        }),
    }
}
