//! One server of a pool: always there to be asked, whether it is connected or not.

mod call;
mod list;
mod offers;
mod refresh;
mod settle;
mod subscriptions;
mod tenant;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use haft_core::Cancel;
use tokio::sync::{Mutex as AsyncMutex, broadcast, watch};
use tokio::time::Instant;

use self::offers::Offers;
pub use self::offers::ServerResources;
pub use self::subscriptions::ResourceSubscription;
use super::attempts::{Advice, Attempts, Failure};
use super::memory::Memory;
use super::tools::ServerTools;
use super::{PoolEvent, upkeep};
use crate::connection::{ConnectOptions, Connection};
use crate::error::{Cause, Era, McpError, Phase, TransportKind};
use crate::names::Label;
use crate::pins::{PinFile, Standing};
use crate::settings::{Approve, HttpKind, ServerSettings, TransportSettings};
use crate::tool::ToolDef;

/// How a server stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum State {
    /// Nothing is known of it but its settings.
    Configured,
    /// It is not connected, and its tools are known from before.
    Known,
    /// It is connected.
    Connected {
        /// Which era it speaks.
        era: Era,
        /// How it is reached.
        transport: TransportKind,
    },
    /// The last attempt to connect failed.
    Failed {
        /// Why.
        error: McpError,
        /// After how long it will be tried again, if somebody needs it.
        retry_in: Duration,
    },
}

/// What a server is made of.
pub(super) struct Parts {
    pub(super) settings: Arc<ServerSettings>,
    pub(super) options: ConnectOptions,
    pub(super) memory: Option<Memory>,
    pub(super) pins: Option<PinFile>,
    pub(super) changes: broadcast::Sender<Arc<str>>,
    /// The tenant whose credentials are used, where it has its own.
    pub(super) tenant: Option<tenant::Tenant>,
    pub(super) events: broadcast::Sender<PoolEvent>,
}

/// One server of a pool.
pub struct Server {
    parts: Parts,
    current: RwLock<Option<Arc<Connection>>>,
    attempts: Mutex<Attempts>,
    /// Attempts to read the list over a connection that there is.
    list_attempts: Mutex<Attempts>,
    /// When the attempt to connect began that is under way.
    opening_since: Mutex<Option<Instant>>,
    /// Held while a connection is opened, so that there is never more than one.
    opening: AsyncMutex<()>,
    /// Held while the list is read.
    refreshing: AsyncMutex<()>,
    /// When the refresh began that is under way.
    refreshing_since: Mutex<Option<Instant>>,
    /// Whether a refresh in the background is under way; there is never more than one.
    is_refresh_queued: AtomicBool,
    /// Counts the refreshes that have ended.
    refreshes: watch::Sender<u64>,
    /// Until when first lists wait for a server of which nothing is known.
    first_wait_until: Mutex<Option<Instant>>,
    listed: RwLock<Listed>,
    era: Mutex<Option<Era>>,
    /// Until when tools that appear count as part of the server's first list.
    registering_until: Mutex<Option<Instant>>,
    /// The changed and new tools that were logged, so that each is logged once.
    logged_changes: Mutex<Vec<(String, Standing)>>,
    /// Prompts, resources, subscriptions and the log level.
    offers: Offers,
    use_: Mutex<Use>,
    calls: AtomicUsize,
    connections: AtomicU64,
    is_retired: AtomicBool,
    is_kept_warm: AtomicBool,
}

#[derive(Debug, Default)]
struct Listed {
    tools: Option<Arc<ServerTools>>,
    /// When it was read; not set for what is remembered, and after a notice that it changed.
    read_at: Option<Instant>,
    /// When it was read; not set for what is remembered. A notice of changes does not reset it.
    last_read: Option<Instant>,
    /// Whether a list was read over the connection that there is now.
    is_settled: bool,
}

#[derive(Debug)]
struct Use {
    last: Instant,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("label", &self.label().as_str())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Server {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let remembered = parts
            .memory
            .as_ref()
            .map(|memory| memory.recall(&parts.settings))
            .unwrap_or_default();
        let tools = remembered.list.map(|list| {
            // What waits to be accepted was never remembered.
            let tools = ServerTools::of_list(list, &parts.settings, None, None);
            Arc::new(ServerTools {
                is_live: false,
                ..tools
            })
        });
        Arc::new(Self {
            parts,
            current: RwLock::default(),
            attempts: Mutex::default(),
            list_attempts: Mutex::default(),
            opening_since: Mutex::default(),
            opening: AsyncMutex::default(),
            refreshing: AsyncMutex::default(),
            refreshing_since: Mutex::default(),
            is_refresh_queued: AtomicBool::new(false),
            refreshes: watch::Sender::default(),
            first_wait_until: Mutex::default(),
            listed: RwLock::new(Listed {
                tools,
                read_at: None,
                last_read: None,
                is_settled: false,
            }),
            era: Mutex::new(remembered.era),
            registering_until: Mutex::new(None),
            logged_changes: Mutex::default(),
            offers: Offers::default(),
            use_: Mutex::new(Use {
                last: Instant::now(),
            }),
            calls: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            is_retired: AtomicBool::new(false),
            is_kept_warm: AtomicBool::new(false),
        })
    }

    /// What it is called.
    pub fn label(&self) -> &Label {
        &self.parts.settings.label
    }

    /// Its settings.
    pub fn settings(&self) -> &Arc<ServerSettings> {
        &self.parts.settings
    }

    /// How it stands now.
    pub fn state(&self) -> State {
        if let Some(connection) = self.connected() {
            return State::Connected {
                era: connection.era(),
                transport: connection.transport(),
            };
        }
        if let Some(failure) = locked(&self.attempts).last() {
            return State::Failed {
                error: failure.error.clone(),
                retry_in: failure.retry_at.duration_since(Instant::now()),
            };
        }
        match self.known_tools() {
            Some(_) => State::Known,
            None => State::Configured,
        }
    }

    /// The connection, if there is one, for what the pool does not offer.
    pub fn connected(&self) -> Option<Arc<Connection>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|it| !it.is_closed()).cloned()
    }

    /// The tools as far as they are known, without waiting for anything.
    pub fn known_tools(&self) -> Option<Arc<ServerTools>> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.tools.clone()
    }

    /// The era that it speaks, or spoke the last time, if that is known.
    pub fn known_era(&self) -> Option<Era> {
        *locked(&self.era)
    }

    /// Whether it may ask something in the middle of a call.
    pub(super) fn may_be_asked(&self) -> bool {
        self.parts.options.questions.may_be_asked()
    }

    /// Whether a person is asked before this tool is called.
    pub fn needs_approval(&self, tool: &ToolDef) -> bool {
        let settings = self.settings();
        let own = settings.tools.get(&tool.name).and_then(|it| it.approve);
        match own.unwrap_or(settings.approve) {
            Approve::Never => false,
            Approve::Always => true,
            // Only somebody who is trusted is believed.
            Approve::Writes => !(settings.trusted && tool.hints.read_only == Some(true)),
        }
    }
    /// A connection, the one there is or a new one.
    pub async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        if let Some(connection) = self.connected() {
            return Ok(connection);
        }
        let _opening = self.opening.lock().await;
        if let Some(connection) = self.connected() {
            return Ok(connection);
        }
        self.check_retired()?;
        self.check_credentials()?;
        let advice = locked(&self.attempts).advice(Instant::now());
        match advice {
            Advice::Now => {}
            Advice::After(wait) => tokio::time::sleep(wait).await,
            Advice::NotYet(error) => return Err(error),
        }
        self.open().await
    }

    /// How many connections were opened.
    pub(super) fn connections_opened(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Lets the next use try at once, whatever happened before.
    pub fn forgive(&self) {
        locked(&self.attempts).forgive();
        locked(&self.list_attempts).forgive();
    }

    async fn open(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let _opening = Opening::new(self);
        let mut options = self.parts.options.clone();
        options.era = *locked(&self.era);
        match Connection::open(Arc::clone(self.settings()), &options).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                locked(&self.attempts).succeeded();
                self.connections.fetch_add(1, Ordering::Relaxed);
                *locked(&self.era) = Some(connection.era());
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                // Whoever retired it meanwhile looked for a connection and found none.
                self.check_retired()?;
                *current = Some(Arc::clone(&connection));
                drop(current);
                // Whatever was known before may have changed while nobody was there to be told.
                self.expire_for_new_connection();
                upkeep::watch(self, &connection);
                self.resume_offers(&connection);
                Ok(connection)
            }
            Err(error) => {
                locked(&self.attempts).failed(&error, Instant::now());
                Err(error)
            }
        }
    }

    async fn connection_unless(
        self: &Arc<Self>,
        cancel: &Cancel,
    ) -> Result<Arc<Connection>, McpError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(self.failure(Cause::Cancelled)),
            connection = self.connection() => connection,
        }
    }
    /// Lets go of a connection that has ended, unless there is a newer one.
    pub(super) fn discard(&self, connection: &Arc<Connection>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(it, connection))
        {
            *current = None;
        }
    }

    /// Closes the connection if nobody has used it for so long; how long to wait until that may be so.
    pub(super) async fn close_if_idle(&self, idle: Duration) -> Option<Duration> {
        let since = locked(&self.use_).last.elapsed();
        let is_used =
            self.calls.load(Ordering::Acquire) > 0 || !self.offers.subscriptions.is_empty();
        if is_used || since < idle {
            return Some(idle.saturating_sub(since).max(Duration::from_millis(100)));
        }
        tracing::debug!(server = %self.label(), "closed: nobody has used it for a while");
        self.close().await;
        None
    }

    async fn close(&self) {
        let current = {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            current.take()
        };
        if let Some(connection) = current {
            connection.close().await;
        }
    }

    /// Closes the connection for good.
    pub(super) async fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
        self.close().await;
    }

    /// Whether it was taken out of the pool: it never connects again.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    fn check_retired(&self) -> Result<(), McpError> {
        if self.is_retired() {
            let text = "the server was taken out, or haft is stopping";
            return Err(self.failure(Cause::Settings(text.into())));
        }
        Ok(())
    }

    /// Connects now and whenever the connection was lost, until the server is retired.
    pub(super) fn keep_warm(self: &Arc<Self>) {
        if !self.is_kept_warm.swap(true, Ordering::AcqRel) {
            upkeep::keep_warm(self);
        }
    }

    pub(super) fn pause(&self) -> Duration {
        locked(&self.attempts).pause(Instant::now())
    }

    fn touch(&self) {
        locked(&self.use_).last = Instant::now();
    }

    /// How it is reached: by the connection, if there is one, else by its settings.
    pub(super) fn transport(&self) -> TransportKind {
        if let Some(connection) = self.connected() {
            return connection.transport();
        }
        match &self.settings().transport {
            TransportSettings::Stdio(_) => TransportKind::Stdio,
            TransportSettings::Http(http) if http.kind == HttpKind::Sse => TransportKind::Sse,
            TransportSettings::Http(_) => TransportKind::Http,
            TransportSettings::Custom => TransportKind::Custom,
        }
    }

    /// The last attempt to connect, if it failed.
    pub(super) fn connect_failure(&self) -> Option<Failure> {
        locked(&self.attempts).last().cloned()
    }

    /// The last attempt to read the list, if it failed.
    pub(super) fn list_failure(&self) -> Option<Failure> {
        locked(&self.list_attempts).last().cloned()
    }

    /// When the attempt to connect began that is under way.
    pub(super) fn opening_since(&self) -> Option<Instant> {
        *locked(&self.opening_since)
    }

    /// The time since the list was read from the server in this process.
    pub(super) fn list_age(&self) -> Option<Duration> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.last_read.map(|at| at.elapsed())
    }

    fn failure(&self, cause: Cause) -> McpError {
        McpError {
            server: self.label().clone(),
            transport: self.transport(),
            era: *locked(&self.era),
            phase: Phase::Call,
            elapsed: Duration::ZERO,
            cause: Box::new(cause),
            stderr: String::new(),
        }
    }
}

/// Marks a server as being connected to, also when the attempt is dropped halfway.
struct Opening<'a>(&'a Server);

impl<'a> Opening<'a> {
    fn new(server: &'a Server) -> Self {
        *locked(&server.opening_since) = Some(Instant::now());
        Self(server)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        *locked(&self.0.opening_since) = None;
    }
}

/// Whether the connection that gave this error is of no more use.
fn is_gone(error: &McpError) -> bool {
    const NOT_FOUND: u16 = 404;
    matches!(
        &*error.cause,
        Cause::ConnectionLost { .. }
            | Cause::Unreachable(_)
            | Cause::Status {
                status: NOT_FOUND,
                ..
            }
    )
}
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
