//! Answers of Ollama's own chat.

use std::sync::Arc;

use haft_core::{FinishReason, ModelError, ModelEvent, Usage};
use serde_json::Value;

use super::{Events, Flow, Items, Lift, broken_off, not_json};
use crate::http::in_stream;
use crate::lower::tools::RenderedTools;
use crate::wire::ollama::Line;

/// Reads one answer, whole or line by line: both have the same form.
pub(crate) struct OllamaLift {
    items: Items,
    has_begun: bool,
    end: Option<(FinishReason, Option<Usage>)>,
}

impl OllamaLift {
    pub(crate) fn new(tools: Arc<RenderedTools>) -> Self {
        Self {
            items: Items::new(tools),
            has_begun: false,
            end: None,
        }
    }
}

impl Lift for OllamaLift {
    type Frame = Vec<u8>;

    fn take(&mut self, frame: Vec<u8>, events: &mut Events) -> Result<Flow, ModelError> {
        let json = String::from_utf8_lossy(&frame);
        let line: Line<'_> = serde_json::from_str(&json).map_err(|_| not_json(&json))?;
        if line.has_error() {
            let value = serde_json::from_str(&json).unwrap_or(Value::Null);
            return Err(in_stream(&value));
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            events.push_back(ModelEvent::Started {
                response_id: None,
                model: line.model(),
            });
        }
        if let Some(message) = line.message() {
            if let Some(text) = message.thinking() {
                self.items.think(text, "thinking", events);
            }
            if let Some(text) = message.content() {
                self.items.weigh(line.logprobs());
                self.items.say(text, events);
            }
            for call in message.calls() {
                let place = self.items.call(events);
                self.items.identify(place, call.id, Some(call.name));
                self.items.argue(place, &call.arguments, events);
            }
        }
        if line.is_done() {
            self.end = Some((line.finish(), line.usage()));
            return Ok(Flow::Over);
        }
        Ok(Flow::More)
    }

    fn end(&mut self, events: &mut Events) -> Result<(), ModelError> {
        let (finish, usage) = self.end.ok_or_else(broken_off)?;
        self.items.finish(finish, usage, events);
        Ok(())
    }
}
