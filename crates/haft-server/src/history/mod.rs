//! From the items of the API to the conversation that the engine goes on with.
//!
//! Calls that ran here are one item on the wire and two for a model: the call, and behind all calls of
//! its turn the output. Names are those that the model knows. What no model reads is left out.

mod check;
mod expand;

#[cfg(test)]
mod tests;

use haft_core::{Item, StoredItem};

use crate::error::{ApiError, ErrorCode};

pub(crate) use check::{call_of, verify};
pub(crate) use expand::{TURN, expand};

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
            tracing::error!(%error, id = stored.id, "a stored item cannot be read");
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
