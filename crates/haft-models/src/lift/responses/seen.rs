//! One item of an answer, as far as it has come.

use haft_core::{ContentPart, FunctionCall, Item, ItemKind, Message, Reasoning, Role};
use serde_json::{Map, Value};

/// One item, as far as it has come.
pub(super) struct Seen {
    pub(super) kind: ItemKind,
    pub(super) is_done: bool,
    /// Whether the server gave it an id.
    pub(super) is_named: bool,
    text: String,
    refusal: String,
    /// Thoughts in the summary, and those said in full.
    summary: String,
    thoughts: String,
    arguments: String,
}

/// What a delta adds to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Channel {
    Text,
    Refusal,
    Summary,
    Thoughts,
    Arguments,
}

impl Seen {
    pub(super) fn new(kind: ItemKind) -> Self {
        Self {
            kind,
            is_done: false,
            is_named: false,
            text: String::new(),
            refusal: String::new(),
            summary: String::new(),
            thoughts: String::new(),
            arguments: String::new(),
        }
    }

    /// From here on only the whole item counts.
    pub(super) fn finish(&mut self) {
        *self = Self {
            is_done: true,
            is_named: self.is_named,
            ..Self::new(self.kind.clone())
        };
    }

    pub(super) fn is(&self, kind: &ItemKind) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(kind)
    }

    pub(super) fn takes(&self, channel: Channel) -> bool {
        !self.is_done
            && match channel {
                Channel::Text | Channel::Refusal => self.kind == ItemKind::Message,
                Channel::Summary | Channel::Thoughts => self.kind == ItemKind::Reasoning,
                Channel::Arguments => is_call(&self.kind),
            }
    }

    pub(super) fn said(&self, channel: Channel) -> &str {
        match channel {
            Channel::Text => &self.text,
            Channel::Refusal => &self.refusal,
            Channel::Summary => &self.summary,
            Channel::Thoughts => &self.thoughts,
            Channel::Arguments => &self.arguments,
        }
    }

    pub(super) fn said_mut(&mut self, channel: Channel) -> &mut String {
        match channel {
            Channel::Text => &mut self.text,
            Channel::Refusal => &mut self.refusal,
            Channel::Summary => &mut self.summary,
            Channel::Thoughts => &mut self.thoughts,
            Channel::Arguments => &mut self.arguments,
        }
    }

    /// The item as its deltas tell it, for servers that never say it whole.
    pub(super) fn assembled(&self) -> Item {
        let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
        match &self.kind {
            ItemKind::FunctionCall { call_id, name } => Item::FunctionCall(FunctionCall {
                id: None,
                status: None,
                call_id: call_id.clone(),
                name: name.clone(),
                arguments: self.arguments.clone(),
                extra: Map::new(),
            }),
            ItemKind::Reasoning => Item::Reasoning(Reasoning {
                summary: filled(&self.summary)
                    .map(|text| ContentPart::SummaryText { text })
                    .into_iter()
                    .collect(),
                content: filled(&self.thoughts)
                    .map(|text| ContentPart::ReasoningText { text })
                    .into_iter()
                    .collect(),
                ..Reasoning::default()
            }),
            ItemKind::Other { item_type } => {
                Item::Other(Map::from_iter([("type".into(), item_type.as_str().into())]))
            }
            _ => {
                let refusal = filled(&self.refusal).map(|refusal| ContentPart::Refusal { refusal });
                let text = filled(&self.text).map(ContentPart::output_text);
                Item::Message(Message {
                    content: text.into_iter().chain(refusal).collect(),
                    ..Message::new(Role::Assistant, "")
                })
            }
        }
    }
}

pub(super) fn is_call(kind: &ItemKind) -> bool {
    matches!(kind, ItemKind::FunctionCall { .. })
}

pub(super) fn kind_of(item: &Item) -> ItemKind {
    match item {
        Item::Message(_) => ItemKind::Message,
        Item::Reasoning(_) => ItemKind::Reasoning,
        Item::FunctionCall(call) => ItemKind::FunctionCall {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
        },
        other => ItemKind::Other {
            item_type: other.kind().to_owned(),
        },
    }
}

/// The ids under which an item's pieces may come: its own, and a call's.
pub(super) fn ids_of(item: &Item) -> impl Iterator<Item = &str> {
    let (id, call_id) = match item {
        Item::Message(message) => (message.id.as_deref(), None),
        Item::Reasoning(reasoning) => (reasoning.id.as_deref(), None),
        Item::FunctionCall(call) => (call.id.as_deref(), Some(call.call_id.as_str())),
        Item::Other(members) => (members.get("id").and_then(Value::as_str), None),
        _ => (None, None),
    };
    id.into_iter().chain(call_id).filter(|id| !id.is_empty())
}

/// All that an item's deltas should have said.
pub(super) fn texts_of(item: &Item) -> Vec<(Channel, String)> {
    let joined = |parts: &[ContentPart]| parts.iter().filter_map(ContentPart::text).collect();
    match item {
        Item::Message(message) => {
            let refusals = message.content.iter().filter_map(|part| match part {
                ContentPart::Refusal { refusal } => Some(refusal.as_str()),
                _ => None,
            });
            vec![
                (Channel::Text, message.text()),
                (Channel::Refusal, refusals.collect()),
            ]
        }
        Item::Reasoning(reasoning) => vec![
            (Channel::Summary, joined(&reasoning.summary)),
            (Channel::Thoughts, joined(&reasoning.content)),
        ],
        Item::FunctionCall(call) => vec![(Channel::Arguments, call.arguments.clone())],
        _ => Vec::new(),
    }
}
