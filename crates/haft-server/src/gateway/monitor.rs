//! What operators learn of gateway calls: one log line, metrics, a span and an entry of the record for each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use haft_mcp::gateway::{BackendError, CallContext, CallOutcome};
use serde_json::{Map, Value};

use super::journal::{CallEntry, CallJournal};
use crate::watch::{CallSpan, McpCall, Watch, Word, epoch_seconds};

/// The endpoint of a gateway on standard input and output.
const STDIO: &str = "stdio";

/// Reports each call of a gateway: to the log always, to a record and to a server's metrics and traces where
/// they are given.
///
/// ```
/// use haft_server::{CallMonitor, GatewayOptions};
/// let options = GatewayOptions { monitor: CallMonitor::new("/mcp/team"), ..GatewayOptions::default() };
/// assert_eq!(options.monitor.endpoint(), "/mcp/team");
/// ```
#[derive(Clone)]
pub struct CallMonitor {
    endpoint: Arc<str>,
    journal: Option<CallJournal>,
    watch: Option<Arc<Watch>>,
}

impl std::fmt::Debug for CallMonitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallMonitor")
            .field("endpoint", &self.endpoint)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}

impl Default for CallMonitor {
    fn default() -> Self {
        Self::new(STDIO)
    }
}

impl CallMonitor {
    /// Reports to the log, with this name of the endpoint.
    pub fn new(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.into(),
            journal: None,
            watch: None,
        }
    }

    /// Adds each call to a record.
    #[must_use]
    pub fn with_journal(mut self, journal: impl Into<Option<CallJournal>>) -> Self {
        self.journal = journal.into();
        self
    }

    /// The name of the endpoint.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(crate) fn watched_by(mut self, watch: &Arc<Watch>) -> Self {
        self.watch = Some(Arc::clone(watch));
        self
    }

    /// A call begins. `server` and `tool` are the server's label and its own name of the tool.
    pub(super) fn begin(
        &self,
        context: &CallContext,
        server: Option<&str>,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> ActiveCall {
        let has_arguments = self
            .journal
            .as_ref()
            .is_some_and(CallJournal::has_arguments);
        let client = context.trace().get("traceparent").map(String::as_str);
        let watch = self.watch.as_ref();
        let sizes = arguments
            .iter()
            .map(|(key, value)| key.len() + 4 + size_of(value));
        ActiveCall {
            span: watch.map_or_else(CallSpan::none, |watch| watch.call_span(client)),
            monitor: self.clone(),
            started: Instant::now(),
            entry: CallEntry {
                id: format!("mcpcall_{:016x}", fastrand::u64(..)),
                started_at: epoch_seconds(),
                endpoint: self.endpoint.to_string(),
                caller: context.caller().id().to_owned(),
                server: server.map(str::to_owned),
                tool: tool.to_owned(),
                bytes_in: sizes.sum::<usize>() as u64,
                arguments: has_arguments.then(|| Value::Object(arguments.clone())),
                ..CallEntry::default()
            },
            failure: Mutex::default(),
            outcome: "cancelled",
        }
    }

    /// A call is not made: no tool has its name, or its arguments do not fit.
    pub(super) fn rejected(&self, caller: &str, tool: &str, reason: &'static str) {
        let now = Instant::now();
        let entry = CallEntry {
            id: format!("mcpcall_{:016x}", fastrand::u64(..)),
            started_at: epoch_seconds(),
            endpoint: self.endpoint.to_string(),
            caller: caller.to_owned(),
            tool: haft_core::cut(&haft_mcp::visible(tool)),
            outcome: "rejected".to_owned(),
            error: Some(reason.to_owned()),
            ..CallEntry::default()
        };
        self.report(entry, "rejected", now, CallSpan::none());
    }

    fn report(&self, mut entry: CallEntry, outcome: Word, started: Instant, mut span: CallSpan) {
        let elapsed = started.elapsed();
        entry.duration_ms = (elapsed.as_secs_f64() * 10_000.0).round() / 10.0;
        outcome.clone_into(&mut entry.outcome);
        entry.trace_id = span.trace_id();
        let is_problem = !matches!(outcome, "succeeded" | "tool_error" | "cancelled");
        // Never arguments or results.
        macro_rules! log {
            ($level:expr) => {
                tracing::event!(
                    target: "haft::mcp",
                    $level,
                    endpoint = %self.endpoint,
                    tenant = entry.caller,
                    server = entry.server.as_deref(),
                    tool = entry.tool,
                    outcome,
                    error = entry.error.as_deref(),
                    ms = entry.duration_ms,
                    bytes_in = entry.bytes_in,
                    bytes_out = entry.bytes_out,
                    trace = entry.trace_id.as_deref(),
                    "tool call"
                )
            };
        }
        if is_problem {
            log!(tracing::Level::WARN);
        } else {
            log!(tracing::Level::INFO);
        }
        span.end(&entry);
        if let Some(watch) = &self.watch {
            let is_unknown = outcome == "rejected";
            watch.mcp_called(&McpCall {
                door: "gateway",
                caller: &entry.caller,
                server: entry.server.as_deref(),
                tool: (!is_unknown).then_some(entry.tool.as_str()),
                outcome,
                elapsed,
            });
        }
        if let Some(journal) = &self.journal {
            journal.append(entry);
        }
    }
}

/// A call under way. One that is dropped without an end was cancelled.
pub(super) struct ActiveCall {
    monitor: CallMonitor,
    started: Instant,
    entry: CallEntry,
    span: CallSpan,
    failure: Mutex<Option<(Word, Option<String>)>>,
    outcome: Word,
}

impl ActiveCall {
    /// The `traceparent` for the server: the span of this call where it is recorded.
    pub(super) fn traceparent(&self) -> Option<String> {
        self.span.traceparent()
    }

    /// The server failed, for this reason without content.
    pub(super) fn failed(&self, reason: String) {
        self.set("failed", Some(reason));
    }

    /// The call was not approved.
    pub(super) fn denied(&self) {
        self.set("denied", None);
    }

    fn set(&self, outcome: Word, reason: Option<String>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some((outcome, reason));
    }

    /// The call ended.
    pub(super) fn ended(mut self, outcome: &Result<CallOutcome, BackendError>) {
        let failure = self.failure.get_mut();
        let failure = failure.unwrap_or_else(PoisonError::into_inner).take();
        let (word, error) = match (failure, outcome) {
            (Some(failure), _) => failure,
            (None, Ok(outcome)) if outcome.is_error => ("tool_error", None),
            (None, Ok(_)) => ("succeeded", None),
            (None, Err(BackendError::Cancelled)) => ("cancelled", None),
            (None, Err(_)) => ("failed", None),
        };
        if let Ok(outcome) = outcome {
            let content = outcome.content.iter().map(size_of);
            let structured = outcome.structured.as_ref().map_or(0, size_of);
            self.entry.bytes_out = (content.sum::<usize>() + structured) as u64;
        }
        self.outcome = word;
        self.entry.error = error;
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let entry = std::mem::take(&mut self.entry);
        let span = std::mem::replace(&mut self.span, CallSpan::none());
        self.monitor.report(entry, self.outcome, self.started, span);
    }
}

/// About how many bytes a value has as JSON: exact but for escapes and numbers.
pub(super) fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(values) => 2 + values.iter().map(|it| size_of(it) + 1).sum::<usize>(),
        Value::Object(members) => {
            let members = members.iter();
            2 + members
                .map(|(key, value)| key.len() + 4 + size_of(value))
                .sum::<usize>()
        }
    }
}
