//! What a call gave, read block by block from what the server wrote.

use std::sync::Arc;

use haft_core::cut;
use serde_json::{Map, Value};

use crate::text::visible;

/// What to call bytes of an unnamed kind.
const UNKNOWN_MEDIA: &str = "application/octet-stream";

/// The result of a call that the server answered, well or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// What it shows, in order.
    pub content: Vec<Block>,
    /// The same for code. Nothing said is `None`; a `null` that was said is `Some(Value::Null)`.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed. That is for the model to read, not a fault of the server.
    pub is_error: bool,
    /// What else the server attached.
    pub meta: Option<Map<String, Value>>,
    /// What was not as it should be.
    pub warnings: Vec<String>,
    /// The result as it was written.
    pub raw: Arc<Value>,
}

/// One piece of content.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// What it is.
    pub body: BlockBody,
    /// For whom the server means it; for everybody if it does not say.
    pub audience: Audience,
}

/// For whom a piece of content is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audience {
    /// For everybody.
    #[default]
    Everybody,
    /// For the person only.
    User,
    /// For the model only.
    Assistant,
}

/// What a piece of content is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BlockBody {
    /// Text.
    Text(String),
    /// An image.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// Something elsewhere. It is never fetched.
    Link {
        /// Where.
        uri: String,
        /// What it is called; may be empty.
        name: String,
    },
    /// Something that came along, as text.
    TextResource {
        /// Where it is from.
        uri: String,
        /// What it says.
        text: String,
    },
    /// Something that came along, as bytes.
    BlobResource {
        /// Where it is from.
        uri: String,
        /// What it is.
        media: Media,
    },
    /// Something that haft does not know.
    Unknown {
        /// What the server calls it.
        kind: String,
    },
}

/// Bytes in base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// For example `image/png`.
    pub media_type: String,
    /// The bytes, in base64.
    pub data: String,
}

impl Media {
    /// How many bytes there are without base64.
    pub fn bytes(&self) -> usize {
        self.data.trim_end_matches('=').len() / 4 * 3
            + (self.data.trim_end_matches('=').len() % 4).saturating_sub(1)
    }
}

impl ToolOutcome {
    /// Reads a result. There is none that cannot be read: the tool has run, and what it gave counts.
    pub fn read(raw: Value) -> Self {
        let mut warnings = Vec::new();
        let content = content(&raw, &mut warnings);
        let is_error = match raw.get("isError") {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(other) => {
                warnings.push("`isError` is neither true nor false".into());
                other
                    .as_str()
                    .is_some_and(|text| text.eq_ignore_ascii_case("true"))
            }
        };
        if let Some(kind) = raw
            .get("resultType")
            .and_then(Value::as_str)
            .filter(|kind| *kind != "complete")
        {
            warnings.push(format!(
                "the result is of an unknown type: `{}`",
                shown(kind)
            ));
        }
        Self {
            content,
            structured: raw.get("structuredContent").cloned(),
            is_error,
            meta: raw.get("_meta").and_then(Value::as_object).cloned(),
            warnings,
            raw: Arc::new(raw),
        }
    }

    /// Notes that the result is not what its tool promises. Where that is not accepted, the outcome is
    /// an error that says so; what the server wrote stays in `raw`.
    pub(crate) fn note_misfit(&mut self, problem: String, is_strict: bool) {
        if is_strict {
            self.is_error = true;
            self.structured = None;
            self.content = vec![Block {
                body: BlockBody::Text(format!("The tool ran, but {problem}")),
                audience: Audience::Everybody,
            }];
        }
        self.warnings.push(problem);
    }
}

fn content(raw: &Value, warnings: &mut Vec<String>) -> Vec<Block> {
    let plain = |text: String| Block {
        body: BlockBody::Text(text),
        audience: Audience::Everybody,
    };
    let Some(result) = raw.as_object() else {
        warnings.push("the result is no object".into());
        return vec![plain(as_text(raw))];
    };
    match result.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().map(|value| block(value, warnings)).collect(),
        None | Some(Value::Null) => {
            if let Some(ancient) = result.get("toolResult") {
                warnings.push("the result has the form of before 2024-11-05".into());
                return vec![plain(as_text(ancient))];
            }
            if !result.contains_key("structuredContent") {
                warnings.push("the result is empty".into());
            }
            Vec::new()
        }
        Some(single) => {
            warnings.push("`content` is no list".into());
            vec![if single.is_object() {
                block(single, warnings)
            } else {
                plain(as_text(single))
            }]
        }
    }
}

fn block(value: &Value, warnings: &mut Vec<String>) -> Block {
    let kind = match value.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        _ if value.get("text").is_some_and(Value::is_string) => "text",
        _ => "",
    };
    let body = match kind {
        "text" => value
            .get("text")
            .and_then(Value::as_str)
            .map(|text| BlockBody::Text(text.to_owned())),
        "image" => media(value, "data", warnings).map(BlockBody::Image),
        "audio" => media(value, "data", warnings).map(BlockBody::Audio),
        "resource_link" => link(value),
        "resource" => value
            .get("resource")
            .and_then(|resource| embedded(resource, warnings)),
        _ => None,
    };
    let body = body.unwrap_or_else(|| {
        let kind = if kind.is_empty() {
            "unnamed".into()
        } else {
            shown(kind)
        };
        warnings.push(format!("content of type `{kind}` cannot be read"));
        BlockBody::Unknown { kind }
    });
    Block {
        body,
        audience: audience(value),
    }
}

fn media(value: &Value, key: &str, warnings: &mut Vec<String>) -> Option<Media> {
    let data = value.get(key)?.as_str()?.to_owned();
    let media_type = value.get("mimeType").and_then(Value::as_str).map(shown);
    let media_type = media_type
        .filter(|kind| !kind.is_empty())
        .unwrap_or_else(|| {
            warnings.push("content without `mimeType`".into());
            UNKNOWN_MEDIA.into()
        });
    Some(Media { media_type, data })
}

fn link(value: &Value) -> Option<BlockBody> {
    let uri = visible(value.get("uri")?.as_str()?);
    let name = value
        .get("name")
        .and_then(Value::as_str)
        .map(shown)
        .unwrap_or_default();
    Some(BlockBody::Link { uri, name })
}

fn embedded(resource: &Value, warnings: &mut Vec<String>) -> Option<BlockBody> {
    let uri = resource
        .get("uri")
        .and_then(Value::as_str)
        .map(visible)
        .unwrap_or_default();
    if let Some(text) = resource.get("text").and_then(Value::as_str) {
        return Some(BlockBody::TextResource {
            uri,
            text: text.to_owned(),
        });
    }
    let media = media(resource, "blob", warnings)?;
    Some(BlockBody::BlobResource { uri, media })
}

/// Only a list that names one side alone says something.
fn audience(value: &Value) -> Audience {
    let audience = value
        .pointer("/annotations/audience")
        .and_then(Value::as_array);
    let names = |name: &str| audience.is_some_and(|audience| audience.iter().any(|it| it == name));
    match (names("user"), names("assistant")) {
        (true, false) => Audience::User,
        (false, true) => Audience::Assistant,
        _ => Audience::Everybody,
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn shown(text: &str) -> String {
    cut(&visible(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str) -> BlockBody {
        BlockBody::Text(text.into())
    }

    fn bodies(raw: Value) -> (Vec<BlockBody>, Vec<String>) {
        let outcome = ToolOutcome::read(raw);
        (
            outcome
                .content
                .into_iter()
                .map(|block| block.body)
                .collect(),
            outcome.warnings,
        )
    }

    #[test]
    fn every_kind_is_read() {
        let (bodies, warnings) = bodies(json!({"resultType": "complete", "content": [
            {"type": "text", "text": "a", "annotations": {"priority": "high", "audience": ["robots"]}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAA=", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
            {"type": "resource", "resource": {"uri": "u", "text": "t"}},
            {"type": "resource", "resource": {"uri": "u", "blob": "AAAA", "mimeType": "a/b"}},
        ]}));
        let media = |kind: &str, data: &str| Media {
            media_type: kind.into(),
            data: data.into(),
        };
        assert_eq!(warnings, [""; 0]);
        assert_eq!(
            bodies,
            [
                text("a"),
                BlockBody::Image(media("image/png", "AAAA")),
                BlockBody::Audio(media("audio/wav", "AAA=")),
                BlockBody::Link {
                    uri: "file:///x".into(),
                    name: "x".into()
                },
                BlockBody::TextResource {
                    uri: "u".into(),
                    text: "t".into()
                },
                BlockBody::BlobResource {
                    uri: "u".into(),
                    media: media("a/b", "AAAA")
                },
            ]
        );
        assert_eq!(
            (
                media("", "AAAA").bytes(),
                media("", "AAA=").bytes(),
                media("", "AA==").bytes()
            ),
            (3, 2, 1)
        );
    }

    #[test]
    fn an_odd_block_costs_itself_only() {
        let (bodies, warnings) = bodies(json!({"content": [
            {"type": "hologram", "x": 1}, {"type": "text", "text": 7}, 3, {"type": "image", "data": "AAAA"},
            {"type": "text", "text": "still here"}, {"type": "resource"}, {"text": "untyped"},
        ]}));
        let unknown = |kind: &str| BlockBody::Unknown { kind: kind.into() };
        let image = BlockBody::Image(Media {
            media_type: UNKNOWN_MEDIA.into(),
            data: "AAAA".into(),
        });
        assert_eq!(
            bodies,
            [
                unknown("hologram"),
                unknown("text"),
                unknown("unnamed"),
                image,
                text("still here"),
                unknown("resource"),
                text("untyped")
            ]
        );
        assert_eq!(warnings.len(), 5);
    }

    #[test]
    fn results_of_any_form_are_read() {
        for (raw, expected, warning) in [
            (json!({}), vec![], "the result is empty"),
            (
                json!({"toolResult": {"a": 1}}),
                vec![text(r#"{"a":1}"#)],
                "the result has the form of before 2024-11-05",
            ),
            (
                json!("plain"),
                vec![text("plain")],
                "the result is no object",
            ),
            (json!([1]), vec![text("[1]")], "the result is no object"),
            (
                json!({"content": "x"}),
                vec![text("x")],
                "`content` is no list",
            ),
            (
                json!({"content": {"type": "text", "text": "x"}}),
                vec![text("x")],
                "`content` is no list",
            ),
            (
                json!({"content": [], "resultType": "novel"}),
                vec![],
                "the result is of an unknown type: `novel`",
            ),
            (
                json!({"content": [], "isError": 1}),
                vec![],
                "`isError` is neither true nor false",
            ),
        ] {
            assert_eq!(bodies(raw), (expected, vec![warning.to_owned()]));
        }
    }

    #[test]
    fn null_said_is_not_nothing_said() {
        let outcome = ToolOutcome::read(json!({"structuredContent": null}));
        assert_eq!(outcome.structured, Some(Value::Null));
        assert_eq!(outcome.warnings, [""; 0]);
        assert_eq!(ToolOutcome::read(json!({"content": []})).structured, None);
        assert_eq!(
            ToolOutcome::read(json!({"structuredContent": [1, 2]})).structured,
            Some(json!([1, 2]))
        );
    }

    #[test]
    fn failures_are_flagged() {
        assert!(ToolOutcome::read(json!({"content": [], "isError": true})).is_error);
        assert!(ToolOutcome::read(json!({"content": [], "isError": "true"})).is_error);
        assert!(!ToolOutcome::read(json!({"content": []})).is_error);
    }
}
