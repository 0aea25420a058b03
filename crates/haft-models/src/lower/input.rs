//! What others wrote for the model, by what it is: text, images, files, videos.
//!
//! | part | Chat | Responses | Messages | Ollama |
//! |---|---|---|---|---|
//! | image in a `data:` address | `image_url` | as it is | `image` | `images` |
//! | image at an address | `image_url` | as it is | `image` | – |
//! | `file_data` | `file` | as it is | `document`: PDF, text | – |
//! | `file_url` | – | as it is | `document` | – |
//! | `file_id` | `file` | as it is | – | – |
//! | video | `video_url` | as it is | – | – |
//!
//! All of it only where the capabilities say so. What has no place is refused by name: in a message
//! the request fails, in the output of a call it is named to the model in brackets.

use haft_core::{Capabilities, ContentPart, Item, UnsupportedContent};
use serde_json::{Map, Value};

/// A part by what it is. Parts with members that haft does not know are read all the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Input<'p> {
    Text(&'p str),
    Image {
        /// An address, or a `data:` one.
        url: Option<&'p str>,
        detail: Option<&'p str>,
    },
    File(File<'p>),
    Video {
        url: Option<&'p str>,
    },
    Unknown,
}

/// A file, in one of the forms in which it can be given.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct File<'p> {
    /// A `data:` address, or bare base64.
    pub(crate) data: Option<&'p str>,
    pub(crate) url: Option<&'p str>,
    pub(crate) id: Option<&'p str>,
    pub(crate) name: Option<&'p str>,
}

impl<'p> Input<'p> {
    pub(crate) fn of(part: &'p ContentPart) -> Self {
        match part {
            ContentPart::Refusal { refusal } => Self::Text(refusal),
            ContentPart::InputImage { image_url, detail } => Self::Image {
                url: Some(image_url),
                detail: detail.as_deref(),
            },
            ContentPart::Other(members) => Self::of_members(part.kind(), members),
            part => part.text().map_or(Self::Unknown, Self::Text),
        }
    }

    fn of_members(kind: &str, members: &'p Map<String, Value>) -> Self {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        match kind {
            "input_image" => Self::Image {
                url: text("image_url"),
                detail: text("detail"),
            },
            "input_file" => Self::File(File {
                data: text("file_data"),
                url: text("file_url"),
                id: text("file_id"),
                name: text("filename"),
            }),
            "input_video" => Self::Video {
                url: text("video_url"),
            },
            _ => text("text").map_or(Self::Unknown, Self::Text),
        }
    }
}

/// Why a part has no place in a protocol although the model takes its kind; none if it has one.
pub(crate) type Objection = fn(&Input<'_>) -> Option<&'static str>;

/// The first part of an item that has no place.
pub(crate) fn unsupported(
    item: &Item,
    capabilities: &Capabilities,
    objection: Objection,
) -> Option<UnsupportedContent> {
    item.refused_part(|part| refusal(part, capabilities, objection))
}

/// Why a part cannot be sent; none if it can.
pub(crate) fn refusal(
    part: &ContentPart,
    capabilities: &Capabilities,
    objection: Objection,
) -> Option<String> {
    match Input::of(part) {
        Input::Text(_) => None,
        input => capabilities
            .refusal_of(part.kind())
            .or_else(|| objection(&input).map(str::to_owned)),
    }
}

/// What stands for a part that cannot be sent, where the request must not fail by it.
pub(crate) fn in_brackets(part: &ContentPart) -> String {
    let kind = part.kind();
    tracing::warn!(kind, "a part is only named: this model cannot be sent it");
    match kind {
        "input_image" => String::from("[image]"),
        kind => format!("[unsupported content: {kind}]"),
    }
}

/// The media type and the base64 in a `data:` address; none for every other.
pub(crate) fn embedded(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let head = head.strip_suffix(";base64")?;
    Some((head.split(';').next().unwrap_or(head), data))
}

/// Which inputs a model takes, as a number: what is rendered depends on it.
pub(crate) fn variant(capabilities: &Capabilities) -> u64 {
    u64::from(capabilities.image_input)
        + 2 * u64::from(capabilities.file_input)
        + 4 * u64::from(capabilities.video_input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn part(json: Value) -> ContentPart {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn parts_with_odd_members_are_still_what_they_are() {
        let text = part(json!({"type": "input_text", "text": "hi", "odd": 1}));
        assert_eq!(Input::of(&text), Input::Text("hi"));
        let image = part(json!({"type": "input_image", "image_url": "u", "file_id": null}));
        let expected = Input::Image {
            url: Some("u"),
            detail: None,
        };
        assert_eq!(Input::of(&image), expected);
        let sound = part(json!({"type": "input_audio", "data": "x"}));
        assert_eq!(Input::of(&sound), Input::Unknown);
        assert_eq!(in_brackets(&sound), "[unsupported content: input_audio]");
    }

    #[test]
    fn only_base64_in_a_data_address_is_embedded() {
        let pdf = "data:application/pdf;name=a.pdf;base64,AAAA";
        assert_eq!(embedded(pdf), Some(("application/pdf", "AAAA")));
        for other in ["data:text/plain,hi", "https://h/a.pdf", "data:"] {
            assert_eq!(embedded(other), None);
        }
    }
}
