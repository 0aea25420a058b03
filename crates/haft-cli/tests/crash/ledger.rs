//! What a client was told, and what it asked for without being told what came of it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::backend::Asked;

/// Whether something was asked for, and whether that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ask {
    Never,
    InFlight,
    Acknowledged,
}

/// What is known of a response.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) asked: Asked,
    pub(crate) is_background: bool,
    pub(crate) has_log: bool,
    /// Its last state, if a client was told that.
    pub(crate) whole: Option<Value>,
    /// The events that a client received, from the first one on.
    pub(crate) events: Vec<Value>,
    pub(crate) deletion: Ask,
    pub(crate) cancelling: Ask,
    /// Whether something was told or asked since it was checked.
    pub(crate) is_new: bool,
}

impl Known {
    pub(crate) fn new(asked: Asked) -> Self {
        Self {
            asked,
            is_background: false,
            has_log: false,
            whole: None,
            events: Vec::new(),
            deletion: Ask::Never,
            cancelling: Ask::Never,
            is_new: true,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.whole.is_some() || self.deletion != Ask::Never
    }
}

/// An item that a conversation must have.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// Exactly this.
    Item(Value),
    /// What a user said; nobody was told its id.
    Said(String),
}

/// A change that nobody knows the outcome of.
#[derive(Debug, Clone)]
pub(crate) enum Pending {
    /// These were to be added, each saying this.
    Items(Vec<String>),
    /// A response was to be added, whose id may be known.
    Exchange(Asked, Option<String>),
    /// This item was to go.
    ItemGone(String),
    /// All of it was to go.
    Gone,
}

/// What is known of a conversation that only one client uses.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) id: String,
    pub(crate) items: Vec<Expected>,
    pub(crate) pending: Option<Pending>,
}

impl Talk {
    pub(crate) fn new(id: String) -> Self {
        Self {
            id,
            items: Vec::new(),
            pending: None,
        }
    }

    /// An exchange was added.
    pub(crate) fn exchanged(&mut self, asked: &Asked, response: &Value) {
        self.pending = None;
        // What fails or is cancelled is not added.
        if response["status"] == "completed" {
            self.items.push(Expected::Said(asked.question()));
            let output = response["output"].as_array().into_iter().flatten();
            self.items.extend(output.cloned().map(Expected::Item));
        }
    }
}

/// Items that one client added at once to the conversation that all use.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) texts: Vec<String>,
    pub(crate) outcome: Outcome,
}

/// What was told of items that were to be added.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// Nothing: they may be there or not.
    Unknown,
    /// Somebody else was at it.
    Refused,
    /// These were added.
    Added(Vec<Value>),
}

/// Everything that one client knows.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) responses: BTreeMap<String, Known>,
    pub(crate) talk: Option<Talk>,
    /// Conversations that are gone.
    pub(crate) talks_gone: Vec<String>,
    pub(crate) shared: Vec<Shared>,
    /// Responses that were never to be stored.
    pub(crate) unstored: Vec<String>,
    /// What must not happen.
    pub(crate) problems: Vec<String>,
}

/// Whether a response will not change any more.
pub(crate) fn is_final(response: &Value) -> bool {
    !matches!(
        response["status"].as_str(),
        Some("queued" | "in_progress") | None
    )
}

/// Whether this is the last event of a stream.
pub(crate) fn is_last(event: &Value) -> bool {
    matches!(
        event["type"].as_str(),
        Some("response.completed" | "response.failed" | "response.incomplete")
    )
}
