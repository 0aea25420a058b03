//! One server of a pool: always there to be asked, whether it is connected or not.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use haft_core::Cancel;
use serde_json::{Map, Value};
use tokio::sync::{Mutex as AsyncMutex, broadcast};
use tokio::time::Instant;

use super::attempts::{Advice, Attempts};
use super::memory::{Memory, place};
use super::tools::{ServerTools, pin_of, written};
use super::upkeep;
use crate::connection::{CallOptions, ConnectOptions, Connection};
use crate::error::{Cause, Era, McpError, Phase, TransportKind};
use crate::listing::ToolList;
use crate::names::Label;
use crate::outcome::ToolOutcome;
use crate::pins::{Compared, PinFile, Standing};
use crate::settings::{Approve, HttpKind, Pin, ServerSettings, TransportSettings};
use crate::tool::ToolDef;

/// A list of a server that tells no changes is believed at least this long.
const FRESH_AT_LEAST: Duration = Duration::from_secs(10);

/// Where an older list is at hand, nobody waits longer than this for the newer one.
const PATIENCE: Duration = Duration::from_secs(2);

const UNKNOWN_TOOL: i64 = -32602;

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
}

/// One server of a pool.
pub struct Server {
    parts: Parts,
    current: RwLock<Option<Arc<Connection>>>,
    attempts: Mutex<Attempts>,
    /// Held while a connection is opened, so that there is never more than one.
    opening: AsyncMutex<()>,
    /// Held while the list is read.
    refreshing: AsyncMutex<()>,
    listed: RwLock<Listed>,
    era: Mutex<Option<Era>>,
    use_: Mutex<Use>,
    calls: AtomicUsize,
    is_retired: AtomicBool,
    is_kept_warm: AtomicBool,
}

#[derive(Debug, Default)]
struct Listed {
    tools: Option<Arc<ServerTools>>,
    /// When it was read; not set for what is remembered, and after a notice that it changed.
    read_at: Option<Instant>,
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
            opening: AsyncMutex::default(),
            refreshing: AsyncMutex::default(),
            listed: RwLock::new(Listed {
                tools,
                read_at: None,
            }),
            era: Mutex::new(remembered.era),
            use_: Mutex::new(Use {
                last: Instant::now(),
            }),
            calls: AtomicUsize::new(0),
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

    /// The tools. The server is connected to if it has to be; where that fails, or takes longer than two
    /// seconds, those that are known from before are the answer, and it is an error only if there are
    /// none.
    pub async fn tools(self: &Arc<Self>) -> Result<Arc<ServerTools>, McpError> {
        self.touch();
        if let Some(tools) = self.fresh_tools() {
            return Ok(tools);
        }
        let Some(known) = self.known_tools() else {
            return self.refresh().await;
        };
        // The task goes on when nobody waits for it any more.
        let server = Arc::clone(self);
        let refreshing = tokio::spawn(async move { server.refresh().await });
        match tokio::time::timeout(PATIENCE, refreshing).await {
            Ok(Ok(Ok(tools))) => Ok(tools),
            Ok(Ok(Err(error))) => {
                tracing::warn!(server = %self.label(), %error, "the tools known from before are used");
                Ok(known)
            }
            Ok(Err(_)) | Err(_) => Ok(known),
        }
    }

    /// Reads the tools anew, now. What is known from before stays where that fails.
    pub async fn refresh(self: &Arc<Self>) -> Result<Arc<ServerTools>, McpError> {
        let asked_at = Instant::now();
        let _refreshing = self.refreshing.lock().await;
        // Whoever read it while this one waited read it late enough.
        if let Some(tools) = self.read_since(asked_at) {
            return Ok(tools);
        }
        let mut connection = self.connection().await?;
        let list = match connection.list_tools().await {
            Err(error) if is_gone(&error) => {
                self.discard(&connection);
                connection = self.connection().await?;
                connection.list_tools().await
            }
            answer => answer,
        };
        let list = match list {
            Ok(list) => list,
            Err(error) => {
                if is_gone(&error) {
                    self.discard(&connection);
                }
                return Err(error);
            }
        };
        Ok(self.take_list(list, connection.era()).await)
    }

    /// Calls a tool by its raw name.
    ///
    /// A call that never reached the server is sent once more over a new connection. One that may have
    /// reached it is sent again only if the server is trusted and says that this tool reads only, or
    /// does no more when it is called twice.
    pub async fn call(
        self: &Arc<Self>,
        raw: &str,
        arguments: Map<String, Value>,
        mut options: CallOptions<'_>,
    ) -> Result<ToolOutcome, McpError> {
        let _using = Using::new(self);
        let connection = self.connection_unless(&options.cancel).await?;
        let first = connection
            .call_tool(raw, arguments.clone(), again(&mut options))
            .await;
        let error = match first {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        if matches!(&*error.cause, Cause::Protocol { code, .. } if *code == UNKNOWN_TOOL) {
            // Perhaps it is called something else now.
            self.expire();
        }
        if !is_gone(&error) {
            return Err(error);
        }
        self.discard(&connection);
        if error.may_have_happened() && !self.may_repeat(raw) {
            return Err(error);
        }
        tracing::info!(server = %self.label(), tool = raw, %error, "the call is sent again");
        let connection = self.connection_unless(&options.cancel).await?;
        connection.call_tool(raw, arguments, options).await
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
        let advice = locked(&self.attempts).advice(Instant::now());
        match advice {
            Advice::Now => {}
            Advice::After(wait) => tokio::time::sleep(wait).await,
            Advice::NotYet(error) => return Err(error),
        }
        self.open().await
    }

    /// Lets the next use try at once, whatever happened before.
    pub fn forgive(&self) {
        locked(&self.attempts).forgive();
    }

    async fn open(self: &Arc<Self>) -> Result<Arc<Connection>, McpError> {
        let mut options = self.parts.options.clone();
        options.era = *locked(&self.era);
        match Connection::open(Arc::clone(self.settings()), &options).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                locked(&self.attempts).succeeded();
                *locked(&self.era) = Some(connection.era());
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                // Whoever retired it meanwhile looked for a connection and found none.
                self.check_retired()?;
                *current = Some(Arc::clone(&connection));
                drop(current);
                // Whatever was known before may have changed while nobody was there to be told.
                self.expire();
                upkeep::watch(self, &connection);
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

    /// What of a list may be used from now on.
    async fn take_list(self: &Arc<Self>, list: ToolList, era: Era) -> Arc<ServerTools> {
        let server = Arc::clone(self);
        let taken = tokio::task::spawn_blocking(move || server.take_list_blocking(list, era)).await;
        match taken {
            Ok(tools) => tools,
            // The runtime is going down, or a bug: what is known stays.
            Err(_) => self.known_tools().unwrap_or_default(),
        }
    }

    fn take_list_blocking(&self, list: ToolList, era: Era) -> Arc<ServerTools> {
        let settings = self.settings();
        let before = self.known_tools();
        let compared = self.compare(&list);
        let tools = if let Ok(compared) = compared {
            ServerTools::of_list(list, settings, compared.as_ref(), before.as_deref())
        } else {
            // Nobody can say what was accepted: nothing that is new is used.
            let known = before.as_deref().cloned().unwrap_or_default();
            ServerTools {
                is_live: true,
                ..known
            }
        };
        let tools = Arc::new(tools);
        if let Some(memory) = &self.parts.memory {
            let is_known = before
                .as_ref()
                .is_some_and(|it| it.shows_the_same(&tools) && it.is_live);
            if !is_known {
                memory.keep(settings, era, Some(&tools.tools));
            }
        }
        for diagnostic in &tools.diagnostics {
            tracing::warn!(server = %settings.label, "{diagnostic}");
        }
        let has_changed = before.is_none_or(|it| !it.shows_the_same(&tools));
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        *listed = Listed {
            tools: Some(Arc::clone(&tools)),
            read_at: Some(Instant::now()),
        };
        drop(listed);
        if has_changed {
            let _ = self.parts.changes.send(self.label().as_str().into());
        }
        tools
    }

    /// How the list stands to what was accepted; nothing where nothing is pinned.
    fn compare(&self, list: &ToolList) -> Result<Option<Compared>, ()> {
        let settings = self.settings();
        let pin = pin_of(settings);
        let Some(pins) = self.parts.pins.as_ref().filter(|_| pin != Pin::Off) else {
            return Ok(None);
        };
        let definitions: Vec<_> = list.tools.iter().map(written).collect();
        let label = settings.label.as_str();
        match pins.compare(label, &place(settings), &definitions) {
            Ok(compared) => {
                tell_changes(label, pin, &compared);
                Ok(Some(compared))
            }
            Err(error) => {
                tracing::error!(server = label, %error, "the pinned definitions cannot be used");
                if pin == Pin::Hold { Err(()) } else { Ok(None) }
            }
        }
    }

    /// The tools, if they were read a moment ago or the server tells when they change.
    fn fresh_tools(&self) -> Option<Arc<ServerTools>> {
        let tells = self
            .connected()
            .is_some_and(|connection| connection.identity().tells_changes);
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let tools = listed.tools.as_ref()?;
        let age = listed.read_at?.elapsed();
        let is_fresh = age < tools.ttl.max(FRESH_AT_LEAST) || tells;
        is_fresh.then(|| Arc::clone(tools))
    }

    fn read_since(&self, instant: Instant) -> Option<Arc<ServerTools>> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let is_late_enough = listed.read_at.is_some_and(|at| at > instant);
        listed.tools.clone().filter(|_| is_late_enough)
    }

    /// Lets the next use of the list read it anew.
    pub(super) fn expire(&self) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        listed.read_at = None;
    }

    fn may_repeat(&self, raw: &str) -> bool {
        let tools = self.known_tools();
        let tool = tools.as_ref().and_then(|tools| tools.get(raw));
        let is_harmless = tool.is_some_and(|tool| {
            tool.hints.read_only == Some(true) || tool.hints.idempotent == Some(true)
        });
        self.settings().trusted && is_harmless
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
        if self.calls.load(Ordering::Acquire) > 0 || since < idle {
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

    pub(super) fn is_retired(&self) -> bool {
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

    fn failure(&self, cause: Cause) -> McpError {
        let transport = match &self.settings().transport {
            TransportSettings::Stdio(_) => TransportKind::Stdio,
            TransportSettings::Http(http) if http.kind == HttpKind::Sse => TransportKind::Sse,
            TransportSettings::Http(_) => TransportKind::Http,
            TransportSettings::Custom => TransportKind::Custom,
        };
        McpError {
            server: self.label().clone(),
            transport,
            era: *locked(&self.era),
            phase: Phase::Call,
            elapsed: Duration::ZERO,
            cause: Box::new(cause),
            stderr: String::new(),
        }
    }
}

/// The options for one more attempt, with the same listeners.
fn again<'a>(options: &'a mut CallOptions<'_>) -> CallOptions<'a> {
    CallOptions {
        cancel: options.cancel.clone(),
        on_progress: match &mut options.on_progress {
            Some(listener) => Some(&mut **listener),
            None => None,
        },
        trace: options.trace.clone(),
        idle_timeout: options.idle_timeout,
        call_timeout: options.call_timeout,
        output_schema: options.output_schema.clone(),
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

fn tell_changes(label: &str, pin: Pin, compared: &Compared) {
    for (tool, standing) in &compared.standings {
        let (what, differences) = match standing {
            Standing::Same => continue,
            Standing::New => ("is new", None),
            Standing::Changed(differences) => ("has changed", Some(differences)),
        };
        let differences = differences.into_iter().flatten();
        let differences: Vec<_> = differences.map(ToString::to_string).collect();
        let differences = differences.join("\n");
        let tool = haft_core::cut(&crate::text::visible(tool));
        if pin == Pin::Hold {
            tracing::warn!(server = label, tool, %differences,
                "the tool {what} and is held back: look at it, then run `haft mcp accept {label}`");
        } else {
            tracing::warn!(server = label, tool, %differences, "the tool {what}");
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a call while it lasts.
struct Using<'a>(&'a Server);

impl<'a> Using<'a> {
    fn new(server: &'a Server) -> Self {
        server.calls.fetch_add(1, Ordering::AcqRel);
        Self(server)
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}
