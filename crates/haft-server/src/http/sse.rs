//! Streams of server-sent events: each frame leaves as one chunk.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use crate::drive::{Follower, Signal};
use crate::error::{ApiError, ErrorCode};
use crate::stream::{DONE_FRAME, Dialect, KEEP_ALIVE_FRAME, WireEvent, sse_frame};

/// Answers with the events of a run. What fails before the model shows a sign is told by its status.
pub(super) async fn answer(
    mut follower: Follower,
    dialect: Dialect,
    wait: Duration,
    keep_alive: Duration,
) -> Result<Response, ApiError> {
    let mut first = Vec::new();
    let deadline = Instant::now() + wait;
    let mut is_over = false;
    loop {
        match timeout_at(deadline, follower.next()).await {
            Ok(Some(Signal::Events(events))) => first.extend(events),
            // If the run was refused in this very moment, that is what comes next.
            Ok(Some(Signal::Answering)) | Err(_) if follower.commitment.begin() => break,
            Ok(Some(Signal::Answering)) => {}
            Ok(Some(Signal::Refused(error))) => return Err(*error),
            Ok(Some(Signal::Ended(_))) => {
                is_over = true;
                break;
            }
            Ok(None) => {
                let message = "the run broke off without saying why";
                return Err(ApiError::new(ErrorCode::ServerError, message));
            }
            // The one who says so must get his turn.
            Err(_) => tokio::task::yield_now().await,
        }
    }
    let frames = first.iter().map(|event| sse_frame(event, dialect));
    let mut frames: VecDeque<Bytes> = frames.collect();
    if is_over {
        frames.push_back(Bytes::from_static(DONE_FRAME));
    }
    Ok(stream(Frames {
        source: Following(follower),
        dialect,
        waiting: frames,
        is_over,
        silence: Silence::new(keep_alive),
    }))
}

/// A response whose body are these frames.
pub(super) fn stream<S: Source>(frames: Frames<S>) -> Response {
    response(frames)
}

/// A response whose body are these chunks, each a frame.
pub(super) fn response(
    frames: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    forbid_buffering(headers);
    response
}

/// Asks whoever stands between to pass each frame on at once.
pub(super) fn forbid_buffering(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

/// Where events come from.
pub(super) trait Source: Send + Unpin + 'static {
    /// More events; none after the last.
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<WireEvent>>>;
}

struct Following(Follower);

impl Source for Following {
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<WireEvent>>> {
        loop {
            match ready!(self.0.poll_next(cx)) {
                Some(Signal::Events(events)) => return Poll::Ready(Some(events)),
                Some(Signal::Answering) => {}
                Some(Signal::Refused(_) | Signal::Ended(_)) | None => return Poll::Ready(None),
            }
        }
    }
}

/// Events as frames, with a sign of life where nothing happens, and the mark of the end.
pub(super) struct Frames<S> {
    source: S,
    dialect: Dialect,
    waiting: VecDeque<Bytes>,
    is_over: bool,
    silence: Silence,
}

impl<S: Source> Frames<S> {
    pub(super) fn new(source: S, dialect: Dialect, keep_alive: Duration) -> Self {
        Self {
            source,
            dialect,
            waiting: VecDeque::new(),
            is_over: false,
            silence: Silence::new(keep_alive),
        }
    }
}

impl<S: Source> Stream for Frames<S> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(frame) = this.waiting.pop_front() {
                this.silence.since = None;
                return Poll::Ready(Some(Ok(frame)));
            }
            if this.is_over {
                return Poll::Ready(None);
            }
            match this.source.poll_events(cx) {
                Poll::Ready(Some(events)) => {
                    let dialect = this.dialect;
                    let frames = events.iter().map(|event| sse_frame(event, dialect));
                    this.waiting.extend(frames);
                }
                Poll::Ready(None) => {
                    this.is_over = true;
                    this.waiting.push_back(Bytes::from_static(DONE_FRAME));
                }
                Poll::Pending => {
                    ready!(this.silence.poll(cx));
                    this.waiting.push_back(Bytes::from_static(KEEP_ALIVE_FRAME));
                }
            }
        }
    }
}

/// The time in which nothing is said.
struct Silence {
    limit: Duration,
    /// When it began; none while something is said.
    since: Option<Instant>,
    /// One timer for all of them: it is set anew when it goes off too early, not for every frame.
    timer: Pin<Box<Sleep>>,
}

impl Silence {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: None,
            timer: Box::pin(sleep(limit)),
        }
    }

    /// Ready when it has lasted too long.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let end = *self.since.get_or_insert_with(Instant::now) + self.limit;
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if self.timer.deadline() >= end {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(end);
        }
    }
}
