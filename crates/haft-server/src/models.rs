//! The models behind the server, by the names that requests use.

use std::sync::Arc;

use haft_core::Model;

use crate::error::{ApiError, ErrorCode};

/// A model and what requests call it.
pub struct ModelEntry {
    /// What requests call it.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// The model.
    pub model: Arc<dyn Model>,
}

impl ModelEntry {
    /// A model under this name.
    pub fn new(name: impl Into<String>, model: impl Model) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            model: Arc::new(model),
        }
    }
}

/// All of them, in the order of the configuration.
pub(crate) struct Models {
    entries: Vec<ModelEntry>,
    default: usize,
}

impl Models {
    /// None if there is no model, or no such default.
    pub(crate) fn new(entries: Vec<ModelEntry>, default: Option<&str>) -> Option<Self> {
        let default = match default {
            None => 0,
            Some(name) => entries.iter().position(|entry| entry.is_called(name))?,
        };
        (!entries.is_empty()).then_some(Self { entries, default })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ModelEntry> {
        self.entries.iter()
    }

    /// The model that a request means.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&ModelEntry, ApiError> {
        let Some(name) = name else {
            return Ok(&self.entries[self.default]);
        };
        let found = self.entries.iter().find(|entry| entry.is_called(name));
        found.ok_or_else(|| {
            let known: Vec<_> = self
                .entries
                .iter()
                .map(|entry| entry.name.as_str())
                .collect();
            let message = format!(
                "there is no model `{}`: use one of {}",
                haft_core::cut(name),
                known.join(", ")
            );
            ApiError::new(ErrorCode::ModelNotFound, message).at("model")
        })
    }
}

impl ModelEntry {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}
