//! Streamed events, or a whole answer, to model events.
//!
//! What comes in: the JSON of one event after the other. What goes out: [`ModelEvent`]s, each item
//! begun once and finished once. Servers leave much out (llama.cpp: `output_index`, `arguments.done`;
//! others: the items' own events), so an item is found by its id, then by its place, then by being
//! the last one open; what only the final response holds is taken from there. It must never turn a
//! stream that broke off into a finished answer.

mod items;
mod seen;

use haft_core::{FinishReason, ItemKind, ModelError, ModelErrorKind, ModelEvent, ProviderOptions};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Events, Flow, Lift, broken_off, not_json, remove_private};
use crate::frame::SseEvent;
use crate::http::in_stream;
use crate::wire::responses::{Delta, Event, Response};
use crate::wire::{logprobs, text};
use items::Items;
use seen::{Channel, kind_of};

/// Where the answer of one request stands.
#[derive(Default)]
pub(crate) struct ResponsesLift {
    is_started: bool,
    is_finished: bool,
    items: Items,
}

/// How a response ended, by the event that says so or by its status.
#[derive(Clone, Copy)]
enum End {
    Completed,
    Incomplete,
    Failed,
}

/// What an event says of an item.
struct Told<'e> {
    channel: Channel,
    text: &'e str,
    item_id: Option<&'e str>,
    /// The server's `output_index`.
    place: Option<u64>,
    /// The server's `summary_index`.
    part: Option<u64>,
    logprobs: Option<&'e RawValue>,
    /// Whether it repeats all that the pieces said.
    is_whole: bool,
}

/// What an event adds to, and whether it is the end of it; none if it brings nothing.
fn channel_of(kind: &str) -> Option<(Channel, bool)> {
    Some(match kind {
        "output_text.delta" => (Channel::Text, false),
        "output_text.done" => (Channel::Text, true),
        "refusal.delta" => (Channel::Refusal, false),
        "refusal.done" => (Channel::Refusal, true),
        "reasoning_summary_text.delta" => (Channel::Summary(0), false),
        "reasoning_summary_text.done" => (Channel::Summary(0), true),
        "reasoning_text.delta" | "reasoning.delta" => (Channel::Thoughts, false),
        "reasoning_text.done" | "reasoning.done" => (Channel::Thoughts, true),
        "function_call_arguments.delta" => (Channel::Arguments, false),
        "function_call_arguments.done" => (Channel::Arguments, true),
        // The whole text comes with the item.
        "custom_tool_call_input.delta" => (Channel::Input, false),
        _ => return None,
    })
}

impl Lift for ResponsesLift {
    type Frame = SseEvent;

    fn take(&mut self, frame: SseEvent, out: &mut Events) -> Result<Flow, ModelError> {
        if frame.data.trim() == "[DONE]" {
            return Ok(Flow::Over);
        }
        if self.is_nobodys_concern(&frame.event) || self.take_delta(&frame, out) {
            return Ok(Flow::More);
        }
        let event: Event<'_> =
            serde_json::from_str(&frame.data).map_err(|_| not_json(&frame.data))?;
        // Some servers say the type only in the `event` line.
        let kind = event.kind.as_deref().unwrap_or(&frame.event);
        match kind.strip_prefix("response.").unwrap_or(kind) {
            "created" | "in_progress" | "queued" => self.start(event.response, out)?,
            "output_item.added" => self.added(&event, out)?,
            "output_item.done" => self.done(&event, out)?,
            "completed" => self.terminal(&event, End::Completed, out)?,
            "incomplete" => self.terminal(&event, End::Incomplete, out)?,
            "failed" => self.terminal(&event, End::Failed, out)?,
            "error" => return Err(failure(&frame.data)),
            "" if event.error.is_some() => return Err(failure(&frame.data)),
            other if channel_of(other).is_some() => self.piece(other, &event, out),
            _ => self.provider_event(&frame, &event, out),
        }
        Ok(if self.is_finished {
            Flow::Over
        } else {
            Flow::More
        })
    }

    fn end(&mut self, _: &mut Events) -> Result<(), ModelError> {
        if self.is_finished {
            return Ok(());
        }
        Err(broken_off())
    }
}

impl ResponsesLift {
    /// The answer to a request with these options.
    pub(crate) fn new(provider: ProviderOptions) -> Self {
        Self {
            items: Items::new(provider),
            ..Self::default()
        }
    }

    /// Takes a whole answer in.
    pub(crate) fn whole(mut self, body: &str) -> Result<Events, ModelError> {
        let mut response = read_response(body)?;
        if response.status.is_none() && response.output.is_none() {
            // Some servers send their errors with a status of success.
            return Err(match response.error.take() {
                Some(error) => in_stream(&error),
                None => ModelError::new(ModelErrorKind::Protocol, "the answer has no `output`"),
            });
        }
        let mut out = Events::new();
        self.conclude(response, End::Completed, &mut out)?;
        Ok(out)
    }

    fn start(&mut self, response: Option<&RawValue>, out: &mut Events) -> Result<(), ModelError> {
        if self.is_started {
            return Ok(());
        }
        self.is_started = true;
        let response = response.map(|raw| read_response(raw.get())).transpose()?;
        let (response_id, model) = response.map_or((None, None), |it| (it.id, it.model));
        out.push_back(ModelEvent::Started { response_id, model });
        Ok(())
    }

    fn added(&mut self, event: &Event<'_>, out: &mut Events) -> Result<(), ModelError> {
        let Some(raw) = event.item else { return Ok(()) };
        self.start(None, out)?;
        let head = self.items.head(raw)?;
        if self.items.is_undeclared(&head.kind) {
            return Ok(());
        }
        let (kind, id) = (head.kind.clone(), head.id.clone());
        let index = self.items.open(kind, id, place(event), out);
        self.items.name(index, head.ids());
        Ok(())
    }

    fn done(&mut self, event: &Event<'_>, out: &mut Events) -> Result<(), ModelError> {
        let Some(raw) = event.item else { return Ok(()) };
        self.start(None, out)?;
        let item = self.items.read(raw)?;
        let kind = kind_of(&item);
        if self.items.is_undeclared(&kind) {
            return Ok(());
        }
        let place = place(event);
        let index = self.items.open_one(&item, place).unwrap_or_else(|| {
            let id = item.id().map(str::to_owned);
            self.items.open(kind, id, place, out)
        });
        self.items.close(index, item, out);
        Ok(())
    }

    /// Whether an event of this name says nothing that others do not say.
    fn is_nobodys_concern(&self, name: &str) -> bool {
        match name {
            "response.content_part.added"
            | "response.content_part.done"
            | "response.reasoning_summary_part.added"
            | "response.reasoning_summary_part.done" => true,
            "response.in_progress" | "response.queued" => self.is_started,
            _ => false,
        }
    }

    /// Takes an event that brings a piece in its usual form; false if it is another.
    fn take_delta(&mut self, frame: &SseEvent, out: &mut Events) -> bool {
        let may_be = frame.event.is_empty() || frame.event.rsplit('.').next() == Some("delta");
        if !may_be || self.is_finished {
            return false;
        }
        let Ok(delta) = serde_json::from_str::<Delta<'_>>(&frame.data) else {
            return false;
        };
        let kind = delta.kind.0.strip_prefix("response.");
        let Some((channel, false)) = kind.and_then(channel_of) else {
            return false;
        };
        let told = Told {
            channel,
            text: &delta.delta.0,
            item_id: delta.item_id.as_ref().map(|id| &*id.0),
            place: delta.output_index,
            part: delta.summary_index,
            logprobs: delta.logprobs,
            is_whole: false,
        };
        self.tell(&told, out);
        true
    }

    /// Passes on what the provider reports about an item of one of its own tools. Every other event is
    /// ignored.
    fn provider_event(&self, frame: &SseEvent, event: &Event<'_>, out: &mut Events) {
        let item_id = text(event.item_id);
        let Some(index) = self.items.of_provider(item_id.as_deref(), place(event)) else {
            return;
        };
        let Ok(mut event) = serde_json::from_str::<Map<String, Value>>(&frame.data) else {
            return;
        };
        remove_private(&mut event);
        let kind = frame.event.as_str();
        event.entry("type").or_insert_with(|| kind.into());
        out.push_back(ModelEvent::ProviderEvent { index, event });
    }

    /// A piece of an item.
    fn piece(&mut self, kind: &str, event: &Event<'_>, out: &mut Events) {
        let Some((channel, is_end)) = channel_of(kind) else {
            return;
        };
        let whole = match channel {
            _ if !is_end => None,
            Channel::Refusal => event.refusal,
            Channel::Arguments => event.arguments,
            _ => event.text,
        };
        let Some(piece) = text(whole.or(event.delta)) else {
            return;
        };
        let item_id = text(event.item_id);
        let told = Told {
            channel,
            text: &piece,
            item_id: item_id.as_deref(),
            place: place(event),
            part: event.summary_index.as_ref().and_then(Value::as_u64),
            logprobs: event.logprobs,
            is_whole: whole.is_some(),
        };
        self.tell(&told, out);
    }

    fn tell(&mut self, told: &Told<'_>, out: &mut Events) {
        let Some(index) = self.find(told, out) else {
            return;
        };
        let channel = match told.channel {
            Channel::Summary(_) => Channel::Summary(self.items.summary_part(index, told.part)),
            other => other,
        };
        if channel == Channel::Input {
            let text = as_argument(told.text, self.items.is_silent(index, channel));
            return self.items.say(index, channel, &text, out);
        }
        if channel == Channel::Text && !told.is_whole {
            self.items.weigh(index, logprobs(told.logprobs));
        }
        // A `done` repeats what the deltas said; it counts only where there were none.
        if !told.is_whole || self.items.is_silent(index, channel) {
            self.items.say(index, channel, told.text, out);
        }
    }

    /// The item that a piece belongs to. Text and thoughts may come without their item having been
    /// announced; a call may not, for its name would be unknown: it is taken when it is whole.
    fn find(&mut self, told: &Told<'_>, out: &mut Events) -> Option<usize> {
        let item_id = told.item_id.filter(|id| !id.is_empty());
        let known = self.items.taking(told.channel, item_id, told.place);
        if known.is_some() || matches!(told.channel, Channel::Arguments | Channel::Input) {
            return known;
        }
        let kind = match told.channel {
            Channel::Summary(_) | Channel::Thoughts => ItemKind::Reasoning,
            _ => ItemKind::Message,
        };
        if !self.is_started {
            self.is_started = true;
            out.push_back(ModelEvent::Started {
                response_id: None,
                model: None,
            });
        }
        let item_id = item_id.map(str::to_owned);
        Some(self.items.open(kind, item_id, told.place, out))
    }

    fn terminal(
        &mut self,
        event: &Event<'_>,
        end: End,
        out: &mut Events,
    ) -> Result<(), ModelError> {
        let raw = event.response.ok_or_else(|| {
            ModelError::new(
                ModelErrorKind::Protocol,
                "the final event has no `response`",
            )
        })?;
        self.conclude(read_response(raw.get())?, end, out)
    }

    fn conclude(
        &mut self,
        response: Response<'_>,
        end: End,
        out: &mut Events,
    ) -> Result<(), ModelError> {
        let end = match response.status.as_deref() {
            Some("completed" | "requires_action") => End::Completed,
            Some("incomplete") => End::Incomplete,
            Some("failed" | "cancelled") => End::Failed,
            Some(status @ ("in_progress" | "queued")) => {
                let message = format!("the answer ended while its status is `{status}`");
                return Err(ModelError::new(ModelErrorKind::Protocol, message));
            }
            _ => end,
        };
        let finish = match end {
            End::Failed => {
                let error = response.error.unwrap_or_default();
                let status = response.status.unwrap_or_else(|| "failed".into());
                return Err(match error {
                    Value::Null => {
                        let message = format!("the response ended as `{status}` without a reason");
                        ModelError::new(ModelErrorKind::ServerError, message)
                    }
                    error => in_stream(&error),
                });
            }
            End::Completed => FinishReason::Normal,
            End::Incomplete => {
                let reason = response
                    .incomplete_details
                    .and_then(|details| details.reason);
                match reason.as_deref() {
                    Some("content_filter") => FinishReason::ContentFilter,
                    // `max_output_tokens`, or a reason of its own: cut off is cut off.
                    _ => FinishReason::Length,
                }
            }
        };
        if !self.is_started {
            self.is_started = true;
            out.push_back(ModelEvent::Started {
                response_id: response.id,
                model: response.model,
            });
        }
        self.items
            .settle(&response.output.unwrap_or_default(), out)?;
        self.is_finished = true;
        out.push_back(ModelEvent::Finished {
            finish,
            usage: response.usage.map(Into::into),
        });
        Ok(())
    }
}

/// A piece of a custom tool's input as a piece of the arguments that stand for it, `{"input":"…"}`.
fn as_argument(piece: &str, is_first: bool) -> String {
    let quoted = Value::from(piece).to_string();
    let escaped = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    if is_first && !escaped.is_empty() {
        format!("{{\"input\":\"{escaped}")
    } else {
        escaped.to_owned()
    }
}

fn place(event: &Event<'_>) -> Option<u64> {
    event.output_index.as_ref().and_then(Value::as_u64)
}

fn read_response(json: &str) -> Result<Response<'_>, ModelError> {
    serde_json::from_str(json).map_err(|error| {
        let message = format!("the response object cannot be read: {error}");
        ModelError::new(ModelErrorKind::Protocol, message)
    })
}

/// The error that an event tells of, nested or flat.
fn failure(data: &str) -> ModelError {
    let mut json: Value = serde_json::from_str(data).unwrap_or_default();
    // In the flat form this says that it is an error, not which.
    if json.get("type").is_some_and(|kind| kind == "error")
        && let Some(members) = json.as_object_mut()
    {
        members.shift_remove("type");
    }
    in_stream(&json)
}

#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;
