//! Events with their numbers.

use std::sync::Arc;

use serde::Serialize;

use crate::wire::Include;

/// One event of a stream, in the form that every client gets but for its dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WireEvent {
    pub(crate) sequence_number: u64,
    pub(crate) kind: &'static str,
    /// The whole event, in the specification's dialect.
    pub(crate) json: Arc<str>,
}

/// The one that numbers the events of a response.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// What of the items the client wants to see.
    pub(super) include: Include,
    next: u64,
    written: Vec<WireEvent>,
}

impl Writer {
    pub(crate) fn new(include: Include) -> Self {
        Self {
            include,
            ..Self::default()
        }
    }

    /// Goes on with this number.
    pub(crate) fn continue_at(&mut self, next: u64) {
        self.next = next;
    }

    /// Writes an event. `body` is an object with at least one member.
    pub(crate) fn write(&mut self, kind: &'static str, body: &impl Serialize) {
        let body = match serde_json::to_string(body) {
            Ok(body) => body,
            // Only maps with other keys than strings fail, and no body has one.
            Err(error) => {
                tracing::error!(%error, kind, "an event cannot be written");
                return;
            }
        };
        let sequence_number = self.next;
        self.next += 1;
        let members = body.strip_prefix('{').unwrap_or("}");
        let json =
            format!(r#"{{"type":"{kind}","sequence_number":{sequence_number},{members}"#).into();
        self.written.push(WireEvent {
            sequence_number,
            kind,
            json,
        });
    }

    /// What was written since the last time.
    pub(crate) fn take(&mut self) -> Vec<WireEvent> {
        std::mem::take(&mut self.written)
    }
}
