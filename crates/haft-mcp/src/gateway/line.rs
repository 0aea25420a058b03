//! The line to the client while one of its requests is open.

// Logging is deprecated by the protocol; clients of the older revisions still have it.
#![expect(deprecated)]

use std::collections::BTreeMap;
use std::time::Duration;

use haft_core::ToolProgress;
use rmcp::model::{
    ClientResult, CustomRequest, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde_json::Value;
use tokio::time::Instant;

use super::context::{AskError, Client, LogLevel};
use super::convert;
use super::input::{Answer, InputRequest};

/// How the client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// By a request to it, while its own is open (legacy).
    ByRequest,
    /// By the result of its request, after which it asks again (modern).
    InResult,
    /// Not at all: its revision would have requests, but this line carries none.
    Never,
}

/// The line to the client.
#[derive(Debug)]
pub(super) struct Line {
    context: RequestContext<RoleServer>,
    pub(super) asking: Asking,
    progress: Option<Meter>,
    /// The least important messages that it wants.
    log_level: Option<LogLevel>,
}

/// Whether the request follows the modern revision.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    // Revisions are dates, which compare as text.
    version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// A header of the HTTP request that brought this one. Clients that trace HTTP name their span there, those
/// that trace MCP in `_meta`.
fn header<'c>(context: &'c RequestContext<RoleServer>, name: &str) -> Option<&'c str> {
    let parts = context.extensions.get::<axum::http::request::Parts>()?;
    parts.headers.get(name)?.to_str().ok()
}

impl Line {
    /// `of_session` is the level that a legacy client has set; none if there is no logging at all.
    pub(super) fn new(
        context: RequestContext<RoleServer>,
        of_session: Option<LogLevel>,
    ) -> (Self, Client, BTreeMap<String, String>) {
        let modern = is_modern(&context);
        let asking = if modern {
            Asking::InResult
        } else if context.meta.protocol_version().is_some() {
            Asking::Never
        } else {
            Asking::ByRequest
        };
        let log_level = match of_session {
            Some(_) if modern => context.meta.log_level().map(level),
            of_session => of_session,
        };
        let capabilities = context.client_capabilities();
        let client = Client {
            name: context.client_info().map(|info| info.name),
            answers: match (&capabilities, asking) {
                (Some(capabilities), Asking::ByRequest | Asking::InResult) => {
                    convert::answers(capabilities)
                }
                _ => Vec::new(),
            },
        };
        let trace = ["traceparent", "tracestate", "baggage"].into_iter();
        let trace = trace.filter_map(|key| {
            let value = context.meta.get(key).and_then(Value::as_str);
            let value = value.or_else(|| header(&context, key))?;
            Some((key.to_owned(), value.to_owned()))
        });
        let trace = trace.collect();
        let progress = context.meta.get_progress_token().map(Meter::new);
        let line = Self {
            context,
            asking,
            progress,
            log_level,
        };
        (line, client, trace)
    }

    /// The least severe log messages that the client wants.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Given when the client does not want the answer any more.
    pub(super) async fn cancelled(&self) {
        self.context.ct.cancelled().await;
    }

    /// Tells the client how far its request is, if it wants to know and has not just been told.
    pub(super) async fn report(&mut self, progress: ToolProgress) {
        let Some(meter) = &mut self.progress else {
            return;
        };
        let Some(at) = progress.progress.filter(|at| meter.lets_through(*at)) else {
            return;
        };
        let mut notice = ProgressNotificationParam::new(meter.token.clone(), at);
        notice.total = progress.total;
        notice.message = progress.message;
        let _ = self.context.peer.notify_progress(notice).await;
    }

    /// Logs, if the client wants to hear it.
    pub(super) async fn log(&self, of: LogLevel, logger: Option<String>, data: Value) {
        if self.log_level.is_some_and(|least| of >= least) {
            let mut message = LoggingMessageNotificationParam::new(protocol_level(of), data);
            message.logger = logger;
            let _ = self.context.peer.notify_logging_message(message).await;
        }
    }

    /// Asks by a request and waits for the answer. Only from the task that handles the client's own
    /// request: by that the library knows on which stream the question belongs.
    pub(super) async fn ask(
        &self,
        request: &InputRequest,
        left: Duration,
    ) -> Result<Answer, AskError> {
        ask(&self.context.peer, request, left).await
    }
}

async fn ask(
    peer: &Peer<RoleServer>,
    request: &InputRequest,
    left: Duration,
) -> Result<Answer, AskError> {
    // Sent as it is: the library's own types would lose what they do not know.
    let question = CustomRequest::new(request.method(), Some(request.params()));
    let options = PeerRequestOptions::with_timeout(left);
    let sent = peer.send_request_with_option(ServerRequest::CustomRequest(question), options);
    let answer = match sent.await {
        Ok(handle) => handle.await_response().await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(ClientResult::EmptyResult(_)) => Err(AskError::Refused("it sent nothing".into())),
        Ok(result) => match serde_json::to_value(result) {
            Ok(Value::Object(object)) => Ok(Answer::new(object)),
            _ => Err(AskError::Refused("it sent no object".into())),
        },
        Err(ServiceError::McpError(error)) => Err(AskError::Refused(error.message.into_owned())),
        Err(error) => {
            tracing::debug!(%error, "a question has no answer");
            Err(AskError::Gone)
        }
    }
}

/// Lets progress through: only upwards, five at once and then five a second.
#[derive(Debug)]
struct Meter {
    token: ProgressToken,
    last: Option<f64>,
    allowed: f64,
    counted: Instant,
}

impl Meter {
    const BURST: f64 = 5.0;
    const PER_SECOND: f64 = 5.0;

    fn new(token: ProgressToken) -> Self {
        Self {
            token,
            last: None,
            allowed: Self::BURST,
            counted: Instant::now(),
        }
    }

    fn lets_through(&mut self, at: f64) -> bool {
        let now = Instant::now();
        let passed = now.duration_since(self.counted).as_secs_f64();
        self.allowed = (self.allowed + passed * Self::PER_SECOND).min(Self::BURST);
        self.counted = now;
        let upwards = at.is_finite() && self.last.is_none_or(|last| at > last);
        if !upwards || self.allowed < 1.0 {
            return false;
        }
        self.allowed -= 1.0;
        self.last = Some(at);
        true
    }
}

pub(super) fn level(level: LoggingLevel) -> LogLevel {
    match level {
        LoggingLevel::Debug => LogLevel::Debug,
        LoggingLevel::Info => LogLevel::Info,
        LoggingLevel::Notice => LogLevel::Notice,
        LoggingLevel::Warning => LogLevel::Warning,
        LoggingLevel::Error => LogLevel::Error,
        LoggingLevel::Critical => LogLevel::Critical,
        LoggingLevel::Alert => LogLevel::Alert,
        LoggingLevel::Emergency => LogLevel::Emergency,
    }
}

pub(super) fn protocol_level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Notice => LoggingLevel::Notice,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Critical => LoggingLevel::Critical,
        LogLevel::Alert => LoggingLevel::Alert,
        LogLevel::Emergency => LoggingLevel::Emergency,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_goes_only_upwards_and_not_too_fast() {
        let mut meter = Meter::new(ProgressToken(NumberOrString::Number(1)));
        let passed: Vec<bool> = [0.0, 1.0, 1.0, 0.5, f64::NAN, 2.0, 3.0, 4.0, 5.0]
            .map(|at| meter.lets_through(at))
            .into();
        // The sixth that would have gone upwards comes too soon.
        assert_eq!(
            passed,
            [true, true, false, false, false, true, true, true, false]
        );
        tokio::time::advance(Duration::from_millis(200)).await;
        assert!(meter.lets_through(5.0));
        assert!(!meter.lets_through(6.0));
    }
}
