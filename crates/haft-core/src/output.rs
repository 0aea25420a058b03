//! What a tool gives back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool's failure, in words that the model reads.
///
/// Every error type converts into it, so `?` works in a tool:
///
/// ```
/// use haft_core::ToolError;
/// fn parse(text: &str) -> Result<i64, ToolError> {
///     Ok(text.parse::<i64>()?)
/// }
/// assert_eq!(parse("x").unwrap_err().message(), "invalid digit found in string");
/// ```
///
/// Like `anyhow::Error`, and for the same reason, it is not itself a [`std::error::Error`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    message: String,
}

impl ToolError {
    /// A failure in these words. They go to the model: no secrets in them.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// The words.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        // The alternate form of the well-known error types shows their causes too.
        Self::new(format!("{error:#}"))
    }
}

/// One piece of rich content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// The bytes, in base64.
        data: String,
    },
    /// A JSON value.
    Structured {
        /// The value.
        value: Value,
    },
}

/// The result of a call that ran.
///
/// It carries a message for the model, a value for the model and for code, or rich content parts.
///
/// ```
/// use haft_core::ToolOutput;
/// use serde_json::json;
///
/// let output = ToolOutput::value(json!({"degrees": 4})).with_message("Oslo, now:");
/// assert_eq!(output.text_for_model(), "Oslo, now:\n\n{\"degrees\":4}");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    message: String,
    value: Option<Value>,
    parts: Vec<OutputPart>,
    rendered: Option<String>,
    value_hidden: bool,
    success: bool,
}

impl ToolOutput {
    /// Nothing to say: it is done.
    pub fn empty() -> Self {
        Self {
            message: String::new(),
            value: None,
            parts: Vec::new(),
            rendered: None,
            value_hidden: false,
            success: true,
        }
    }

    /// Plain text.
    pub fn text(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::empty()
        }
    }

    /// A value; text is shown as it is, everything else as compact JSON.
    pub fn value(value: Value) -> Self {
        Self {
            value: Some(value),
            ..Self::empty()
        }
    }

    /// A value of any serialisable type.
    pub fn serialized<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        Ok(Self::value(serde_json::to_value(value)?))
    }

    /// Rich content, in order.
    pub fn parts(parts: impl IntoIterator<Item = OutputPart>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
            ..Self::empty()
        }
    }

    /// The tool ran and did not succeed; the model reads `message`, the call's state is undone.
    pub fn failure(message: impl Into<String>) -> Self {
        Self {
            success: false,
            ..Self::text(message)
        }
    }

    /// Puts a message in front of the value.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Puts rich content behind message and value.
    #[must_use]
    pub fn with_parts(mut self, parts: impl IntoIterator<Item = OutputPart>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// Shows the value to the model in these words instead of as JSON.
    #[must_use]
    pub fn with_rendering(mut self, text: impl Into<String>) -> Self {
        self.rendered = Some(text.into());
        self
    }

    /// Keeps the value for code and away from the model.
    #[must_use]
    pub fn hiding_value(mut self) -> Self {
        self.value_hidden = true;
        self
    }

    /// Whether the tool reached what it was called for.
    pub fn is_success(&self) -> bool {
        self.success
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The value, also when it is kept away from the model.
    pub fn as_value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// The rich content.
    pub fn as_parts(&self) -> &[OutputPart] {
        &self.parts
    }

    /// What the model reads, as text: message, blank line, value. Images are named, not shown.
    pub fn text_for_model(&self) -> String {
        self.as_text(|media_type| Some(format!("[image, {media_type}]")))
    }

    /// What the model reads as text where it is shown the images themselves.
    ///
    /// ```
    /// use haft_core::{OutputPart, ToolOutput};
    /// let image = OutputPart::Image { media_type: "image/png".into(), data: "aGk=".into() };
    /// let output = ToolOutput::text("a map").with_parts([image]);
    /// assert_eq!(output.text_for_model(), "a map\n\n[image, image/png]");
    /// assert_eq!(output.text_beside_images(), "a map");
    /// ```
    pub fn text_beside_images(&self) -> String {
        self.as_text(|_| None)
    }

    fn as_text(&self, name_image: impl Fn(&str) -> Option<String>) -> String {
        let shown = self.value.as_ref().filter(|_| !self.value_hidden);
        let mut pieces = Vec::new();
        if !self.message.is_empty() {
            pieces.push(self.message.clone());
        }
        if let Some(value) = shown {
            pieces.push(self.rendered.clone().unwrap_or_else(|| render(value)));
        }
        pieces.extend(self.parts.iter().filter_map(|part| match part {
            OutputPart::Text { text } => Some(text.clone()),
            OutputPart::Image { media_type, .. } => name_image(media_type),
            OutputPart::Structured { value } => Some(render(value)),
        }));
        pieces.join("\n\n")
    }
}

fn render(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What a tool may return: nothing, anything serialisable, or a [`ToolOutput`].
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "this cannot be shown to a model",
    note = "derive `serde::Serialize` for `{Self}`, or return a `haft::ToolOutput`"
)]
pub trait IntoToolOutput {
    /// Makes an output of it.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize + 'static> IntoToolOutput for T {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        if std::any::TypeId::of::<T>() == std::any::TypeId::of::<()>() {
            return Ok(ToolOutput::empty());
        }
        ToolOutput::serialized(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_shown_as_it_is_and_other_values_as_compact_json() {
        assert_eq!(ToolOutput::value(json!("sunny")).text_for_model(), "sunny");
        assert_eq!(
            ToolOutput::value(json!({"a": [1]})).text_for_model(),
            r#"{"a":[1]}"#
        );
    }

    #[test]
    fn a_hidden_value_reaches_code_and_not_the_model() {
        let output = ToolOutput::value(json!(7))
            .with_message("done")
            .hiding_value();
        assert_eq!(output.text_for_model(), "done");
        assert_eq!(output.as_value(), Some(&json!(7)));
    }

    #[test]
    fn unit_says_nothing_and_none_says_null() {
        assert_eq!(().into_tool_output().unwrap(), ToolOutput::empty());
        let none: Option<u8> = None;
        assert_eq!(none.into_tool_output().unwrap().text_for_model(), "null");
    }

    #[test]
    fn a_value_and_rich_content_go_together() {
        let image = OutputPart::Image {
            media_type: "image/png".into(),
            data: "aGk=".into(),
        };
        let output = ToolOutput::value(json!({"n": 1})).with_parts([image.clone()]);
        assert_eq!(output.as_parts(), [image]);
        assert_eq!(output.text_for_model(), "{\"n\":1}\n\n[image, image/png]");
    }

    #[test]
    fn rich_content_keeps_its_order() {
        let output = ToolOutput::parts([
            OutputPart::Text {
                text: "before".into(),
            },
            OutputPart::Image {
                media_type: "image/png".into(),
                data: "aGk=".into(),
            },
            OutputPart::Structured {
                value: json!({"n": 1}),
            },
        ]);
        assert_eq!(
            output.text_for_model(),
            "before\n\n[image, image/png]\n\n{\"n\":1}"
        );
    }
}
