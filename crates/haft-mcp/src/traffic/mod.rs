//! What goes over one connection, seen from between the bytes and rmcp.
//!
//! Every message passes here as JSON before rmcp reads it. Answers to lists and calls are kept as the
//! server wrote them, so that one odd field costs nothing but itself; rmcp only learns that they came.
//! Progress and notices of change are taken out, so that a flood of them costs no memory. Answers that
//! nobody waits for are dropped, and so is everything that is not the protocol.

mod answers;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::{ToolProgress, cut};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, EmptyResult, ErrorCode, ErrorData,
    GetMeta, ListToolsResult, NumberOrString, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde_json::{Map, Value};
use tokio::sync::{broadcast, watch};

use self::answers::{discovered, initialized, mirrored, refusal};
use crate::error::{Cause, Phase};
use crate::line::IdScanner;
use crate::log_message::LogMessage;
use crate::text::visible;

/// What `elicitation/create` is called on its way through rmcp, which would otherwise insist on reading
/// the form itself.
pub(crate) const QUESTION: &str = "haft/question";

/// How many events may be pending for a listener. A listener that falls behind learns that it did.
const PENDING_EVENTS: usize = 256;

/// What a server reports without being asked, beside progress and changes of its tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources or of resource templates has changed.
    ResourcesChanged,
    /// The resource at this URI has changed.
    ResourceUpdated(String),
    /// A log message.
    Log(LogMessage),
}

/// What a request asks for, as far as that makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Discover,
    Initialize,
    List,
    /// A call, or any other request whose result is read as the server wrote it.
    Call,
    /// Its answer comes at the end, if ever.
    Listen,
    Other,
}

/// What came back for a list or a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// The result as it was written, and its size in bytes.
    Raw(Value, usize),
    /// It came to nothing, before rmcp could see it.
    Failed(Cause),
}

#[derive(Debug)]
struct Request {
    method: Method,
    token: Option<Value>,
    /// Whether some of it may have reached the server.
    is_sent: bool,
    is_answered: bool,
    answer: Option<Answer>,
    progress: watch::Sender<Option<ToolProgress>>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            method: Method::Other,
            token: None,
            is_sent: false,
            is_answered: false,
            answer: None,
            progress: watch::Sender::new(None),
        }
    }
}

/// The requests under way on one connection, and what the server says unasked.
#[derive(Debug)]
pub(crate) struct Traffic {
    requests: Mutex<HashMap<RequestId, Request>>,
    changes: watch::Sender<u64>,
    events: broadcast::Sender<ServerEvent>,
    is_modern: AtomicBool,
    is_initializing: AtomicBool,
    /// Whether rmcp has to see the schemas of listed tools, to mirror arguments as headers.
    mirrors: bool,
}

impl Traffic {
    pub(crate) fn new(mirrors: bool) -> Arc<Self> {
        Arc::new(Self {
            requests: Mutex::default(),
            changes: watch::Sender::new(0),
            events: broadcast::Sender::new(PENDING_EVENTS),
            is_modern: AtomicBool::new(false),
            is_initializing: AtomicBool::new(false),
            mirrors,
        })
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<RequestId, Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has shown that it needs no handshake.
    pub(crate) fn is_modern(&self) -> bool {
        self.is_modern.load(Ordering::Relaxed)
    }

    /// How far the opening has come.
    pub(crate) fn opening(&self) -> Phase {
        if self.is_initializing.load(Ordering::Relaxed) {
            Phase::Initialize
        } else {
            Phase::Probe
        }
    }

    /// Counts the notices that the tools changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The tools may have changed.
    pub(crate) fn note_change(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// What the server reports about prompts, resources and its log, from now on.
    pub(crate) fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.events.subscribe()
    }

    /// Passes an event on to those who listen; without listeners it is dropped.
    pub(crate) fn publish(&self, event: ServerEvent) {
        let _ = self.events.send(event);
    }

    /// Whether a call or the like is in flight.
    fn has_requests(&self) -> bool {
        let requests = self.requests();
        let mut requests = requests.values();
        requests.any(|request| request.method == Method::Call && !request.is_answered)
    }

    /// Notes what is about to be sent.
    pub(crate) fn outbound(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(message) => {
                let method = match &message.request {
                    ClientRequest::DiscoverRequest(_) => Method::Discover,
                    ClientRequest::InitializeRequest(_) => Method::Initialize,
                    ClientRequest::ListToolsRequest(_) => Method::List,
                    // A task is polled in the place of the call that it answers.
                    ClientRequest::CallToolRequest(_)
                    | ClientRequest::GetTaskRequest(_)
                    | ClientRequest::UpdateTaskRequest(_)
                    | ClientRequest::CompleteRequest(_)
                    | ClientRequest::GetPromptRequest(_)
                    | ClientRequest::ListPromptsRequest(_)
                    | ClientRequest::ListResourcesRequest(_)
                    | ClientRequest::ListResourceTemplatesRequest(_)
                    | ClientRequest::ReadResourceRequest(_)
                    | ClientRequest::SetLevelRequest(_)
                    | ClientRequest::SubscribeRequest(_)
                    | ClientRequest::UnsubscribeRequest(_) => Method::Call,
                    ClientRequest::SubscriptionsListenRequest(_) => Method::Listen,
                    _ => Method::Other,
                };
                if method == Method::Initialize {
                    self.is_initializing.store(true, Ordering::Relaxed);
                    // An answer to the question for the era would now be taken for one to this.
                    self.requests()
                        .retain(|_, request| request.method != Method::Discover);
                }
                let token = message.request.get_meta().get_progress_token();
                let mut requests = self.requests();
                let request = requests.entry(message.id.clone()).or_default();
                request.method = method;
                request.token = token.map(|token| token.0.into_json_value());
            }
            ClientJsonRpcMessage::Notification(message) => {
                if let ClientNotification::CancelledNotification(cancelled) = &message.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.forget(id);
                }
            }
            _ => {}
        }
    }

    /// From now on the request may have reached the server, or it certainly has not.
    pub(crate) fn set_sent(&self, id: &RequestId, is_sent: bool) {
        if let Some(request) = self.requests().get_mut(id) {
            request.is_sent = is_sent;
        }
    }

    /// Whether the request may have reached the server.
    pub(crate) fn is_sent(&self, id: &RequestId) -> bool {
        self.requests()
            .get(id)
            .is_some_and(|request| request.is_sent)
    }

    /// Whether somebody waits for the answer to this.
    pub(crate) fn is_awaited(&self, id: &RequestId) -> bool {
        self.requests()
            .get(id)
            .is_some_and(|request| !request.is_answered)
    }

    /// The progress of a request, from its very beginning.
    pub(crate) fn progress(&self, id: &RequestId) -> watch::Receiver<Option<ToolProgress>> {
        self.requests()
            .entry(id.clone())
            .or_default()
            .progress
            .subscribe()
    }

    /// What came back for a request.
    pub(crate) fn take_answer(&self, id: &RequestId) -> Option<Answer> {
        self.requests().get_mut(id)?.answer.take()
    }

    /// Nobody waits any more.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.requests().remove(id);
    }

    /// Takes in what a server wrote; gives what rmcp shall read of it.
    pub(crate) fn inbound_text(&self, text: &[u8]) -> Option<ServerJsonRpcMessage> {
        let error = match serde_json::from_slice(text) {
            Ok(value) => return self.inbound(value, text.len()),
            Err(error) => error,
        };
        if let Some(lenient) = crate::lenient::parse(text) {
            let replaced = lenient.replaced;
            tracing::warn!(replaced, %error, "values of a message of a server were replaced");
            return self.inbound(lenient.value, text.len());
        }
        // It cannot be read at all: its request fails at once.
        let mut scanner = IdScanner::default();
        scanner.feed(text);
        let id: Value = serde_json::from_slice(&scanner.found()?).ok()?;
        let cause = Cause::Unexpected(format!("the answer cannot be read: {error}"));
        self.fail(Some(&id), cause)
    }

    /// The same of what was read already.
    pub(crate) fn inbound(&self, value: Value, bytes: usize) -> Option<ServerJsonRpcMessage> {
        let Value::Object(mut message) = value else {
            return None;
        };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return None;
        }
        if let Some(method) = message.get("method") {
            let method = method.as_str()?.to_owned();
            let is_request = message.get("id").is_some_and(|id| !id.is_null());
            return if is_request {
                self.asked(message)
            } else {
                self.told(&method, message)
            };
        }
        let error = message.remove("error").filter(|error| !error.is_null());
        let result = message.remove("result");
        let id = message.get("id").filter(|id| !id.is_null());
        let id = match (&error, &result) {
            (Some(_), _) => self.answered(id)?,
            // Only a failure may leave out whose it is.
            (None, Some(_)) => self.answered(Some(id?))?,
            (None, None) => return None,
        };
        let method = self.method(&id);
        let answer = match error {
            Some(error) => Err(refusal(&error)),
            None => self.result(&id, method, result.unwrap_or_default(), bytes),
        };
        if !matches!(method, Method::List | Method::Call) {
            // Nobody asks here for more about it.
            self.forget(&id);
        }
        Some(match answer {
            Ok(result) => ServerJsonRpcMessage::response(result, id),
            Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
        })
    }

    /// An answer that cannot be had: the failure of its request, told to rmcp and kept here.
    pub(crate) fn fail(&self, id: Option<&Value>, cause: Cause) -> Option<ServerJsonRpcMessage> {
        let id = self.answered(id)?;
        let error = ErrorData::internal_error(cause.to_string(), None);
        if let Some(request) = self.requests().get_mut(&id) {
            request.answer = Some(Answer::Failed(cause));
        }
        Some(ServerJsonRpcMessage::error(error, Some(id)))
    }

    /// What rmcp is told when the question for the era gets no answer in time; later ones are dropped.
    pub(crate) fn no_era(&self, id: &RequestId) -> Option<ServerJsonRpcMessage> {
        let is_probing = self.is_awaited(id) && self.method(id) == Method::Discover;
        is_probing.then(|| {
            self.forget(id);
            let error = ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "no answer to `server/discover`",
                None,
            );
            ServerJsonRpcMessage::error(error, Some(id.clone()))
        })
    }

    /// The request that this is the answer to, once.
    fn answered(&self, id: Option<&Value>) -> Option<RequestId> {
        let mut requests = self.requests();
        let open = |request: &Request| !request.is_answered;
        let id = match id {
            // A server that could not read the `id` leaves it out. It is clear if there is only one.
            None | Some(Value::Null) => {
                let soon = |request: &Request| open(request) && request.method != Method::Listen;
                let mut waiting = requests.iter().filter(|(_, request)| soon(request));
                let (id, _) = waiting.next()?;
                waiting.next().is_none().then(|| id.clone())?
            }
            Some(id) => {
                let id: RequestId = serde_json::from_value(id.clone()).ok()?;
                // Some servers make a text of the number.
                let number = match &id {
                    NumberOrString::String(text) => text.parse().ok().map(NumberOrString::Number),
                    NumberOrString::Number(_) => None,
                };
                let known = |id: &RequestId| requests.get(id).is_some_and(open);
                std::iter::once(id).chain(number).find(known)?
            }
        };
        requests.get_mut(&id)?.is_answered = true;
        Some(id)
    }

    fn method(&self, id: &RequestId) -> Method {
        self.requests()
            .get(id)
            .map_or(Method::Other, |request| request.method)
    }

    /// The result for rmcp. Those of lists and calls are kept here and replaced.
    fn result(
        &self,
        id: &RequestId,
        method: Method,
        result: Value,
        bytes: usize,
    ) -> Result<ServerResult, ErrorData> {
        match method {
            Method::Discover => {
                let discovered = discovered(&result)?;
                self.is_modern.store(true, Ordering::Relaxed);
                return Ok(discovered);
            }
            Method::Initialize => return initialized(&result),
            Method::Listen | Method::Other => {
                return serde_json::from_value(result)
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None));
            }
            Method::List | Method::Call => {}
        }
        let stand_in = if method == Method::List && self.mirrors {
            ServerResult::ListToolsResult(ListToolsResult::with_all_items(mirrored(&result)))
        } else {
            ServerResult::EmptyResult(EmptyResult {})
        };
        if let Some(request) = self.requests().get_mut(id) {
            request.answer = Some(Answer::Raw(result, bytes));
        }
        Ok(stand_in)
    }

    /// A request of the server. In the modern era there are none, and nothing may be answered.
    fn asked(&self, mut message: Map<String, Value>) -> Option<ServerJsonRpcMessage> {
        if self.is_modern() {
            tracing::debug!("a request of a server that may make none was dropped");
            return None;
        }
        if message.get("method").and_then(Value::as_str) == Some("elicitation/create") {
            message.insert("method".into(), QUESTION.into());
        }
        serde_json::from_value(message.into()).ok()
    }

    fn told(&self, method: &str, mut message: Map<String, Value>) -> Option<ServerJsonRpcMessage> {
        match method {
            "notifications/progress" => {
                self.progressed(message.get("params")?);
                None
            }
            "notifications/tools/list_changed" => {
                self.note_change();
                None
            }
            "notifications/prompts/list_changed" => {
                self.publish(ServerEvent::PromptsChanged);
                None
            }
            "notifications/resources/list_changed" => {
                self.publish(ServerEvent::ResourcesChanged);
                None
            }
            "notifications/resources/updated" => {
                let uri = message.get("params")?.get("uri")?.as_str()?;
                self.publish(ServerEvent::ResourceUpdated(uri.to_owned()));
                None
            }
            "notifications/message" => {
                let mut message = LogMessage::from_params(message.get("params")?)?;
                message.is_during_request = self.has_requests();
                self.publish(ServerEvent::Log(message));
                None
            }
            // The only ones that rmcp needs.
            "notifications/cancelled" | "notifications/subscriptions/acknowledged" => {
                message.remove("id");
                serde_json::from_value(message.into()).ok()
            }
            _ => None,
        }
    }

    fn progressed(&self, params: &Value) {
        let Some(token) = params.get("progressToken") else {
            return;
        };
        let progress = ToolProgress {
            progress: params.get("progress").and_then(Value::as_f64),
            total: params.get("total").and_then(Value::as_f64),
            message: params
                .get("message")
                .and_then(Value::as_str)
                .map(|text| cut(&visible(text))),
            chunk: None,
        };
        let requests = self.requests();
        let request = requests.values().find(|request| {
            request
                .token
                .as_ref()
                .is_some_and(|own| same_token(own, token))
        });
        if let Some(request) = request {
            request.progress.send_replace(Some(progress));
        }
    }
}

fn same_token(own: &Value, theirs: &Value) -> bool {
    let written = theirs.as_str().and_then(|text| text.parse::<i64>().ok());
    own == theirs || (written.is_some() && own.as_i64() == written)
}
