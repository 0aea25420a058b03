//! Content parts: what a message, a tool's output or a thought is made of.

use haft_core::{CallOutput, ContentPart, cut};
use serde_json::{Map, Value};

use super::Read;
use super::fields::{Fields, invalid, missing, wrong_type};
use super::forms::{Form as _, ListOf, MAX_TEXT, Text, TextUpTo, Word};
use crate::error::{ApiError, ErrorCode};

const MAX_IMAGE_URL: usize = 20_971_520;
const MAX_FILE_DATA: usize = 33_554_432;

/// Where a part stands; each place has its own kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a message to the model.
    Said,
    /// In a message of the model.
    Answered,
    /// In a tool's output.
    Output,
    /// In what the model thought.
    Thought,
    /// In a summary of that.
    Summary,
}

impl Place {
    fn kinds(self) -> &'static str {
        match self {
            Self::Said | Self::Output => {
                "`input_text`, `input_image`, `input_file` and `input_video`"
            }
            Self::Answered => "`output_text` and `refusal`",
            Self::Thought => "`reasoning_text`",
            Self::Summary => "`summary_text`",
        }
    }
}

/// The content of a message: parts, or a text that stands for one.
pub(super) fn content(value: Value, path: &str, place: Place) -> Read<Vec<ContentPart>> {
    match value {
        Value::String(_) => {
            let text = TextUpTo(MAX_TEXT).read(value, path)?;
            Ok(vec![match place {
                Place::Answered => ContentPart::output_text(text),
                _ => ContentPart::InputText { text },
            }])
        }
        Value::Array(_) => parts(value, path, place),
        other => Err(wrong_type(path, "a string or a list of parts", &other)),
    }
}

/// A list of parts.
pub(super) fn parts(value: Value, path: &str, place: Place) -> Read<Vec<ContentPart>> {
    ListOf(|value: Value, path: &str| part(value, path, place)).read(value, path)
}

/// What a tool gave: text or parts.
pub(super) fn output(value: Value, path: &str) -> Read<CallOutput> {
    match value {
        Value::String(_) => TextUpTo(MAX_TEXT).read(value, path).map(CallOutput::Text),
        Value::Array(_) => parts(value, path, Place::Output).map(CallOutput::Parts),
        other => Err(wrong_type(path, "a string or a list of parts", &other)),
    }
}

fn part(value: Value, path: &str, place: Place) -> Read<ContentPart> {
    let mut fields = Fields::of(value, path)?;
    let kind = fields.need("type", Text)?;
    match (place, kind.as_str()) {
        (Place::Answered, "output_text" | "input_text" | "text") => output_text(fields),
        (Place::Answered, "refusal") => Ok(ContentPart::Refusal {
            refusal: fields.need("refusal", TextUpTo(MAX_TEXT))?,
        }),
        (Place::Said | Place::Output, "input_text" | "text") | (Place::Output, "output_text") => {
            Ok(ContentPart::InputText {
                text: fields.need("text", TextUpTo(MAX_TEXT))?,
            })
        }
        (Place::Said | Place::Output, "input_image") => image(fields),
        (Place::Said | Place::Output, "input_file") => file(fields),
        (Place::Said | Place::Output, "input_video") => {
            let url = fields.need("video_url", Text)?;
            Ok(other("input_video", [("video_url", url)], fields))
        }
        (Place::Thought, "reasoning_text" | "text") => Ok(ContentPart::ReasoningText {
            text: fields.need("text", TextUpTo(MAX_TEXT))?,
        }),
        (Place::Summary, "summary_text" | "text") => Ok(ContentPart::SummaryText {
            text: fields.need("text", TextUpTo(MAX_TEXT))?,
        }),
        _ => Err(unsupported(
            &fields.at("type"),
            format!(
                "`{path}` is a part of type `{}`, which cannot stand here: use {}",
                cut(&kind),
                place.kinds()
            ),
        )),
    }
}

fn output_text(mut fields: Fields) -> Read<ContentPart> {
    let any = |value: Value, _: &str| Ok(value);
    let text = fields.need("text", TextUpTo(MAX_TEXT))?;
    let annotations = fields.get("annotations", ListOf(any))?;
    if let Some(logprobs) = fields.get("logprobs", ListOf(any))? {
        fields.put("logprobs", logprobs.into());
    }
    Ok(ContentPart::OutputText {
        text,
        annotations: annotations.unwrap_or_default(),
        extra: fields.rest(),
    })
}

fn image(mut fields: Fields) -> Read<ContentPart> {
    refuse_file_id(&mut fields)?;
    let image_url = fields.need("image_url", image_url)?;
    let detail = fields.get("detail", IMAGE_DETAILS)?;
    Ok(ContentPart::InputImage {
        image_url,
        detail: Some(detail.unwrap_or("auto").to_owned()),
    })
}

/// How closely an image is looked at.
pub(crate) const IMAGE_DETAILS: Word = Word(&["auto", "low", "high", "original"]);

/// Where an image is, or the image itself.
pub(crate) fn image_url(value: Value, path: &str) -> Read<String> {
    let url = TextUpTo(MAX_IMAGE_URL).read(value, path)?;
    // Which hosts are allowed is decided later, by `content_hosts`.
    if !["https://", "http://", "data:"]
        .iter()
        .any(|scheme| starts_with(&url, scheme))
    {
        return Err(invalid(
            path,
            format!("`{path}` must be an `http:` or `https:` URL, or a `data:` URL with the image"),
        ));
    }
    Ok(url)
}

/// Schemes are the same in capital letters.
fn starts_with(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// A file, by its content or its address.
pub(crate) fn file(mut fields: Fields) -> Read<ContentPart> {
    refuse_file_id(&mut fields)?;
    let name = fields.get("filename", Text)?.map(|name| ("filename", name));
    let data = fields.get("file_data", TextUpTo(MAX_FILE_DATA))?;
    let url = fields.get("file_url", Text)?;
    if data.is_none() && url.is_none() {
        return Err(missing(
            &fields.at("file_data"),
            "send the file in `file_data`, or its address in `file_url`",
        ));
    }
    let members = [
        name,
        data.map(|data| ("file_data", data)),
        url.map(|url| ("file_url", url)),
    ];
    Ok(other("input_file", members.into_iter().flatten(), fields))
}

fn refuse_file_id(fields: &mut Fields) -> Read<()> {
    if fields.take("file_id").is_none() {
        return Ok(());
    }
    let at = fields.at("file_id");
    Err(unsupported(
        &at,
        format!(
            "`{at}` names an uploaded file, but this server keeps none: send the content itself"
        ),
    ))
}

/// A part that has no type of its own inside.
fn other(
    kind: &str,
    members: impl IntoIterator<Item = (&'static str, String)>,
    fields: Fields,
) -> ContentPart {
    let mut part = Map::from_iter([(String::from("type"), Value::from(kind))]);
    for (key, text) in members {
        part.insert(key.to_owned(), text.into());
    }
    part.extend(fields.rest());
    ContentPart::Other(part)
}

fn unsupported(path: &str, message: String) -> ApiError {
    ApiError::new(ErrorCode::UnsupportedContent, message).at(path)
}
