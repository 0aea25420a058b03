//! A call of a server's tool.

use std::time::Duration;

use haft_core::{Cancel, ToolProgress};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, RequestMetaObject};
use rmcp::service::PeerRequestOptions;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::Connection;
use super::request::{Waits, later};
use crate::error::{Cause, McpError, Phase};
use crate::outcome::ToolOutcome;
use crate::text::visible;

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
}

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
        let waits = Waits {
            idle: options.idle_timeout.unwrap_or(idle),
            until: later(started, total),
            total: (total, "call_timeout"),
            cancel: &options.cancel,
        };
        let _permit = tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(Cause::Cancelled),
            permit = self.permits.acquire() => permit,
            () = tokio::time::sleep_until(waits.until) => {
                return Err(Cause::TimedOut { limit: total, setting: "call_timeout" });
            }
        };
        let meta = options.trace.into_meta();
        let mut params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let mut may_relist = true;
        let mut rounds = 0;
        loop {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            let mut request_options = PeerRequestOptions::no_options();
            request_options.meta.clone_from(&meta);
            let on_progress = options
                .on_progress
                .as_mut()
                .map(|it| &mut **it as &mut (dyn FnMut(ToolProgress) + Send));
            let answer = self
                .line()
                .request(request, request_options, &waits, on_progress)
                .await;
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
                answer => answer?.0,
            };
            match result.get("resultType").and_then(Value::as_str) {
                Some("input_required") => {
                    rounds += 1;
                    if rounds > self.settings.limits.rounds {
                        let text =
                            format!("more than {} rounds of input", self.settings.limits.rounds);
                        return Err(Cause::InputRequired { wanted: text });
                    }
                    params.request_state = Some(state_alone(&result)?);
                }
                Some("task") => {
                    return Err(Cause::Unexpected(
                        "the server answers with a task, which it was not allowed to".into(),
                    ));
                }
                _ => return Ok(ToolOutcome::read(result)),
            }
        }
    }
}

/// The state of a call that wants nothing but to be asked again.
fn state_alone(result: &Value) -> Result<String, Cause> {
    let wanted = result
        .get("inputRequests")
        .and_then(Value::as_object)
        .filter(|wanted| !wanted.is_empty());
    if let Some(wanted) = wanted {
        let methods = wanted.values().map(|request| {
            let method = request
                .get("method")
                .and_then(Value::as_str)
                .unwrap_or("something");
            haft_core::cut(&visible(method))
        });
        let methods: Vec<_> = methods.take(8).collect();
        return Err(Cause::InputRequired {
            wanted: methods.join(", "),
        });
    }
    let state = result
        .get("requestState")
        .and_then(Value::as_str)
        .map(str::to_owned);
    state.ok_or_else(|| {
        Cause::Unexpected("the server asks for input and does not say for which".into())
    })
}
