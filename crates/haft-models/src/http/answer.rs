//! An answer that begins: its head, and its body as it comes.

use futures_util::StreamExt as _;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap};

use super::ByteStream;
use super::client::transport_error;

/// An answer whose body nobody has read, whichever way it came.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) pieces: ByteStream,
}

impl Answer {
    /// What a header says, if it is text.
    pub(super) fn header(&self, name: reqwest::header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What it says that it is, without parameters: `text/event-stream`.
    pub(super) fn content_type(&self) -> &str {
        let value = self.header(CONTENT_TYPE).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim()
    }
}

impl From<reqwest::Response> for Answer {
    fn from(mut response: reqwest::Response) -> Self {
        Self {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            pieces: Box::pin(
                response
                    .bytes_stream()
                    .map(|piece| piece.map_err(transport_error)),
            ),
        }
    }
}
