//! Events with their numbers.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::wire::{ResponseResource, View};

/// One event of a stream, in the form that every client gets but for its dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WireEvent {
    pub(crate) sequence_number: u64,
    pub(crate) kind: Cow<'static, str>,
    /// The whole event, in the specification's dialect.
    pub(crate) json: Arc<str>,
}

impl WireEvent {
    /// An event that was stored; none if it is damaged.
    pub(crate) fn stored(sequence_number: u64, json: &str) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Typed<'e> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'e, str>,
        }
        let typed: Typed<'_> = serde_json::from_str(json).ok()?;
        Some(Self {
            sequence_number,
            kind: Cow::Owned(typed.kind.into_owned()),
            json: json.into(),
        })
    }

    /// Whether nothing comes behind it.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(
            &*self.kind,
            "response.completed" | "response.incomplete" | "response.failed"
        )
    }

    /// The last events of a response that nobody works on any more.
    pub(crate) fn failure(first: u64, resource: &ResponseResource, error: &ApiError) -> Vec<Self> {
        let mut writer = Writer::default();
        writer.continue_at(first);
        writer.write("error", &serde_json::json!({"error": error.body()}));
        writer.write(
            "response.failed",
            &serde_json::json!({"response": resource}),
        );
        writer.take()
    }
}

/// The one that numbers the events of a response.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// How items are presented to the client.
    pub(super) view: View,
    /// Whether raw reasoning is presented as a summary.
    pub(super) raw_as_summary: bool,
    next: u64,
    written: Vec<WireEvent>,
    /// Whether nobody hears of the events: then they are only counted.
    is_muted: bool,
    /// Where events are written before it is known how long they are.
    scratch: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(view: View, raw_as_summary: bool) -> Self {
        Self {
            view,
            raw_as_summary,
            ..Self::default()
        }
    }

    /// The number of the next event.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Goes on with this number.
    pub(crate) fn continue_at(&mut self, next: u64) {
        self.next = next;
    }

    /// Only counts events from now on.
    pub(crate) fn mute(&mut self) {
        self.is_muted = true;
    }

    /// Whether somebody hears of the events.
    pub(crate) fn is_heard(&self) -> bool {
        !self.is_muted
    }

    /// What goes into an event, made only where somebody hears of it.
    pub(crate) fn heard(&self, make: impl FnOnce() -> Value) -> Value {
        if self.is_muted { Value::Null } else { make() }
    }

    /// Writes an event. `body` is an object with at least one member.
    pub(crate) fn write(&mut self, kind: &'static str, body: &impl Serialize) {
        self.write_named(Cow::Borrowed(kind), body);
    }

    /// Writes an event of a provider. Its name must need no escape in JSON.
    pub(crate) fn write_named(&mut self, kind: Cow<'static, str>, body: &impl Serialize) {
        let sequence_number = self.next;
        if self.is_muted {
            self.next += 1;
            return;
        }
        let json = &mut self.scratch;
        json.clear();
        for piece in [r#"{"type":""#, &*kind, r#"","sequence_number":"#] {
            json.extend_from_slice(piece.as_bytes());
        }
        let mut written = serde_json::to_writer(&mut *json, &sequence_number).is_ok();
        let members = json.len();
        written &= serde_json::to_writer(&mut *json, body).is_ok();
        // The brace of the body becomes the comma behind the members that every event has.
        if let Some(brace) = json.get_mut(members) {
            *brace = b',';
        }
        // Only maps with other keys than strings fail, and no body has one.
        let (true, Ok(json)) = (written, std::str::from_utf8(json)) else {
            tracing::error!(kind = &*kind, "an event cannot be written");
            return;
        };
        self.next += 1;
        self.written.push(WireEvent {
            sequence_number,
            kind,
            json: json.into(),
        });
    }

    /// What was written since the last time.
    pub(crate) fn take(&mut self) -> Vec<WireEvent> {
        std::mem::take(&mut self.written)
    }
}
