//! Streamed events, or a whole answer, to model events.
//!
//! What comes in: the JSON of one event after the other. What goes out: [`ModelEvent`]s, each item
//! begun once and finished once. Servers leave much out (llama.cpp: `output_index`, `arguments.done`;
//! others: the items' own events), so an item is found by its id, then by its place, then by being
//! the last one open; what only the final response holds is taken from there. It must never turn a
//! stream that broke off into a finished answer.

use std::collections::HashMap;

use haft_core::{
    ContentPart, FinishReason, FunctionCall, Item, ItemKind, Message, ModelError, ModelErrorKind,
    ModelEvent, Reasoning, Role,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Events, Flow, Lift};
use crate::frame::SseEvent;
use crate::http::in_stream;
use crate::wire::responses::{Event, Response, read_item};

/// Where the answer of one request stands.
#[derive(Default)]
pub(crate) struct ResponsesLift {
    is_started: bool,
    is_finished: bool,
    seen: Vec<Seen>,
    /// Item ids and call ids to places in `seen`.
    by_id: HashMap<String, usize>,
    /// The server's `output_index` to places in `seen`.
    by_place: HashMap<u64, usize>,
}

/// One item, as far as it has come.
struct Seen {
    kind: ItemKind,
    is_done: bool,
    /// Whether the server gave it an id.
    is_named: bool,
    text: String,
    refusal: String,
    /// Thoughts in the summary, and those said in full.
    summary: String,
    thoughts: String,
    arguments: String,
}

/// What a delta adds to.
#[derive(Clone, Copy, PartialEq)]
enum Channel {
    Text,
    Refusal,
    Summary,
    Thoughts,
    Arguments,
}

/// How a response ended, by the event that says so or by its status.
#[derive(Clone, Copy)]
enum End {
    Completed,
    Incomplete,
    Failed,
}

impl Lift for ResponsesLift {
    type Frame = SseEvent;

    fn take(&mut self, frame: SseEvent, out: &mut Events) -> Result<Flow, ModelError> {
        if frame.data.trim() == "[DONE]" {
            return Ok(Flow::Over);
        }
        let event: Event<'_> = serde_json::from_str(&frame.data).map_err(|error| {
            let message = format!("an event of the stream cannot be read: {error}");
            ModelError::new(ModelErrorKind::Protocol, message)
        })?;
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
            other => self.piece(other, &event, out),
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
        let message = "the stream broke off before the response was complete";
        Err(ModelError::new(ModelErrorKind::Unreachable, message))
    }
}

impl ResponsesLift {
    /// Takes a whole answer in.
    pub(crate) fn whole(body: &str) -> Result<Events, ModelError> {
        let mut response = read_response(body)?;
        if response.status.is_none() && response.output.is_none() {
            // Some servers send their errors with a status of success.
            return Err(match response.error.take() {
                Some(error) => in_stream(&error),
                None => ModelError::new(ModelErrorKind::Protocol, "the answer has no `output`"),
            });
        }
        let mut out = Events::new();
        Self::default().conclude(response, End::Completed, &mut out)?;
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
        let item = read_item(raw)?;
        let index = self.open(kind_of(&item), place(event), out);
        self.name(index, &item);
        Ok(())
    }

    fn done(&mut self, event: &Event<'_>, out: &mut Events) -> Result<(), ModelError> {
        let Some(raw) = event.item else { return Ok(()) };
        self.start(None, out)?;
        let item = read_item(raw)?;
        let kind = kind_of(&item);
        let known = ids_of(&item)
            .find_map(|id| self.by_id.get(id))
            .or_else(|| place(event).and_then(|place| self.by_place.get(&place)))
            .copied()
            .filter(|&index| self.is_open(index, &kind))
            .or_else(|| self.last_open(&kind));
        let index = known.unwrap_or_else(|| self.open(kind, place(event), out));
        self.close(index, item, out);
        Ok(())
    }

    /// A piece of an item; every other event is nobody's concern here.
    fn piece(&mut self, kind: &str, event: &Event<'_>, out: &mut Events) {
        let (channel, whole) = match kind {
            "output_text.delta" => (Channel::Text, None),
            "output_text.done" => (Channel::Text, event.text.as_ref()),
            "refusal.delta" => (Channel::Refusal, None),
            "refusal.done" => (Channel::Refusal, event.refusal.as_ref()),
            "reasoning_summary_text.delta" => (Channel::Summary, None),
            "reasoning_text.delta" | "reasoning.delta" => (Channel::Thoughts, None),
            "function_call_arguments.delta" => (Channel::Arguments, None),
            "function_call_arguments.done" => (Channel::Arguments, event.arguments.as_ref()),
            _ => return,
        };
        let is_whole = whole.is_some();
        let Some(text) = whole.or(event.delta.as_ref()).and_then(Value::as_str) else {
            return;
        };
        let Some(index) = self.find(channel, event, out) else {
            return;
        };
        // A `done` repeats what the deltas said; it counts only where there were none.
        if !is_whole || self.seen[index].said(channel).is_empty() {
            self.say(index, channel, text, out);
        }
    }

    /// The item that a piece belongs to. Text and thoughts may come without their item having been
    /// announced; a call may not, for its name would be unknown: it is taken when it is whole.
    fn find(&mut self, channel: Channel, event: &Event<'_>, out: &mut Events) -> Option<usize> {
        let item_id = event.item_id.as_ref().and_then(Value::as_str);
        let fits = |index: &usize| self.seen[*index].takes(channel);
        let known = item_id
            .and_then(|id| self.by_id.get(id).copied())
            .filter(fits)
            .or_else(|| {
                let known = place(event).and_then(|place| self.by_place.get(&place).copied());
                known.filter(fits)
            })
            .or_else(|| (0..self.seen.len()).rfind(|index| fits(index)));
        if known.is_some() || channel == Channel::Arguments {
            return known;
        }
        let kind = match channel {
            Channel::Summary | Channel::Thoughts => ItemKind::Reasoning,
            _ => ItemKind::Message,
        };
        if !self.is_started {
            self.is_started = true;
            out.push_back(ModelEvent::Started {
                response_id: None,
                model: None,
            });
        }
        let index = self.open(kind, place(event), out);
        if let Some(id) = item_id {
            self.seen[index].is_named = true;
            self.by_id.insert(id.to_owned(), index);
        }
        Some(index)
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
                    Some("max_output_tokens" | "max_tokens" | "length") => FinishReason::Length,
                    Some("content_filter") => FinishReason::ContentFilter,
                    _ => FinishReason::Unknown,
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
        self.settle(&response.output.unwrap_or_default(), out)?;
        self.is_finished = true;
        out.push_back(ModelEvent::Finished {
            finish,
            usage: response.usage.map(Into::into),
        });
        Ok(())
    }

    /// Finishes what is open and adds what was never announced, by the final list of items.
    ///
    /// An item is known by its id. Some servers give new ids in the final list; where it has the
    /// same kinds in the same order as the stream had, the place decides.
    fn settle(&mut self, output: &[&RawValue], out: &mut Events) -> Result<(), ModelError> {
        let items = output.iter().map(|raw| read_item(raw));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        let streamed = self.seen.len();
        let is_aligned = items.len() == streamed
            && items
                .iter()
                .zip(&self.seen)
                .all(|(item, seen)| seen.is(&kind_of(item)));
        let mut matched = vec![false; streamed];
        for (position, item) in items.into_iter().enumerate() {
            let kind = kind_of(&item);
            let at_place = |index: &usize| {
                let seen = &self.seen[*index];
                !matched[*index] && seen.is(&kind) && (is_aligned || !seen.is_named)
            };
            let known = ids_of(&item)
                .find_map(|id| self.by_id.get(id).copied())
                .filter(|&index| index < streamed && !matched[index])
                .or_else(|| {
                    Some(position)
                        .filter(|index| *index < streamed)
                        .filter(at_place)
                });
            if let Some(index) = known {
                matched[index] = true;
            }
            match known {
                Some(index) if self.seen[index].is_done => {}
                Some(index) => self.close(index, item, out),
                None => {
                    let index = self.open(kind, None, out);
                    self.close(index, item, out);
                }
            }
        }
        for index in 0..streamed {
            if !self.seen[index].is_done {
                let item = self.seen[index].assembled();
                self.close(index, item, out);
            }
        }
        Ok(())
    }

    fn open(&mut self, kind: ItemKind, place: Option<u64>, out: &mut Events) -> usize {
        let index = self.seen.len();
        if let Some(place) = place {
            self.by_place.insert(place, index);
        }
        out.push_back(ModelEvent::ItemStarted {
            index,
            kind: kind.clone(),
        });
        self.seen.push(Seen::new(kind));
        index
    }

    fn name(&mut self, index: usize, item: &Item) {
        for id in ids_of(item) {
            self.seen[index].is_named = true;
            self.by_id.insert(id.to_owned(), index);
        }
    }

    fn say(&mut self, index: usize, channel: Channel, text: &str, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        self.seen[index].said_mut(channel).push_str(text);
        let text = text.to_owned();
        out.push_back(match channel {
            Channel::Text => ModelEvent::TextDelta { index, text },
            Channel::Refusal => ModelEvent::RefusalDelta { index, text },
            Channel::Summary | Channel::Thoughts => ModelEvent::ReasoningDelta { index, text },
            Channel::Arguments => ModelEvent::ArgumentsDelta { index, text },
        });
    }

    /// Finishes an item. What the deltas did not say is said first, so that they add up to it.
    fn close(&mut self, index: usize, item: Item, out: &mut Events) {
        for (channel, text) in texts_of(&item) {
            if let Some(rest) = text.strip_prefix(self.seen[index].said(channel)) {
                self.say(index, channel, rest, out);
            }
        }
        let seen = &mut self.seen[index];
        // From here on only the whole item counts.
        *seen = Seen {
            is_done: true,
            is_named: seen.is_named,
            ..Seen::new(seen.kind.clone())
        };
        self.name(index, &item);
        out.push_back(ModelEvent::ItemDone { index, item });
    }

    fn is_open(&self, index: usize, kind: &ItemKind) -> bool {
        !self.seen[index].is_done && self.seen[index].is(kind)
    }

    fn last_open(&self, kind: &ItemKind) -> Option<usize> {
        // A call that bears another id or name is another call.
        let fits = |index: &usize| {
            self.is_open(*index, kind) && (self.seen[*index].kind == *kind || !is_call(kind))
        };
        (0..self.seen.len()).rfind(fits)
    }
}

impl Seen {
    fn new(kind: ItemKind) -> Self {
        Self {
            kind,
            is_done: false,
            is_named: false,
            text: String::new(),
            refusal: String::new(),
            summary: String::new(),
            thoughts: String::new(),
            arguments: String::new(),
        }
    }

    fn is(&self, kind: &ItemKind) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(kind)
    }

    fn takes(&self, channel: Channel) -> bool {
        !self.is_done
            && match channel {
                Channel::Text | Channel::Refusal => self.kind == ItemKind::Message,
                Channel::Summary | Channel::Thoughts => self.kind == ItemKind::Reasoning,
                Channel::Arguments => is_call(&self.kind),
            }
    }

    fn said(&self, channel: Channel) -> &str {
        match channel {
            Channel::Text => &self.text,
            Channel::Refusal => &self.refusal,
            Channel::Summary => &self.summary,
            Channel::Thoughts => &self.thoughts,
            Channel::Arguments => &self.arguments,
        }
    }

    fn said_mut(&mut self, channel: Channel) -> &mut String {
        match channel {
            Channel::Text => &mut self.text,
            Channel::Refusal => &mut self.refusal,
            Channel::Summary => &mut self.summary,
            Channel::Thoughts => &mut self.thoughts,
            Channel::Arguments => &mut self.arguments,
        }
    }

    /// The item as its deltas tell it, for servers that never say it whole.
    fn assembled(&self) -> Item {
        let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
        match &self.kind {
            ItemKind::FunctionCall { call_id, name } => Item::FunctionCall(FunctionCall {
                id: None,
                status: None,
                call_id: call_id.clone(),
                name: name.clone(),
                arguments: self.arguments.clone(),
                extra: Map::new(),
            }),
            ItemKind::Reasoning => Item::Reasoning(Reasoning {
                summary: filled(&self.summary)
                    .map(|text| ContentPart::SummaryText { text })
                    .into_iter()
                    .collect(),
                content: filled(&self.thoughts)
                    .map(|text| ContentPart::ReasoningText { text })
                    .into_iter()
                    .collect(),
                ..Reasoning::default()
            }),
            ItemKind::Other { item_type } => {
                Item::Other(Map::from_iter([("type".into(), item_type.as_str().into())]))
            }
            _ => {
                let refusal = filled(&self.refusal).map(|refusal| ContentPart::Refusal { refusal });
                let text = filled(&self.text).map(ContentPart::output_text);
                Item::Message(Message {
                    content: text.into_iter().chain(refusal).collect(),
                    ..Message::new(Role::Assistant, "")
                })
            }
        }
    }
}

fn is_call(kind: &ItemKind) -> bool {
    matches!(kind, ItemKind::FunctionCall { .. })
}

fn place(event: &Event<'_>) -> Option<u64> {
    event.output_index.as_ref().and_then(Value::as_u64)
}

fn kind_of(item: &Item) -> ItemKind {
    match item {
        Item::Message(_) => ItemKind::Message,
        Item::Reasoning(_) => ItemKind::Reasoning,
        Item::FunctionCall(call) => ItemKind::FunctionCall {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
        },
        other => ItemKind::Other {
            item_type: other.kind().to_owned(),
        },
    }
}

/// The ids under which an item's pieces may come: its own, and a call's.
fn ids_of(item: &Item) -> impl Iterator<Item = &str> {
    let (id, call_id) = match item {
        Item::Message(message) => (message.id.as_deref(), None),
        Item::Reasoning(reasoning) => (reasoning.id.as_deref(), None),
        Item::FunctionCall(call) => (call.id.as_deref(), Some(call.call_id.as_str())),
        Item::Other(members) => (members.get("id").and_then(Value::as_str), None),
        _ => (None, None),
    };
    id.into_iter().chain(call_id).filter(|id| !id.is_empty())
}

/// All that an item's deltas should have said.
fn texts_of(item: &Item) -> Vec<(Channel, String)> {
    let joined = |parts: &[ContentPart]| parts.iter().filter_map(ContentPart::text).collect();
    match item {
        Item::Message(message) => {
            let refusals = message.content.iter().filter_map(|part| match part {
                ContentPart::Refusal { refusal } => Some(refusal.as_str()),
                _ => None,
            });
            vec![
                (Channel::Text, message.text()),
                (Channel::Refusal, refusals.collect()),
            ]
        }
        Item::Reasoning(reasoning) => vec![
            (Channel::Summary, joined(&reasoning.summary)),
            (Channel::Thoughts, joined(&reasoning.content)),
        ],
        Item::FunctionCall(call) => vec![(Channel::Arguments, call.arguments.clone())],
        _ => Vec::new(),
    }
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
#[path = "responses_tests.rs"]
mod tests;
