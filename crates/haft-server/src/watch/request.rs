//! One request under watch, from its head to the last byte of its answer.
//!
//! Whatever becomes of it, it is counted once and leaves one line in the access log: when its body
//! is through, when its client has gone, when nobody answered.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::HttpBody as _;
use axum::extract::{ConnectInfo, MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use haft_core::Usage;
use tracing::Span;

use super::Watch;
use super::access_log;
use super::body::Counted;
use super::metrics::{Name, RequestLabels, RouteLabels, Word};
use super::spans::{Place, RequestSpan};
use crate::access::Pass;
use crate::app::Caller;

/// The status of a request whose client went away before it was answered.
const CLIENT_GONE: u16 = 499;

/// What the access log calls a path that there is not.
const NO_ROUTE: &str = "unmatched";

/// The method under which messages of a `WebSocket` are counted.
const WEBSOCKET: Word = "WS";

/// What a request's run says about it, for its line in the log, and where in a trace it belongs.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestWatch {
    notes: Arc<Mutex<Notes>>,
    place: Place,
    client: Option<IpAddr>,
    traceparent: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    pub(super) response_id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// A request that is over.
pub(super) struct RequestEnd<'e> {
    pub(super) method: Word,
    pub(super) route: &'e str,
    pub(super) status: u16,
    pub(super) elapsed: Duration,
    pub(super) bytes: u64,
    pub(super) is_cut: bool,
    pub(super) request_id: &'e str,
    pub(super) tenant: Option<&'e str>,
    /// The id of the key.
    pub(super) key: Option<&'e str>,
    pub(super) client: Option<IpAddr>,
}

impl RequestWatch {
    /// For something that no request began.
    pub(super) fn unasked(place: Place) -> Self {
        Self {
            place,
            ..Self::default()
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The value of `traceparent` for what happens in it; none where it is not recorded.
    pub(crate) fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// A model will answer it.
    pub(super) fn asks(&self, model: &str) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.model = Some(model.to_owned());
    }

    /// A run will answer it.
    pub(super) fn runs(&self, response_id: &str, model: &str) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.response_id = Some(response_id.to_owned());
        notes.model = Some(model.to_owned());
    }

    /// The run has ended at this cost.
    pub(super) fn ran(&self, usage: &Usage) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.usage = Some(*usage);
    }

    fn notes(&self) -> Notes {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.clone()
    }
}

/// A request that is being answered.
pub(crate) struct Watched {
    watch: Arc<Watch>,
    notes: RequestWatch,
    span: RequestSpan,
    started: Instant,
    route: Name,
    method: Word,
    request_id: String,
    client: Option<IpAddr>,
    pass: Option<Pass>,
    status: u16,
    bytes: u64,
    is_stream: bool,
    is_cut: bool,
}

impl Watched {
    /// A request over HTTP begins.
    pub(super) fn new(watch: &Arc<Watch>, request: &Request, request_id: &str) -> Self {
        let extensions = request.extensions();
        let route = extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        let client = extensions.get::<ConnectInfo<std::net::SocketAddr>>();
        let method = method_word(request.method());
        let span = watch.tracer.request(request.headers());
        let route = route.unwrap_or(NO_ROUTE);
        let mut watched = Self::begin(watch, span, route, method, request_id);
        watched.come_from(client.map(|ConnectInfo(address)| address.ip()));
        watched
    }

    fn come_from(&mut self, client: Option<IpAddr>) {
        self.client = client;
        self.notes.client = client;
    }

    /// A message in a WebSocket asks for a response.
    pub(super) fn message(watch: &Arc<Watch>, caller: &Caller, opening: &RequestWatch) -> Self {
        let span = watch.tracer.message(opening.place);
        let id = &caller.request_id;
        let mut watched = Self::begin(watch, span, "/v1/responses", WEBSOCKET, id);
        watched.pass = Some(caller.pass.clone());
        watched.come_from(opening.client);
        watched
    }

    fn begin(
        watch: &Arc<Watch>,
        span: RequestSpan,
        route: &str,
        method: Word,
        request_id: &str,
    ) -> Self {
        watch.metrics.meters.active_requests.inc();
        Self {
            watch: Arc::clone(watch),
            notes: RequestWatch {
                traceparent: span.traceparent(),
                ..RequestWatch::unasked(span.place())
            },
            span,
            started: Instant::now(),
            route: watch.routes.name(route),
            method,
            request_id: request_id.to_owned(),
            client: None,
            pass: None,
            status: CLIENT_GONE,
            bytes: 0,
            is_stream: false,
            is_cut: false,
        }
    }

    /// For those who answer it, to say who they are.
    pub(crate) fn notes(&self) -> RequestWatch {
        self.notes.clone()
    }

    /// It is known who asks.
    pub(crate) fn asked_by(&mut self, caller: &Caller) {
        self.pass = Some(caller.pass.clone());
    }

    /// It was answered, in another way than by a body.
    pub(crate) fn answered(mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    /// This is the answer. It is watched to its end; what is logged meanwhile belongs into the span.
    pub(crate) fn answer(mut self, response: Response, span: Span) -> Response {
        self.status = response.status().as_u16();
        let size = response.body().size_hint().exact();
        let is_through = size.is_some() || response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if is_through {
            self.bytes = size.unwrap_or(0);
            return response;
        }
        self.is_stream = true;
        self.watch.metrics.meters.active_streams.inc();
        response.map(|body| Counted::new(body, self, span).into_body())
    }

    /// A piece of the answer left.
    pub(super) fn passed(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// The answer was not taken to its end.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let elapsed = self.started.elapsed();
        let meters = &self.watch.metrics.meters;
        meters.active_requests.dec();
        if self.is_stream {
            meters.active_streams.dec();
        }
        let labels = RequestLabels {
            route: self.route.clone(),
            method: self.method,
            status: self.status,
        };
        meters.requests.get_or_create(&labels).inc();
        let labels = RouteLabels {
            route: labels.route,
            method: self.method,
        };
        let seconds = elapsed.as_secs_f64();
        meters
            .request_seconds
            .get_or_create(&labels)
            .observe(seconds);
        let end = RequestEnd {
            method: self.method,
            route: &self.route.0,
            status: self.status,
            elapsed,
            bytes: self.bytes,
            is_cut: self.is_cut,
            request_id: &self.request_id,
            tenant: self.pass.as_ref().map(|pass| pass.owner().as_str()),
            key: self.pass.as_ref().map(Pass::key_id),
            client: self.client,
        };
        self.span.end(&end);
        if self.watch.options.access_log {
            access_log::write(&end, &self.notes.notes());
        }
    }
}

/// The methods that there are; a client's own word is none of them.
fn method_word(method: &Method) -> Word {
    const KNOWN: [&str; 7] = ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"];
    let known = KNOWN.into_iter().find(|known| *known == method.as_str());
    known.unwrap_or("OTHER")
}
