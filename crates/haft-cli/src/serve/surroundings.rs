//! What can be found without being told.

use std::future::Future;

use haft::models::{Adapter, Lookup, ModelConfig};

/// A server that answers on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) adapter: Adapter,
    pub(crate) base_url: String,
    pub(crate) model: String,
}

/// A model whose provider's key is among the variables.
pub(super) fn from_environment(_lookup: Lookup<'_>) -> Option<ModelConfig> {
    None
}

/// A server on its usual port.
pub(super) fn on_this_machine() -> impl Future<Output = Option<Found>> {
    std::future::ready(None)
}
