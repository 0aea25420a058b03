//! The seam to what must last: responses, conversations, and the events of background runs.
//!
//! A store keeps JSON that it does not read. It knows which items belong to which response, in which
//! order, who owns them, and what continues what; everything else is the server's business.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::tool::BoxFuture;

/// Whose a record is. Nobody sees anything of another owner.
///
/// ```
/// use haft_core::Owner;
/// assert_eq!(Owner::new("acme").as_str(), "acme");
/// assert_eq!(Owner::default().as_str(), "default");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    /// The owner of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Owner {
    /// The owner of everything where nobody says who he is.
    fn default() -> Self {
        Self::new("default")
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An item with its id, as JSON.
#[derive(Debug, Clone)]
pub struct StoredItem {
    /// Its id. One id may occur in several responses: clients send items back.
    pub id: String,
    /// The whole item, the id included.
    pub json: Box<RawValue>,
}

/// A response with everything that is needed to show it and to go on from it.
#[derive(Debug, Clone)]
pub struct StoredResponse {
    /// Its id.
    pub id: String,
    /// The response that it continues.
    pub previous: Option<String>,
    /// When it was made, in seconds since the epoch.
    pub created_at: i64,
    /// Whether it will not change any more.
    pub is_finished: bool,
    /// The resource, without its items.
    pub resource: Box<RawValue>,
    /// The items that came with its own request, without those that it inherits.
    pub input: Vec<StoredItem>,
    /// The items that it gave.
    pub output: Vec<StoredItem>,
}

/// A conversation without its items.
#[derive(Debug, Clone)]
pub struct StoredConversation {
    /// Its id.
    pub id: String,
    /// When it was made, in seconds since the epoch.
    pub created_at: i64,
    /// What its owner noted down about it: a JSON object.
    pub metadata: Box<RawValue>,
}

/// Which items of a list, and in which order.
#[derive(Debug, Clone)]
pub struct PageQuery {
    /// Begin behind this item.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Newest first.
    pub is_descending: bool,
}

/// A piece of a list.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The items, in the order that was asked for.
    pub items: Vec<StoredItem>,
    /// Whether there are more behind them.
    pub has_more: bool,
}

/// One event of a stream that can be read again.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    /// Its number in the stream.
    pub sequence_number: u64,
    /// The event.
    pub json: Box<RawValue>,
}

/// What is written in the same step as a response: all of it or nothing.
#[derive(Debug, Clone, Default)]
pub struct Alongside {
    /// The conversation that its input and output become part of.
    pub append_to: Option<String>,
    /// Events that its log gets.
    pub events: Vec<StoredEvent>,
    /// How far its run has come, in place of what was noted before. A finished response has none.
    pub checkpoint: Option<Box<RawValue>>,
    /// How its run went, in place of what was noted before.
    pub trace: Option<Box<RawValue>>,
}

/// A response in a list, without its items.
#[derive(Debug, Clone)]
pub struct ListedResponse {
    /// Whose it is.
    pub owner: Owner,
    /// Its id.
    pub id: String,
    /// When it was made, in seconds since the epoch.
    pub created_at: i64,
    /// Whether it will not change any more.
    pub is_finished: bool,
    /// The resource, without its items.
    pub resource: Box<RawValue>,
}

/// A piece of the list of responses.
#[derive(Debug, Clone, Default)]
pub struct ResponsePage {
    /// The responses, in the order that was asked for.
    pub responses: Vec<ListedResponse>,
    /// Whether there are more behind them.
    pub has_more: bool,
}

/// How long and how much is kept; nothing said means for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Finished responses older than this go, and conversations untouched for so long.
    pub max_age: Option<Duration>,
    /// The oldest finished responses go until no more bytes than these are used.
    pub max_bytes: Option<u64>,
}

/// What a cleaning removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// So many responses.
    pub responses: u64,
    /// So many conversations.
    pub conversations: u64,
    /// Whether something is left to be removed: call again.
    pub has_more: bool,
}

/// Keys that are claimed ([`Store::taken`]), each with the note of its claim.
pub type ClaimedKeys = Vec<(String, Option<String>)>;

/// The persistent state of a server.
///
/// Everything that a method has acknowledged is there after the process was killed; what it has not
/// acknowledged is there wholly or not at all. An id of another owner is an unknown id.
pub trait Store: Send + Sync + 'static {
    /// Writes a response, in place of an earlier state of it, and what goes along with it, in one
    /// step. `false` if there is no such conversation as it was to be appended to any more (the rest
    /// is written all the same).
    fn put_response(
        &self,
        owner: &Owner,
        response: StoredResponse,
        alongside: Alongside,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Notes down how far the run of an unfinished response has come, together with the events that
    /// it accounts for. `false`, and nothing is written, if there is no such response or it is
    /// finished.
    fn put_checkpoint(
        &self,
        owner: &Owner,
        response_id: &str,
        checkpoint: Box<RawValue>,
        events: Vec<StoredEvent>,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// How far the run of an unfinished response has come.
    fn checkpoint(
        &self,
        owner: &Owner,
        response_id: &str,
    ) -> BoxFuture<'_, Result<Option<Box<RawValue>>, StoreError>>;

    /// How the run of a response went, if that was noted down.
    fn trace(
        &self,
        owner: &Owner,
        response_id: &str,
    ) -> BoxFuture<'_, Result<Option<Box<RawValue>>, StoreError>>;

    /// Responses of an owner, or of all owners, by the time they were made. An `after` that is not
    /// among them gives [`StoreError::UnknownItem`].
    fn responses(
        &self,
        owner: Option<&Owner>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<ResponsePage, StoreError>>;

    /// Whether what is written now would last: the writer answers and the disk takes it.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// A response that was not deleted.
    fn response(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredResponse>, StoreError>>;

    /// A response and everything that it continues, the oldest first; none if it is unknown or
    /// deleted itself. Deleted ones in between are part of it. One query, however long it is.
    fn chain(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredResponse>>, StoreError>>;

    /// Removes a response and its events. Its items stay as long as another response continues it,
    /// for that one only. Says whether there was one.
    fn delete_response(&self, owner: &Owner, id: &str) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// The newest item with this id in any undeleted response or conversation of the owner.
    fn item(
        &self,
        owner: &Owner,
        item_id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredItem>, StoreError>>;

    /// Responses that were not finished, of all owners: after a start, those that a dead process
    /// left behind.
    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<(Owner, StoredResponse)>, StoreError>>;

    /// Adds events to the log of a response. One that is there already, byte for byte, is not written
    /// again; another one with its number is refused, and nothing is written then.
    fn append_events(
        &self,
        owner: &Owner,
        response_id: &str,
        events: Vec<StoredEvent>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The events of a response behind a number, or all, in order; at most `limit`.
    fn events(
        &self,
        owner: &Owner,
        response_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredEvent>, StoreError>>;

    /// Writes a conversation's record, new or in place of the earlier one; its items stay.
    fn put_conversation(
        &self,
        owner: &Owner,
        conversation: StoredConversation,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// A conversation's record.
    fn conversation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredConversation>, StoreError>>;

    /// Removes a conversation and its items; responses stay. Says whether there was one.
    fn delete_conversation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Adds items at the end of a conversation; `false` if there is none.
    fn append_items(
        &self,
        owner: &Owner,
        conversation_id: &str,
        items: Vec<StoredItem>,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// All items of a conversation, in order; none if there is no such conversation.
    fn conversation_items(
        &self,
        owner: &Owner,
        conversation_id: &str,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredItem>>, StoreError>>;

    /// A piece of them; none if there is no such conversation. An `after` that is not in it gives
    /// [`StoreError::UnknownItem`].
    fn conversation_page(
        &self,
        owner: &Owner,
        conversation_id: &str,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Option<Page>, StoreError>>;

    /// Removes one item of a conversation. Says whether there was one.
    fn delete_item(
        &self,
        owner: &Owner,
        conversation_id: &str,
        item_id: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Claims a key for ever, with a note on what it was claimed for: `true` for the first claim, `false`
    /// for every later one, which changes nothing.
    fn take_once(
        &self,
        owner: &Owner,
        key: &str,
        note: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Those of the keys that are claimed, each with its note; none for a claim of a version that wrote
    /// no notes.
    fn taken(
        &self,
        owner: &Owner,
        keys: Vec<String>,
    ) -> BoxFuture<'_, Result<ClaimedKeys, StoreError>>;

    /// What the server has noted about itself under this key.
    fn server_note(&self, key: &str) -> BoxFuture<'_, Result<Option<String>, StoreError>>;

    /// Notes something about the server itself, in place of what was noted under this key.
    fn put_server_note(&self, key: &str, note: &str) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Removes what the retention lets go, at most `batch` records at a time so that nobody waits
    /// long.
    fn clean(
        &self,
        retention: Retention,
        now: i64,
        batch: usize,
    ) -> BoxFuture<'_, Result<Cleaned, StoreError>>;
}

/// A store that cannot do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A page was to begin behind an item that is not there.
    #[error("there is no item `{id}` in this list")]
    UnknownItem {
        /// The id.
        id: String,
    },
    /// More writers wait than the store lets wait.
    #[error("the store has too much to write: try again later")]
    Busy,
    /// The disk is full, the file is damaged, the other end is gone.
    #[error("the store failed: {0}")]
    Failed(String),
}
