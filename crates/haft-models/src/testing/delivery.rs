//! How an answer leaves the server: in which chunks, and with which fault.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::protocol::Protocol;
use super::render::Rendered;
use crate::scripted::{Chunks, Fault};

/// What the server does with a request.
#[derive(Debug, PartialEq)]
pub(super) enum Delivery {
    /// It hangs up.
    Close,
    /// It says nothing.
    Hang,
    /// It answers.
    Send(Reply),
}

/// An answer on its way out.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) chunks: Vec<Bytes>,
    /// The wait before each chunk.
    pub(super) delay: Duration,
    pub(super) end: End,
}

/// How the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Break,
    Hang,
}

/// Bytes that are no event in any protocol, nor UTF-8.
const GARBAGE: &[u8] = b"data: {\"broken\": \xff\xfe]]\n\n";

const HTML: &str = "<!DOCTYPE html>\n<html><head><title>Bad gateway</title></head>\
    <body><h1>Bad gateway</h1><hr>nginx</body></html>\n";

impl Reply {
    /// A JSON body in one piece.
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    fn text(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            chunks: vec![body.into()],
            delay: Duration::ZERO,
            end: End::Whole,
        }
    }
}

/// What to do with a request that the script answers so; an error is one of the script itself.
pub(super) fn deliver(rendered: &Rendered<'_>) -> Result<Delivery, String> {
    let (protocol, step) = (rendered.protocol, &rendered.answer.step);
    match &step.fault {
        Some(Fault::Closed) => return Ok(Delivery::Close),
        Some(Fault::Hang) => return Ok(Delivery::Hang),
        Some(Fault::Html(status)) => {
            let page = Reply::text(*status, "text/html; charset=utf-8", HTML);
            return Ok(Delivery::Send(page));
        }
        Some(Fault::Status {
            code,
            body,
            headers,
        }) => {
            let mut reply = match body {
                Some(Value::String(text)) => Reply::text(*code, "text/plain", text.clone()),
                Some(body) => Reply::json(*code, body),
                None => Reply::json(
                    *code,
                    &protocol.error_body(*code, None, "the script says so"),
                ),
            };
            // A header of the script's own takes the place of the usual one.
            let named = |name: &str| headers.keys().any(|key| key.eq_ignore_ascii_case(name));
            reply.headers.retain(|(name, _)| !named(name));
            reply.headers.extend(headers.clone());
            return Ok(Delivery::Send(reply));
        }
        _ => {}
    }
    let is_streamed = protocol.is_streamed(rendered.request);
    let mut events: Vec<Bytes> = if is_streamed {
        rendered.events()?.into_iter().map(Bytes::from).collect()
    } else {
        vec![rendered.whole()?.to_string().into()]
    };
    if let (false, Some(Fault::ErrorEvent { code, message, .. })) = (is_streamed, &step.fault) {
        let body = protocol.error_body(500, code.as_deref(), message);
        return Ok(Delivery::Send(Reply::json(500, &body)));
    }
    let end = apply(step.fault.as_ref(), rendered, &mut events);
    let content_type = if is_streamed {
        protocol.stream_type()
    } else {
        "application/json"
    };
    let mut headers = vec![("content-type".to_owned(), content_type.to_owned())];
    if is_streamed {
        headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
    }
    let id_header = match protocol {
        Protocol::Messages => Some("request-id"),
        Protocol::ChatCompletions | Protocol::Responses => Some("x-request-id"),
        Protocol::Ollama => None,
    };
    let id = format!("req_script_{}", rendered.answer.number);
    headers.extend(id_header.map(|name| (name.to_owned(), id)));
    Ok(Delivery::Send(Reply {
        status: 200,
        headers,
        chunks: chunked(events, &step.chunks),
        delay: Duration::from_millis(step.delay_ms),
        end,
    }))
}

/// Lets happen to the events what the fault says.
fn apply(fault: Option<&Fault>, rendered: &Rendered<'_>, events: &mut Vec<Bytes>) -> End {
    match fault {
        Some(Fault::CutAfterEvents(count)) => {
            events.truncate(*count);
            End::Break
        }
        Some(Fault::CutAfterBytes(bytes)) => {
            let mut left = *bytes;
            for event in events.iter_mut() {
                event.truncate(left);
                left -= event.len();
            }
            events.retain(|event| !event.is_empty());
            End::Break
        }
        Some(Fault::EndAfterEvents(count)) => {
            events.truncate(*count);
            End::Whole
        }
        Some(Fault::HangAfterEvents(count)) => {
            events.truncate(*count);
            End::Hang
        }
        Some(Fault::ErrorEvent {
            after_events,
            code,
            message,
        }) => {
            events.truncate(*after_events);
            let error = rendered.error_events(events.len(), code.as_deref(), message);
            events.push(error.into());
            End::Whole
        }
        Some(Fault::Garbage { after_events, text }) => {
            let garbage = match text {
                Some(text) => Bytes::from(text.clone()),
                None => Bytes::from_static(GARBAGE),
            };
            events.insert((*after_events).min(events.len()), garbage);
            End::Whole
        }
        _ => End::Whole,
    }
}

fn chunked(events: Vec<Bytes>, chunks: &Chunks) -> Vec<Bytes> {
    let sizes: &mut dyn Iterator<Item = usize> = match chunks {
        Chunks::Events => return events,
        Chunks::Each(size) => &mut std::iter::repeat((*size).max(1)),
        Chunks::Sizes(sizes) => &mut sizes.iter().copied(),
    };
    let mut rest = Bytes::from(events.concat());
    let mut cut = Vec::new();
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(rest.len());
        let chunk = rest.split_to(size.min(rest.len()));
        // An empty chunk would end the body.
        if !chunk.is_empty() {
            cut.push(chunk);
        }
    }
    cut
}
