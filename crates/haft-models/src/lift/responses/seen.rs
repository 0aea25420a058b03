//! One item of an answer, as far as it has come.

use haft_core::{
    ContentPart, FunctionCall, Item, ItemKind, Message, ModelError, Reasoning, Role,
    is_provider_item,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::lift::WIRE_ID;
use crate::wire::Text;
use crate::wire::responses::{CUSTOM_CALL, read_item};

/// One item, as far as it has come.
pub(super) struct Seen {
    pub(super) kind: ItemKind,
    /// The id under which it was announced.
    pub(super) id: Option<String>,
    pub(super) is_done: bool,
    /// Whether the server gave it an id.
    pub(super) is_named: bool,
    text: String,
    refusal: String,
    /// The parts of the summary, and the server's numbers for them.
    summary: Vec<String>,
    summary_places: Vec<u64>,
    thoughts: String,
    arguments: String,
    /// How likely each token of the text was.
    pub(super) logprobs: Vec<Value>,
}

/// What a delta adds to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Channel {
    Text,
    Refusal,
    /// Of which part.
    Summary(usize),
    Thoughts,
    Arguments,
    /// The text for a custom tool, which counts as an argument.
    Input,
}

impl Seen {
    pub(super) fn new(kind: ItemKind, id: Option<String>) -> Self {
        Self {
            kind,
            is_named: id.is_some(),
            id,
            is_done: false,
            text: String::new(),
            refusal: String::new(),
            summary: Vec::new(),
            summary_places: Vec::new(),
            thoughts: String::new(),
            arguments: String::new(),
            logprobs: Vec::new(),
        }
    }

    /// Which part of the summary the server's `place` is. Parts count in the order in which they
    /// come; a server that does not number them speaks of the last one.
    pub(super) fn summary_part(&mut self, place: Option<u64>) -> usize {
        let last = self.summary_places.last().copied();
        let place = place.or(last).unwrap_or(0);
        let known = self.summary_places.iter().position(|known| *known == place);
        known.unwrap_or_else(|| {
            self.summary_places.push(place);
            self.summary_places.len() - 1
        })
    }

    /// From here on only the whole item counts.
    pub(super) fn finish(&mut self) {
        *self = Self {
            is_done: true,
            is_named: self.is_named,
            ..Self::new(self.kind.clone(), self.id.take())
        };
    }

    pub(super) fn is(&self, kind: &ItemKind) -> bool {
        match (&self.kind, kind) {
            (ItemKind::Provider { item: own }, ItemKind::Provider { item }) => {
                own.get("type") == item.get("type")
            }
            (own, kind) => std::mem::discriminant(own) == std::mem::discriminant(kind),
        }
    }

    pub(super) fn takes(&self, channel: Channel) -> bool {
        !self.is_done
            && match channel {
                Channel::Text | Channel::Refusal => self.kind == ItemKind::Message,
                Channel::Summary(_) | Channel::Thoughts => self.kind == ItemKind::Reasoning,
                Channel::Arguments | Channel::Input => is_call(&self.kind),
            }
    }

    pub(super) fn said(&self, channel: Channel) -> &str {
        match channel {
            Channel::Text => &self.text,
            Channel::Refusal => &self.refusal,
            Channel::Summary(part) => self.summary.get(part).map_or("", String::as_str),
            Channel::Thoughts => &self.thoughts,
            Channel::Arguments | Channel::Input => &self.arguments,
        }
    }

    pub(super) fn said_mut(&mut self, channel: Channel) -> &mut String {
        match channel {
            Channel::Text => &mut self.text,
            Channel::Refusal => &mut self.refusal,
            Channel::Summary(part) => {
                if self.summary.len() <= part {
                    self.summary.resize(part + 1, String::new());
                }
                &mut self.summary[part]
            }
            Channel::Thoughts => &mut self.thoughts,
            Channel::Arguments | Channel::Input => &mut self.arguments,
        }
    }

    /// The item as its deltas tell it, for servers that never say it whole.
    pub(super) fn assembled(&self) -> Item {
        let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
        match &self.kind {
            ItemKind::FunctionCall { call_id, name, .. } => Item::FunctionCall(FunctionCall {
                id: None,
                status: None,
                call_id: call_id.clone(),
                name: name.clone(),
                arguments: self.arguments.clone(),
                extra: Map::new(),
            }),
            ItemKind::Reasoning => Item::Reasoning(Reasoning::default()),
            ItemKind::Provider { item } => Item::Other(item.clone()),
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

    /// Adds to the whole item what only its pieces said: the id under which it was announced,
    /// thoughts, and how likely each token was.
    pub(super) fn complete(&self, item: &mut Item) {
        if let Some(announced) = &self.id
            && item.id() != Some(announced)
        {
            let own = item.id().map(str::to_owned);
            item.set_id(announced.as_str());
            // Some servers give an item one id when it begins and another when it is done. What is
            // sealed is sealed for the latter.
            if let (Item::Reasoning(reasoning), Some(own)) = (&mut *item, own)
                && reasoning.encrypted_content.is_some()
            {
                reasoning.extra.insert(WIRE_ID.into(), own.into());
            }
        }
        match item {
            Item::Reasoning(reasoning) => {
                if reasoning.summary.is_empty() {
                    let parts = self.summary.iter().cloned();
                    reasoning.summary = parts
                        .map(|text| ContentPart::SummaryText { text })
                        .collect();
                }
                if reasoning.content.is_empty() && !self.thoughts.is_empty() {
                    let text = self.thoughts.clone();
                    reasoning.content = vec![ContentPart::ReasoningText { text }];
                }
            }
            Item::Message(message) if !self.logprobs.is_empty() => {
                let texts = message.content.iter_mut().filter_map(|part| match part {
                    ContentPart::OutputText { extra, .. } => Some(extra),
                    _ => None,
                });
                // Of several texts it would not be known which tokens belong to which.
                if let [extra] = texts.collect::<Vec<_>>().as_mut_slice() {
                    let told = extra.get("logprobs").and_then(Value::as_array);
                    if told.is_none_or(Vec::is_empty) {
                        extra.insert("logprobs".into(), self.logprobs.clone().into());
                    }
                }
            }
            _ => {}
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
            recovered: call.is_recovered(),
        },
        Item::Other(members) if is_provider_item(item.kind()) => ItemKind::Provider {
            item: members.clone(),
        },
        other => ItemKind::Other {
            item_type: other.kind().to_owned(),
        },
    }
}

/// As much of an item as says what it is.
pub(super) struct Head {
    pub(super) kind: ItemKind,
    pub(super) id: Option<String>,
    /// That of a call.
    pub(super) call_id: Option<String>,
    /// The namespace that a call names.
    pub(super) namespace: Option<String>,
}

impl Head {
    /// That of an item as the server wrote it.
    pub(super) fn of(raw: &RawValue) -> Result<Self, ModelError> {
        #[derive(Deserialize)]
        struct Written<'a> {
            #[serde(rename = "type", borrow)]
            kind: Text<'a>,
            #[serde(borrow)]
            id: Option<Text<'a>>,
            #[serde(borrow)]
            call_id: Option<Text<'a>>,
            #[serde(borrow)]
            name: Option<Text<'a>>,
            #[serde(borrow)]
            namespace: Option<Text<'a>>,
        }
        let Ok(written) = serde_json::from_str::<Written<'_>>(raw.get()) else {
            // It has its own way of saying what is wrong.
            let item = read_item(raw)?;
            let mut ids = ids_of(&item).map(str::to_owned);
            return Ok(Self {
                kind: kind_of(&item),
                id: item.id().map(str::to_owned),
                call_id: ids.find(|id| Some(id.as_str()) != item.id()),
                namespace: namespace_of(&item).map(str::to_owned),
            });
        };
        let filled = |text: Option<Text<'_>>| {
            let text = text.map(|text| text.0.into_owned());
            text.filter(|text| !text.is_empty())
        };
        let id = filled(written.id);
        let mut call_id = None;
        let kind = match &*written.kind.0 {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" | CUSTOM_CALL => {
                call_id = filled(written.call_id);
                ItemKind::FunctionCall {
                    call_id: call_id.clone().unwrap_or_default(),
                    name: filled(written.name).unwrap_or_default(),
                    recovered: false,
                }
            }
            own if is_provider_item(own) => ItemKind::Provider {
                item: serde_json::from_str(raw.get()).unwrap_or_default(),
            },
            other => ItemKind::Other {
                item_type: other.to_owned(),
            },
        };
        Ok(Self {
            kind,
            id,
            call_id,
            namespace: filled(written.namespace),
        })
    }

    /// The ids under which its pieces may come.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.id.iter().chain(&self.call_id);
        ids.map(String::as_str)
    }
}

/// The namespace that a call names.
pub(super) fn namespace_of(item: &Item) -> Option<&str> {
    match item {
        Item::FunctionCall(call) => call.extra.get("namespace")?.as_str(),
        _ => None,
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
        Item::Reasoning(reasoning) => {
            let summary = reasoning.summary.iter().enumerate();
            let summary = summary.map(|(part, text)| {
                let text = text.text().unwrap_or_default().to_owned();
                (Channel::Summary(part), text)
            });
            let thoughts = (Channel::Thoughts, joined(&reasoning.content));
            summary.chain([thoughts]).collect()
        }
        Item::FunctionCall(call) => vec![(Channel::Arguments, call.arguments.clone())],
        _ => Vec::new(),
    }
}
