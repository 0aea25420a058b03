//! An answer that is passed on as it is.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream;
use haft_core::ModelError;
use reqwest::header::CONTENT_TYPE;

use super::answer::Answer;
use super::redact::Redacting;
use super::{Body, Redactor, Timeouts, failure, retry_after};

/// A provider's answer, whatever it says, to be handed to somebody else.
///
/// The endpoint's secrets are taken out: providers repeat keys that they do not like, also in an error
/// with a status of success. All other bytes of a success pass as they are. Of a refusal at most 64 KiB
/// are kept.
pub struct Forwarded {
    /// The HTTP status.
    pub status: u16,
    /// What the answer says that it is, with its parameters.
    pub content_type: Option<String>,
    /// How long the provider asks to wait before the next try.
    pub retry_after: Option<Duration>,
    /// The bytes. Each wait for the next has its limit, and so has their number; an error is the
    /// last thing that comes.
    pub body: ByteStream,
    failure: Option<ModelError>,
}

/// Bytes as they come.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, ModelError>> + Send>>;

impl fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarded")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .field("retry_after", &self.retry_after)
            .finish_non_exhaustive()
    }
}

impl Forwarded {
    /// Whether the provider did what it was asked.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What the answer means if it is a refusal.
    pub fn failure(&self) -> Option<&ModelError> {
        self.failure.as_ref()
    }

    /// The same answer, with something done to what it means as a refusal.
    pub(super) fn map_failure(mut self, change: impl FnOnce(ModelError) -> ModelError) -> Self {
        self.failure = self.failure.map(change);
        self
    }

    pub(super) async fn of(answer: Answer, timeouts: Timeouts, redactor: Redactor) -> Self {
        let status = answer.status;
        let content_type = answer.header(CONTENT_TYPE);
        let content_type = content_type.map(|kind| redactor.clean(kind.to_owned()));
        let retry_after = retry_after::read(&answer.headers, SystemTime::now());
        let body = Body::new(answer, timeouts, redactor.clone());
        let mut failure = None;
        let body: ByteStream = if status.is_success() {
            let reading = Reading {
                body,
                redacting: Redacting::new(redactor),
                broken: None,
            };
            Box::pin(stream::unfold(Some(reading), Reading::next))
        } else {
            let text = failure::bounded(body, &redactor).await;
            let mut error = failure::of_body(status.as_u16(), &text);
            error.retry_after = retry_after;
            failure = Some(failure::finished(error, &redactor));
            let text = redactor.clean(String::from_utf8_lossy(&text).into_owned());
            Box::pin(stream::iter([Ok(Bytes::from(text))]))
        };
        Self {
            status: status.as_u16(),
            content_type,
            retry_after,
            body,
            failure,
        }
    }
}

/// A body that is passed on, without secrets.
struct Reading {
    body: Body,
    redacting: Redacting,
    /// The error that follows the bytes that were held back.
    broken: Option<ModelError>,
}

impl Reading {
    async fn next(reading: Option<Self>) -> Option<(Result<Bytes, ModelError>, Option<Self>)> {
        let mut reading = reading?;
        if let Some(error) = reading.broken.take() {
            return Some((Err(error), None));
        }
        loop {
            let (rest, end) = match reading.body.chunk().await {
                Ok(Some(chunk)) => {
                    let chunk = reading.redacting.pass(chunk);
                    if chunk.is_empty() {
                        continue;
                    }
                    return Some((Ok(chunk), Some(reading)));
                }
                Ok(None) => (reading.redacting.finish(), None),
                Err(error) => (reading.redacting.finish(), Some(error)),
            };
            return match (rest.is_empty(), end) {
                (true, None) => None,
                (true, Some(error)) => Some((Err(error), None)),
                (false, None) => Some((Ok(rest), None)),
                (false, broken) => Some((Ok(rest), Some(Self { broken, ..reading }))),
            };
        }
    }
}
