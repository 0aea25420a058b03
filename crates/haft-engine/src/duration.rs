//! Durations in configuration: `"500ms"`, `"8s"`, or whole milliseconds.

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
    expecting = "expected a duration such as \"500ms\" or \"8s\", or whole milliseconds"
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

/// The same where there may be none.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    #[allow(
        clippy::ref_option,
        reason = "the signature that serde's `with` asks for"
    )]
    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        #[derive(Deserialize)]
        struct Given(#[serde(with = "crate::duration")] Duration);
        let given = Option::<Given>::deserialize(deserializer)?;
        Ok(given.map(|Given(duration)| duration))
    }
}
