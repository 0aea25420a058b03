//! The content of messages: text, images, files, videos.

use haft_core::{ContentPart, cut};
use serde_json::{Map, Value};

use crate::error::{ApiError, ErrorCode};
use crate::wire::read::fields::{Fields, wrong_type};
use crate::wire::read::forms::{Form as _, ListOf, MAX_TEXT, Object, Text, TextUpTo};
use crate::wire::read::{IMAGE_DETAILS, Read, file, image_url};

/// Where a part stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a message to the model.
    Said,
    /// In a message of the model.
    Answered,
    /// In what a tool gave.
    Output,
}

/// A text, or a list of parts.
pub(super) fn content(value: Value, path: &str, place: Place) -> Read<Vec<ContentPart>> {
    match value {
        Value::String(_) => Ok(vec![text(TextUpTo(MAX_TEXT).read(value, path)?, place)]),
        Value::Array(_) => {
            ListOf(|value: Value, path: &str| part(value, path, place)).read(value, path)
        }
        other => Err(wrong_type(path, "a string or a list of parts", &other)),
    }
}

fn text(text: String, place: Place) -> ContentPart {
    match place {
        Place::Answered => ContentPart::output_text(text),
        Place::Said | Place::Output => ContentPart::InputText { text },
    }
}

fn part(value: Value, path: &str, place: Place) -> Read<ContentPart> {
    let mut fields = Fields::of(value, path)?;
    let kind = fields.need("type", Text)?;
    match (place, kind.as_str()) {
        (_, "text") => Ok(text(fields.need("text", TextUpTo(MAX_TEXT))?, place)),
        (Place::Answered, "refusal") => Ok(ContentPart::Refusal {
            refusal: fields.need("refusal", TextUpTo(MAX_TEXT))?,
        }),
        (Place::Said | Place::Output, "image_url") => image(fields),
        (Place::Said | Place::Output, "file") => file(fields.need("file", Object)?),
        (Place::Said | Place::Output, "video_url") => {
            let mut video = fields.need("video_url", Object)?;
            let members = [
                ("type", "input_video".to_owned()),
                ("video_url", video.need("url", Text)?),
            ];
            let members = members.map(|(key, text)| (key.to_owned(), Value::from(text)));
            Ok(ContentPart::Other(Map::from_iter(members)))
        }
        _ => {
            let kinds = match place {
                Place::Answered => "`text` and `refusal`",
                Place::Said | Place::Output => "`text`, `image_url` and `file`",
            };
            let message = format!(
                "`{path}` is a part of type `{}`, which cannot be sent to this model: use {kinds}",
                cut(&kind)
            );
            Err(ApiError::new(ErrorCode::UnsupportedContent, message).at(fields.at("type")))
        }
    }
}

/// `image_url` is an object with a `url`; many clients write the address itself.
fn image(mut fields: Fields) -> Read<ContentPart> {
    let at = fields.at("image_url");
    let (url, detail) = match fields.take("image_url") {
        Some(url @ Value::String(_)) => (image_url(url, &at)?, None),
        given => {
            let mut image = Fields::of(given.unwrap_or_default(), at)?;
            (
                image.need("url", image_url)?,
                image.get("detail", IMAGE_DETAILS)?,
            )
        }
    };
    Ok(ContentPart::InputImage {
        image_url: url,
        detail: Some(detail.unwrap_or("auto").to_owned()),
    })
}
