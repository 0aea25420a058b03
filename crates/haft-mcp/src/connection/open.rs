//! From settings to a connection: which era, and over which transport.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, Implementation, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use tokio::time::Instant;

use super::desk::Desk;
use super::failure::{opening_cause, opening_code, opening_versions};
use super::handler::Client;
use super::{ConnectOptions, LOGINS};
use crate::custom::over_custom;
use crate::error::{Cause, Era, McpError, Phase, TransportKind};
use crate::http::{HttpClient, over_http};
use crate::oauth::Authority;
use crate::process::Process;
use crate::settings::{HttpKind, HttpSettings, ServerSettings, StdioSettings, TransportSettings};
use crate::sse::over_sse;
use crate::stdio::over_pipes;
use crate::traffic::Traffic;

pub(super) type Running = RunningService<RoleClient, Client>;

/// rmcp gives the question for the era up after ten seconds, and then stumbles over any answer to it.
/// This side gives up a little earlier, so that there is one.
const LONGEST_PROBE: Duration = Duration::from_millis(9_500);

/// How a connection is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Asking for the era, with the handshake behind it.
    Auto,
    /// Without a handshake.
    Modern,
    /// With one.
    Legacy,
}

/// Why a beginning failed.
enum Failed {
    Before(Cause),
    Opening(Box<ClientInitializeError>),
}

impl From<Cause> for Failed {
    fn from(cause: Cause) -> Self {
        Self::Before(cause)
    }
}

/// A connection that is being opened. What it holds tells why it failed, if it does.
pub(super) struct Opening<'a> {
    settings: &'a ServerSettings,
    options: &'a ConnectOptions,
    started: Instant,
    pub(super) kind: TransportKind,
    pub(super) traffic: Arc<Traffic>,
    pub(super) process: Option<Arc<Process>>,
    pub(super) desk: Arc<Desk>,
    pub(super) authority: Option<Arc<Authority>>,
    is_spawned: bool,
}

impl<'a> Opening<'a> {
    pub(super) async fn new(
        settings: &'a ServerSettings,
        options: &'a ConnectOptions,
    ) -> Result<Self, McpError> {
        let kind = match &settings.transport {
            TransportSettings::Stdio(_) => TransportKind::Stdio,
            TransportSettings::Http(http) if http.kind == HttpKind::Sse => TransportKind::Sse,
            TransportSettings::Http(_) => TransportKind::Http,
            TransportSettings::Custom => TransportKind::Custom,
        };
        let desk = match Desk::new(settings, options) {
            Ok(desk) => Arc::new(desk),
            Err(cause) => {
                let (phase, no_time) = (Phase::Spawn, Duration::ZERO);
                return Err(failure(settings, kind, None, phase, no_time, cause, None).await);
            }
        };
        // A server that a request names brings its own token, and is not led anywhere else.
        let is_named = options.http.pinned.is_some();
        let authority = Authority::of(settings, &options.oauth).filter(|_| !is_named);
        Ok(Self {
            settings,
            options,
            started: Instant::now(),
            kind,
            traffic: Traffic::new(false),
            process: None,
            desk,
            authority,
            is_spawned: false,
        })
    }

    /// Opens the connection within its time.
    pub(super) async fn run(&mut self) -> Result<Running, McpError> {
        let limit = self.settings.timeouts.connect;
        let timed_out = || {
            Err(Cause::TimedOut {
                limit,
                setting: "connect_timeout",
            })
        };
        let mut logins = 0;
        loop {
            let opened = tokio::time::timeout(limit, self.open()).await;
            let cause = match opened.unwrap_or_else(|_| timed_out()) {
                Ok(running) => return Ok(running),
                Err(cause) => cause,
            };
            let person = self.authority.clone().filter(|it| it.asks());
            let cause = match (&cause, person) {
                // A person takes longer than a server may.
                (Cause::LoginRequired { .. }, Some(person)) if logins < LOGINS => {
                    logins += 1;
                    match Box::pin(person.log_in()).await {
                        Ok(()) => continue,
                        Err(cause) => cause,
                    }
                }
                _ => cause,
            };
            return Err(self.failed(cause).await);
        }
    }

    async fn open(&mut self) -> Result<Running, Cause> {
        let settings = self.settings;
        let TransportSettings::Http(http) = &settings.transport else {
            return self.in_some_era().await;
        };
        if http.kind == HttpKind::Sse {
            return self.over_sse(http).await;
        }
        match self.in_some_era().await {
            Err(cause) if http.kind == HttpKind::Auto && is_perhaps_sse(&cause) => {
                tracing::debug!(server = %settings.label, "no streamable HTTP, trying the older one");
                let older = self.over_sse(http).await;
                older.map_err(|older| {
                    if older.is_lasting() {
                        return older;
                    }
                    // What the newer protocol said is what most servers meant.
                    self.kind = TransportKind::Http;
                    cause
                })
            }
            opened => opened,
        }
    }

    /// Tries what is known about the era, and what the failure then says about it.
    async fn in_some_era(&mut self) -> Result<Running, Cause> {
        let mut mode = match self.options.era {
            None => Mode::Auto,
            Some(Era::Modern) => Mode::Modern,
            Some(Era::Legacy) => Mode::Legacy,
        };
        let mut tried = Vec::new();
        loop {
            tried.push(mode);
            let error = match self.begin(mode).await {
                Ok(running) => return Ok(running),
                Err(Failed::Before(cause)) => return Err(cause),
                Err(Failed::Opening(error)) => error,
            };
            let next = self.next(mode, &error).filter(|next| !tried.contains(next));
            let Some(next) = next else {
                return Err(opening_cause(&error));
            };
            tracing::debug!(server = %self.settings.label, ?mode, ?next, "the opening failed, trying otherwise");
            mode = next;
        }
    }

    /// How long the question for the era may take: where there is nothing else to try, as long as the
    /// opening.
    fn probe(&self, mode: Mode) -> Duration {
        let timeouts = &self.settings.timeouts;
        if mode == Mode::Modern {
            timeouts.connect
        } else {
            timeouts.probe.min(LONGEST_PROBE)
        }
    }

    /// What a failure leaves to try. A child is started anew each time: some lock themselves to the
    /// era of the first request that they read.
    fn next(&self, mode: Mode, error: &ClientInitializeError) -> Option<Mode> {
        let is_probe = self.traffic.opening() == Phase::Probe;
        let code = opening_code(error);
        if !is_probe && code == Some(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0) {
            return Some(Mode::Modern);
        }
        let cause = opening_cause(error);
        if matches!(
            cause,
            Cause::Settings(_)
                | Cause::Unauthorized { .. }
                | Cause::LoginRequired { .. }
                | Cause::Authorization(_)
        ) {
            return None;
        }
        if mode != Mode::Auto {
            // What was known about the server no longer holds.
            return Some(Mode::Auto);
        }
        let is_modern_refusal = [
            ErrorCode::HEADER_MISMATCH.0,
            ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0,
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0,
        ];
        let is_refused = code.is_some_and(|code| is_modern_refusal.contains(&code));
        let is_reached = match cause {
            Cause::Unreachable(_) | Cause::NotStarted { .. } => false,
            Cause::NoSharedVersion { .. } => opening_versions(error)
                .iter()
                .any(ProtocolVersion::has_initialize),
            _ => true,
        };
        (is_probe && !is_refused && is_reached).then_some(Mode::Legacy)
    }

    async fn begin(&mut self, mode: Mode) -> Result<Running, Failed> {
        let settings = self.settings;
        match &settings.transport {
            TransportSettings::Stdio(stdio) => self.over_stdio(stdio, mode).await,
            TransportSettings::Http(http) => {
                self.traffic = Traffic::new(true);
                self.is_spawned = true;
                let client = HttpClient::new(http, &self.options.http, self.authority.clone())?;
                let transport = over_http(
                    client,
                    http,
                    settings,
                    self.probe(mode),
                    Arc::clone(&self.traffic),
                );
                self.serve(transport, mode, ProtocolVersion::LATEST_WITH_INITIALIZE)
                    .await
            }
            TransportSettings::Custom => {
                let custom = self.options.custom.clone();
                let custom = custom.ok_or_else(|| {
                    Cause::Settings("a custom server needs a transport: give one".into())
                })?;
                self.traffic = Traffic::new(false);
                self.is_spawned = true;
                let transport = over_custom(custom, Arc::clone(&self.traffic), self.probe(mode));
                self.serve(transport, mode, ProtocolVersion::LATEST_WITH_INITIALIZE)
                    .await
            }
        }
    }

    async fn over_stdio(&mut self, stdio: &StdioSettings, mode: Mode) -> Result<Running, Failed> {
        // The one before goes first.
        if let Some(before) = self.process.take() {
            before.kill().await;
        }
        let (process, pipes) = self.options.launcher.start(stdio)?;
        self.process = Some(Arc::new(process));
        self.is_spawned = true;
        self.traffic = Traffic::new(false);
        let limit = self.settings.limits.message_bytes;
        let probe = self.probe(mode);
        let transport = over_pipes(
            pipes.stdin,
            pipes.stdout,
            Arc::clone(&self.traffic),
            limit,
            probe,
        );
        self.serve(transport, mode, ProtocolVersion::LATEST_WITH_INITIALIZE)
            .await
    }

    async fn over_sse(&mut self, http: &HttpSettings) -> Result<Running, Cause> {
        self.kind = TransportKind::Sse;
        self.traffic = Traffic::new(false);
        let client = HttpClient::new(http, &self.options.http, self.authority.clone())?;
        let transport = over_sse(client, self.settings, Arc::clone(&self.traffic)).await?;
        self.is_spawned = true;
        let opened = self
            .serve(transport, Mode::Legacy, ProtocolVersion::V_2024_11_05)
            .await;
        opened.map_err(|failed| match failed {
            Failed::Before(cause) => cause,
            Failed::Opening(error) => opening_cause(&error),
        })
    }

    async fn serve<T, E, A>(
        &self,
        transport: T,
        mode: Mode,
        legacy: ProtocolVersion,
    ) -> Result<Running, Failed>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match mode {
            Mode::Auto => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(legacy.clone()),
            },
            Mode::Modern => ClientLifecycleMode::Discover { preferred_versions },
            Mode::Legacy => ClientLifecycleMode::Initialize,
        };
        let desk = Arc::clone(&self.desk);
        let identity = Implementation::new(&self.options.name, &self.options.version);
        let client = Client::new(identity, legacy, desk, self.settings.tasks);
        serve_client_with_lifecycle(client, transport, lifecycle)
            .await
            .map_err(|error| Failed::Opening(Box::new(error)))
    }

    async fn failed(&self, mut cause: Cause) -> McpError {
        if let Cause::ConnectionLost { sent, .. } = &mut cause {
            // An opening is no action.
            *sent = false;
        }
        let phase = if self.is_spawned {
            self.traffic.opening()
        } else {
            Phase::Spawn
        };
        let elapsed = self.started.elapsed();
        failure(
            self.settings,
            self.kind,
            None,
            phase,
            elapsed,
            cause,
            self.process.as_deref(),
        )
        .await
    }
}

/// Whether a failure of the newer protocol is what a server of the older one would cause.
fn is_perhaps_sse(cause: &Cause) -> bool {
    match cause {
        Cause::Status { status, .. } => (400..500).contains(status) && *status != 429,
        Cause::Unexpected(_) | Cause::Protocol { .. } => true,
        _ => false,
    }
}

/// A failure with everything that is known about it, and nothing that nobody may see.
pub(super) async fn failure(
    settings: &ServerSettings,
    transport: TransportKind,
    era: Option<Era>,
    phase: Phase,
    elapsed: Duration,
    mut cause: Cause,
    process: Option<&Process>,
) -> McpError {
    let redactor = settings.redactor();
    let mut stderr = String::new();
    if let Some(process) = process {
        if let Cause::ConnectionLost { detail, .. } = &mut cause
            && let Some(status) = process.end().await
        {
            *detail = format!(": the process ended with {status}");
        }
        if !matches!(cause, Cause::Cancelled | Cause::Protocol { .. }) {
            stderr = redactor.clean(process.last_words().await);
        }
    }
    let cause = Box::new(cause.map_text(|text| redactor.clean(text)));
    McpError {
        server: settings.label.clone(),
        transport,
        era,
        phase,
        elapsed,
        cause,
        stderr,
    }
}
