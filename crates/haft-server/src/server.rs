//! The server: put together, then served on a listener.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use haft_catalog::Catalog;
use haft_core::{CustomKind, Owner, Retention, Store, ToolSource, settled_now};
use haft_mcp::gateway::GatewayError;
use haft_mcp::{HostRuleError, HostRules, Pool, ServerStatus};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::access::{KeyFile, Keyring, KeysError, MemoryBudget, RunLine};
use crate::app::{App, ConversationLocks};
use crate::connections;
use crate::gateway::{
    CallJournal, CallMonitor, Endpoints, GatewayOptions, Mounted, Sight, gateway, is_endpoint_name,
};
use crate::health::StoreHealth;
use crate::http::{self, Route};
use crate::lifetime::Lifetime;
use crate::live::LiveRuns;
use crate::models::{ModelEntry, Models};
use crate::options::ServerOptions;
use crate::sealed::{KeyFileError, SealingKeys};
use crate::startup::StartError;
use crate::take_up::{TakenUp, take_up};
use crate::toolkit::of_type;
use crate::watch::{CallRecord, Watch, timed};

/// Where the keys are, in the data folder.
const KEY_FILE: &str = "sealing-keys";

/// The folder in the data folder for long results of background runs.
const SPILL_FOLDER: &str = "spill";

/// How many stored responses and conversations are loaded at the same time.
const MAX_LOADS: usize = 8;

/// Shorter than the time limits of requests.
const BEAT: Duration = Duration::from_secs(1);

/// How often the connections of tenants are compared with the valid keys.
const TENANTS_PAUSE: Duration = Duration::from_secs(2);

/// How often what is too old is looked for.
const CLEANING_PAUSE: Duration = Duration::from_mins(1);

/// How much goes at once when it is cleaned.
const CLEANING_BATCH: usize = 200;

/// An Open Responses server.
///
/// ```no_run
/// # use std::sync::Arc;
/// # async fn example(store: Arc<dyn haft_core::Store>, model: impl haft_core::Model) -> Result<(), Box<dyn std::error::Error>> {
/// use haft_server::{ModelEntry, Server};
///
/// let server = Server::builder(store)
///     .model(ModelEntry::new("default", model))
///     .build()?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:4141").await?;
/// server.serve(listener, std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    app: Arc<App>,
}

/// Collects the parts of a [`Server`].
#[must_use = "a server exists only after `build`"]
pub struct ServerBuilder {
    store: Arc<dyn Store>,
    data_dir: Option<PathBuf>,
    models: Vec<ModelEntry>,
    catalog: Catalog,
    tools: Vec<(String, ToolSource)>,
    mcp: Pool,
    gateway: Option<GatewayOptions>,
    endpoints: Vec<(String, GatewayOptions)>,
    mcp_unusable: Vec<ServerStatus>,
    options: ServerOptions,
}

/// A server that cannot be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no model, or none of the default's name.
    #[error("there is no model to answer with: add one, and let `default_model` name one of them")]
    NoModel,
    /// Two models share a name.
    #[error("two models are called `{name}`: give each names of its own")]
    DuplicateModel {
        /// The name.
        name: String,
    },
    /// A limit of the loop is zero: every request would fail.
    #[error("`{name}` is 0 and nothing could run: leave it out, or set at least 1")]
    ZeroLimit {
        /// Which.
        name: &'static str,
    },
    /// A type that no tool can have.
    #[error(
        "`{tool_type}` is no type for a tool: write `slug:type`, the slug 2 to 32 lower-case letters, \
         digits and `_`, and none that haft uses itself"
    )]
    ToolType {
        /// As given.
        tool_type: String,
    },
    /// A tool that cannot be registered.
    #[error("the tool `{tool_type}` cannot be registered: {reason}")]
    Tool {
        /// Its type.
        tool_type: String,
        /// What is wrong.
        reason: String,
    },
    /// The keys that seal compacted conversations cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The hosts of MCP servers cannot be understood.
    #[error("`mcp_hosts` cannot be used: {0}")]
    McpHosts(#[from] HostRuleError),
    /// A host of images and files is none.
    #[error("`content_hosts` cannot be used: {0}")]
    ContentHosts(HostRuleError),
    /// The keys of clients cannot be used.
    #[error(transparent)]
    ApiKeys(#[from] KeysError),
    /// The MCP server that it is to be cannot be one.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// An MCP endpoint cannot be called so, or two are.
    #[error(
        "`{name}` cannot be the name of an MCP endpoint, or there are two of it: use 1 to 64 lower-case letters, \
         digits, `-` and `_`, a letter or a digit first"
    )]
    EndpointName {
        /// As given.
        name: String,
    },
}

impl ServerBuilder {
    /// Where the server keeps its keys, and finds those of its clients
    /// ([`KeyFile`](crate::access::KeyFile)); without one its own die with it.
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(directory.into());
        self
    }

    /// Adds a model. The first is the default unless the options name another.
    pub fn model(mut self, entry: ModelEntry) -> Self {
        self.models.push(entry);
        self
    }

    /// The tools that requests may name.
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// Adds a tool under a type of the application's own, `slug:type`: requests name it so, and its
    /// calls are items of that type.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use haft_core::{ToolDefinition, dynamic_tool};
    /// # fn example(builder: haft_server::ServerBuilder) -> haft_server::ServerBuilder {
    /// # let definition = ToolDefinition::builder("weather")
    /// #     .parameters(serde_json::json!({"type": "object"})).build().unwrap();
    /// # let weather = dynamic_tool(definition, |_, _| async { Ok("snow") });
    /// builder.tool("acme:weather", weather)
    /// # }
    /// ```
    pub fn tool(mut self, tool_type: impl Into<String>, tool: impl Into<ToolSource>) -> Self {
        self.tools.push((tool_type.into(), tool.into()));
        self
    }

    /// The MCP servers that requests may name by their labels. The pool stays the caller's to close.
    pub fn mcp(mut self, pool: Pool) -> Self {
        self.mcp = pool;
        self
    }

    /// Lets the server be an MCP server as well, at `/mcp`: with the tools of its catalogue that run here,
    /// and those of its MCP servers. Clients send the same keys, and are the same tenants.
    pub fn gateway(mut self, options: GatewayOptions) -> Self {
        self.gateway = Some(options);
        self
    }

    /// Adds an MCP endpoint of its own at `/mcp/NAME`, with its own part of the tools, rules and callers. A caller
    /// that may not use it gets the same answer as for one that does not exist: 404.
    ///
    /// ```
    /// # fn example(builder: haft_server::ServerBuilder) -> haft_server::ServerBuilder {
    /// use haft_mcp::gateway::{CallerFilter, Subset};
    /// use haft_server::GatewayOptions;
    ///
    /// builder.gateway_endpoint("coding", GatewayOptions {
    ///     subset: Some(Subset::default().with_server("github").without("*__delete*")),
    ///     callers: CallerFilter::default().with_role("developer"),
    ///     ..GatewayOptions::default()
    /// })
    /// # }
    /// ```
    pub fn gateway_endpoint(mut self, name: impl Into<String>, options: GatewayOptions) -> Self {
        self.endpoints.push((name.into(), options));
        self
    }

    /// What the operator decides.
    pub fn options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Servers of the configuration that are not in the pool, because their settings cannot be used: they are
    /// shown with their reason.
    pub fn mcp_unusable(mut self, servers: Vec<ServerStatus>) -> Self {
        self.mcp_unusable = servers;
        self
    }

    /// The server.
    pub fn build(self) -> Result<Server, BuildError> {
        let mut names = std::collections::HashSet::new();
        for entry in &self.models {
            for name in std::iter::once(&entry.name).chain(&entry.aliases) {
                if !names.insert(name.clone()) {
                    let name = name.clone();
                    return Err(BuildError::DuplicateModel { name });
                }
            }
        }
        if let Some(name) = self.options.loop_options.zero_limit() {
            return Err(BuildError::ZeroLimit { name });
        }
        for (tool_type, tool) in self.tools {
            register(&self.catalog, tool_type, tool)?;
        }
        let default = self.options.default_model.as_deref();
        let models = Models::new(self.models, default).ok_or(BuildError::NoModel)?;
        let keys = match &self.data_dir {
            Some(directory) => SealingKeys::open(&directory.join(KEY_FILE))?,
            None => SealingKeys::ephemeral()?,
        };
        let mcp_hosts = HostRules::new(&self.options.mcp_hosts)?;
        let content_hosts =
            HostRules::new(&self.options.content_hosts).map_err(BuildError::ContentHosts)?;
        let options = self.options;
        let limits = &options.limits;
        let file = self.data_dir.as_deref().map(KeyFile::in_folder);
        let keyring = Keyring::open(file, options.api_key.as_ref(), limits.keys)?;
        let max_waiting = limits.max_waiting;
        let max_waiting = max_waiting.unwrap_or_else(|| options.max_runs.saturating_mul(4));
        let line = RunLine::new(options.max_runs, max_waiting, limits.max_wait);
        let memory = MemoryBudget::new(limits.max_pending_bytes, options.max_body_bytes);
        let names = models.iter().map(|entry| entry.name.as_str());
        let watch = Watch::new(names, options.watch.clone());
        watch.set_mcp_pool(&self.mcp);
        let call_journal = match (&self.data_dir, options.watch.call_record) {
            (None, _) | (_, CallRecord::Off) => None,
            (Some(folder), record) => {
                let has_arguments = record == CallRecord::Arguments;
                CallJournal::in_folder(folder, has_arguments).ok()
            }
        };
        let mut endpoints = Endpoints::default();
        let mut taken = std::collections::HashSet::new();
        let unnamed = self.gateway.into_iter().map(|wanted| (None, wanted));
        let others = self.endpoints.into_iter();
        let others = others.map(|(name, wanted)| (Some(name), wanted));
        for (name, mut wanted) in unnamed.chain(others) {
            if let Some(name) = &name
                && !(is_endpoint_name(name) && taken.insert(name.clone()))
            {
                let name = haft_core::cut(name);
                return Err(BuildError::EndpointName { name });
            }
            let (catalog, pool) = (self.catalog.clone(), self.mcp.clone());
            let limits = options.loop_options.clone();
            let callers = wanted.callers.clone();
            let monitor = CallMonitor::new(&Endpoints::path_of(name.as_deref()));
            wanted.monitor = monitor
                .watched_by(&watch)
                .with_journal(call_journal.clone());
            let gateway = gateway(catalog, pool, Sight::Tenants, limits, wanted)?;
            endpoints.add(name.as_deref(), callers, Mounted::new(gateway));
        }
        Ok(Server {
            app: Arc::new(App {
                endpoints,
                models,
                catalog: self.catalog,
                mcp: self.mcp,
                mcp_unusable: self.mcp_unusable,
                call_journal,
                mcp_hosts,
                content_hosts,
                store: timed(self.store, &watch),
                keyring,
                line,
                memory,
                loads: Semaphore::new(MAX_LOADS),
                is_local: OnceLock::new(),
                options,
                live: LiveRuns::default(),
                conversations: ConversationLocks::default(),
                keys,
                lifetime: Lifetime::default(),
                watch,
                store_health: StoreHealth::default(),
                spill_folder: self.data_dir.map(|folder| folder.join(SPILL_FOLDER)),
            }),
        })
    }
}

/// Slugs that mean something already: haft's, and the prefixes of ids.
const TAKEN_SLUGS: [&str; 19] = [
    "haft", "openai", "at", "call", "cmp", "conv", "ctc", "ctco", "fc", "fco", "mcp", "mcpa",
    "mcpl", "mcpr", "msg", "resp", "rs", "tsc", "tso",
];

/// Puts a tool into the catalogue under its type.
fn register(catalog: &Catalog, tool_type: String, tool: ToolSource) -> Result<(), BuildError> {
    let kind = CustomKind::new(&tool_type).ok().filter(|kind| {
        let slug = kind.slug();
        (2..=32).contains(&slug.len())
            && slug.starts_with(|first: char| first.is_ascii_lowercase())
            && !slug.contains('-')
            && !TAKEN_SLUGS.contains(&slug)
    });
    let Some(kind) = kind else {
        return Err(BuildError::ToolType { tool_type });
    };
    let tool = match tool.into_object() {
        Ok(tool) => of_type(tool, kind),
        Err(error) => {
            let reason = error.to_string();
            return Err(BuildError::Tool { tool_type, reason });
        }
    };
    match catalog.register(tool) {
        Ok(_) => Ok(()),
        Err(error) => {
            let reason = error.to_string();
            Err(BuildError::Tool { tool_type, reason })
        }
    }
}

/// Adds a key by which the server of this data folder seals from its next start on. What was sealed
/// before can still be opened.
pub fn rotate_sealing_keys(data_dir: &Path) -> Result<(), KeyFileError> {
    SealingKeys::rotate(&data_dir.join(KEY_FILE)).map(drop)
}

impl Server {
    /// Puts a server together that keeps its data in this store.
    pub fn builder(store: Arc<dyn Store>) -> ServerBuilder {
        ServerBuilder {
            store,
            data_dir: None,
            models: Vec::new(),
            catalog: Catalog::new(),
            tools: Vec::new(),
            mcp: Pool::builder().build(),
            gateway: None,
            endpoints: Vec::new(),
            mcp_unusable: Vec::new(),
            options: ServerOptions::default(),
        }
    }

    /// Every method and path that it answers to.
    pub fn routes(&self) -> Vec<Route> {
        let mut routes = http::routes();
        routes.extend(self.app.endpoints.routes());
        routes
    }

    /// Whether clients must send a key: one is configured, or the data folder has a file of them.
    pub fn needs_key(&self) -> bool {
        self.app.keyring.needs_key()
    }

    #[cfg(test)]
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// The API as a router, to be part of an application of your own.
    pub fn router(&self) -> Router {
        http::router(Arc::clone(&self.app))
    }

    /// Makes sure that the store fits: that the keys are there that it was used with, and that the clock is
    /// not behind it. [`serve`](Self::serve) does the same before anything else.
    pub async fn verify_start(&self) -> Result<(), StartError> {
        self.app.verify_start().await
    }

    /// Answers on the listener until `shutdown` says that it is enough. From then on the server is not
    /// ready any more, then it takes no new connections, and requests that are under way have some
    /// seconds to end. Background runs stop between two turns, or when these seconds are over, and go
    /// on when a server is started with the same store. Nothing goes on when this returns, and the
    /// responses that did not come to their end say so.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        self.verify_start().await.map_err(std::io::Error::other)?;
        let taken = take_up(&self.app).await.map_err(std::io::Error::other)?;
        if taken != TakenUp::default() {
            let TakenUp { resumed, failed } = taken;
            tracing::warn!(
                resumed,
                failed,
                "background responses of an earlier process were not finished"
            );
        }
        let beat = tokio::spawn(beat());
        let cleaner = tokio::spawn(clean(Arc::clone(&self.app)));
        let app = Arc::clone(&self.app);
        let clock = tokio::spawn(async move { app.watch_clock().await });
        let app = Arc::clone(&self.app);
        let keys = tokio::spawn(async move { app.watch_api_keys().await });
        let tenants = tokio::spawn(close_unused_tenants(Arc::clone(&self.app)));
        let watching = tokio::spawn(haft_models::pool::watch(self.app.models.members()));
        let lifetime = &self.app.lifetime;
        let address = listener.local_addr()?;
        let is_local = address.ip().to_canonical().is_loopback();
        let _ = self.app.is_local.set(is_local);
        self.app.endpoints.close_at(&lifetime.stopping_signal());
        self.app.endpoints.warn_of_unknown_names(&self.app.keyring);
        let bounds = connections::Bounds::of(&self.app);
        let served = connections::serve(listener, self.router(), lifetime, bounds);
        let wait = self.app.options.stop_wait;
        let over = async {
            served.await;
            // Connections that became WebSockets, and what runs in the background.
            lifetime.ended().await;
        };
        let overdue = async {
            shutdown.await;
            lifetime.drain();
            tokio::time::sleep(self.app.options.drain_wait).await;
            lifetime.stop();
            tokio::time::sleep(wait).await;
        };
        let mut over = pin!(over);
        tokio::select! {
            () = &mut over => {}
            () = overdue => {
                tracing::warn!("some requests did not end in time: they are cancelled");
                lifetime.halt();
                // Also those that are driven by their connections.
                if tokio::time::timeout(wait, over).await.is_err() {
                    tracing::error!("some requests did not end although they were cancelled");
                }
            }
        }
        beat.abort();
        cleaner.abort();
        clock.abort();
        keys.abort();
        tenants.abort();
        watching.abort();
        self.app.watch.close().await;
        Ok(())
    }
}

/// Closes connections to MCP servers with the credentials of tenants that no valid key belongs to any more.
async fn close_unused_tenants(app: Arc<App>) {
    loop {
        tokio::time::sleep(TENANTS_PAUSE).await;
        if !app.mcp.has_tenants() {
            continue;
        }
        app.keyring.refresh().await;
        let Some(keys) = app.keyring.active_keys() else {
            continue;
        };
        // Callers with the configured key, or without one where none is needed, are of this tenant.
        let default = Owner::default();
        app.mcp.retain_tenants(|tenant| {
            tenant == default.as_str() || keys.iter().any(|key| key.tenant == tenant)
        });
    }
}

/// Keeps a timer that goes off before those of requests. For one that is the first of all, the runtime
/// calls whoever waits for the network, which costs a request more than the rest of its time limit.
async fn beat() {
    loop {
        tokio::time::sleep(BEAT).await;
    }
}

/// Removes what is too old or too much, a little at a time.
async fn clean(app: Arc<App>) {
    let retention = app.options.retention;
    if retention == Retention::default() {
        return;
    }
    loop {
        match app
            .store
            .clean(retention, settled_now(), CLEANING_BATCH)
            .await
        {
            Ok(cleaned) => {
                if cleaned.responses + cleaned.conversations > 0 {
                    tracing::info!(
                        responses = cleaned.responses,
                        conversations = cleaned.conversations,
                        "removed what is kept no longer"
                    );
                }
                if cleaned.has_more {
                    tokio::task::yield_now().await;
                    continue;
                }
            }
            Err(error) => tracing::error!(%error, "the store cannot be cleaned"),
        }
        tokio::time::sleep(CLEANING_PAUSE).await;
    }
}
