//! Tasks: a server of the modern era that may do so (`tasks = true`) answers a call with the handle of a task,
//! and its result is polled. <https://modelcontextprotocol.io/extensions/tasks>

use std::collections::BTreeMap;
use std::time::Duration;

use haft_core::ToolProgress;
use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, GetTaskParams, GetTaskRequest,
    UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};

use super::request::{Line, OnProgress, Waits, later};
use super::rounds::Rounds;
use crate::error::Cause;
use crate::text::visible;

/// The shortest and the longest time between two polls, whatever the server suggests.
const FASTEST: Duration = Duration::from_millis(500);
const SLOWEST: Duration = Duration::from_secs(30);

/// A task that a call was answered with. Dropping it before its end cancels it at the server.
pub(super) struct Task<'a> {
    line: Line<'a>,
    id: String,
    has_ended: bool,
    /// The requests for input that were answered: a server lists them until it has read the answer.
    answered: Vec<String>,
}

impl<'a> Task<'a> {
    /// The task of a result with `resultType` `task`.
    pub(super) fn new(line: Line<'a>, result: &Value, is_offered: bool) -> Result<Self, Cause> {
        if !is_offered {
            let text = "the server answers with a task, which was not offered; set `tasks = true` to allow it";
            return Err(unexpected(text));
        }
        let id = result.get("taskId").and_then(Value::as_str);
        let id = id.ok_or_else(|| unexpected("the server answers with a task without `taskId`"))?;
        Ok(Self {
            line,
            id: id.to_owned(),
            has_ended: false,
            answered: Vec::new(),
        })
    }

    /// Polls until the task has ended; its result. All of it counts as the call's own time, but for what a
    /// person took to answer.
    pub(super) async fn result(
        mut self,
        created: Value,
        waits: &mut Waits<'_>,
        rounds: &mut Rounds<'_>,
        mut on_progress: Option<OnProgress<'_>>,
    ) -> Result<Value, Cause> {
        let mut state = created;
        let mut last_message = None;
        loop {
            let message = state.get("statusMessage").and_then(Value::as_str);
            let message = message.map(|it| haft_core::cut(&visible(it)));
            if message.is_some() && message != last_message {
                last_message.clone_from(&message);
                if let Some(on_progress) = &mut on_progress {
                    on_progress(ToolProgress {
                        message,
                        ..ToolProgress::default()
                    });
                }
            }
            match state.get("status").and_then(Value::as_str) {
                Some("completed") => {
                    self.has_ended = true;
                    let result = state.get_mut("result").map(Value::take);
                    return result
                        .ok_or_else(|| unexpected("the server ends a task without `result`"));
                }
                Some("failed") => {
                    self.has_ended = true;
                    return Err(error_of(&state));
                }
                Some("cancelled") => {
                    self.has_ended = true;
                    return Err(unexpected("the server cancelled the task"));
                }
                Some("input_required") => self.answer(&state, waits, rounds).await?,
                Some("working") => {}
                _ => return Err(unexpected("the server gives a task an unknown status")),
            }
            self.wait(interval(&state), waits).await?;
            let request = GetTaskRequest::new(GetTaskParams::new(self.id.clone()));
            state = self
                .request(ClientRequest::GetTaskRequest(request), waits)
                .await?;
        }
    }

    /// Answers the requests for input that are new.
    async fn answer(
        &mut self,
        state: &Value,
        waits: &mut Waits<'_>,
        rounds: &mut Rounds<'_>,
    ) -> Result<(), Cause> {
        let requests = state.get("inputRequests").and_then(Value::as_object);
        let new: Map<String, Value> = requests
            .into_iter()
            .flatten()
            .filter(|(key, _)| !self.answered.contains(key))
            .map(|(key, request)| (key.clone(), request.clone()))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        self.answered.extend(new.keys().cloned());
        let asked = serde_json::json!({ "inputRequests": new });
        let next = tokio::select! {
            biased;
            () = waits.cancel.cancelled() => return Err(Cause::Cancelled),
            next = rounds.next(&asked) => next?,
        };
        waits.until = later(waits.until, next.asked);
        let responses: BTreeMap<String, Value> = next.responses.unwrap_or_default();
        let params = UpdateTaskParams::new(self.id.clone(), responses);
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
        self.request(request, waits).await.map(|_| ())
    }

    async fn wait(&self, interval: Duration, waits: &Waits<'_>) -> Result<(), Cause> {
        let next = later(Instant::now(), interval);
        tokio::select! {
            biased;
            () = waits.cancel.cancelled() => Err(Cause::Cancelled),
            () = sleep_until(waits.until) => Err(Cause::TimedOut {
                limit: waits.total.0,
                setting: waits.total.1,
            }),
            () = sleep_until(next) => Ok(()),
        }
    }

    async fn request(&self, request: ClientRequest, waits: &Waits<'_>) -> Result<Value, Cause> {
        let options = PeerRequestOptions::no_options();
        let answer = self.line.request(request, options, waits, None).await?;
        Ok(answer.0)
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // Without a runtime the connection has ended as well.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let cancelled = cancel(
                self.line.peer.clone(),
                std::mem::take(&mut self.id),
                self.line.control,
            );
            runtime.spawn(cancelled);
        }
    }
}

async fn cancel(peer: Peer<RoleClient>, id: String, limit: Duration) {
    let request = CancelTaskRequest::new(CancelTaskParams::new(id));
    let request = peer.send_request_with_option(
        ClientRequest::CancelTaskRequest(request),
        PeerRequestOptions::no_options(),
    );
    let answered = async {
        if let Ok(handle) = request.await {
            let _ = handle.await_response().await;
        }
    };
    // A server that does not answer keeps its task until it expires.
    let _ = tokio::time::timeout(limit, answered).await;
}

/// When to poll again: as the server suggests, within bounds, and not in step with other calls.
fn interval(state: &Value) -> Duration {
    let suggested = state.get("pollIntervalMs").and_then(Value::as_u64);
    let suggested = Duration::from_millis(suggested.unwrap_or(0)).clamp(FASTEST, SLOWEST);
    suggested.mul_f64(fastrand::f64().mul_add(0.1, 1.0))
}

fn error_of(state: &Value) -> Cause {
    let error = state.get("error").unwrap_or(&Value::Null);
    let message = error.get("message").and_then(Value::as_str);
    Cause::Protocol {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(-32603),
        message: haft_core::cut(&visible(message.unwrap_or("the task failed"))),
    }
}

fn unexpected(text: &str) -> Cause {
    Cause::Unexpected(text.into())
}
