//! Durations as a file writes them: `"500ms"`, `"2m"`, or whole milliseconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error};

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a duration such as \"500ms\" or \"2m\", or whole milliseconds"
)]
enum Form {
    Milliseconds(u64),
    Text(String),
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
