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

/// Seconds, as a number or as a duration: `30`, `0.5`, `"30s"`.
pub(crate) mod seconds {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize, Deserializer, de::Error};

    /// The form of it, for whoever describes a configuration.
    pub(crate) struct Written;

    impl JsonSchema for Written {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Seconds".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "title": "seconds or duration", "type": ["number", "string"] })
        }
    }

    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected seconds, or a duration such as \"30s\" or \"500ms\""
    )]
    enum Form {
        Seconds(f64),
        Text(String),
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        match Option::<Form>::deserialize(deserializer)? {
            None => Ok(None),
            Some(Form::Seconds(seconds)) => Ok(Some(seconds)),
            Some(Form::Text(text)) => match humantime::parse_duration(&text) {
                Ok(duration) => Ok(Some(duration.as_secs_f64())),
                Err(error) => {
                    let text = haft_core::cut(&text);
                    Err(D::Error::custom(format!(
                        "`{text}` is no duration: {error}"
                    )))
                }
            },
        }
    }
}
