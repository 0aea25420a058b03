//! A conversation: items that only ever grow at the end.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::item::Item;
use crate::provider::ProviderCall;
use crate::render_cache::RenderCache;

/// One item with whatever adapters made of it, so that each is serialised once.
pub struct Entry {
    item: Item,
    rendered: RenderCache,
}

impl Entry {
    /// The item.
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// What adapters made of it.
    pub fn rendered(&self) -> &RenderCache {
        &self.rendered
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.item.fmt(f)
    }
}

/// Items in order. Clones share them; pushing to one that nobody else holds copies nothing.
///
/// ```
/// use haft_core::{Conversation, Item};
/// let mut conversation: Conversation = [Item::user("hi")].into_iter().collect();
/// let sent = conversation.clone();
/// conversation.push(Item::assistant("hello"));
/// assert_eq!((sent.len(), conversation.len()), (1, 2));
/// ```
#[derive(Clone, Default)]
pub struct Conversation {
    entries: Arc<Vec<Arc<Entry>>>,
}

impl Conversation {
    /// Adds an item at the end.
    pub fn push(&mut self, item: Item) {
        Arc::make_mut(&mut self.entries).push(Arc::new(Entry {
            item,
            rendered: RenderCache::default(),
        }));
    }

    /// The items with what was made of them, in order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The items, in order.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &Item> + ExactSizeIterator {
        self.entries.iter().map(|entry| &entry.item)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Checks that calls and outputs belong together, by call id: every output answers an earlier
    /// call, no call is answered twice, and none is left open.
    ///
    /// ```
    /// use haft_core::{Conversation, HistoryError, Item};
    /// let orphan: Conversation = [Item::function_call_output("c", "x")].into_iter().collect();
    /// assert_eq!(orphan.verify(), Err(HistoryError::OrphanOutput { call_id: "c".into() }));
    /// ```
    pub fn verify(&self) -> Result<(), HistoryError> {
        let mut calls: HashMap<&str, Seen> = HashMap::new();
        // Some outputs of a provider's own tools bear the id of the item instead of the call's.
        let mut by_item: HashMap<&str, &str> = HashMap::new();
        let mut order = Vec::new();
        for item in self.items() {
            match item {
                Item::FunctionCall(call) => {
                    let id = call.call_id.as_str();
                    if calls.insert(id, Seen::Open).is_some() {
                        return Err(HistoryError::DuplicateCall { call_id: id.into() });
                    }
                    order.push(id);
                }
                Item::FunctionCallOutput(output) => {
                    answer(&mut calls, &output.call_id)?;
                }
                item => match item.provider_call() {
                    None => {}
                    Some(ProviderCall::Call { call_id, id }) => {
                        if calls.insert(call_id, Seen::Open).is_some() {
                            let call_id = call_id.into();
                            return Err(HistoryError::DuplicateCall { call_id });
                        }
                        by_item.extend(id.map(|id| (id, call_id)));
                        order.push(call_id);
                    }
                    Some(ProviderCall::Output { call_id }) => {
                        let call_id = by_item.get(call_id).copied().unwrap_or(call_id);
                        answer(&mut calls, call_id)?;
                    }
                },
            }
        }
        match order.into_iter().find(|id| calls[id] == Seen::Open) {
            Some(id) => Err(HistoryError::MissingOutput { call_id: id.into() }),
            None => Ok(()),
        }
    }
}

/// Whether a call of a history has its output.
#[derive(PartialEq)]
enum Seen {
    Open,
    Answered,
}

/// Notes the output of a call.
fn answer(calls: &mut HashMap<&str, Seen>, call_id: &str) -> Result<(), HistoryError> {
    match calls.get_mut(call_id) {
        None => Err(HistoryError::OrphanOutput {
            call_id: call_id.into(),
        }),
        Some(Seen::Answered) => Err(HistoryError::DuplicateOutput {
            call_id: call_id.into(),
        }),
        Some(seen) => {
            *seen = Seen::Answered;
            Ok(())
        }
    }
}

/// Calls and outputs of a history do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// An output without call.
    #[error(
        "the output for call `{call_id}` answers no call: remove it, or send the call before it"
    )]
    OrphanOutput {
        /// The id.
        call_id: String,
    },
    /// A call without output.
    #[error("call `{call_id}` has no output: add a `function_call_output` for it")]
    MissingOutput {
        /// The id.
        call_id: String,
    },
    /// Two outputs for one call.
    #[error("call `{call_id}` has two outputs: keep one")]
    DuplicateOutput {
        /// The id.
        call_id: String,
    },
    /// Two calls with one id.
    #[error("two calls bear the id `{call_id}`: give each its own")]
    DuplicateCall {
        /// The id.
        call_id: String,
    },
}

impl FromIterator<Item> for Conversation {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        let mut conversation = Self::default();
        conversation.extend(items);
        conversation
    }
}

impl Extend<Item> for Conversation {
    fn extend<I: IntoIterator<Item = Item>>(&mut self, items: I) {
        for item in items {
            self.push(item);
        }
    }
}

impl From<Vec<Item>> for Conversation {
    fn from(items: Vec<Item>) -> Self {
        items.into_iter().collect()
    }
}

impl From<&str> for Conversation {
    /// One message of the user.
    fn from(text: &str) -> Self {
        [Item::user(text)].into_iter().collect()
    }
}

impl From<String> for Conversation {
    fn from(text: String) -> Self {
        [Item::user(text)].into_iter().collect()
    }
}

impl PartialEq for Conversation {
    fn eq(&self, other: &Self) -> bool {
        self.items().eq(other.items())
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items()).finish()
    }
}

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.items())
    }
}

impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Item>::deserialize(deserializer)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Item {
        Item::function_call(id, "ping", "{}")
    }

    fn output(id: &str) -> Item {
        Item::function_call_output(id, "pong")
    }

    /// R29
    #[test]
    fn histories_are_verified_by_call_id() {
        let verify = |items: Vec<Item>| Conversation::from(items).verify();
        let id = || String::from("a");
        assert_eq!(
            verify(vec![call("a"), call("b"), output("b"), output("a")]),
            Ok(())
        );
        assert_eq!(
            verify(vec![output("a"), call("a")]),
            Err(HistoryError::OrphanOutput { call_id: id() })
        );
        assert_eq!(
            verify(vec![call("a"), call("b"), output("b")]),
            Err(HistoryError::MissingOutput { call_id: id() })
        );
        assert_eq!(
            verify(vec![call("a"), output("a"), output("a")]),
            Err(HistoryError::DuplicateOutput { call_id: id() })
        );
        assert_eq!(
            verify(vec![call("a"), call("a")]),
            Err(HistoryError::DuplicateCall { call_id: id() })
        );
    }

    #[test]
    fn pushing_copies_nothing_unless_somebody_else_holds_the_items() {
        let mut conversation = Conversation::from("hi");
        let before = Arc::as_ptr(&conversation.entries);
        conversation.push(call("a"));
        assert_eq!(before, Arc::as_ptr(&conversation.entries));
        let sent = conversation.clone();
        conversation.push(output("a"));
        assert_eq!(sent.len(), 2);
        assert!(Arc::ptr_eq(&sent.entries()[0], &conversation.entries()[0]));
    }
}
