//! The items of a context once compactions are opened.

use serde_json::Value;

use super::digest::digest;
use crate::history::{Record, Unsaid};
use crate::wire::RequestTool;

/// An item of the context, with what it brings along.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) record: Record,
    /// The tools that it loads, secrets included where the client just sent them.
    pub(crate) tools: Vec<RequestTool>,
    /// What was loaded without a word by the time that it was stored.
    pub(crate) unsaid: Option<Unsaid>,
    pub(crate) origin: Origin,
}

/// Where a piece comes from; those of a compaction know its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is an item of the client or of a response.
    Itself,
    /// A compaction kept it as it was.
    Kept(u64),
    /// It is the summary that a compaction holds.
    Summary(u64),
}

impl Piece {
    /// An item that loads nothing.
    pub(crate) fn new(record: Record) -> Self {
        Self {
            record,
            tools: Vec::new(),
            unsaid: None,
            origin: Origin::Itself,
        }
    }

    /// Whether it tells what this server found.
    pub(crate) fn is_found_here(&self) -> bool {
        let is_client = self.member("execution").and_then(Value::as_str) == Some("client");
        self.kind() == "tool_search_output" && !is_client
    }

    /// What the item that it comes from is known by.
    pub(super) fn digest(&self) -> u64 {
        match self.origin {
            Origin::Itself => digest(&self.record.item),
            Origin::Kept(digest) | Origin::Summary(digest) => digest,
        }
    }

    pub(super) fn kind(&self) -> &str {
        self.record.item.kind()
    }

    pub(super) fn is_summary(&self) -> bool {
        matches!(self.origin, Origin::Summary(_))
    }

    /// A member of an item that has no type of its own.
    pub(super) fn member(&self, key: &str) -> Option<&Value> {
        match &self.record.item {
            haft_core::Item::Other(members) => members.get(key),
            _ => None,
        }
    }
}
