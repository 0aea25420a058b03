//! Chat Completions: a whole answer, or a chunk of one.

use haft_core::{FinishReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::text;
use crate::reasoning_field::ReasoningField;

/// An answer or a chunk; they differ only in `message` and `delta`.
#[derive(Deserialize)]
pub(crate) struct Answer<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> Answer<'a> {
    pub(crate) fn id(&self) -> Option<String> {
        text(self.id).filter(|id| !id.is_empty())
    }

    pub(crate) fn model(&self) -> Option<String> {
        text(self.model).filter(|model| !model.is_empty())
    }

    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some_and(|error| error.get() != "null")
    }

    /// The first of the alternative answers; nobody asks for more.
    pub(crate) fn choice(&self) -> Option<Choice<'a>> {
        let choices: Vec<Choice<'a>> = serde_json::from_str(self.choices?.get()).ok()?;
        choices.into_iter().find(|choice| {
            let index = choice.index.map(RawValue::get);
            index.is_none_or(|index| matches!(index, "0" | "null"))
        })
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        let usage: Value = super::read(self.usage)?;
        let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
        Some(Usage {
            input_tokens: count("/prompt_tokens")?,
            cache_write_tokens: count("/prompt_tokens_details/cache_write_tokens").unwrap_or(0),
            cached_input_tokens: count("/prompt_tokens_details/cached_tokens")
                .or_else(|| count("/prompt_cache_hit_tokens"))
                .unwrap_or(0),
            output_tokens: count("/completion_tokens").unwrap_or(0),
            reasoning_tokens: count("/completion_tokens_details/reasoning_tokens").unwrap_or(0),
            requests: 1,
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(borrow, default)]
    index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> Choice<'a> {
    /// What was said, in whole or in part.
    pub(crate) fn said(&self) -> Option<Said<'a>> {
        let is_object = |raw: &&RawValue| raw.get().starts_with('{');
        let said = self.delta.filter(is_object).or(self.message)?;
        serde_json::from_str(said.get()).ok()
    }

    /// How likely each token of the text was.
    pub(crate) fn logprobs(&self) -> Vec<Value> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow, default)]
            content: Option<&'a RawValue>,
        }
        let wire: Option<Wire<'a>> = self
            .logprobs
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        super::logprobs(wire.and_then(|wire| wire.content))
    }

    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some_and(|error| error.get() != "null")
    }

    pub(crate) fn finish(&self) -> Option<FinishReason> {
        let reason = text(self.finish_reason).filter(|reason| !reason.is_empty())?;
        Some(match reason.as_str() {
            "stop" | "tool_calls" | "function_call" => FinishReason::Normal,
            "length" | "max_tokens" | "model_length" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            "error" => FinishReason::Error,
            _ => FinishReason::Unknown,
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct Said<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
}

impl<'a> Said<'a> {
    /// Text, also where it comes as a list of parts.
    pub(crate) fn content(&self) -> Option<String> {
        let given = text(self.content).or_else(|| {
            let parts: Vec<Value> = super::read(self.content)?;
            Some(
                parts
                    .iter()
                    .filter_map(|part| part.get("text")?.as_str())
                    .collect(),
            )
        });
        given.filter(|text| !text.is_empty())
    }

    /// Whether there is text here, be it empty: some tokens are only half a letter.
    pub(crate) fn has_content(&self) -> bool {
        let content = self.content.map(RawValue::get);
        content.is_some_and(|json| json != "null") && self.reasoning().is_none()
    }

    /// Whether nothing is said: no text, thought, refusal or call.
    pub(crate) fn is_empty(&self) -> bool {
        self.content().is_none()
            && self.reasoning().is_none()
            && self.refusal().is_none()
            && self.calls().is_empty()
    }

    /// Thoughts, with the name of the member that held them.
    pub(crate) fn reasoning(&self) -> Option<(ReasoningField, String)> {
        [
            (ReasoningField::ReasoningContent, self.reasoning_content),
            (ReasoningField::Reasoning, self.reasoning),
        ]
        .into_iter()
        .find_map(|(field, raw)| Some((field, text(raw).filter(|text| !text.is_empty())?)))
    }

    pub(crate) fn refusal(&self) -> Option<String> {
        text(self.refusal).filter(|text| !text.is_empty())
    }

    pub(crate) fn calls(&self) -> Vec<CallPiece> {
        let list: Option<Vec<&'a RawValue>> = self
            .tool_calls
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        let pieces = list.into_iter().flatten();
        pieces
            .filter_map(|raw| CallPiece::read(raw.get()))
            .collect()
    }
}

/// A call, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CallPiece {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) arguments: Option<String>,
}

impl CallPiece {
    fn read(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow, default)]
            index: Option<&'a RawValue>,
            #[serde(borrow, default)]
            id: Option<&'a RawValue>,
            #[serde(borrow, default)]
            function: Option<&'a RawValue>,
        }
        #[derive(Deserialize, Default)]
        struct Function<'a> {
            #[serde(borrow, default)]
            name: Option<&'a RawValue>,
            #[serde(borrow, default)]
            arguments: Option<&'a RawValue>,
        }
        let wire: Wire<'_> = serde_json::from_str(json).ok()?;
        let function: Function<'_> = wire
            .function
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        Some(Self {
            index: super::read(wire.index),
            id: text(wire.id).filter(|id| !id.is_empty()),
            name: text(function.name).filter(|name| !name.is_empty()),
            arguments: super::arguments(function.arguments),
        })
    }
}
