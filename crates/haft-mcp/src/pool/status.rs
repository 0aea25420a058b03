//! A server's condition as plain values, for status pages, the gateway's facade and the command line.

use std::time::Duration;

use tokio::time::Instant;

use super::attempts::Failure;
use super::server::Server;
use super::tools::ServerTools;
use crate::error::{Era, McpError, TransportKind};

/// How many tools are named as samples, and how long their names are at most.
const SAMPLES: usize = 3;
const MAX_SAMPLE_BYTES: usize = 40;

/// How a server of a pool stands, as plain values.
///
/// [`Server::status`] fills it in from what is known at that moment; nothing is connected to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The label that the operator gave it.
    pub label: String,
    /// The operator's description from the configuration.
    pub description: Option<String>,
    /// How the server is reached; none where its settings cannot be used.
    pub transport: Option<TransportKind>,
    /// The protocol family that it speaks, or spoke the last time.
    pub era: Option<Era>,
    /// Whether it can be used.
    pub state: ServerState,
    /// How many tools may be used; none as long as no list is known.
    pub tools: Option<usize>,
    /// The server's own names of its first few tools, as far as they are plain identifiers: nothing that could
    /// be read as a sentence.
    pub samples: Vec<String>,
    /// The server's own names of tools that are held back until `haft mcp accept`.
    pub held: Vec<String>,
    /// The time since the list was read from the server; none for a saved list.
    pub list_age: Option<Duration>,
    /// How many connections to it this process has opened: all past the first are reconnections.
    pub connections: u64,
}

/// Whether a server can be used.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerState {
    /// It has not been needed yet, and no saved list exists.
    NotStarted,
    /// It is being connected to.
    Starting {
        /// The time since the attempt began.
        elapsed: Duration,
    },
    /// It is connected.
    Connected,
    /// It is not connected; its tools are known from an earlier connection or process.
    SavedList,
    /// The last attempt to connect to it, or to read its list, failed.
    Unavailable {
        /// The reason without addresses, programs, secrets or text that the server wrote: for any caller.
        reason: String,
        /// The whole error, with the last lines of the program's standard error: for the operator. Secrets of
        /// the settings are redacted.
        detail: String,
        /// The time until the next attempt is made for a caller; none if there will be no attempt.
        retry_in: Option<Duration>,
    },
}

impl ServerState {
    /// A stable name for programs: `not_started`, `starting`, `connected`, `saved_list`, `unavailable`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Starting { .. } => "starting",
            Self::Connected => "connected",
            Self::SavedList => "saved_list",
            Self::Unavailable { .. } => "unavailable",
        }
    }
}

impl ServerStatus {
    /// The status of a server that is configured but not in the pool, because its settings cannot be used.
    /// `detail` is the error, for the operator.
    pub fn unusable(label: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            description: None,
            transport: None,
            era: None,
            state: ServerState::Unavailable {
                reason: "its configuration cannot be used".into(),
                detail: detail.into(),
                retry_in: None,
            },
            tools: None,
            samples: Vec::new(),
            held: Vec::new(),
            list_age: None,
            connections: 0,
        }
    }
}

impl Server {
    /// How the server stands now. Nothing is waited for and nothing is started.
    pub fn status(&self) -> ServerStatus {
        let known = self.known_tools();
        let held = known.iter().flat_map(|tools| &tools.held);
        ServerStatus {
            label: self.label().as_str().to_owned(),
            description: self.settings().description.clone(),
            transport: Some(self.transport()),
            era: self.known_era(),
            state: self.server_state(known.is_some()),
            tools: known.as_ref().map(|tools| tools.tools.len()),
            samples: known.as_deref().map(samples).unwrap_or_default(),
            held: held.map(|tool| tool.name.clone()).collect(),
            list_age: self.list_age(),
            connections: self.connections_opened(),
        }
    }

    fn server_state(&self, has_list: bool) -> ServerState {
        if self.connected().is_some() {
            return match self.list_failure() {
                // Without a list a connection is of no use.
                Some(failure) if !has_list => unavailable(&failure),
                _ => ServerState::Connected,
            };
        }
        if let Some(failure) = self.connect_failure() {
            return unavailable(&failure);
        }
        match self.opening_since() {
            Some(since) => ServerState::Starting {
                elapsed: since.elapsed(),
            },
            None if has_list => ServerState::SavedList,
            None => ServerState::NotStarted,
        }
    }
}

fn samples(tools: &ServerTools) -> Vec<String> {
    let is_plain = |name: &&str| {
        name.len() <= MAX_SAMPLE_BYTES
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    let names = tools.tools.iter().map(|tool| tool.name.as_str());
    let names = names.filter(is_plain).take(SAMPLES);
    names.map(str::to_owned).collect()
}

fn unavailable(failure: &Failure) -> ServerState {
    let error: &McpError = &failure.error;
    ServerState::Unavailable {
        reason: error.cause.for_status(),
        detail: error.to_string(),
        retry_in: Some(failure.retry_at.duration_since(Instant::now())),
    }
}
