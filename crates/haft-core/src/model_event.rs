//! What comes back from a model, in pieces.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::FinishReason;
use crate::item::{ContentPart, Item};
use crate::model::ModelStream;
use crate::model_error::ModelError;
use crate::provider::is_provider_item;
use crate::usage::Usage;

/// One piece of an answer.
///
/// An answer is a list of items. `index` says which item a piece belongs to; deltas are for whoever
/// watches, [`ItemDone`](Self::ItemDone) carries the whole item and is what counts. Items begin in
/// the order of their places; they may be written at the same time and finished in any order.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The provider began to answer.
    Started {
        /// Its id of the answer.
        response_id: Option<String>,
        /// The model that answers, if it says so.
        model: Option<String>,
    },
    /// An item begins.
    ItemStarted {
        /// Its place in the answer.
        index: usize,
        /// Its id, if the provider gives it one.
        id: Option<String>,
        /// What it will be.
        kind: ItemKind,
    },
    /// Text of a message.
    TextDelta {
        /// The item's place.
        index: usize,
        /// The piece.
        text: String,
    },
    /// Words of a refusal.
    RefusalDelta {
        /// The item's place.
        index: usize,
        /// The piece.
        text: String,
    },
    /// A piece of what the model thinks.
    ReasoningDelta {
        /// The item's place.
        index: usize,
        /// The piece.
        text: String,
    },
    /// A piece of a summary of what the model thinks.
    SummaryDelta {
        /// The item's place.
        index: usize,
        /// Which part of the summary, from 0.
        part: usize,
        /// The piece.
        text: String,
    },
    /// A piece of a call's arguments.
    ArgumentsDelta {
        /// The item's place.
        index: usize,
        /// The piece.
        text: String,
    },
    /// An event in the provider's own form about an item of a kind that only the provider knows.
    ProviderEvent {
        /// The item's place.
        index: usize,
        /// The event, its `type` included.
        event: Map<String, Value>,
    },
    /// An item is whole.
    ItemDone {
        /// Its place in the answer.
        index: usize,
        /// The item. A call without id of its own has an empty `call_id`.
        item: Item,
    },
    /// The answer is whole.
    Finished {
        /// Why the model stopped.
        finish: FinishReason,
        /// What it cost, if the provider says so.
        usage: Option<Usage>,
    },
}

impl ModelEvent {
    /// The words of a delta; none for every other event.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::TextDelta { text, .. }
            | Self::RefusalDelta { text, .. }
            | Self::ReasoningDelta { text, .. }
            | Self::SummaryDelta { text, .. }
            | Self::ArgumentsDelta { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// What an item will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ItemKind {
    /// A message of the model.
    Message,
    /// Its thoughts.
    Reasoning,
    /// A call of a tool.
    FunctionCall {
        /// The call's id as the provider gives it; may be empty.
        call_id: String,
        /// The tool.
        name: String,
        /// Whether the call was recovered from text content.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        recovered: bool,
    },
    /// An item of one of the provider's own tools, passed on as it is.
    Provider {
        /// The item as it was announced.
        item: Map<String, Value>,
    },
    /// Something else.
    Other {
        /// Its `type`.
        item_type: String,
    },
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelResponse {
    /// The provider's id of it.
    pub response_id: Option<String>,
    /// The model that answered, if it said so.
    pub model: Option<String>,
    /// Its items, in order.
    pub items: Vec<Item>,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// What it cost, if the provider says so.
    pub usage: Option<Usage>,
}

impl ModelResponse {
    /// An answer of plain text that ended normally.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of([Item::assistant(text)])
    }

    /// An answer of these items that ended normally.
    pub fn of(items: impl IntoIterator<Item = Item>) -> Self {
        Self {
            items: items.into_iter().collect(),
            finish: FinishReason::Normal,
            ..Self::default()
        }
    }

    /// Sets what it cost.
    #[must_use]
    pub fn with_usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Some(Usage {
            input_tokens,
            output_tokens,
            requests: 1,
            ..Usage::default()
        });
        self
    }

    /// The answer as the events of a stream, each item in one piece.
    ///
    /// ```
    /// use haft_core::{ModelEvent, ModelResponse};
    /// let events = ModelResponse::text("hi").into_events();
    /// assert!(matches!(&events[1], ModelEvent::ItemStarted { index: 0, .. }));
    /// assert!(matches!(&events[2], ModelEvent::TextDelta { text, .. } if text == "hi"));
    /// assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })));
    /// ```
    pub fn into_events(self) -> Vec<ModelEvent> {
        let mut events = vec![ModelEvent::Started {
            response_id: self.response_id,
            model: self.model,
        }];
        for (index, item) in self.items.into_iter().enumerate() {
            let (kind, deltas) = announce(index, &item);
            events.push(ModelEvent::ItemStarted {
                index,
                id: item.id().map(str::to_owned),
                kind,
            });
            events.extend(deltas);
            events.push(ModelEvent::ItemDone { index, item });
        }
        events.push(ModelEvent::Finished {
            finish: self.finish,
            usage: self.usage,
        });
        events
    }

    /// The answer as a stream, for models that answer in one piece.
    pub fn into_stream(self) -> ModelStream {
        Box::pin(Ready(self.into_events().into_iter()))
    }
}

/// What an item is, and all that is said of it: what is empty is not said.
fn announce(index: usize, item: &Item) -> (ItemKind, Vec<ModelEvent>) {
    let mut deltas = Vec::new();
    let kind = match item {
        Item::Message(message) => {
            for part in &message.content {
                deltas.push(match part {
                    ContentPart::Refusal { refusal } => ModelEvent::RefusalDelta {
                        index,
                        text: refusal.clone(),
                    },
                    part => ModelEvent::TextDelta {
                        index,
                        text: part.text().unwrap_or_default().to_owned(),
                    },
                });
            }
            ItemKind::Message
        }
        Item::Reasoning(reasoning) => {
            for (part, summary) in reasoning.summary.iter().enumerate() {
                let text = summary.text().unwrap_or_default().to_owned();
                deltas.push(ModelEvent::SummaryDelta { index, part, text });
            }
            let thoughts = reasoning.content.iter().filter_map(ContentPart::text);
            let text = thoughts.collect();
            deltas.push(ModelEvent::ReasoningDelta { index, text });
            ItemKind::Reasoning
        }
        Item::FunctionCall(call) => {
            let text = call.arguments.clone();
            deltas.push(ModelEvent::ArgumentsDelta { index, text });
            ItemKind::FunctionCall {
                call_id: call.call_id.clone(),
                name: call.name.clone(),
                recovered: call.is_recovered(),
            }
        }
        Item::Other(members) if is_provider_item(item.kind()) => ItemKind::Provider {
            item: members.clone(),
        },
        other => ItemKind::Other {
            item_type: other.kind().to_owned(),
        },
    };
    deltas.retain(|delta| delta.text().is_some_and(|text| !text.is_empty()));
    (kind, deltas)
}

/// Events that are all there already.
struct Ready(std::vec::IntoIter<ModelEvent>);

impl futures_core::Stream for Ready {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.next().map(Ok))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Puts an answer together from its events.
///
/// ```
/// use haft_core::{Assembly, ModelResponse};
/// let mut assembly = Assembly::default();
/// for event in ModelResponse::text("hi").into_events() {
///     assembly.add(event);
/// }
/// assert_eq!(assembly.take_finished(), Some(ModelResponse::text("hi")));
/// ```
#[derive(Debug, Default)]
pub struct Assembly {
    response: ModelResponse,
    done: BTreeMap<usize, Item>,
    is_finished: bool,
}

impl Assembly {
    /// Takes one event in.
    pub fn add(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Started { response_id, model } => {
                self.response.response_id = response_id;
                self.response.model = model;
            }
            ModelEvent::ItemDone { index, item } => {
                self.done.insert(index, item);
            }
            ModelEvent::Finished { finish, usage } => {
                self.response.finish = finish;
                self.response.usage = usage;
                self.is_finished = true;
            }
            _ => {}
        }
    }

    /// The answer, items in their order; none if it is not finished. It is handed out once.
    pub fn take_finished(&mut self) -> Option<ModelResponse> {
        if !self.is_finished {
            return None;
        }
        let Self {
            mut response, done, ..
        } = std::mem::take(self);
        response.items = done.into_values().collect();
        Some(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Reasoning;

    #[test]
    fn summaries_and_thoughts_are_told_apart_and_empty_ones_not_at_all() {
        let summary = |text: &str| ContentPart::SummaryText { text: text.into() };
        let thought = |text: &str| ContentPart::ReasoningText { text: text.into() };
        let item = Item::Reasoning(Reasoning {
            id: Some("rs_1".into()),
            summary: vec![summary("a"), summary(""), summary("b")],
            content: vec![thought("c"), thought("d")],
            ..Reasoning::default()
        });
        let events = ModelResponse::of([item.clone()]).into_events();
        let told = |part, text: &str| ModelEvent::SummaryDelta {
            index: 0,
            part,
            text: text.into(),
        };
        assert_eq!(
            events[1..6],
            [
                ModelEvent::ItemStarted {
                    index: 0,
                    id: Some("rs_1".into()),
                    kind: ItemKind::Reasoning,
                },
                told(0, "a"),
                told(2, "b"),
                ModelEvent::ReasoningDelta {
                    index: 0,
                    text: "cd".into(),
                },
                ModelEvent::ItemDone { index: 0, item },
            ]
        );
    }

    #[test]
    fn words_of_a_refusal_are_told_as_such() {
        let refusal = ContentPart::Refusal {
            refusal: "no".into(),
        };
        let mut message = crate::item::Message::new(crate::item::Role::Assistant, "well");
        message.content.push(refusal);
        let events = ModelResponse::of([Item::Message(message)]).into_events();
        let words: Vec<_> = events.iter().filter_map(ModelEvent::text).collect();
        assert_eq!(words, ["well", "no"]);
        assert!(matches!(
            events[3],
            ModelEvent::RefusalDelta { index: 0, .. }
        ));
    }
}
