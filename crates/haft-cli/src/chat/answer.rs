//! What came of one message.

use haft::{Usage, Value, json};

use crate::screen::item::{call_of, result_of, text_of};

/// An answer, or why there is none.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) end: AnswerEnd,
    /// What became part of the conversation, the message included, as items of the API.
    pub(super) items: Vec<Value>,
    pub(super) usage: Usage,
    /// By which a server knows it.
    pub(super) response_id: Option<String>,
    /// The conversation of a server's API that it belongs to.
    pub(super) conversation_id: Option<String>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    Completed,
    /// It goes on when calls were answered.
    Waiting,
    /// A limit was reached, this one.
    Incomplete(String),
    /// Somebody stopped it.
    Stopped,
    /// It failed, because of this.
    Failed(String),
}

impl AnswerEnd {
    fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Waiting => "waiting",
            Self::Incomplete(_) => "incomplete",
            Self::Stopped => "stopped",
            Self::Failed(_) => "failed",
        }
    }

    /// Why it is no whole answer, if there is something to say about that.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Incomplete(reason) | Self::Failed(reason) => Some(reason),
            Self::Completed | Self::Waiting | Self::Stopped => None,
        }
    }
}

/// What a message led to.
#[derive(Debug)]
pub(super) enum Reply {
    Answer(Answer),
    /// Somebody wants to leave.
    Leave,
}

impl Answer {
    /// For programs.
    pub(super) fn json(&self) -> Value {
        let is_answer = |item: &&Value| item["type"] == "message" && item["role"] == "assistant";
        let texts = self.items.iter().filter(is_answer);
        let text: Vec<String> = texts.map(|item| text_of(&item["content"])).collect();
        let calls = self.items.iter().filter_map(|item| self.call(item));
        json!({
            "status": self.end.name(),
            "reason": self.end.reason(),
            "response_id": self.response_id,
            "conversation_id": self.conversation_id,
            "text": text.join("\n\n"),
            "calls": calls.collect::<Vec<_>>(),
            "usage": {
                "input_tokens": self.usage.input_tokens,
                "output_tokens": self.usage.output_tokens,
                "total_tokens": self.usage.total_tokens(),
            },
        })
    }

    /// A call with what came of it, which is in its own item or in another one.
    fn call(&self, item: &Value) -> Option<Value> {
        let call = call_of(item)?;
        let (output, is_error) = if call.is_the_clients {
            let is_output = |it: &&Value| {
                it["call_id"] == call.id
                    && it["type"]
                        .as_str()
                        .is_some_and(|it| it.ends_with("_output"))
            };
            let output = self.items.iter().find(is_output);
            let is_error = output.is_some_and(|it| it["is_error"] == true);
            (output.map(|it| text_of(&it["output"])), is_error)
        } else {
            let (text, is_error) = result_of(item);
            (Some(text.into_owned()), is_error)
        };
        Some(json!({
            "name": call.name,
            "call_id": call.id,
            "arguments": call.arguments,
            "output": output,
            "is_error": is_error,
        }))
    }
}

/// Usage as the API writes it.
pub(super) fn usage_of(response: &Value) -> Usage {
    let count = |path: &str| {
        let number = response["usage"].pointer(path);
        number.and_then(Value::as_u64).unwrap_or_default()
    };
    Usage {
        input_tokens: count("/input_tokens"),
        cached_input_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_tokens: count("/input_tokens_details/cache_write_tokens"),
        output_tokens: count("/output_tokens"),
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        requests: 1,
    }
}
