//! An answer, piece by piece.

use bytes::{Bytes, BytesMut};
use haft_core::{ModelError, ModelErrorKind};
use reqwest::Response;

use super::client::{too_slow, transport_error};
use super::{Redactor, Timeouts};

/// The bytes of a successful answer. Every wait for the next piece has its limit, and so has the
/// size of all.
#[derive(Debug)]
pub struct Body {
    response: Response,
    timeouts: Timeouts,
    redactor: Redactor,
    left: u64,
}

impl Body {
    pub(super) fn new(response: Response, timeouts: Timeouts, redactor: Redactor) -> Self {
        Self {
            response,
            timeouts,
            redactor,
            left: timeouts.max_body_bytes,
        }
    }

    /// What the answer says it is, without parameters: `text/event-stream`.
    pub fn content_type(&self) -> &str {
        let header = self.response.headers().get(reqwest::header::CONTENT_TYPE);
        let value = header.and_then(|value| value.to_str().ok()).unwrap_or("");
        value.split(';').next().unwrap_or_default().trim()
    }

    /// What takes the endpoint's secrets out of texts.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Waits for the next piece at most so long from now on.
    pub fn wait_at_most(&mut self, idle: std::time::Duration) {
        self.timeouts.idle = self.timeouts.idle.min(idle);
    }

    /// The next piece; none at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let idle = self.timeouts.idle;
        let chunk = match tokio::time::timeout(idle, self.response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Err(self.redactor.clean_error(transport_error(error))),
            Err(_) => return Err(too_slow("the answer did not go on", idle)),
        };
        if let Some(chunk) = &chunk {
            let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            self.left = self.left.checked_sub(length).ok_or_else(|| {
                ModelError::new(
                    ModelErrorKind::Protocol,
                    format!(
                        "the answer has more than {} bytes",
                        self.timeouts.max_body_bytes
                    ),
                )
            })?;
        }
        Ok(chunk)
    }

    /// All of it.
    pub async fn whole(mut self) -> Result<Bytes, ModelError> {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }
}
