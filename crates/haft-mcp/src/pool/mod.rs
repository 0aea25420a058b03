//! Many servers, each connected to when it is needed.
//!
//! What comes in: settings of servers, at the start, from code at any time, or from one request. What
//! goes out: for each a [`Server`] that can be asked for its tools and called at any time. Behind it
//! connections come and go; a server that is down is that server's matter alone. Nothing here is
//! started before somebody needs it, unless its settings say so.

mod attempts;
mod guests;
mod memory;
mod object;
mod offering;
mod record;
mod server;
mod status;
mod tenants;
mod tools;
mod upkeep;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use haft_hydrate::JsonSchemaFactory;
use tokio::sync::broadcast;

pub use self::guests::Guest;
use self::guests::Guests;
use self::memory::Memory;
pub use self::object::McpTool;
pub use self::offering::Offering;
pub use self::record::{CallLog, CallRecord};
use self::server::Parts;
pub use self::server::{ResourceSubscription, Server, ServerResources, State};
pub use self::status::{ServerState, ServerStatus};
use self::tenants::TenantServers;
pub use self::tools::{HeldTool, ServerTools};
use crate::connection::ConnectOptions;
use crate::custom::McpTransport;
use crate::pins::PinFile;
use crate::settings::{ServerSettings, TransportSettings};
use crate::traffic::ServerEvent;

/// How many changes may wait for somebody who listens. Who lags behind is told that he did.
const WAITING_CHANGES: usize = 64;

/// How many events of all servers may be pending for a listener.
const PENDING_EVENTS: usize = 1_024;

/// How long all servers together may take to stop.
const CLOSING: Duration = Duration::from_secs(5);

/// Many servers. Clones share them.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use haft_mcp::{Label, Pool, ServerSettings};
///
/// let pool = Pool::builder().build();
/// let files = ServerSettings::stdio(Label::new("files")?, "npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "/srv"]);
/// // Nothing is started before its tools are asked for.
/// pool.add(files)?;
/// assert_eq!(pool.servers().len(), 1);
/// pool.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: ConnectOptions,
    memory: Option<Memory>,
    pins: Option<PinFile>,
    servers: Mutex<Vec<Arc<Server>>>,
    guests: Guests,
    tenants: TenantServers,
    changes: broadcast::Sender<Arc<str>>,
    events: broadcast::Sender<PoolEvent>,
}

/// What a server of a pool reported about its prompts, its resources or its log.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolEvent {
    /// The label of the server.
    pub server: Arc<str>,
    /// What it reported.
    pub event: ServerEvent,
}

/// A pool that is being set up.
#[derive(Debug, Default)]
#[must_use = "a pool exists only after `build`"]
pub struct PoolBuilder {
    options: ConnectOptions,
    data_dir: Option<PathBuf>,
}

/// There is a server of this label already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are two servers with the label `{0}`: give one of them another")]
pub struct LabelTaken(pub String);

impl PoolBuilder {
    /// How servers are connected to. What checks answers and results is the bundled validator unless
    /// another one is given.
    pub fn connect(mut self, options: ConnectOptions) -> Self {
        self.options = options;
        self
    }

    /// The folder where lists, eras and pins outlast the process. Without one nothing is kept and
    /// nothing is pinned.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// The pool, without servers.
    pub fn build(mut self) -> Pool {
        let validator = &mut self.options.validator;
        validator.get_or_insert_with(|| Arc::new(JsonSchemaFactory));
        let folder = self.data_dir.as_deref();
        Pool(Arc::new(Inner {
            options: self.options,
            memory: folder.map(Memory::in_folder),
            pins: folder.map(PinFile::in_folder),
            servers: Mutex::default(),
            guests: Guests::default(),
            tenants: TenantServers::default(),
            changes: broadcast::channel(WAITING_CHANGES).0,
            events: broadcast::channel(PENDING_EVENTS).0,
        }))
    }
}

impl Pool {
    /// Starts a pool.
    pub fn builder() -> PoolBuilder {
        PoolBuilder::default()
    }

    /// Adds a server, behind those that are there. Whoever looks at the pool next sees it.
    pub fn add(&self, settings: ServerSettings) -> Result<Arc<Server>, LabelTaken> {
        self.put(settings, None)
    }

    /// Adds a server that is reached over a transport of the caller's own.
    pub fn add_custom(
        &self,
        mut settings: ServerSettings,
        transport: Arc<dyn McpTransport>,
    ) -> Result<Arc<Server>, LabelTaken> {
        settings.transport = TransportSettings::Custom;
        self.put(settings, Some(transport))
    }

    fn put(
        &self,
        settings: ServerSettings,
        custom: Option<Arc<dyn McpTransport>>,
    ) -> Result<Arc<Server>, LabelTaken> {
        let mut servers = self.lock();
        if servers.iter().any(|it| it.label() == &settings.label) {
            return Err(LabelTaken(settings.label.to_string()));
        }
        let mut options = self.0.options.clone();
        options.custom = custom;
        let server = Server::new(Parts {
            settings: Arc::new(settings),
            options,
            memory: self.0.memory.clone(),
            pins: self.0.pins.clone(),
            changes: self.0.changes.clone(),
            tenant: None,
            events: self.0.events.clone(),
        });
        servers.push(Arc::clone(&server));
        Ok(server)
    }

    /// Takes a server out and stops it. Calls under way fail; whether there was such a server.
    pub async fn remove(&self, label: &str) -> bool {
        let removed = {
            let mut servers = self.lock();
            let at = servers.iter().position(|it| it.label().as_str() == label);
            at.map(|at| servers.remove(at))
        };
        match removed {
            Some(server) => {
                let tenants = self.0.tenants.take_of(&server);
                server.retire().await;
                join_all(tenants.iter().map(|server| server.retire())).await;
                let _ = self.0.changes.send(label.into());
                true
            }
            None => false,
        }
    }

    /// All servers, in the order in which they were added.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.lock().clone()
    }

    /// The server with this label.
    pub fn server(&self, label: &str) -> Option<Arc<Server>> {
        let servers = self.lock();
        servers
            .iter()
            .find(|it| it.label().as_str() == label)
            .cloned()
    }

    /// A server as a tenant reaches it: over a connection of its own where it has credentials of its own, or needs
    /// some. A tenant that needs credentials and has none gets a server that says so instead of connecting.
    pub fn for_tenant(&self, server: &Arc<Server>, tenant: &str) -> Arc<Server> {
        self.0.tenants.find(server, tenant)
    }

    /// Closes the connections that tenants have of their own, unless they are to be kept.
    pub fn retain_tenants(&self, is_kept: impl Fn(&str) -> bool) {
        self.0.tenants.retain(is_kept);
    }

    /// Whether any tenant has a connection of its own.
    pub fn has_tenants(&self) -> bool {
        !self.0.tenants.is_empty()
    }

    /// A server that a request names, with the credentials of that request. The same guest finds the
    /// same connection again; another one never does.
    pub fn guest(&self, guest: Guest) -> Arc<Server> {
        self.0.guests.find(guest, &self.0.options)
    }

    /// Connects to the servers that want to be connected to at the start, in the background and all at
    /// once.
    pub fn warm(&self) {
        self.warm_where(|_| true);
    }

    /// The same for those servers only whose labels are selected.
    pub fn warm_where(&self, is_selected: impl Fn(&str) -> bool) {
        for server in self.servers() {
            let settings = server.settings();
            // Without a tenant there is nothing to connect with.
            let is_shared =
                !settings.requires_tenant_credentials && !settings.has_logins_per_user();
            if settings.warm && is_shared && is_selected(server.label().as_str()) {
                server.keep_warm();
            }
        }
    }

    /// The labels of servers whose tools changed, from now on.
    pub fn changes(&self) -> broadcast::Receiver<Arc<str>> {
        self.0.changes.subscribe()
    }

    /// Changes of prompts and resources and the log messages of all servers, from now on.
    pub fn events(&self) -> broadcast::Receiver<PoolEvent> {
        self.0.events.subscribe()
    }

    /// What was accepted of each server's tools; none without a data folder.
    pub fn pins(&self) -> Option<&PinFile> {
        self.0.pins.as_ref()
    }

    /// Stops all servers, in parallel, within five seconds. Nothing connects any more afterwards.
    pub async fn close(&self) {
        let mut servers = std::mem::take(&mut *self.lock());
        servers.extend(self.0.guests.take_all());
        servers.extend(self.0.tenants.take_all());
        let closing = join_all(servers.iter().map(|server| server.retire()));
        if tokio::time::timeout(CLOSING, closing).await.is_err() {
            tracing::warn!("some MCP servers did not stop in time and are killed");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Server>>> {
        self.0
            .servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
