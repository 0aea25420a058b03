//! Calls that no client sees, kept with what is stored: the next response of a chain lets the model read them
//! where it read them before.

use haft_core::{FunctionCall, FunctionCallOutput, Item};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::marks::UNSEEN;

/// A call that was answered without a word to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct UnseenCall {
    pub(crate) turn: u64,
    pub(crate) call: FunctionCall,
    pub(crate) output: FunctionCallOutput,
}

/// The calls that stand beside a stored item.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Unseen {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) before: Vec<UnseenCall>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) behind: Vec<UnseenCall>,
}

impl Unseen {
    /// What stands beside an item.
    pub(super) fn beside(item: &Item) -> Self {
        let members = match item {
            Item::Message(message) => &message.extra,
            Item::FunctionCall(call) => &call.extra,
            Item::FunctionCallOutput(output) => &output.extra,
            Item::Reasoning(reasoning) => &reasoning.extra,
            Item::Other(members) => members,
            _ => return Self::default(),
        };
        let unseen = members.get(UNSEEN);
        let unseen = unseen.and_then(|unseen| serde_json::from_value(unseen.clone()).ok());
        unseen.unwrap_or_default()
    }
}

/// What an item holds besides what every item of its kind does.
pub(super) fn extra_of(item: &mut Item) -> Option<&mut Map<String, Value>> {
    match item {
        Item::Message(message) => Some(&mut message.extra),
        Item::FunctionCall(call) => Some(&mut call.extra),
        Item::FunctionCallOutput(output) => Some(&mut output.extra),
        Item::Reasoning(reasoning) => Some(&mut reasoning.extra),
        Item::Other(members) => Some(members),
        _ => None,
    }
}

/// The item as a model reads it.
pub(super) fn without_unseen(item: &Item) -> Item {
    let mut item = item.clone();
    if let Some(extra) = extra_of(&mut item) {
        extra.shift_remove(UNSEEN);
    }
    item
}
