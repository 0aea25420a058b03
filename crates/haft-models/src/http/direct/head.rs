//! The head of a request as it is written, and of an answer as it is read.

use std::mem::MaybeUninit;

use bytes::{Buf as _, BytesMut};
use httparse::{ParserConfig, Status};
use reqwest::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING, USER_AGENT,
};
use reqwest::{StatusCode, Url};

use super::error::WireError;
use super::framing::{Chunk, Framing};
use super::place;
use crate::http::client::{AGENT, JSON};

/// How many bytes may come before the body of an answer.
pub(super) const MAX_HEAD_BYTES: usize = 128 * 1024;

/// How many headers it may have.
const MAX_HEADERS: usize = 100;

/// A request but for its body and its address.
pub(in crate::http) struct Letter<'r> {
    /// The endpoint's headers. Those that say where and how much are not taken from here.
    pub(in crate::http) headers: &'r HeaderMap,
    pub(in crate::http) accept: &'static str,
}

impl Letter<'_> {
    /// Everything that stands in front of a body of so many bytes.
    pub(super) fn head(&self, url: &Url, body_bytes: usize) -> Vec<u8> {
        let mut head = Vec::with_capacity(512);
        head.extend_from_slice(b"POST ");
        head.extend_from_slice(url.path().as_bytes());
        if let Some(query) = url.query() {
            head.push(b'?');
            head.extend_from_slice(query.as_bytes());
        }
        head.extend_from_slice(b" HTTP/1.1\r\n");
        let mut write = |name: &HeaderName, value: &[u8]| {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        };
        write(&HOST, place(url).as_bytes());
        for (name, value) in self.headers {
            if ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
                write(name, value.as_bytes());
            }
        }
        for (name, value) in [(CONTENT_TYPE, JSON), (USER_AGENT, AGENT)] {
            if !self.headers.contains_key(&name) {
                write(&name, value.as_bytes());
            }
        }
        write(&ACCEPT, self.accept.as_bytes());
        write(&CONTENT_LENGTH, body_bytes.to_string().as_bytes());
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    /// Whether the connection can be used again behind the body.
    pub(super) keeps_open: bool,
}

impl Head {
    /// Takes a head from what has come; none if it is not whole yet.
    pub(super) fn take(buffer: &mut BytesMut) -> Result<Option<Self>, WireError> {
        while !buffer.is_empty() {
            let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
            let mut parsed = httparse::Response::new(&mut []);
            let parser = ParserConfig::default();
            let read = parser.parse_response_with_uninit_headers(&mut parsed, buffer, &mut headers);
            let length = match read {
                Ok(Status::Complete(length)) => length,
                Ok(Status::Partial) => return Ok(None),
                Err(_) if is_tls(buffer) => return Err(WireError::NotHttp(TLS_RECORD)),
                Err(error) => return Err(not_http(error)),
            };
            let status = parsed.code.unwrap_or_default();
            // What comes before the answer says nothing that anybody asked for.
            if matches!(status, 100..=199) && status != 101 {
                buffer.advance(length);
                continue;
            }
            let head = Self::of(status, parsed.version, parsed.headers)?;
            buffer.advance(length);
            return Ok(Some(head));
        }
        Ok(None)
    }

    fn of(
        status: u16,
        version: Option<u8>,
        parsed: &[httparse::Header<'_>],
    ) -> Result<Self, WireError> {
        let status = StatusCode::from_u16(status);
        let status = status.map_err(|_| WireError::NotHttp("it has no status"))?;
        let mut headers = HeaderMap::with_capacity(parsed.len());
        for header in parsed {
            let name = HeaderName::from_bytes(header.name.as_bytes());
            let name = name.map_err(|_| WireError::NotHttp("a header has no name"))?;
            let value = HeaderValue::from_bytes(header.value);
            let value = value.map_err(|_| WireError::NotHttp("a header has no value"))?;
            headers.append(name, value);
        }
        let framing = framing(status, &headers)?;
        let is_kept_by_itself = version == Some(1);
        // Two ways to find the end, or one that the version does not know: somebody on the way may have
        // taken the other, and what follows be somebody else's answer.
        let is_doubtful = headers.contains_key(TRANSFER_ENCODING)
            && (headers.contains_key(CONTENT_LENGTH) || !is_kept_by_itself);
        let keeps_open = match connection(&headers) {
            Some(Wish::Close) => false,
            Some(Wish::KeepOpen) => true,
            None => is_kept_by_itself,
        };
        let keeps_open =
            keeps_open && !is_doubtful && !framing.may_end_here() && status.as_u16() != 101;
        Ok(Self {
            status,
            headers,
            framing,
            keeps_open,
        })
    }
}

/// What an answer says that is to become of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Close,
    KeepOpen,
}

fn connection(headers: &HeaderMap) -> Option<Wish> {
    let mut wish = None;
    for word in words(headers, &CONNECTION) {
        if word.eq_ignore_ascii_case(b"close") {
            return Some(Wish::Close);
        }
        if word.eq_ignore_ascii_case(b"keep-alive") {
            wish = Some(Wish::KeepOpen);
        }
    }
    wish
}

/// The body that follows (RFC 9112, 6.3).
fn framing(status: StatusCode, headers: &HeaderMap) -> Result<Framing, WireError> {
    if matches!(status.as_u16(), 100..=199 | 204 | 304) {
        return Ok(Framing::Length(0));
    }
    let mut codings = words(headers, &TRANSFER_ENCODING);
    match (codings.next(), codings.next()) {
        (None, _) => {}
        (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => {
            return Ok(Framing::Chunked(Chunk::Size));
        }
        (Some(coding), None) if coding.eq_ignore_ascii_case(b"identity") => {
            return Ok(Framing::UntilClosed);
        }
        _ => return Err(WireError::NotHttp("it is coded as nobody asked for")),
    }
    let mut length = None;
    for word in words(headers, &CONTENT_LENGTH) {
        let count = count(word).ok_or(WireError::NotHttp("its length is no number"))?;
        if length.is_some_and(|before| before != count) {
            return Err(WireError::NotHttp("it has two lengths"));
        }
        length = Some(count);
    }
    Ok(length.map_or(Framing::UntilClosed, Framing::Length))
}

/// Digits and nothing else: a sign would be taken for a number elsewhere.
fn count(word: &[u8]) -> Option<u64> {
    let is_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let word = std::str::from_utf8(word).ok().filter(|_| is_number)?;
    word.parse().ok()
}

/// The members of a list, from all headers of this name.
fn words<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let values = headers.get_all(name).into_iter();
    values.flat_map(|value| {
        value
            .as_bytes()
            .split(|byte| *byte == b',')
            .map(<[u8]>::trim_ascii)
    })
}

/// Why an answer of a server that expects TLS is not HTTP.
pub(in crate::http) const TLS_RECORD: &str = "it is a TLS record";

/// Whether an answer begins like a record of TLS (RFC 8446, section 5.1): most servers send an alert to a
/// client that does not begin with a handshake.
fn is_tls(answer: &[u8]) -> bool {
    matches!(answer, [20..=24, 3, ..])
}

fn not_http(error: httparse::Error) -> WireError {
    WireError::NotHttp(match error {
        httparse::Error::HeaderName => "a header has no name",
        httparse::Error::HeaderValue => "a header has no value",
        httparse::Error::NewLine => "a line does not end",
        httparse::Error::Status => "it has no status",
        httparse::Error::Token => "its first line is none",
        httparse::Error::TooManyHeaders => "it has too many headers",
        httparse::Error::Version => "its version is another",
    })
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
