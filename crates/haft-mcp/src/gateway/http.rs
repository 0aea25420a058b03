//! The front door for HTTP.
//!
//! Whoever stands in front of it has established who calls and put a [`Caller`] into the request's
//! extensions; without one nobody is let in, unless that was allowed. `Host` and `Origin` are checked
//! on every request, so that no page in a browser reaches a server on the same machine. Sessions, which
//! only legacy clients have, belong to the caller that opened them, and there is a limit to their number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any};
use futures_core::Stream;
use futures_util::future::ready;
use futures_util::stream::{self, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::backend::Backend;
use super::caller::Caller;
use super::gateway::Gateway;
use super::handler::Handler;
use super::incoming::{self, Incoming, MAX_MESSAGE_BYTES, Unreadable};

/// How long a client of 2025-11-25 waits before it reconnects a broken stream: the `retry` field of the
/// priming event.
const RETRY: Duration = Duration::from_secs(3);

/// How the front door for HTTP behaves.
///
/// ```
/// use haft_mcp::gateway::HttpOptions;
/// let options = HttpOptions::default()
///     .with_host("tools.example.com")
///     .with_origin("https://app.example.com");
/// ```
#[derive(Debug, Clone)]
pub struct HttpOptions {
    hosts: Vec<String>,
    origins: Vec<String>,
    is_checked_before: bool,
    body_bytes: usize,
    anonymous: Option<Caller>,
    sessions: usize,
    sessions_of_caller: usize,
    session_idle: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let hosts = ["localhost", "127.0.0.1", "::1"].map(String::from);
        let origins = ["localhost", "127.0.0.1", "[::1]"].into_iter();
        let origins = origins.flat_map(|it| [format!("http://{it}:*"), format!("https://{it}:*")]);
        Self {
            hosts: hosts.into(),
            origins: origins.collect(),
            is_checked_before: false,
            body_bytes: MAX_MESSAGE_BYTES,
            anonymous: None,
            sessions: 1_024,
            sessions_of_caller: 64,
            session_idle: Duration::from_mins(30),
        }
    }
}

impl HttpOptions {
    /// Reachable under this name too, or under this name and port.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Usable by pages of this origin too: scheme, host and, unless it is the scheme's own, port.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<String>) -> Self {
        let origin = origin.into();
        let has_port = origin
            .rsplit_once(':')
            .is_some_and(|(_, port)| port == "*" || port.parse::<u16>().is_ok());
        // The library takes an origin without a port for one with any.
        let port = match origin.split_once("://") {
            _ if has_port => "",
            Some(("https", _)) => ":443",
            Some(("http", _)) => ":80",
            _ => "",
        };
        self.origins.push(format!("{origin}{port}"));
        self
    }

    /// `Host` and `Origin` were checked by whoever stands in front, and are not looked at here.
    #[must_use]
    pub fn checked_before(mut self) -> Self {
        self.hosts.clear();
        self.origins.clear();
        self.is_checked_before = true;
        self
    }

    /// The longest body of a request: 16 MiB by default.
    #[must_use]
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.body_bytes = bytes;
        self
    }

    /// Requests without a [`Caller`] in their extensions come from this one. Only where everybody who
    /// can reach the door may enter.
    #[must_use]
    pub fn anonymous(mut self, caller: Caller) -> Self {
        self.anonymous = Some(caller);
        self
    }

    /// How many sessions there may be in all (1,024) and of one caller (64).
    #[must_use]
    pub fn max_sessions(mut self, all: usize, of_caller: usize) -> Self {
        self.sessions = all;
        self.sessions_of_caller = of_caller;
        self
    }

    /// After which silence a session ends: half an hour without a word.
    #[must_use]
    pub fn session_idle(mut self, idle: Duration) -> Self {
        self.session_idle = idle;
        self
    }
}

impl<B: Backend> Gateway<B> {
    /// The gateway as a route, usually at `/mcp`. Both eras are on it.
    pub fn http<S: Clone + Send + Sync + 'static>(&self, options: HttpOptions) -> MethodRouter<S> {
        let mut config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(options.hosts)
            .with_allowed_origins(options.origins);
        if !options.is_checked_before {
            config = config.enforce_origin_validation();
        }
        let config = config
            .with_max_request_body_bytes(options.body_bytes)
            // Priming events depend on the session's version, which only `SessionsOf` knows.
            .with_sse_retry(None)
            .with_cancellation_token(self.core.closing.clone());
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(options.session_idle);
        local.session_config.sse_retry = Some(RETRY);
        let sessions = Arc::new(Sessions {
            local,
            open: Mutex::default(),
            creating: tokio::sync::Mutex::default(),
            all: options.sessions,
            of_caller: options.sessions_of_caller,
        });
        let (gateway, anonymous) = (self.clone(), options.anonymous);
        any(move |request: Request| {
            let caller = request.extensions().get::<Caller>().cloned();
            let caller = caller.or_else(|| anonymous.clone());
            let (gateway, sessions, config) = (gateway.clone(), sessions.clone(), config.clone());
            async move {
                let Some(caller) = caller else {
                    let text = "nobody has established who calls";
                    return (StatusCode::UNAUTHORIZED, text).into_response();
                };
                answer(gateway, sessions, config, caller, request).await
            }
        })
    }
}

async fn answer<B: Backend>(
    gateway: Gateway<B>,
    sessions: Arc<Sessions>,
    config: StreamableHttpServerConfig,
    caller: Caller,
    request: Request,
) -> Response {
    let request = match checked(request, config.max_request_body_bytes).await {
        Ok(request) => request,
        Err(rejection) => return rejection,
    };
    let sessions = Arc::new(SessionsOf {
        caller: caller.clone(),
        sessions,
        refused: AtomicBool::new(false),
    });
    let is_end = request.method() == Method::DELETE;
    let ends_anothers = is_end && !sessions.are_of(request.headers());
    let handler = move || Ok(Handler::new(gateway.clone(), caller.clone()));
    // One for each request: by that its handler knows who calls.
    let service = StreamableHttpService::new(handler, sessions.clone(), config);
    let response = service.handle(request).await;
    if sessions.refused.load(Ordering::Relaxed) {
        let text = SessionError::TooMany.to_string();
        return (StatusCode::TOO_MANY_REQUESTS, text).into_response();
    }
    if ends_anothers && response.status().is_success() {
        let text = "Not Found: Session not found";
        return (StatusCode::NOT_FOUND, text).into_response();
    }
    let mut response = response.map(Body::new);
    if is_end && response.status() == StatusCode::ACCEPTED {
        // It has ended; clients complain of a promise that it will.
        *response.status_mut() = StatusCode::OK;
    }
    response
}

/// The request, if its message can be read. What cannot be read is answered here: the library would answer
/// without a message of JSON-RPC, or as if the method were unknown.
async fn checked(request: Request, limit: usize) -> Result<Request, Response> {
    if request.method() != Method::POST {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let announced = parts.headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    let Ok(bytes) = to_bytes(body, limit).await else {
        let size = announced.unwrap_or(limit as u64 + 1);
        let rejection = Unreadable::too_long(None, size, limit);
        return Err(rejected(StatusCode::PAYLOAD_TOO_LARGE, &rejection));
    };
    match incoming::read(&bytes) {
        Incoming::Unreadable(rejection) => Err(rejected(StatusCode::BAD_REQUEST, &rejection)),
        Incoming::Message(_) | Incoming::Ignored => {
            Ok(Request::from_parts(parts, Body::from(bytes)))
        }
    }
}

fn rejected(status: StatusCode, unreadable: &Unreadable) -> Response {
    let json = [(CONTENT_TYPE, "application/json")];
    (status, json, unreadable.to_json().to_string()).into_response()
}

/// All sessions.
struct Sessions {
    local: LocalSessionManager,
    open: Mutex<HashMap<SessionId, Session>>,
    /// Held while one is counted and created.
    creating: tokio::sync::Mutex<()>,
    all: usize,
    of_caller: usize,
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known about an open session.
struct Session {
    owner: Caller,
    /// Whether its streams begin with a priming event, whose data is empty. Revision 2025-11-25 introduced
    /// it; clients of earlier ones parse the empty data as a message and fail (Gemini CLI drops all tools).
    is_primed: bool,
}

/// The sessions of one caller.
struct SessionsOf {
    caller: Caller,
    sessions: Arc<Sessions>,
    /// Whether a session was refused because there were too many.
    refused: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error("too many sessions: close one, or come back later")]
    TooMany,
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

impl SessionsOf {
    /// Whether the session that a request names, if it names one, is this caller's.
    fn are_of(&self, headers: &HeaderMap) -> bool {
        let named = headers
            .get("mcp-session-id")
            .and_then(|id| id.to_str().ok());
        named.is_none_or(|id| self.owns(&id.into()))
    }

    fn owns(&self, id: &SessionId) -> bool {
        let open = self.sessions.open();
        open.get(id).is_some_and(|it| it.owner == self.caller)
    }

    fn is_primed(&self, id: &SessionId) -> bool {
        let open = self.sessions.open();
        open.get(id).is_some_and(|it| it.is_primed)
    }

    fn is_full(&self) -> bool {
        let open = self.sessions.open();
        let own = open.values().filter(|it| it.owner == self.caller);
        open.len() >= self.sessions.all || own.count() >= self.sessions.of_caller
    }

    /// The session, if it is this caller's; another's does not exist.
    fn own(&self, id: &SessionId) -> Result<&LocalSessionManager, SessionError> {
        if self.owns(id) {
            Ok(&self.sessions.local)
        } else {
            Err(LocalSessionManagerError::SessionNotFound(id.clone()).into())
        }
    }
}

impl SessionManager for SessionsOf {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let _creating = self.sessions.creating.lock().await;
        if self.is_full() {
            self.refused.store(true, Ordering::Relaxed);
            return Err(SessionError::TooMany);
        }
        let (id, transport) = self.sessions.local.create_session().await?;
        let session = Session {
            owner: self.caller.clone(),
            is_primed: false,
        };
        self.sessions.open().insert(id.clone(), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let answer = self.own(id)?.initialize_session(id, message).await?;
        if has_priming(&answer)
            && let Some(session) = self.sessions.open().get_mut(id)
        {
            session.is_primed = true;
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.owns(id) && self.sessions.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if self.owns(id) {
            self.sessions.open().remove(id);
            self.sessions.local.close_session(id).await?;
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.own(id)?.create_stream(id, message).await?;
        Ok(without_priming_unless(self.is_primed(id), stream))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        Ok(self.own(id)?.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.own(id)?.create_standalone_stream(id).await?;
        let priming = ServerSseMessage::priming("0", RETRY);
        let priming = self.is_primed(id).then_some(priming);
        Ok(stream::iter(priming).chain(stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.own(id)?.resume(id, last_event_id).await?;
        Ok(without_priming_unless(self.is_primed(id), stream))
    }
}

/// Whether the version that this answer to `initialize` agrees to has priming events.
fn has_priming(answer: &ServerJsonRpcMessage) -> bool {
    let ServerJsonRpcMessage::Response(answer) = answer else {
        return false;
    };
    match &answer.result {
        ServerResult::InitializeResult(result) => {
            // Revisions are dates, which order as text does.
            result.protocol_version.as_str() >= ProtocolVersion::V_2025_11_25.as_str()
        }
        _ => false,
    }
}

/// Drops events that carry no message, unless the session's clients expect them.
fn without_priming_unless(
    is_primed: bool,
    stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    stream.filter(move |event| ready(is_primed || event.message.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_without_a_port_means_the_schemes_own() {
        let options = HttpOptions::default()
            .with_origin("https://a.example")
            .with_origin("http://b.example")
            .with_origin("http://c.example:8080")
            .with_origin("http://d.example:*");
        assert_eq!(
            options.origins[6..],
            [
                "https://a.example:443",
                "http://b.example:80",
                "http://c.example:8080",
                "http://d.example:*"
            ]
        );
    }
}
