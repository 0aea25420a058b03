//! What the operator decides.

use std::sync::Arc;
use std::time::Duration;

use haft_core::Retention;
use haft_engine::LoopOptions;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::access::{KeyHash, Limits};
use crate::toolkit::UnsupportedTools;
use crate::watch::WatchOptions;

/// The settings of a server. Every field has a sensible default.
///
/// ```
/// use haft_server::ServerOptions;
/// let options = ServerOptions { max_runs: 8, ..ServerOptions::default() };
/// assert_eq!(options.max_body_bytes, 64 * 1024 * 1024);
/// ```
#[derive(Debug, Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent decisions of the operator"
)]
pub struct ServerOptions {
    /// The dialect of responses to clients that do not name one.
    pub dialect: DialectChoice,
    /// What becomes of hosted tool types that nobody provides.
    pub unsupported_tools: UnsupportedTools,
    /// The largest body of a request.
    pub max_body_bytes: usize,
    /// How many runs go on at the same time; some more wait, the rest is refused.
    pub max_runs: usize,
    /// What requests may bring, what keys may ask for, and how many may wait.
    pub limits: Limits,
    /// A key that clients may send, beside those in the data folder. Without any, everybody is let in.
    pub api_key: Option<ApiKey>,
    /// Whether requests may come without a key from everywhere, and under any name of this machine.
    /// Else a server that listens on this machine alone answers only who asks for it by a name of
    /// the loopback: a web page could have led a browser here by a name of its own.
    pub allow_anonymous: bool,
    /// The browser origins that may open a WebSocket.
    pub allowed_origins: Vec<String>,
    /// The hosts of MCP servers that requests may name by their addresses: host names, `*.example.com`,
    /// `*` for every public one, or whole origins, which alone may be private or without TLS.
    pub mcp_hosts: Vec<String>,
    /// The hosts of images, files and videos that requests may name by their addresses, in the same form. The
    /// model's provider fetches them, over `http` or `https`.
    pub content_hosts: Vec<String>,
    /// The model of requests that name none.
    pub default_model: Option<String>,
    /// What bounds each run. A request may lower a limit, never raise it.
    pub loop_options: LoopOptions,
    /// How long and how much is kept.
    pub retention: Retention,
    /// How long a stream may be silent before a sign of life is sent.
    pub keep_alive: Duration,
    /// How long a stream waits for the model's first sign before it begins, so that a failure can
    /// still be told by its status.
    pub answer_wait: Duration,
    /// How long a WebSocket may stay open.
    pub websocket_age: Duration,
    /// How long the server says that it is not ready before it takes no new connections any more, so
    /// that whoever sends it requests learns of it.
    pub drain_wait: Duration,
    /// How long requests may take to end by themselves when the server stops; then they are
    /// cancelled, and have as long again.
    pub stop_wait: Duration,
    /// What is watched, and by whom.
    pub watch: WatchOptions,
    /// Start although sealing keys are missing that the store was used with.
    pub forget_sealing_keys: bool,
    /// Start although the file of API keys is missing that the store was used with: no key is needed then.
    pub forget_api_keys: bool,
    /// Start although the clock is behind the time when the store was last used.
    pub accept_clock: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            dialect: DialectChoice::Auto,
            unsupported_tools: UnsupportedTools::default(),
            max_body_bytes: 64 * 1024 * 1024,
            max_runs: 256,
            limits: Limits::default(),
            api_key: None,
            allow_anonymous: false,
            allowed_origins: Vec::new(),
            mcp_hosts: vec!["*".into()],
            content_hosts: vec!["*".into()],
            default_model: None,
            loop_options: LoopOptions::default(),
            retention: Retention::default(),
            keep_alive: Duration::from_secs(15),
            answer_wait: Duration::from_secs(5),
            websocket_age: Duration::from_hours(1),
            drain_wait: Duration::ZERO,
            stop_wait: Duration::from_secs(10),
            watch: WatchOptions::default(),
            forget_sealing_keys: false,
            forget_api_keys: false,
            accept_clock: false,
        }
    }
}

/// The dialect of responses to clients that send no `Haft-Dialect` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DialectChoice {
    /// `OpenAI`'s, unless the client is known to want the specification's.
    #[default]
    Auto,
    /// That of the Open Responses specification.
    OpenResponses,
    /// `OpenAI`'s.
    #[serde(rename = "openai")]
    OpenAi,
}

/// A key that clients send. It is compared, never shown.
#[derive(Clone)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// This key.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }

    pub(crate) fn hash(&self) -> KeyHash {
        KeyHash::of(&self.0)
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}
