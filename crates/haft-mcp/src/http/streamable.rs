//! Streamable HTTP: rmcp keeps the sessions and mirrors the headers, this sends and reads.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream_of_rmcp::Sse;

use super::client::{HttpClient, body, refusal_body};
use super::events::{Event, EventStream};
use super::failure::{HttpFailure, RmcpFailure, challenge, refused, told};
use super::notices::Notices;
use crate::error::{Cause, TransportKind};
use crate::settings::{HttpSettings, ServerSettings};
use crate::traffic::Traffic;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The bounds of what a server may ask for between two tries of a stream.
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_mins(1);

/// A transport for rmcp over streamable HTTP.
pub(crate) fn over_http(
    client: HttpClient,
    http: &HttpSettings,
    settings: &ServerSettings,
    probe: Duration,
    traffic: Arc<Traffic>,
) -> StreamableHttpClientTransport<Streamable> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
        .max_concurrent_requests(settings.limits.concurrent_calls(TransportKind::Http))
        .control_request_timeout(settings.timeouts.control);
    config.retry_config = Arc::new(Patience);
    let streamable = Streamable {
        client,
        traffic,
        limit: settings.limits.message_bytes,
        probe,
        opening: settings.timeouts.connect,
        notices: Notices::default(),
    };
    StreamableHttpClientTransport::with_client(streamable, config)
}

/// One, two, four seconds and so on up to a minute, a fifth more or less.
#[derive(Debug)]
struct Patience;

impl SseRetryPolicy for Patience {
    fn retry(&self, times: usize) -> Option<Duration> {
        let exponent = u32::try_from(times).unwrap_or(u32::MAX).min(6);
        let wait = Duration::from_secs(1 << exponent).min(MAX_RETRY);
        Some(wait.mul_f64(fastrand::f64().mul_add(0.4, 0.8)))
    }
}

/// What rmcp sends and reads through.
#[derive(Clone)]
pub(crate) struct Streamable {
    client: HttpClient,
    traffic: Arc<Traffic>,
    limit: usize,
    probe: Duration,
    opening: Duration,
    notices: Notices,
}

/// What kind of message is sent, as far as that makes a difference.
enum Sent {
    /// The question for the era.
    Probe(RequestId),
    /// Another request.
    Request(RequestId),
    /// What needs no answer.
    Other,
}

impl Sent {
    fn of(message: &ClientJsonRpcMessage) -> Self {
        match message {
            ClientJsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
            {
                Self::Probe(request.id.clone())
            }
            ClientJsonRpcMessage::Request(request) => Self::Request(request.id.clone()),
            _ => Self::Other,
        }
    }

    fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Probe(id) | Self::Request(id) => Some(id),
            Self::Other => None,
        }
    }
}

impl Streamable {
    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, RmcpFailure> {
        self.traffic.outbound(&message);
        let sent = Sent::of(&message);
        let bytes = serde_json::to_vec(&message)?;
        if bytes.len() > self.limit {
            return Err(told(Cause::RequestTooLarge {
                bytes: bytes.len() as u64,
                limit: self.limit as u64,
            }));
        }
        let has_session = session.is_some();
        let request = self.client.home(Method::POST).body(bytes);
        let own = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let request = with_headers(request, session.as_deref(), headers, &own);
        if let Some(id) = sent.id() {
            self.traffic.set_sent(id, true);
        }
        let response = self.client.send(request).await.map_err(|cause| {
            if let (Cause::Unreachable(_), Some(id)) = (&cause, sent.id()) {
                self.traffic.set_sent(id, false);
            }
            told(cause)
        })?;
        if response.status().is_success() {
            self.answered(response, &sent).await
        } else {
            self.refused(response, &sent, has_session).await
        }
    }

    async fn answered(
        &self,
        response: Response,
        sent: &Sent,
    ) -> Result<StreamableHttpPostResponse, RmcpFailure> {
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = response
            .headers()
            .get(SESSION)
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        if is_of_type(&response, "text/event-stream") {
            let stream = self.messages(EventStream::of(response, self.limit), sent.id().cloned());
            return Ok(StreamableHttpPostResponse::Sse(stream, session));
        }
        let is_json = is_of_type(&response, "application/json");
        let bytes = body(response, self.limit).await.map_err(told)?;
        let message = self.traffic.inbound_text(&bytes);
        match (message, sent) {
            (Some(message), _) => Ok(StreamableHttpPostResponse::Json(message, session)),
            (None, Sent::Other) => Ok(StreamableHttpPostResponse::Accepted),
            (None, _) if is_json => Err(told(Cause::Unexpected(
                "the body is no answer to the request".into(),
            ))),
            (None, _) => Err(told(Cause::Unexpected(
                "the answer is neither JSON nor an event stream".into(),
            ))),
        }
    }

    async fn refused(
        &self,
        response: Response,
        sent: &Sent,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, RmcpFailure> {
        let status = response.status();
        let headers = response.headers().clone();
        if status == StatusCode::UNAUTHORIZED
            && let Some(challenge) = challenge(&headers)
        {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
                challenge,
            )));
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let body = refusal_body(response).await;
        let is_auth = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if !is_auth && let Some(id) = sent.id() {
            // Whoever refuses before reading cannot know the `id`. It is this one.
            if let Some(error) = error_of(&body, id)
                && let Some(message) = self.traffic.inbound(error, body.len())
            {
                return Ok(StreamableHttpPostResponse::Json(message, None));
            }
            if let (Sent::Probe(id), true) = (sent, status.is_client_error())
                && status != StatusCode::TOO_MANY_REQUESTS
                && let Some(message) = self.traffic.no_era(id)
            {
                return Ok(StreamableHttpPostResponse::Json(message, None));
            }
        }
        Err(told(refused(status.as_u16(), &headers, &body)))
    }

    /// The messages of a stream, as rmcp shall read them. `id`: the request that it answers, if one.
    fn messages(
        &self,
        events: EventStream,
        id: Option<RequestId>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let traffic = Arc::clone(&self.traffic);
        let limit = self.limit;
        let next = move |mut events: EventStream| {
            let (traffic, id) = (Arc::clone(&traffic), id.clone());
            async move {
                let sse = match events.next().await? {
                    Ok(event) => Ok(sse_of(event, &traffic, id.as_ref(), limit)),
                    Err(cause) => Err(SseError::Body(Box::new(HttpFailure(cause)))),
                };
                Some((sse, events))
            }
        };
        stream::unfold(events, next).boxed()
    }
}

fn sse_of(event: Event, traffic: &Traffic, request: Option<&RequestId>, limit: usize) -> Sse {
    let written =
        |message: Option<_>| message.and_then(|message| serde_json::to_string(&message).ok());
    match event {
        Event::Whole {
            name,
            data,
            id,
            retry,
        } => {
            let is_message = name.is_empty() || name == "message";
            let data = data.filter(|_| is_message);
            let message = data.and_then(|data| traffic.inbound_text(data.as_bytes()));
            let retry = retry.map(|retry| Duration::from_millis(retry).clamp(MIN_RETRY, MAX_RETRY));
            let retry = retry.and_then(|retry| u64::try_from(retry.as_millis()).ok());
            Sse {
                event: None,
                data: written(message),
                id,
                retry,
            }
        }
        Event::TooLong { id, bytes } => {
            let id = id.and_then(|id| serde_json::from_slice(&id).ok());
            let id: Option<Value> = id.or_else(|| request.map(|id| id.clone().into_json_value()));
            let message = id.and_then(|id| {
                traffic.fail(
                    Some(&id),
                    Cause::TooLarge {
                        bytes,
                        limit: limit as u64,
                    },
                )
            });
            Sse {
                data: written(message),
                ..Sse::default()
            }
        }
    }
}

/// An error of the protocol in a body, as the answer to this request.
fn error_of(body: &[u8], id: &RequestId) -> Option<Value> {
    let mut message: Value = serde_json::from_slice(body).ok()?;
    let is_error =
        message.get("jsonrpc").is_some() && message.get("error").is_some_and(Value::is_object);
    if !is_error {
        return None;
    }
    *message.get_mut("jsonrpc")? = "2.0".into();
    message
        .as_object_mut()?
        .insert("id".into(), id.clone().into_json_value());
    Some(message)
}

/// The protocol's own headers, in place of whatever was configured under their names.
fn with_headers(
    request: RequestBuilder,
    session: Option<&str>,
    headers: HashMap<HeaderName, HeaderValue>,
    own: &[(&'static str, &'static str)],
) -> RequestBuilder {
    let mut headers: HeaderMap = headers.into_iter().collect();
    for (name, value) in own {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    if let Some(session) = session.and_then(|session| HeaderValue::try_from(session).ok()) {
        headers.insert(SESSION, session);
    }
    request.headers(headers)
}

pub(crate) fn is_of_type(response: &Response, kind: &str) -> bool {
    let given = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    given
        .split(';')
        .next()
        .is_some_and(|given| given.trim().eq_ignore_ascii_case(kind))
}

impl StreamableHttpClient for Streamable {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, RmcpFailure> {
        let ClientJsonRpcMessage::Request(request) = &message else {
            let is_begun = matches!(&message, ClientJsonRpcMessage::Notification(it)
                if matches!(it.notification, ClientNotification::InitializedNotification(_)));
            if is_begun && session.is_some() {
                self.notices.await_stream();
            }
            return self.post(message, session, headers).await;
        };
        let id = request.id.clone();
        // rmcp waits for these without an end.
        let limit = match &request.request {
            ClientRequest::DiscoverRequest(_) => self.probe,
            ClientRequest::InitializeRequest(_) => self.opening,
            _ => {
                self.notices.ready().await;
                return self.post(message, session, headers).await;
            }
        };
        let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        match tokio::time::timeout(limit, self.whole(message, session, headers)).await {
            Ok(answer) => answer,
            Err(_) => match self.traffic.no_era(&id).filter(|_| is_probe) {
                Some(message) => Ok(StreamableHttpPostResponse::Json(message, None)),
                None => Err(told(Cause::TimedOut {
                    limit,
                    setting: "connect_timeout",
                })),
            },
        }
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, RmcpFailure> {
        let is_first = last_event.is_none();
        let own = [("accept", "text/event-stream")];
        let request = self.client.home(Method::GET);
        let mut request = with_headers(request, session.as_deref(), headers, &own);
        if let Some(last_event) = last_event.and_then(|id| HeaderValue::try_from(id).ok()) {
            request = request.header("last-event-id", last_event);
        }
        let timed_out = || {
            told(Cause::TimedOut {
                limit: self.opening,
                setting: "connect_timeout",
            })
        };
        let response = tokio::time::timeout(self.opening, self.client.send(request)).await;
        if is_first {
            self.notices.settle();
        }
        let response = response.map_err(|_| timed_out())?.map_err(told)?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() {
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            return Err(told(refused(status, &headers, &[])));
        }
        if !is_of_type(&response, "text/event-stream") {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(self.messages(EventStream::of(response, self.limit), None))
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), RmcpFailure> {
        let request = with_headers(
            self.client.home(Method::DELETE),
            Some(&session),
            headers,
            &[],
        );
        // A server that does not want to know forgets by itself.
        self.client.send(request).await.map(|_| ()).map_err(told)
    }
}

impl Streamable {
    /// The whole answer to an opening request, so that its time limit covers a stream as well.
    async fn whole(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, RmcpFailure> {
        let (mut events, session) = match self.post(message, session, headers).await? {
            StreamableHttpPostResponse::Sse(events, session) => (events, session),
            answer => return Ok(answer),
        };
        while let Some(event) = events.next().await {
            // What stands before the answer is of no use in an opening.
            let message = event?
                .data
                .and_then(|data| serde_json::from_str(&data).ok());
            if let Some(
                message @ (ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)),
            ) = message
            {
                return Ok(StreamableHttpPostResponse::Json(message, session));
            }
        }
        Err(told(Cause::Unexpected(
            "the stream ended without an answer".into(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_to_a_minute_and_never_ends() {
        let wait = |times| Patience.retry(times).unwrap().as_secs_f64();
        assert!((0.8..=1.2).contains(&wait(0)));
        assert!((6.4..=9.6).contains(&wait(3)));
        assert!((48.0..=72.0).contains(&wait(usize::MAX)));
    }
}
