//! A whole answer: `chat.completion`.

use haft_core::{ContentPart, FunctionCall, Item, ItemStatus, ModelResponse, Reasoning};
use serde::Serialize;
use serde_json::Value;

use super::call_ids::CallIds;
use super::{BETWEEN, Heading, UsageBody, finish_reason};

/// An answer in one piece.
#[derive(Debug, Serialize)]
pub(crate) struct Completion {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: [Choice; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageBody>,
}

#[derive(Debug, Serialize)]
struct Choice {
    index: u8,
    message: Said,
    logprobs: Option<Logprobs>,
    finish_reason: &'static str,
}

#[derive(Debug, Serialize)]
struct Said {
    role: &'static str,
    content: Option<String>,
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
}

#[derive(Debug, Serialize)]
struct Call {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function,
}

#[derive(Debug, Serialize)]
struct Function {
    name: String,
    arguments: String,
}

/// How likely each token was.
#[derive(Debug, Serialize)]
pub(super) struct Logprobs {
    content: Vec<Value>,
    refusal: Option<Vec<Value>>,
}

impl Logprobs {
    /// None if nobody said.
    pub(super) fn of(content: Vec<Value>) -> Option<Self> {
        (!content.is_empty()).then_some(Self {
            content,
            refusal: None,
        })
    }
}

impl Completion {
    /// Writes an answer.
    pub(crate) fn of(answer: ModelResponse, heading: Heading) -> Self {
        let mut said = Collected::default();
        for item in answer.items {
            said.add(item);
        }
        let reason = finish_reason(answer.finish, !said.calls.is_empty());
        let has_more = !said.calls.is_empty() || !said.refusal.is_empty();
        Self {
            id: heading.id,
            object: "chat.completion",
            created: heading.created,
            model: heading.model,
            choices: [Choice {
                index: 0,
                message: Said {
                    role: "assistant",
                    content: (!said.text.is_empty() || !has_more).then_some(said.text),
                    refusal: (!said.refusal.is_empty()).then_some(said.refusal),
                    reasoning_content: (!said.thoughts.is_empty()).then_some(said.thoughts),
                    tool_calls: said.calls,
                },
                logprobs: Logprobs::of(said.logprobs),
                finish_reason: reason,
            }],
            usage: answer.usage.map(UsageBody::from),
        }
    }
}

#[derive(Default)]
struct Collected {
    text: String,
    refusal: String,
    thoughts: String,
    calls: Vec<Call>,
    ids: CallIds,
    logprobs: Vec<Value>,
}

impl Collected {
    fn add(&mut self, item: Item) {
        match item {
            Item::Message(message) => {
                append(&mut self.text, &message.text());
                append(&mut self.refusal, &refusal_of(&message.content));
                self.logprobs.extend(logprobs_of(message.content));
            }
            Item::Reasoning(reasoning) => append(&mut self.thoughts, &thoughts_of(&reasoning)),
            Item::FunctionCall(call) => self.calls.push(Call {
                id: self.ids.take(&call.call_id),
                kind: "function",
                function: Function {
                    arguments: match missing_arguments(&call) {
                        "" => call.arguments,
                        missing => missing.to_owned(),
                    },
                    name: call.name,
                },
            }),
            // This protocol has no words for anything else.
            _ => {}
        }
    }
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str(BETWEEN);
    }
    text.push_str(more);
}

/// What stands for the arguments of a call without any: clients parse them. A call that was cut off
/// stays as it is, so that nobody takes it for whole.
pub(super) fn missing_arguments(call: &FunctionCall) -> &'static str {
    let is_cut = call.status == Some(ItemStatus::Incomplete);
    if call.arguments.trim().is_empty() && !is_cut {
        "{}"
    } else {
        ""
    }
}

/// The words of a refusal.
pub(super) fn refusal_of(parts: &[ContentPart]) -> String {
    let refusals = parts.iter().filter_map(|part| match part {
        ContentPart::Refusal { refusal } => Some(refusal.as_str()),
        _ => None,
    });
    refusals.collect()
}

/// What the model thought, or else the summary of it.
pub(super) fn thoughts_of(reasoning: &Reasoning) -> String {
    let content = reasoning.content.iter().filter_map(ContentPart::text);
    let thoughts: String = content.collect();
    if !thoughts.is_empty() {
        return thoughts;
    }
    let summary = reasoning.summary.iter().filter_map(ContentPart::text);
    summary.collect::<Vec<_>>().join(BETWEEN)
}

/// How likely the tokens of a message were; the form is the same in this protocol.
pub(super) fn logprobs_of(parts: Vec<ContentPart>) -> impl Iterator<Item = Value> {
    let lists = parts.into_iter().filter_map(|part| match part {
        ContentPart::OutputText { mut extra, .. } => match extra.remove("logprobs") {
            Some(Value::Array(entries)) => Some(entries),
            _ => None,
        },
        _ => None,
    });
    lists.flatten()
}
