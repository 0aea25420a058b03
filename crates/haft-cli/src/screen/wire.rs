//! The events of a response of a server.

use std::io;
use std::time::Duration;

use haft::Value;

use super::item::{Call, call_of, result_of};
use super::{CallResult, Screen, Tone};

impl Screen {
    /// Shows an event of a streamed response. Those that it does not know say nothing to a person.
    pub(crate) fn show_wire(&mut self, event: &Value) -> io::Result<()> {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        match text("type") {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.words(text("delta"), Tone::Answer)
            }
            "response.reasoning.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta" => self.words(text("delta"), Tone::Thought),
            "response.output_item.added" => self.item_added(&event["item"]),
            "response.output_item.done" => self.item_done(&event["item"]),
            _ => Ok(()),
        }
    }

    fn item_added(&mut self, item: &Value) -> io::Result<()> {
        match call_of(item) {
            // What the client has to execute is told when it is whole.
            Some(call) if !call.is_the_clients => {
                self.call_asked(call.id, &call.name, call.arguments);
                self.call_began(call.id)
            }
            _ => Ok(()),
        }
    }

    fn item_done(&mut self, item: &Value) -> io::Result<()> {
        let Some(call) = call_of(item).filter(|call| !call.is_the_clients) else {
            return Ok(());
        };
        self.call_done(item, &call)
    }

    /// A call that the server made, with what came of it.
    pub(super) fn call_done(&mut self, item: &Value, call: &Call<'_>) -> io::Result<()> {
        match self.calls.get_mut(call.id) {
            Some(known) => call.arguments.clone_into(&mut known.arguments),
            None => self.call_asked(call.id, &call.name, call.arguments),
        }
        if let Some(took) = item
            .pointer("/provenance/duration_ms")
            .and_then(Value::as_u64)
        {
            self.call_took(call.id, Duration::from_millis(took));
        }
        let (text, is_error) = result_of(item);
        let text = &text;
        self.call_ended(call.id, &CallResult { text, is_error })
    }
}
