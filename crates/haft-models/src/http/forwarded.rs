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
use super::{Body, Redactor, Timeouts, failure, retry_after};

/// A provider's answer, whatever it says, to be handed to somebody else.
///
/// A success passes byte for byte. Of a refusal at most 64 KiB are kept, without the endpoint's
/// secrets: providers repeat keys that they do not like.
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
        let content_type = answer.header(CONTENT_TYPE).map(str::to_owned);
        let retry_after = retry_after::read(&answer.headers, SystemTime::now());
        let body = Body::new(answer, timeouts, redactor.clone());
        let mut failure = None;
        let body: ByteStream = if status.is_success() {
            Box::pin(stream::unfold(Some(body), |body| async move {
                let mut body = body?;
                match body.chunk().await {
                    Ok(Some(chunk)) => Some((Ok(chunk), Some(body))),
                    Ok(None) => None,
                    Err(error) => Some((Err(error), None)),
                }
            }))
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
