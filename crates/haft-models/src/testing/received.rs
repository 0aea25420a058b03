//! What arrived at the server.

use std::fmt;

use bytes::Bytes;
use hyper::HeaderMap;
use serde_json::Value;

use super::protocol::Protocol;
use crate::scripted::RequestView;

/// One request as it arrived. Headers that carry credentials only say `present`.
#[derive(Clone)]
pub struct ReceivedRequest {
    /// Which protocol it spoke.
    pub protocol: Protocol,
    /// Its headers, in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it came, byte for byte.
    pub raw: Bytes,
    /// The body as JSON; null if it is none.
    pub body: Value,
    /// What it says, whichever protocol it speaks.
    pub view: RequestView,
}

impl ReceivedRequest {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(key, _)| key == name)?;
        Some(value)
    }
}

impl fmt::Debug for ReceivedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedRequest")
            .field("protocol", &self.protocol)
            .field("headers", &self.headers)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

/// The headers, with credentials only as present.
pub(super) fn shown(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let name = name.as_str().to_owned();
            let value = if is_secret(&name) {
                "present".to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            (name, value)
        })
        .collect()
}

fn is_secret(name: &str) -> bool {
    const SIGNS: [&str; 5] = ["auth", "key", "token", "secret", "cookie"];
    SIGNS.iter().any(|sign| name.contains(sign))
}
