//! Ollama's own chat: one line, or the only one.

use haft_core::{FinishReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{read, text};

#[derive(Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow, default)]
    done: Option<&'a RawValue>,
    #[serde(borrow, default)]
    done_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_eval_count: Option<&'a RawValue>,
    #[serde(borrow, default)]
    eval_count: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> Line<'a> {
    pub(crate) fn model(&self) -> Option<String> {
        text(self.model)
    }

    pub(crate) fn message(&self) -> Option<Message<'a>> {
        serde_json::from_str(self.message?.get()).ok()
    }

    /// How likely each token was.
    pub(crate) fn logprobs(&self) -> Vec<serde_json::Value> {
        super::logprobs(self.logprobs)
    }

    pub(crate) fn is_done(&self) -> bool {
        read(self.done) == Some(true)
    }

    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some_and(|error| error.get() != "null")
    }

    pub(crate) fn finish(&self) -> FinishReason {
        match text(self.done_reason).as_deref() {
            Some("stop") => FinishReason::Normal,
            Some("length") => FinishReason::Length,
            // Older servers give no reason.
            _ => FinishReason::Unknown,
        }
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        let output_tokens = read(self.eval_count)?;
        Some(Usage {
            // Left out where the whole prompt came from the cache.
            input_tokens: read(self.prompt_eval_count).unwrap_or(0),
            output_tokens,
            requests: 1,
            ..Usage::default()
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    pub(crate) fn content(&self) -> Option<String> {
        text(self.content).filter(|text| !text.is_empty())
    }

    pub(crate) fn thinking(&self) -> Option<String> {
        text(self.thinking).filter(|text| !text.is_empty())
    }

    /// Calls come whole.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let list: Option<Vec<&'a RawValue>> = self
            .tool_calls
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        list.into_iter()
            .flatten()
            .filter_map(|raw| Call::read(raw.get()))
            .collect()
    }
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Newer servers give one.
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Call {
    fn read(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow, default)]
            id: Option<&'a RawValue>,
            #[serde(borrow)]
            function: Function<'a>,
        }
        #[derive(Deserialize)]
        struct Function<'a> {
            #[serde(borrow, default)]
            name: Option<&'a RawValue>,
            #[serde(borrow, default)]
            arguments: Option<&'a RawValue>,
        }
        let wire: Wire<'_> = serde_json::from_str(json).ok()?;
        Some(Self {
            id: text(wire.id).filter(|id| !id.is_empty()),
            name: text(wire.function.name).unwrap_or_default(),
            arguments: super::arguments(wire.function.arguments).unwrap_or_default(),
        })
    }
}
