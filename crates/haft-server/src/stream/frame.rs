//! Events as server-sent events: one frame, one chunk, LF only (`open-responses.md` §3.1).

use bytes::Bytes;

use super::dialect::Dialect;
use super::event::WireEvent;

/// The end of every stream.
pub(crate) const DONE_FRAME: &[u8] = b"data: [DONE]\n\n";

/// Sent between frames when nothing happens for a while.
pub(crate) const KEEP_ALIVE_FRAME: &[u8] = b": keep-alive\n\n";

/// An event as one frame, its blank line included.
pub(crate) fn sse_frame(event: &WireEvent, dialect: Dialect) -> Bytes {
    let (kind, json) = dialect.render(&event.kind, &event.json);
    let mut frame = String::with_capacity(kind.len() + json.len() + 16);
    frame.push_str("event: ");
    frame.push_str(&kind);
    frame.push_str("\ndata: ");
    frame.push_str(&json);
    frame.push_str("\n\n");
    Bytes::from(frame)
}
