//! One server, connected.

mod call;
mod changes;
mod desk;
mod exchange;
mod failure;
mod handler;
mod item_lists;
mod list;
mod open;
mod outputs;
mod parties;
mod request;
mod rounds;
mod tasks;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::ValidatorFactory;
use rmcp::service::{Peer, RoleClient};
use tokio::sync::{Mutex, Semaphore, broadcast};
use tokio::time::Instant;

pub use self::call::{CallOptions, OnLog, TraceContext};
pub use self::changes::Changes;
use self::changes::Listener;
use self::desk::Desk;
pub use self::exchange::Completed;
use self::open::{Opening, Running, failure};
use self::outputs::Outputs;
use self::request::Line;
use crate::custom::McpTransport;
use crate::error::{Cause, Era, McpError, Phase, TransportKind};
use crate::http::HttpOptions;
use crate::oauth::{Authority, OAuthOptions};
use crate::process::{Launcher, Process};
use crate::question::Questions;
use crate::settings::ServerSettings;
use crate::traffic::{ServerEvent, Traffic};

/// How long taking leave of rmcp's side may take, beside what the process needs.
const LEAVE: Duration = Duration::from_millis(500);

/// How often a person is asked to log in for one thing.
const LOGINS: usize = 3;

/// What a connection is opened with beside its settings.
#[derive(Clone)]
pub struct ConnectOptions {
    /// What haft calls itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How child processes are started.
    pub launcher: Launcher,
    /// Which era the server spoke last time. If it no longer does, that is found out.
    pub era: Option<Era>,
    /// How addresses are reached.
    pub http: HttpOptions,
    /// How servers that ask for authorization are shown who haft is.
    pub oauth: OAuthOptions,
    /// The transport of a custom server.
    pub custom: Option<Arc<dyn McpTransport>>,
    /// Who answers what servers ask in the middle of a call.
    pub questions: Questions,
    /// What checks the answers to forms, and structured results against the schema of their tool.
    pub validator: Option<Arc<dyn ValidatorFactory>>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            name: "haft".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            launcher: Launcher::default(),
            era: None,
            http: HttpOptions::default(),
            oauth: OAuthOptions::default(),
            custom: None,
            questions: Questions::default(),
            validator: None,
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("name", &self.name)
            .field("launcher", &self.launcher)
            .field("era", &self.era)
            .finish_non_exhaustive()
    }
}

/// What a server says about itself. None of it is to be believed without need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerIdentity {
    /// What it calls itself.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// How it wants to be used.
    pub instructions: Option<String>,
    /// The version of the protocol that is spoken.
    pub protocol: String,
    /// Whether it tells when its tools change.
    pub tells_changes: bool,
    /// What it declares beside tools.
    pub capabilities: ServerCapabilities,
}

/// What a server declares beside tools. It is asked for nothing else.
// Each is a capability of the protocol, declared or not.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCapabilities {
    /// Prompts.
    pub prompts: bool,
    /// Notices that the list of prompts has changed.
    pub prompts_list_changed: bool,
    /// Resources and resource templates.
    pub resources: bool,
    /// Notices that the list of resources has changed.
    pub resources_list_changed: bool,
    /// Subscriptions to single resources.
    pub subscribe: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
}

impl ServerCapabilities {
    /// Whether anything can be subscribed to.
    fn has_notices(self) -> bool {
        self.prompts_list_changed || self.resources_list_changed || self.subscribe
    }
}

/// A connection to one server. Dropping it kills the server's process; [`close`](Self::close) takes
/// leave first.
pub struct Connection {
    settings: Arc<ServerSettings>,
    transport: TransportKind,
    era: Era,
    identity: ServerIdentity,
    peer: Peer<RoleClient>,
    traffic: Arc<Traffic>,
    desk: Arc<Desk>,
    authority: Option<Arc<Authority>>,
    outputs: Outputs,
    permits: Semaphore,
    // In the order in which they have to go.
    listener: Option<Listener>,
    running: Mutex<Option<Running>>,
    process: Option<Arc<Process>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.settings.label.as_str())
            .field("transport", &self.transport)
            .field("era", &self.era)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to a server, whichever era it speaks.
    pub async fn open(
        settings: Arc<ServerSettings>,
        options: &ConnectOptions,
    ) -> Result<Self, McpError> {
        let mut opening = Opening::new(&settings, options).await?;
        // Rare and large.
        let running = Box::pin(opening.run()).await?;
        let Opening {
            kind,
            traffic,
            process,
            desk,
            authority,
            ..
        } = opening;
        let peer = running.peer().clone();
        let era = if traffic.is_modern() {
            Era::Modern
        } else {
            Era::Legacy
        };
        let identity = identity_of(&peer);
        let has_notices = identity.tells_changes || identity.capabilities.has_notices();
        let listener = (era == Era::Modern && has_notices).then(|| {
            Listener::start(
                peer.clone(),
                Arc::clone(&traffic),
                settings.timeouts.control,
                &identity,
            )
        });
        let concurrent = settings.limits.concurrent_calls(kind);
        tracing::debug!(server = %settings.label, transport = %kind, %era, version = identity.protocol, "connected");
        Ok(Self {
            settings,
            transport: kind,
            era,
            identity,
            peer,
            traffic,
            desk,
            authority,
            outputs: Outputs::new(options.validator.clone()),
            permits: Semaphore::new(concurrent),
            listener,
            running: Mutex::new(Some(running)),
            process,
        })
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<ServerSettings> {
        &self.settings
    }

    /// How the server is reached.
    pub fn transport(&self) -> TransportKind {
        self.transport
    }

    /// Which era it speaks.
    pub fn era(&self) -> Era {
        self.era
    }

    /// What it says about itself.
    pub fn identity(&self) -> &ServerIdentity {
        &self.identity
    }

    /// Whether the connection has ended. A server behind HTTP that is gone shows only at the next call.
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// The notices that the tools changed, from now on.
    pub fn changes(&self) -> Changes {
        Changes::new(self.traffic.changes())
    }

    /// What the server reports about its prompts, resources and log, from now on.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.traffic.events()
    }

    /// Sets the resources of a modern server whose changes are reported as
    /// [`ServerEvent::ResourceUpdated`]. Legacy servers are subscribed to one by one.
    pub(crate) fn watch_resources(&self, uris: Vec<String>) {
        if let Some(listener) = &self.listener {
            listener.watch_resources(uris);
        }
    }

    /// Waits until notices of changes can arrive, this long at most.
    pub(crate) async fn subscribed(&self, limit: Duration) {
        if let Some(listener) = &self.listener {
            listener.answered(limit).await;
        }
    }

    /// Takes leave: closes what is open, and ends the process with all that it started. It takes
    /// five seconds at most, and nothing can be called afterwards.
    pub async fn close(&self) {
        if let Some(listener) = &self.listener {
            listener.stop();
        }
        if let Some(mut running) = self.running.lock().await.take() {
            let leave = if self.process.is_some() {
                LEAVE
            } else {
                self.settings.timeouts.control
            };
            // It has ended or it will: nobody listens to it any more.
            let _ = running.close_with_timeout(leave).await;
        }
        if let Some(process) = &self.process {
            process.stop(self.settings.timeouts.stop).await;
        }
    }

    /// Asks a person to log in, where one can be asked; else the failure stands.
    async fn log_in(&self, cause: Cause) -> Result<(), Cause> {
        match &self.authority {
            // Rare and large.
            Some(authority) if authority.asks() => Box::pin(authority.log_in()).await,
            _ => Err(cause),
        }
    }

    fn line(&self) -> Line<'_> {
        Line {
            peer: &self.peer,
            traffic: &self.traffic,
            control: self.settings.timeouts.control,
        }
    }

    async fn failed(&self, phase: Phase, started: Instant, cause: Cause) -> McpError {
        let process = self.process.as_deref();
        failure(
            &self.settings,
            self.transport,
            Some(self.era),
            phase,
            started.elapsed(),
            cause,
            process,
        )
        .await
    }
}

fn identity_of(peer: &Peer<RoleClient>) -> ServerIdentity {
    let Some(info) = peer.peer_info() else {
        return ServerIdentity::default();
    };
    let shown = |text: &str| haft_core::cut(&crate::text::visible(text));
    let server = info.server_info.as_ref();
    let tools = info.capabilities.tools.as_ref();
    let prompts = info.capabilities.prompts.as_ref();
    let resources = info.capabilities.resources.as_ref();
    let capabilities = ServerCapabilities {
        prompts: prompts.is_some(),
        prompts_list_changed: prompts.and_then(|it| it.list_changed) == Some(true),
        resources: resources.is_some(),
        resources_list_changed: resources.and_then(|it| it.list_changed) == Some(true),
        subscribe: resources.and_then(|it| it.subscribe) == Some(true),
        completions: info.capabilities.completions.is_some(),
        logging: info.capabilities.logging.is_some(),
    };
    ServerIdentity {
        name: server.map(|server| shown(&server.name)),
        version: server.map(|server| shown(&server.version)),
        instructions: info.instructions.as_deref().map(crate::text::visible),
        protocol: shown(info.protocol_version.as_str()),
        tells_changes: tools.and_then(|tools| tools.list_changed) == Some(true),
        capabilities,
    }
}
