//! An answer, piece by piece.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use haft_core::{ModelError, ModelErrorKind};
use tokio::time::{Instant, Sleep, sleep_until};

use super::answer::Answer;
use super::client::too_slow;
use super::{ByteStream, Redactor, Timeouts};

/// The largest body that is read as a whole. A stream of events may be longer: each event repeats its envelope.
const MAX_WHOLE_BYTES: u64 = 64 * 1024 * 1024;

/// A limit beyond every wait, where the one that was set cannot be counted.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// The bytes of a successful answer. Every wait for the next piece has its limit, and so has the
/// size of all.
pub struct Body {
    pieces: ByteStream,
    content_type: String,
    timeouts: Timeouts,
    redactor: Redactor,
    left: u64,
    /// Since when the next piece is waited for.
    waiting: Option<Instant>,
    /// One timer for all waits: it is set anew when it goes off too early, not for every piece.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Body {
    pub(super) fn new(answer: Answer, timeouts: Timeouts, redactor: Redactor) -> Self {
        Self {
            content_type: answer.content_type().to_owned(),
            pieces: answer.pieces,
            timeouts,
            redactor,
            left: timeouts.max_body_bytes,
            waiting: None,
            timer: None,
        }
    }

    /// What the answer says it is, without parameters: `text/event-stream`.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// What takes the endpoint's secrets out of texts.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Waits for the next piece at most so long from now on.
    pub fn wait_at_most(&mut self, idle: Duration) {
        self.timeouts.idle = self.timeouts.idle.min(idle);
    }

    /// The next piece; none at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// The same, for whoever polls.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ModelError>> {
        let Poll::Ready(piece) = self.pieces.as_mut().poll_next(cx) else {
            return self.poll_patience(cx).map(Err);
        };
        self.waiting = None;
        Poll::Ready(match piece {
            Some(Ok(piece)) => self.count(&piece).map(|()| Some(piece)),
            Some(Err(error)) => Err(self.redactor.clean_error(error)),
            None => Ok(None),
        })
    }

    /// Ready with an error when the wait for the next piece has lasted too long.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<ModelError> {
        let idle = self.timeouts.idle;
        let since = *self.waiting.get_or_insert_with(Instant::now);
        let limit = since.checked_add(idle).unwrap_or(since + FOREVER);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(limit)));
        if timer.deadline() > limit {
            timer.as_mut().reset(limit);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= limit {
                return Poll::Ready(too_slow("the answer did not go on", idle));
            }
            timer.as_mut().reset(limit);
        }
        Poll::Pending
    }

    fn count(&mut self, piece: &Bytes) -> Result<(), ModelError> {
        let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(length).ok_or_else(|| {
            ModelError::new(ModelErrorKind::Protocol, "backend response too large")
        })?;
        Ok(())
    }

    /// The whole body, of at most 64 MiB: it is held in memory until it is parsed.
    pub async fn whole(mut self) -> Result<Bytes, ModelError> {
        self.left = self.left.min(MAX_WHOLE_BYTES);
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.chunk().await? else {
            return Ok(first);
        };
        let mut whole = BytesMut::from(first);
        whole.extend_from_slice(&second);
        while let Some(chunk) = self.chunk().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("content_type", &self.content_type)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
