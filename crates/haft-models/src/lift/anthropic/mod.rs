//! Streamed events, or a whole answer, to model events.
//!
//! What comes in: the JSON of one event after the other. What goes out: [`ModelEvent`]s. A content
//! block becomes an item; text blocks in a row are the parts of one message, so that each can be
//! sent back as the block it was. An item is finished when the next one begins or the message ends:
//! only then it is known whether the token limit fell into it. It must never turn a stream that
//! broke off into a finished answer.

mod open;

use haft_core::{FinishReason, ItemKind, ItemStatus, ModelError, ModelErrorKind, ModelEvent};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Events, Flow, Lift, broken_off, not_json};
use crate::frame::SseEvent;
use crate::http::in_stream;
use crate::wire::anthropic::{BLOCK_MARK, Block, Delta, Event, Message, WireUsage, finish_of};
use crate::wire::text;
use open::Open;

/// Where the answer of one request stands.
#[derive(Default)]
pub(crate) struct AnthropicLift {
    is_started: bool,
    is_finished: bool,
    items: usize,
    /// The item that is being written.
    open: Option<Open>,
    /// The server's index of the block that is being written.
    block: Option<u64>,
    stop_reason: Option<String>,
    usage: Option<WireUsage>,
}

impl Lift for AnthropicLift {
    type Frame = SseEvent;

    fn take(&mut self, frame: SseEvent, out: &mut Events) -> Result<Flow, ModelError> {
        let event: Event<'_> =
            serde_json::from_str(&frame.data).map_err(|_| not_json(&frame.data))?;
        // Some servers say the type only in the `event` line.
        match event.kind.as_deref().unwrap_or(&frame.event) {
            "message_start" => {
                if let Some(raw) = event.message {
                    let message: Message<'_> = read(raw.get(), "`message_start`")?;
                    self.start(message.id, message.model, out);
                    self.count(message.usage);
                }
            }
            "content_block_start" => {
                let raw = event.content_block.ok_or_else(|| {
                    protocol("a `content_block_start` has no `content_block`".into())
                })?;
                self.begin(place(&event), raw, out)?;
            }
            "content_block_delta" => {
                if let Some(raw) = event.delta {
                    let delta: Delta<'_> = read(raw.get(), "a `content_block_delta`")?;
                    self.delta(place(&event), delta, out)?;
                }
            }
            "content_block_stop" => self.block = None,
            "message_delta" => {
                if let Some(raw) = event.delta {
                    let delta: Delta<'_> = read(raw.get(), "a `message_delta`")?;
                    self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
                }
                self.count(event.usage);
                if self.stop_reason.is_some() {
                    return Ok(Flow::Whole);
                }
            }
            "message_stop" => {
                self.finish(out);
                return Ok(Flow::Over);
            }
            "error" => return Err(failure(event.error.as_ref())),
            "" if event.error.is_some() => return Err(failure(event.error.as_ref())),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn end(&mut self, out: &mut Events) -> Result<(), ModelError> {
        if self.is_finished {
            return Ok(());
        }
        // Only the mark of the end is missing: the model has said why it stopped.
        if self.stop_reason.is_some() {
            self.finish(out);
            return Ok(());
        }
        Err(broken_off())
    }
}

impl AnthropicLift {
    /// Takes a whole answer in.
    pub(crate) fn whole(body: &str) -> Result<Events, ModelError> {
        let message: Message<'_> = read(body, "the answer")?;
        let content = message
            .content
            .ok_or_else(|| protocol("the answer has no `content`".into()))?;
        let mut out = Events::new();
        let mut lift = Self::default();
        lift.start(message.id, message.model, &mut out);
        for raw in content {
            lift.begin(None, raw, &mut out)?;
        }
        lift.stop_reason = message.stop_reason;
        lift.count(message.usage);
        lift.finish(&mut out);
        Ok(out)
    }

    fn start(&mut self, response_id: Option<String>, model: Option<String>, out: &mut Events) {
        if !self.is_started {
            self.is_started = true;
            out.push_back(ModelEvent::Started { response_id, model });
        }
    }

    fn count(&mut self, usage: Option<WireUsage>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().update(usage);
        }
    }

    fn begin(
        &mut self,
        place: Option<u64>,
        raw: &RawValue,
        out: &mut Events,
    ) -> Result<(), ModelError> {
        self.start(None, None, out);
        let block: Block<'_> = read(raw.get(), "a content block")?;
        if block.kind == "text" {
            if let Some(Open::Text { parts, .. }) = &mut self.open {
                parts.push(String::new());
            } else {
                self.close(None, out);
                self.open = Some(Open::text());
            }
            self.say_text(&block.text.unwrap_or_default(), out);
            self.block = place;
            return Ok(());
        }
        self.close(None, out);
        self.block = place;
        match block.kind.as_str() {
            "tool_use" => {
                let call_id = block.id.unwrap_or_default();
                let name = block.name.unwrap_or_default();
                let input = block.input.map_or("", RawValue::get);
                // Some servers give the text of the arguments, as the other protocols have it.
                let input = match serde_json::from_str::<String>(input) {
                    Ok(text) => text,
                    Err(_) if input == "null" => String::new(),
                    Err(_) => input.to_owned(),
                };
                let kind = ItemKind::FunctionCall {
                    call_id: call_id.clone(),
                    name: name.clone(),
                    recovered: false,
                };
                self.open = Some(Open::Call {
                    index: self.announce(kind, out),
                    call_id,
                    name,
                    written: String::new(),
                    input,
                });
            }
            "thinking" => {
                let index = self.announce(ItemKind::Reasoning, out);
                self.open = Some(Open::Thinking {
                    index,
                    text: String::new(),
                    signature: block.signature,
                });
                self.say_thought(&block.thinking.unwrap_or_default(), out);
            }
            "redacted_thinking" => {
                let index = self.announce(ItemKind::Reasoning, out);
                let data = block.data.unwrap_or_default();
                self.open = Some(Open::Redacted { index, data });
            }
            other => {
                let item_type = format!("{BLOCK_MARK}{other}");
                let block = read(raw.get(), "a content block")?;
                self.open = Some(Open::Other {
                    index: self.announce(ItemKind::Other { item_type }, out),
                    block,
                    written: String::new(),
                });
            }
        }
        Ok(())
    }

    fn delta(
        &mut self,
        place: Option<u64>,
        delta: Delta<'_>,
        out: &mut Events,
    ) -> Result<(), ModelError> {
        let is_text = delta.kind.as_deref() == Some("text_delta");
        if self.open.is_none() && is_text {
            // Some servers do not announce their only block.
            self.start(None, None, out);
            self.open = Some(Open::text());
            self.block = place;
        }
        if self.block != place {
            let at = place.map_or_else(|| "none".to_owned(), |place| place.to_string());
            return Err(protocol(format!(
                "a piece for content block `{at}` came while that block is not open"
            )));
        }
        match (delta.kind.as_deref(), &mut self.open) {
            (Some("text_delta"), Some(Open::Text { .. })) => {
                self.say_text(&text(delta.text).unwrap_or_default(), out);
            }
            (Some("thinking_delta"), Some(Open::Thinking { .. })) => {
                self.say_thought(&text(delta.thinking).unwrap_or_default(), out);
            }
            (Some("signature_delta"), Some(Open::Thinking { signature, .. })) => {
                *signature = delta.signature;
            }
            (Some("input_json_delta"), Some(Open::Call { index, written, .. })) => {
                let text = text(delta.partial_json).unwrap_or_default();
                written.push_str(&text);
                if !text.is_empty() {
                    let index = *index;
                    out.push_back(ModelEvent::ArgumentsDelta { index, text });
                }
            }
            (Some("input_json_delta"), Some(Open::Other { written, .. })) => {
                written.push_str(&text(delta.partial_json).unwrap_or_default());
            }
            (Some(kind @ ("text_delta" | "thinking_delta" | "input_json_delta")), _) => {
                return Err(protocol(format!(
                    "a `{kind}` came for a content block of another type"
                )));
            }
            // Citations, and whatever is invented later.
            _ => {}
        }
        Ok(())
    }

    fn announce(&mut self, kind: ItemKind, out: &mut Events) -> usize {
        let index = self.items;
        self.items += 1;
        out.push_back(ModelEvent::ItemStarted {
            index,
            id: None,
            kind,
        });
        index
    }

    fn say_text(&mut self, text: &str, out: &mut Events) {
        let Some(Open::Text { index, parts }) = &mut self.open else {
            return;
        };
        if text.is_empty() {
            return;
        }
        let index = *index.get_or_insert_with(|| {
            let index = self.items;
            self.items += 1;
            let kind = ItemKind::Message;
            out.push_back(ModelEvent::ItemStarted {
                index,
                id: None,
                kind,
            });
            index
        });
        if let Some(part) = parts.last_mut() {
            part.push_str(text);
        }
        let text = text.to_owned();
        out.push_back(ModelEvent::TextDelta { index, text });
    }

    fn say_thought(&mut self, piece: &str, out: &mut Events) {
        if let Some(Open::Thinking { index, text, .. }) = &mut self.open
            && !piece.is_empty()
        {
            text.push_str(piece);
            out.push_back(ModelEvent::ReasoningDelta {
                index: *index,
                text: piece.to_owned(),
            });
        }
    }

    fn finish(&mut self, out: &mut Events) {
        self.start(None, None, out);
        let finish = finish_of(self.stop_reason.as_deref());
        let cut_off = (finish == FinishReason::Length).then_some(ItemStatus::Incomplete);
        self.close(cut_off, out);
        self.is_finished = true;
        out.push_back(ModelEvent::Finished {
            finish,
            usage: self.usage.map(Into::into),
        });
    }

    fn close(&mut self, status: Option<ItemStatus>, out: &mut Events) {
        self.block = None;
        if let Some(open) = self.open.take() {
            open.finish(status, out);
        }
    }
}

fn place(event: &Event<'_>) -> Option<u64> {
    event.index.as_ref().and_then(Value::as_u64)
}

fn read<'a, T: Deserialize<'a>>(json: &'a str, what: &str) -> Result<T, ModelError> {
    serde_json::from_str(json).map_err(|error| protocol(format!("{what} cannot be read: {error}")))
}

fn protocol(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Protocol, message)
}

/// The error that an event tells of.
fn failure(error: Option<&Value>) -> ModelError {
    in_stream(&json!({"error": error}))
}

#[cfg(test)]
mod tests;
