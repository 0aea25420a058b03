//! From the items of the API to the conversation that the engine goes on with.
//!
//! Calls that ran here are one item on the wire and two for a model: the call, and behind all calls of
//! its turn the output. Names are those that the model knows. What no model reads is left out.

mod check;
mod claims;
mod expand;
mod marks;
mod questions;
mod searches;
mod unsaid;
mod unseen;

#[cfg(test)]
mod tests;

use haft_core::{Item, StoredItem};

use crate::error::{ApiError, ErrorCode, without_content};

pub(crate) use check::{call_of, verify};
pub(crate) use claims::Claims;
pub(crate) use expand::{Expanded, expand};
pub(crate) use marks::{
    CALL, DEFERRAL, FOUND, RAW_SUMMARY, TURN, UNSEEN, WIRE_ID, WRITTEN, is_mark,
};
pub(crate) use questions::not_found;
pub(crate) use unsaid::{Unsaid, take_unsaid};
pub(crate) use unseen::{Unseen, UnseenCall};

/// What the model calls tools that items name in the client's words.
pub(crate) trait ToolNames {
    /// A function or custom tool of the client.
    fn client(&self, namespace: Option<&str>, name: &str) -> String;

    /// The client's search for tools.
    fn search(&self) -> String;

    /// The search of this server.
    fn own_search(&self) -> String;

    /// A line about a tool that a search found, by the name that the model calls it by.
    fn found(&self, name: &str) -> String;

    /// A tool that runs here, by its type.
    fn hosted(&self, item_type: &str) -> String;

    /// A tool of an MCP server, or one that runs here and somebody was asked about, by its slug.
    fn mcp(&self, label: &str, name: &str) -> String;
}

/// Names as clients write them, where only calls and outputs matter.
pub(crate) struct AsWritten;

impl ToolNames for AsWritten {
    fn client(&self, _: Option<&str>, name: &str) -> String {
        name.to_owned()
    }

    fn search(&self) -> String {
        "tool_search".to_owned()
    }

    fn own_search(&self) -> String {
        "search_tools".to_owned()
    }

    fn found(&self, name: &str) -> String {
        name.to_owned()
    }

    fn hosted(&self, item_type: &str) -> String {
        item_type.to_owned()
    }

    fn mcp(&self, _: &str, name: &str) -> String {
        name.to_owned()
    }
}

/// An item of the context.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) item: Item,
    /// Where it stands in the request; none for one that was stored.
    pub(crate) param: Option<String>,
}

impl Record {
    /// The item as it is stored.
    pub(crate) fn to_stored(&self) -> Result<StoredItem, ApiError> {
        let json = serde_json::value::to_raw_value(&self.item).map_err(|error| {
            tracing::error!(%error, id = self.id, "an item cannot be written");
            ApiError::new(ErrorCode::ServerError, "an item cannot be written")
        })?;
        Ok(StoredItem {
            id: self.id.clone(),
            json,
        })
    }

    /// A stored item.
    pub(crate) fn stored(stored: &StoredItem) -> Result<Self, ApiError> {
        let item = serde_json::from_str(stored.json.get()).map_err(|error| {
            let error = without_content(&error);
            tracing::error!(error, id = stored.id, "a stored item cannot be read");
            let message = format!("the stored item `{}` cannot be read", stored.id);
            ApiError::new(ErrorCode::ServerError, message)
        })?;
        Ok(Self {
            id: stored.id.clone(),
            item,
            param: None,
        })
    }
}
