//! What all requests share.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use haft_catalog::Catalog;
use haft_core::{Owner, Store, StoreError, ToolKind};
use haft_mcp::{HostRules, Pool, ServerStatus};

pub(crate) use crate::conversation_locks::{ConversationLock, ConversationLocks};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::access::{Keyring, MemoryBudget, Pass, RunLine, RunPermit};
use crate::error::{ApiError, ErrorCode};
use crate::gateway::{CallJournal, Endpoints};
use crate::health::StoreHealth;
use crate::lifetime::Lifetime;
use crate::live::LiveRuns;
use crate::models::Models;
use crate::options::ServerOptions;
use crate::reasoning::ReasoningSeal;
use crate::sealed::SealingKeys;
use crate::stream::Dialect;
use crate::watch::{RequestWatch, Watch};
use crate::wire::{Include, View, unknown_after};

/// The server's state.
pub(crate) struct App {
    pub(crate) models: Models,
    pub(crate) catalog: Catalog,
    /// The servers that requests may name by their labels, and those that they bring along.
    pub(crate) mcp: Pool,
    /// Servers of the configuration that cannot be used.
    pub(crate) mcp_unusable: Vec<ServerStatus>,
    /// The record of gateway calls, if there is one.
    pub(crate) call_journal: Option<CallJournal>,
    /// The MCP server that this one is as well, if it is.
    pub(crate) endpoints: Endpoints,
    /// Where those may be that requests bring along.
    pub(crate) mcp_hosts: HostRules,
    /// Where images and files may be that requests name.
    pub(crate) content_hosts: HostRules,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: ServerOptions,
    pub(crate) live: LiveRuns,
    pub(crate) conversations: ConversationLocks,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) line: Arc<RunLine>,
    pub(crate) memory: MemoryBudget,
    /// How many stored responses and conversations are loaded at the same time: each is in memory as a whole.
    pub(crate) loads: Semaphore,
    /// Whether only names of the loopback are answered where no key is needed.
    pub(crate) is_local: OnceLock<bool>,
    pub(crate) keys: SealingKeys,
    pub(crate) lifetime: Lifetime,
    pub(crate) watch: Arc<Watch>,
    pub(crate) store_health: StoreHealth,
    /// Where background runs keep long results; a temporary folder without a data folder.
    pub(crate) spill_folder: Option<PathBuf>,
}

/// Who asks, and how he wants to be answered.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) owner: Owner,
    pub(crate) pass: Pass,
    pub(crate) dialect: Dialect,
    pub(crate) request_id: String,
    pub(crate) wants_vendor_events: bool,
    /// Where whoever answers says who he is.
    pub(crate) watch: RequestWatch,
}

impl App {
    /// Waits for room for one more run of this caller.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<RunPermit, ApiError> {
        let _waiting = self.watch.waiting();
        caller.pass.begin_run(&self.line).await
    }

    /// Waits until stored data may be loaded. To be held until the response is serialised.
    pub(crate) async fn begin_load(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.loads.acquire().await.ok()
    }

    /// How an owner's items are presented to a client that asks for `include`.
    pub(crate) fn view(&self, owner: &Owner, include: Include) -> View {
        let seal = include
            .encrypted_reasoning
            .then(|| self.reasoning_seal(owner));
        View { include, seal }
    }

    /// What seals and opens an owner's reasoning.
    pub(crate) fn reasoning_seal(&self, owner: &Owner) -> ReasoningSeal {
        ReasoningSeal::new(&self.keys, owner)
    }

    /// Whether a tool or item type with a slug is registered here.
    pub(crate) fn is_vendor_type(&self, tool_type: &str) -> bool {
        let snapshot = self.catalog.snapshot();
        let mut definitions = snapshot.definitions();
        definitions.any(|definition| match definition.kind() {
            ToolKind::Custom(kind) => kind.to_string() == tool_type,
            _ => false,
        })
    }
}

/// Seconds since the epoch; a clock that is set back while the process runs is not followed.
pub(crate) fn now() -> i64 {
    haft_core::unix_now()
}

/// A store's failure as clients see it; the details are the operator's.
pub(crate) fn store_failed(error: StoreError) -> ApiError {
    match error {
        StoreError::Busy => ApiError::new(
            ErrorCode::ServerIsOverloaded,
            "the server has too much to write: try again in 1s",
        )
        .retry_after(std::time::Duration::from_secs(1)),
        StoreError::UnknownItem { id } => unknown_after(&id),
        error => {
            tracing::error!(%error, "the store failed");
            ApiError::new(ErrorCode::ServerError, "the server cannot reach its data")
        }
    }
}
