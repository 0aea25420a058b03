//! The items of an answer while they are written.

use std::sync::Arc;

use haft_core::{
    ContentPart, FinishReason, FunctionCall, Item, ItemKind, ItemStatus, Message, ModelEvent,
    Reasoning, Role, Usage,
};
use serde_json::{Map, Value};

use super::Events;
use crate::lower::tools::RenderedTools;

/// Puts items together and tells of each step. Items stand in the order in which they begin.
///
/// For protocols that do not say where an item ends: thoughts end when something else begins, the
/// rest at the end of the answer.
#[derive(Default)]
pub(crate) struct Items {
    open: Vec<Open>,
    thoughts: Option<usize>,
    message: Option<usize>,
    /// How likely each token of the message was.
    logprobs: Vec<Value>,
    tools: Arc<RenderedTools>,
}

enum Open {
    Thoughts {
        text: String,
        field: &'static str,
    },
    Message {
        text: String,
        refusal: String,
    },
    Call {
        call_id: String,
        name: String,
        arguments: String,
        is_announced: bool,
        extra: Map<String, Value>,
    },
    Done,
}

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallPlace(usize);

impl Items {
    /// For an answer to a request that showed these tools.
    pub(crate) fn new(tools: Arc<RenderedTools>) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }

    /// Takes thoughts in. `field` is what the provider calls them.
    pub(crate) fn think(&mut self, text: String, field: &'static str, events: &mut Events) {
        let index = *self.thoughts.get_or_insert_with(|| {
            let index = self.open.len();
            self.open.push(Open::Thoughts {
                text: String::new(),
                field,
            });
            events.push_back(ModelEvent::ItemStarted {
                index,
                id: None,
                kind: ItemKind::Reasoning,
            });
            index
        });
        if let Open::Thoughts { text: so_far, .. } = &mut self.open[index] {
            so_far.push_str(&text);
        }
        events.push_back(ModelEvent::ReasoningDelta { index, text });
    }

    /// Takes text in.
    pub(crate) fn say(&mut self, text: String, events: &mut Events) {
        let index = self.message(events);
        if let Open::Message { text: so_far, .. } = &mut self.open[index] {
            so_far.push_str(&text);
        }
        events.push_back(ModelEvent::TextDelta { index, text });
    }

    /// Keeps how likely the next tokens of the text were.
    pub(crate) fn weigh(&mut self, logprobs: Vec<Value>) {
        self.logprobs.extend(logprobs);
    }

    /// Forgets how likely the tokens so far were.
    pub(crate) fn unweigh(&mut self) {
        self.logprobs.clear();
    }

    /// Takes words of a refusal in.
    pub(crate) fn refuse(&mut self, text: String, events: &mut Events) {
        let index = self.message(events);
        if let Open::Message { refusal, .. } = &mut self.open[index] {
            refusal.push_str(&text);
        }
        events.push_back(ModelEvent::RefusalDelta { index, text });
    }

    fn message(&mut self, events: &mut Events) -> usize {
        self.end_thoughts(events);
        *self.message.get_or_insert_with(|| {
            let index = self.open.len();
            self.open.push(Open::Message {
                text: String::new(),
                refusal: String::new(),
            });
            events.push_back(ModelEvent::ItemStarted {
                index,
                id: None,
                kind: ItemKind::Message,
            });
            index
        })
    }

    /// Makes room for a call.
    pub(crate) fn call(&mut self, events: &mut Events) -> CallPlace {
        self.end_thoughts(events);
        self.open.push(Open::Call {
            call_id: String::new(),
            name: String::new(),
            arguments: String::new(),
            is_announced: false,
            extra: Map::new(),
        });
        CallPlace(self.open.len() - 1)
    }

    /// Sets a call's id and name where they are not known yet.
    pub(crate) fn identify(&mut self, place: CallPlace, id: Option<String>, name: Option<String>) {
        if let Some(Open::Call {
            call_id,
            name: known,
            ..
        }) = self.open.get_mut(place.0)
        {
            if call_id.is_empty() {
                *call_id = id.unwrap_or_default();
            }
            if known.is_empty() {
                *known = name.unwrap_or_default();
            }
        }
    }

    /// Marks a call as recovered from text content.
    pub(crate) fn mark_recovered(&mut self, place: CallPlace) {
        if let Some(Open::Call { extra, .. }) = self.open.get_mut(place.0) {
            extra.insert(RECOVERED.to_owned(), Value::Bool(true));
        }
    }

    /// Takes arguments in. A call is told of when its name is known.
    pub(crate) fn argue(&mut self, place: CallPlace, text: &str, events: &mut Events) {
        let Some(Open::Call {
            call_id,
            name,
            arguments,
            is_announced,
            extra,
        }) = self.open.get_mut(place.0)
        else {
            return;
        };
        let index = place.0;
        arguments.push_str(text);
        if name.is_empty() {
            return;
        }
        let piece = if *is_announced {
            text.to_owned()
        } else {
            *is_announced = true;
            events.push_back(ModelEvent::ItemStarted {
                index,
                id: None,
                kind: ItemKind::FunctionCall {
                    call_id: call_id.clone(),
                    name: name.clone(),
                    recovered: is_recovered(extra),
                },
            });
            arguments.clone()
        };
        if !piece.is_empty() {
            events.push_back(ModelEvent::ArgumentsDelta { index, text: piece });
        }
    }

    /// The id, name and arguments of a call so far.
    pub(crate) fn so_far(&self, place: CallPlace) -> (&str, &str, &str) {
        match self.open.get(place.0) {
            Some(Open::Call {
                call_id,
                name,
                arguments,
                ..
            }) => (call_id, name, arguments),
            _ => ("", "", ""),
        }
    }

    /// Whether there is a call.
    pub(crate) fn has_call(&self) -> bool {
        self.open
            .iter()
            .any(|open| matches!(open, Open::Call { .. }))
    }

    /// Ends all items and the answer.
    pub(crate) fn finish(
        &mut self,
        finish: FinishReason,
        usage: Option<Usage>,
        events: &mut Events,
    ) {
        let cut = matches!(finish, FinishReason::Length | FinishReason::ContentFilter);
        let last = self.open.len().saturating_sub(1);
        for index in 0..self.open.len() {
            // The limit falls into what was written last.
            let status = if cut && index == last {
                ItemStatus::Incomplete
            } else {
                ItemStatus::Completed
            };
            self.end(index, status, events);
        }
        events.push_back(ModelEvent::Finished { finish, usage });
    }

    fn end_thoughts(&mut self, events: &mut Events) {
        if let Some(index) = self.thoughts.take() {
            self.end(index, ItemStatus::Completed, events);
        }
    }

    fn end(&mut self, index: usize, status: ItemStatus, events: &mut Events) {
        let item = match std::mem::replace(&mut self.open[index], Open::Done) {
            Open::Done => return,
            Open::Thoughts { text, field } => thoughts(text, field, status),
            Open::Message { text, refusal } => {
                message(text, refusal, std::mem::take(&mut self.logprobs), status)
            }
            Open::Call {
                call_id,
                name,
                arguments,
                is_announced,
                extra,
            } => {
                if !is_announced {
                    let kind = ItemKind::FunctionCall {
                        call_id: call_id.clone(),
                        name: name.clone(),
                        recovered: is_recovered(&extra),
                    };
                    events.push_back(ModelEvent::ItemStarted {
                        index,
                        id: None,
                        kind,
                    });
                    if !arguments.is_empty() {
                        let text = arguments.clone();
                        events.push_back(ModelEvent::ArgumentsDelta { index, text });
                    }
                }
                Item::FunctionCall(FunctionCall {
                    id: None,
                    status: Some(status),
                    call_id,
                    arguments: self.tools.restored(&name, arguments),
                    name,
                    extra,
                })
            }
        };
        events.push_back(ModelEvent::ItemDone { index, item });
    }
}

/// The member of a [`FunctionCall`] that says that it was recovered from text content.
const RECOVERED: &str = "recovered";

fn is_recovered(extra: &Map<String, Value>) -> bool {
    extra.contains_key(RECOVERED)
}

fn thoughts(text: String, field: &'static str, status: ItemStatus) -> Item {
    let mut extra = Map::new();
    // What the provider calls them, so that they can go back to it under the same name.
    extra.insert(REASONING_FIELD.into(), field.into());
    Item::Reasoning(Reasoning {
        status: Some(status),
        content: vec![ContentPart::ReasoningText { text }],
        extra,
        ..Reasoning::default()
    })
}

/// The member of a [`Reasoning`] that says under which name its provider gave it.
pub(crate) const REASONING_FIELD: &str = "wire_field";

fn message(text: String, refusal: String, logprobs: Vec<Value>, status: ItemStatus) -> Item {
    let mut content = Vec::new();
    if !text.is_empty() {
        let mut extra = Map::new();
        if !logprobs.is_empty() {
            extra.insert("logprobs".into(), logprobs.into());
        }
        content.push(ContentPart::OutputText {
            text,
            annotations: Vec::new(),
            extra,
        });
    }
    if !refusal.is_empty() {
        content.push(ContentPart::Refusal { refusal });
    }
    Item::Message(Message {
        status: Some(status),
        content,
        ..Message::new(Role::Assistant, "")
    })
}
