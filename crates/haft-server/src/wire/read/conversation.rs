//! The bodies of requests about conversations.

use serde_json::{Map, Value};

use super::fields::{Fields, invalid, missing};
use super::options::read_metadata;
use super::{Read, Vocabulary};
use crate::error::{ApiError, ErrorCode};
use crate::wire::request::InputItem;

/// How many items can be added at once.
const MAX_ITEMS: usize = 20;

/// The body of a request that makes or changes a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConversationBody {
    /// What to begin with; a change ignores it.
    pub(crate) items: Vec<InputItem>,
    /// None if nothing is said about it.
    pub(crate) metadata: Option<Map<String, Value>>,
    /// The names of members that have no effect.
    pub(crate) ignored: Vec<String>,
}

impl ConversationBody {
    /// Reads a body; all of it may be missing.
    pub(crate) fn read(body: Value, words: &Vocabulary<'_>) -> Read<Self> {
        let mut fields = Fields::of(body, "")?;
        Ok(Self {
            items: items(&mut fields, words)?.unwrap_or_default(),
            metadata: fields.get("metadata", read_metadata)?,
            ignored: fields.names_left().map(str::to_owned).collect(),
        })
    }
}

/// The body of a request that adds items to a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ItemsBody {
    /// At least one.
    pub(crate) items: Vec<InputItem>,
    /// The names of members that have no effect.
    pub(crate) ignored: Vec<String>,
}

impl ItemsBody {
    /// Reads a body.
    pub(crate) fn read(body: Value, words: &Vocabulary<'_>) -> Read<Self> {
        let mut fields = Fields::of(body, "")?;
        let items = items(&mut fields, words)?;
        let ignored = fields.names_left().map(str::to_owned).collect();
        match items.filter(|items| !items.is_empty()) {
            Some(items) => Ok(Self { items, ignored }),
            None => Err(missing("items", "send at least one")),
        }
    }
}

fn items(fields: &mut Fields, words: &Vocabulary<'_>) -> Read<Option<Vec<InputItem>>> {
    let items = fields.get("items", |value, path: &str| {
        InputItem::read_list(value, path, words)
    })?;
    let count = items.as_ref().map_or(0, Vec::len);
    if count > MAX_ITEMS {
        return Err(invalid(
            "items",
            format!("`items` has {count} entries: send at most {MAX_ITEMS} at once"),
        ));
    }
    let is_trigger = |item: &InputItem| *item == InputItem::CompactionTrigger;
    match items.iter().flatten().position(is_trigger) {
        None => Ok(items),
        Some(index) => {
            let at = format!("items[{index}].type");
            Err(ApiError::new(
                ErrorCode::UnsupportedItemType,
                format!("`{at}` asks to compact, which a conversation cannot keep: leave it out"),
            )
            .at(at))
        }
    }
}
