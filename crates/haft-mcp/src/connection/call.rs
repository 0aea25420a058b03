//! A call of a server's tool.

use std::sync::Arc;
use std::time::Duration;

use haft_core::{Cancel, ToolProgress};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, RequestMetaObject};
use rmcp::service::PeerRequestOptions;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::exchange::with_log_level;
use super::handler::capabilities;
use super::request::{Waits, later};
use super::rounds::Rounds;
use super::tasks::Task;
use super::{Connection, LOGINS};
use crate::error::{Cause, Era, McpError, Phase};
use crate::log_message::{LogLevel, LogMessage};
use crate::outcome::ToolOutcome;
use crate::question::{Asker, Takes};

const HEADER_MISMATCH: i64 = -32020;

/// What goes with a call beside its arguments.
#[derive(Default)]
pub struct CallOptions<'a> {
    /// The signal to give up.
    pub cancel: Cancel,
    /// Hears of progress, five times a second at most.
    pub on_progress: Option<&'a mut (dyn FnMut(ToolProgress) + Send)>,
    /// The trace that the call belongs to.
    pub trace: TraceContext,
    /// How long it may be silent; as the settings say if not given.
    pub idle_timeout: Option<Duration>,
    /// How long it may take in all; as the settings say if not given.
    pub call_timeout: Option<Duration>,
    /// What the tool promises as structured content. What this connection listed if not given.
    pub output_schema: Option<Arc<Value>>,
    /// Who answers what the server asks in the middle of this call. It goes before the connection's, and
    /// counts only where the connection allows questions ([`ConnectOptions::questions`]).
    ///
    /// [`ConnectOptions::questions`]: super::ConnectOptions::questions
    pub asker: Option<Arc<dyn Asker>>,
    /// The least severe log messages that a modern server sends while it works on this request
    /// ([`Connection::events`]); none if not given.
    pub log_level: Option<LogLevel>,
    /// Gets the log messages that arrive while this request is in flight, before its result. Servers do not
    /// say to which request a message belongs, so that each of several requests gets all of them.
    pub on_log: Option<OnLog>,
}

/// Gets log messages while a request is in flight.
pub type OnLog = Arc<dyn Fn(&LogMessage) + Send + Sync>;

/// A trace, in the words of the W3C. Nothing else of a caller is passed on to a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceContext {
    /// The `traceparent`.
    pub parent: Option<String>,
    /// The `tracestate`.
    pub state: Option<String>,
    /// The `baggage`.
    pub baggage: Option<String>,
}

impl TraceContext {
    fn into_meta(self) -> Option<RequestMetaObject> {
        let entries = [
            ("traceparent", self.parent),
            ("tracestate", self.state),
            ("baggage", self.baggage),
        ];
        let entries: Map<String, Value> = entries
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.into())))
            .collect();
        (!entries.is_empty())
            .then(|| serde_json::from_value(entries.into()).ok())
            .flatten()
    }
}

impl Connection {
    /// What goes with a call. Each request of the modern era says what whoever made it can answer.
    pub(super) fn meta(
        &self,
        trace: TraceContext,
        asker: Option<&dyn Asker>,
        log_level: Option<LogLevel>,
    ) -> Option<RequestMetaObject> {
        let mut meta = trace.into_meta();
        if self.era == Era::Legacy {
            return meta;
        }
        if let Some(level) = log_level.filter(|_| self.identity.capabilities.logging) {
            with_log_level(meta.get_or_insert_default(), level);
        }
        if !self.desk.is_open() {
            return meta;
        }
        let takes = asker.map_or(Takes::NOTHING, Asker::takes);
        let mut meta = meta.unwrap_or_default();
        meta.set_client_capabilities(capabilities(takes, self.settings.tasks));
        Some(meta)
    }

    /// Calls a tool by its raw name. That the tool says it failed is an outcome, not an error.
    ///
    /// When the call is given up, by a limit, the signal or because the future is dropped, the server
    /// is told. Nothing is tried twice that may have happened once.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions<'_>,
    ) -> Result<ToolOutcome, McpError> {
        let started = Instant::now();
        match self.call(name, arguments, options, started).await {
            Ok(outcome) => Ok(outcome),
            Err(cause) => Err(self.failed(Phase::Call, started, cause).await),
        }
    }

    async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        mut options: CallOptions<'_>,
        started: Instant,
    ) -> Result<ToolOutcome, Cause> {
        let (idle, total) = self.settings.call_limits(name);
        let total = options.call_timeout.unwrap_or(total);
        let asks = self.era == Era::Legacy && self.desk.is_open();
        let mut waits = Waits {
            idle: options.idle_timeout.unwrap_or(idle),
            until: later(started, total),
            total: (total, "call_timeout"),
            cancel: &options.cancel,
            asking: asks.then(|| self.desk.asking()),
        };
        let _permit = tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(Cause::Cancelled),
            permit = self.permits.acquire() => permit,
            () = tokio::time::sleep_until(waits.until) => {
                return Err(Cause::TimedOut { limit: total, setting: "call_timeout" });
            }
        };
        let asker = self.desk.asker(options.asker.take());
        let mut call = self.desk.call(asker.clone());
        let meta = self.meta(options.trace, asker.as_deref(), options.log_level);
        let mut params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let mut may_relist = true;
        let mut logins = 0;
        let mut rounds = Rounds::new(&self.desk, asker, &self.settings, name);
        loop {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            let mut request_options = PeerRequestOptions::no_options();
            request_options.meta.clone_from(&meta);
            let on_progress = options
                .on_progress
                .as_mut()
                .map(|it| &mut **it as &mut (dyn FnMut(ToolProgress) + Send));
            let line = self.line();
            // Boxed because the future is large and is held twice below.
            let answer = Box::pin(line.request(request, request_options, &waits, on_progress));
            let answer = self.with_logs(options.on_log.as_ref(), answer).await;
            let result = match answer {
                // The headers that rmcp made from the schema are not those that the server wants now.
                // It has refused, so that nothing has happened.
                Err(Cause::Protocol {
                    code: HEADER_MISMATCH,
                    ..
                }) if may_relist => {
                    may_relist = false;
                    self.list(Instant::now()).await?;
                    continue;
                }
                // Refused as well. The person's time is not the call's.
                Err(cause @ Cause::LoginRequired { .. }) if logins < LOGINS => {
                    logins += 1;
                    let began = Instant::now();
                    tokio::select! {
                        biased;
                        () = options.cancel.cancelled() => return Err(Cause::Cancelled),
                        logged_in = self.log_in(cause) => logged_in?,
                    }
                    waits.until = later(waits.until, began.elapsed());
                    continue;
                }
                answer => answer,
            };
            if matches!(result, Ok(_) | Err(Cause::Protocol { .. })) {
                call.answered();
            }
            let mut result = result?.0;
            match result.get("resultType").and_then(Value::as_str) {
                Some("input_required") => {
                    let next = tokio::select! {
                        biased;
                        () = options.cancel.cancelled() => return Err(Cause::Cancelled),
                        next = rounds.next(&result) => next?,
                    };
                    params.input_responses = next.responses;
                    params.request_state = next.state;
                    waits.until = later(waits.until, next.asked);
                }
                kind => {
                    if kind == Some("task") {
                        let task = Task::new(self.line(), &result, self.settings.tasks)?;
                        let on_progress = options.on_progress.take();
                        result = task
                            .result(result, &mut waits, &mut rounds, on_progress)
                            .await?;
                    }
                    return Ok(self.outcome(name, result, options.output_schema.as_ref()));
                }
            }
        }
    }

    /// Reads a result and compares it with what the tool promised.
    fn outcome(&self, name: &str, result: Value, promised: Option<&Arc<Value>>) -> ToolOutcome {
        let mut outcome = ToolOutcome::read(result);
        if let Some(problem) = self.outputs.complaint(name, promised, &outcome) {
            outcome.note_misfit(problem, self.settings.strict_output(name));
        }
        outcome
    }
}
