//! The catalogue and the servers as what is behind a gateway.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use haft_catalog::Catalog;
use haft_core::{Owner, OwnersTool, ToolKind, ToolObject};
use haft_engine::LoopOptions;
use haft_mcp::gateway::{
    Access, Backend, BackendError, BackendLog, CacheHints, CallContext, CallOutcome, CallRequest,
    Caller, Change, Completion, CompletionRequest, Features, Identity, ListedPrompt,
    ListedResource, ListedTool, Listing, LogLevel, PromptOutcome, PromptRequest, ReadOutcome,
    ReadRequest, Reply, ToolList, WatchGuard,
};
use haft_mcp::{Pool, Server, ServerStatus, ServerTools};
use tokio::sync::broadcast;

use super::entry::{Entry, Target, native_entry, server_entries};
use super::events::{self, AbortOnDrop};
use super::links::Links;
use super::lists::{Listed, Offer, Offers};
use super::monitor::CallMonitor;
use super::server_logs::ServerLogs;
use super::{ServerFilter, native, remote};

/// How long the first lists of a process wait for servers of which nothing is known yet, so that quick
/// servers are there for clients that list only once. Those that take longer arrive by `list_changed`.
const FIRST_LIST_WAIT: Duration = Duration::from_secs(2);

/// How long a call waits for the list of the server that its tool would belong to.
const CALL_LIST_WAIT: Duration = Duration::from_secs(30);

/// For how long haft's own tools may be believed to be the same.
const OWN_TTL: Duration = Duration::from_mins(1);

/// How many changes may wait for somebody who listens.
const WAITING_CHANGES: usize = 64;

/// Whose eyes the tools are seen with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Those of whoever runs haft: everything is there.
    Operator,
    /// Those of the caller, who is a tenant: tools may be others for him, or not be there.
    Tenants,
}

/// The tools of a catalogue, then those of MCP servers in their order.
pub struct CatalogBackend {
    catalog: Catalog,
    pool: Pool,
    sight: Sight,
    limits: LoopOptions,
    servers: ServerFilter,
    /// Servers that are configured and cannot be used.
    pub(super) unusable: Vec<ServerStatus>,
    /// What of all that is offered, and to whom.
    pub(super) access: Access,
    pub(super) instructions: Option<String>,
    pub(super) monitor: CallMonitor,
    changes: broadcast::Sender<Change>,
    /// The entries of each server's last list, by the address of the server: each tenant may have its own.
    made: Mutex<HashMap<usize, Made>>,
    pub(super) links: Links,
    pub(super) logs: Arc<ServerLogs>,
    _events: AbortOnDrop,
    offers: Offers,
}

struct Made {
    server: Arc<Server>,
    of: Arc<ServerTools>,
    /// The version of the catalogue whose names were taken then.
    version: u64,
    entries: Arc<Vec<Entry>>,
}

impl CatalogBackend {
    pub(super) fn new(
        catalog: Catalog,
        pool: Pool,
        sight: Sight,
        limits: LoopOptions,
        servers: ServerFilter,
    ) -> Self {
        let changes = broadcast::channel(WAITING_CHANGES).0;
        let selected = servers.clone();
        tokio::spawn(pass_on(pool.changes(), changes.clone(), selected));
        let logs = ServerLogs::new(sight == Sight::Operator);
        let events = events::pass_on(pool.clone(), servers.clone(), changes.clone(), &logs);
        Self {
            catalog,
            pool,
            sight,
            limits,
            servers,
            unusable: Vec::new(),
            access: Access::default(),
            instructions: None,
            monitor: CallMonitor::default(),
            changes,
            links: Links::default(),
            logs,
            _events: events,
            made: Mutex::default(),
            offers: Offers::default(),
        }
    }

    /// The servers that this gateway uses for a caller, in the order of the pool. The others are not started for it.
    pub(super) fn selected(&self, caller: &Caller) -> Vec<Arc<Server>> {
        let mut servers = self.pool.servers();
        servers.retain(|server| self.admits_server(caller, server.label().as_str()));
        // The operator at standard input has the credentials of the configuration, unless it acts for a tenant.
        if self.sight == Sight::Tenants || *caller != Caller::local() {
            for server in &mut servers {
                *server = self.pool.for_tenant(server, caller.id());
            }
        }
        servers
    }

    /// The servers that this gateway uses for any caller, in the order of the pool.
    pub(super) fn all_selected(&self) -> Vec<Arc<Server>> {
        let mut servers = self.pool.servers();
        servers.retain(|server| self.servers.admits(server.label().as_str()));
        servers
    }

    /// How long, and by whom, what haft itself knows may be kept.
    pub(super) fn own_hints(&self) -> CacheHints {
        CacheHints {
            ttl: OWN_TTL,
            public: self.sight == Sight::Operator,
        }
    }

    fn admits_server(&self, caller: &Caller, label: &str) -> bool {
        self.servers.admits(label) && self.access.admits_server(caller, label)
    }

    /// What is offered, and to whom.
    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    /// The tools that run here, as this caller may see them.
    fn own(&self, caller: &Caller) -> Vec<Entry> {
        let owner = Owner::new(caller.id());
        let snapshot = self.catalog.snapshot();
        let tools = snapshot.iter().filter_map(|tool| {
            let tool = tool.tool();
            let is_own = tool.runs_here() && *tool.definition().kind() != ToolKind::Mcp;
            if !is_own {
                return None;
            }
            let seen: Option<Arc<dyn ToolObject>> = match (self.sight, tool.for_owner(&owner)) {
                (Sight::Operator, _) | (Sight::Tenants, OwnersTool::Same) => Some(Arc::clone(tool)),
                (Sight::Tenants, OwnersTool::Own(own)) => Some(own),
                (Sight::Tenants, OwnersTool::Hidden) => None,
            };
            seen.map(|tool| native_entry(&tool))
        });
        let admitted = tools.filter(|entry| self.access.admits(caller, &entry.listed));
        admitted.collect()
    }

    /// The tools of one server as its list has them.
    fn of_server(&self, server: &Arc<Server>, tools: &Arc<ServerTools>) -> Arc<Vec<Entry>> {
        let snapshot = self.catalog.snapshot();
        let version = snapshot.version();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let address = Arc::as_ptr(server).addr();
        if let Some(made) = made.get(&address)
            && Arc::ptr_eq(&made.of, tools)
            && made.version == version
        {
            return Arc::clone(&made.entries);
        }
        // Whether a tenant sees a native tool or not must not change the names of others.
        let taken: HashSet<&str> = snapshot.names().map(haft_core::ToolName::as_str).collect();
        let entries = Arc::new(server_entries(server, tools, &taken));
        let fresh = Made {
            server: Arc::clone(server),
            of: Arc::clone(tools),
            version,
            entries: Arc::clone(&entries),
        };
        made.retain(|_, it| !it.server.is_retired());
        made.insert(address, fresh);
        entries
    }

    /// The tools of this caller by what is known of the servers.
    fn offer(&self, caller: &Caller, lists: Vec<Listed>) -> Arc<Offer> {
        let is_tenant = self.sight == Sight::Tenants;
        let version = self.catalog.snapshot().version();
        self.offers.get(caller, is_tenant, version, lists, |lists| {
            let mut hints = CacheHints {
                ttl: OWN_TTL,
                public: self.sight == Sight::Operator,
            };
            let mut entries = self.own(caller);
            for (server, list) in lists {
                let Some(list) = list else {
                    // A client that lists again may find it.
                    hints.ttl = Duration::ZERO;
                    continue;
                };
                hints = hints.joined(CacheHints {
                    ttl: list.ttl,
                    public: list.is_public,
                });
                let of_server = self.of_server(server, list);
                let admitted = |entry: &&Entry| self.access.admits(caller, &entry.listed);
                entries.extend(of_server.iter().filter(admitted).cloned());
            }
            Offer::new(entries, hints)
        })
    }

    fn known(&self, caller: &Caller) -> Vec<Listed> {
        let servers = self.selected(caller).into_iter();
        servers
            .map(|server| {
                let tools = server.known_tools();
                (server, tools)
            })
            .collect()
    }

    fn find(&self, caller: &Caller, name: &str) -> Option<Entry> {
        self.offer(caller, self.known(caller)).get(name).cloned()
    }

    /// The server whose tool this name would be, as far as names say.
    fn server_of(&self, caller: &Caller, name: &str) -> Option<Arc<Server>> {
        let has_prefix = |server: &Arc<Server>| {
            let rest = name.strip_prefix(server.label().as_str());
            rest.is_some_and(|rest| rest.starts_with("__"))
        };
        self.selected(caller).into_iter().find(has_prefix)
    }
}

/// Reports a change of the tools whenever those of a selected server have changed.
async fn pass_on(
    mut changed: broadcast::Receiver<Arc<str>>,
    reported: broadcast::Sender<Change>,
    selected: ServerFilter,
) {
    loop {
        match changed.recv().await {
            Ok(label) if !selected.admits(&label) => {}
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                // It fails if there is no client now, which is no error.
                let _ = reported.send(Change::Tools);
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

impl Backend for CatalogBackend {
    fn identity(&self) -> Identity {
        Identity {
            title: Some("haft".into()),
            instructions: self.instructions.clone(),
            ..Identity::new("haft", env!("CARGO_PKG_VERSION"))
        }
    }

    async fn tools(&self, caller: &Caller) -> Result<Arc<ToolList>, BackendError> {
        let lists = self.selected(caller).into_iter().map(|server| async move {
            let tools = server.tools_or_first(FIRST_LIST_WAIT).await;
            (server, tools)
        });
        let lists = join_all(lists).await;
        Ok(Arc::clone(&self.offer(caller, lists).list))
    }

    async fn resolve_tool(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Arc<ListedTool>, BackendError> {
        let unknown = || BackendError::UnknownTool(name.to_owned());
        if let Some(entry) = self.find(caller, name) {
            return Ok(entry.listed);
        }
        // Perhaps its list is not known yet, or not the newest.
        let server = self.server_of(caller, name).ok_or_else(unknown)?;
        let unavailable = |reason| BackendError::ServerUnavailable {
            server: server.label().to_string(),
            reason,
        };
        match tokio::time::timeout(CALL_LIST_WAIT, server.tools()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(unavailable(error.cause.for_callers())),
            Err(_) => {
                let limit = CALL_LIST_WAIT.as_secs();
                return Err(unavailable(format!("no list of tools within {limit} s")));
            }
        }
        let found = self.find(caller, name);
        found.map(|entry| entry.listed).ok_or_else(unknown)
    }

    fn find_tool(&self, caller: &Caller, name: &str) -> Option<Arc<ListedTool>> {
        self.find(caller, name).map(|entry| entry.listed)
    }

    async fn call(
        &self,
        request: CallRequest,
        context: CallContext,
    ) -> Result<Reply<CallOutcome>, BackendError> {
        let name = &request.tool.name;
        let entry = self.find(context.caller(), name);
        let entry = entry.ok_or_else(|| BackendError::UnknownTool(name.clone()))?;
        let (server, tool) = match &entry.target {
            Target::Native(tool) => (None, tool.definition().name().as_str()),
            Target::Remote(server, tool) => (Some(server.label().as_str()), tool.name.as_str()),
        };
        let active = self
            .monitor
            .begin(&context, server, tool, &request.arguments);
        let outcome = match entry.target {
            Target::Native(tool) => {
                native::call(&self.catalog, tool, request, context, &self.limits).await
            }
            Target::Remote(server, tool) => {
                let logged = self.logs.enter(&server, &context);
                let caller = context.caller().clone();
                let on_log = logged.on_log();
                let call = remote::call(&server, &tool, request, context, &active, on_log);
                let mut outcome = Box::pin(call).await;
                if let Ok(outcome) = &mut outcome {
                    self.note_links(&caller, &server, outcome.content.iter_mut());
                }
                outcome
            }
        };
        active.ended(&outcome);
        outcome.map(Reply::Complete)
    }

    fn call_rejected(&self, caller: &Caller, name: &str, reason: &'static str) {
        self.monitor.rejected(caller.id(), name, reason);
    }

    fn features(&self) -> Features {
        Features {
            prompts: true,
            resources: true,
            completion: true,
            logging: true,
        }
    }

    async fn prompts(&self, caller: &Caller) -> Result<Listing<ListedPrompt>, BackendError> {
        Ok(self.list_prompts(caller).await)
    }

    async fn prompt(
        &self,
        request: PromptRequest,
        context: CallContext,
    ) -> Result<Reply<PromptOutcome>, BackendError> {
        let outcome = Box::pin(self.get_prompt(request, context)).await;
        outcome.map(Reply::Complete)
    }

    async fn resources(&self, caller: &Caller) -> Result<Listing<ListedResource>, BackendError> {
        Ok(self.list_resources(caller).await)
    }

    async fn resource_templates(
        &self,
        caller: &Caller,
    ) -> Result<Listing<ListedResource>, BackendError> {
        Ok(self.list_templates(caller).await)
    }

    async fn read(
        &self,
        request: ReadRequest,
        context: CallContext,
    ) -> Result<Reply<ReadOutcome>, BackendError> {
        let outcome = Box::pin(self.read_resource(request, context)).await;
        outcome.map(Reply::Complete)
    }

    fn watches(&self, caller: &Caller, uri: &str) -> bool {
        self.can_watch(caller, uri)
    }

    async fn subscribe(&self, caller: &Caller, uri: &str) -> Result<WatchGuard, BackendError> {
        self.watch_resource(caller, uri).await
    }

    async fn complete(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<Completion, BackendError> {
        self.complete_argument(request, caller).await
    }

    fn set_log_level(&self, caller: &Caller, level: LogLevel) {
        let level = self.logs.want(level);
        for server in self.selected(caller) {
            server.set_log_level(level);
        }
    }

    fn logs(&self, _caller: &Caller) -> Option<broadcast::Receiver<BackendLog>> {
        self.logs.others()
    }

    fn servers(&self, caller: &Caller) -> Vec<ServerStatus> {
        let servers = self.selected(caller);
        let offer = self.offer(caller, self.known(caller));
        let known = servers
            .iter()
            .map(|server| offer.status_for_caller(server.status()));
        let unusable = self.unusable.iter();
        let unusable = unusable.filter(|it| self.admits_server(caller, &it.label));
        known.chain(unusable.cloned()).collect()
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        Some(self.changes.subscribe())
    }
}
