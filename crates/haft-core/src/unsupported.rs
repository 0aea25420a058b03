//! Parts of a conversation that a model cannot be sent.

use crate::capabilities::Capabilities;
use crate::item::{CallOutput, ContentPart, Item, Role};
use crate::model_error::{ModelError, ModelErrorKind};

/// A part of an item that a model cannot be sent. Told before anything is: a part never vanishes.
///
/// ```
/// use haft_core::{ModelError, UnsupportedContent};
/// let video = UnsupportedContent {
///     place: "content[1]".into(),
///     kind: "input_video".into(),
///     reason: "the model takes no videos".into(),
/// };
/// let error = ModelError::from(video);
/// assert_eq!(error.code.as_deref(), Some("unsupported_content"));
/// assert!(error.message.starts_with("`content[1]`, an `input_video`, cannot be sent"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{place}`, an `{kind}`, cannot be sent: {reason}")]
pub struct UnsupportedContent {
    /// Where it stands in its item: `content[1]`, or `output[0]` for the output of a call.
    pub place: String,
    /// Its `type`.
    pub kind: String,
    /// Why, and what to do.
    pub reason: String,
}

impl From<UnsupportedContent> for ModelError {
    fn from(unsupported: UnsupportedContent) -> Self {
        Self::new(ModelErrorKind::InvalidRequest, unsupported.to_string())
            .with_code("unsupported_content")
    }
}

impl Item {
    /// The parts that somebody else than the model wrote for it, each with its place: those of a
    /// message, and those of a call's output.
    pub fn input_parts(&self) -> impl Iterator<Item = (String, &ContentPart)> {
        let (member, parts) = match self {
            Self::Message(message) if message.role != Role::Assistant => {
                ("content", message.content.as_slice())
            }
            Self::FunctionCallOutput(output) => match &output.output {
                CallOutput::Parts(parts) => ("output", parts.as_slice()),
                CallOutput::Text(_) => ("output", [].as_slice()),
            },
            _ => ("", [].as_slice()),
        };
        let parts = parts.iter().enumerate();
        parts.map(move |(at, part)| (format!("{member}[{at}]"), part))
    }

    /// The first of the [`input_parts`](Self::input_parts) that `refusal` has a reason against.
    pub fn refused_part(
        &self,
        refusal: impl Fn(&ContentPart) -> Option<String>,
    ) -> Option<UnsupportedContent> {
        self.input_parts().find_map(|(place, part)| {
            Some(UnsupportedContent {
                reason: refusal(part)?,
                place,
                kind: part.kind().to_owned(),
            })
        })
    }
}

impl Capabilities {
    /// The first part of an item that a model with these capabilities cannot be sent, by its type
    /// alone. [`Model::unsupported`](crate::Model::unsupported) knows more.
    ///
    /// ```
    /// use haft_core::{Capabilities, Item};
    /// let item: Item = serde_json::from_str(
    ///     r#"{"role":"user","content":[{"type":"input_image","image_url":"https://h/i.png"}]}"#,
    /// )?;
    /// let blind = Capabilities::default().unsupported_content(&item);
    /// assert_eq!(blind.map(|it| it.place).as_deref(), Some("content[0]"));
    /// let seeing = Capabilities { image_input: true, ..Capabilities::default() };
    /// assert_eq!(seeing.unsupported_content(&item), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn unsupported_content(&self, item: &Item) -> Option<UnsupportedContent> {
        item.refused_part(|part| self.refusal_of(part.kind()))
    }

    /// Why a part of this type cannot be sent; none if it can.
    pub fn refusal_of(&self, kind: &str) -> Option<String> {
        let (is_taken, capability) = match kind {
            "input_text" | "output_text" | "text" | "refusal" | "reasoning_text"
            | "summary_text" => return None,
            "input_image" => (self.image_input, "image_input"),
            "input_file" => (self.file_input, "file_input"),
            "input_video" => (self.video_input, "video_input"),
            _ => return Some("no model is known to take it: leave it out".into()),
        };
        (!is_taken).then(|| {
            format!(
                "the model is not taken to be able to: if it is, set its capability `{capability}`"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place(capabilities: &Capabilities, item: serde_json::Value) -> Option<String> {
        let item: Item = serde_json::from_value(item).unwrap();
        let unsupported = capabilities.unsupported_content(&item)?;
        Some(format!("{} {}", unsupported.place, unsupported.kind))
    }

    #[test]
    fn each_kind_of_part_has_its_capability() {
        let none = Capabilities::default();
        let all = Capabilities {
            image_input: true,
            file_input: true,
            video_input: true,
            ..Capabilities::default()
        };
        for kind in ["input_image", "input_file", "input_video"] {
            let parts = json!([{"type": "input_text", "text": "a", "odd": 1}, {"type": kind}]);
            let message = json!({"role": "user", "content": parts});
            let output = json!({"type": "function_call_output", "call_id": "c", "output": parts});
            assert_eq!(
                place(&none, message.clone()),
                Some(format!("content[1] {kind}"))
            );
            assert_eq!(
                place(&none, output.clone()),
                Some(format!("output[1] {kind}"))
            );
            assert_eq!(place(&all, message), None);
            assert_eq!(place(&all, output), None);
        }
        let smell = json!({"role": "user", "content": [{"type": "input_smell"}]});
        assert_eq!(
            place(&all, smell).as_deref(),
            Some("content[0] input_smell")
        );
        let own = json!({"role": "assistant", "content": [{"type": "output_audio"}]});
        assert_eq!(place(&none, own), None, "what the model said is its own");
    }
}
