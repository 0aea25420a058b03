//! Answers of Chat Completions.

use std::sync::Arc;

use haft_core::{FinishReason, ModelError, ModelErrorKind, ModelEvent, Usage};
use serde_json::Value;

use super::items::CallPlace;
use super::quoted::SentText;
use super::recover::{Found, may_become_call, recovered};
use super::{Events, Flow, Items, Lift, broken_off, not_json};
use crate::frame::SseEvent;
use crate::http::in_stream;
use crate::lower::tools::RenderedTools;
use crate::reasoning_field::ObservedField;
use crate::wire::chat::{Answer, CallPiece, Choice};

/// Reads one answer, whole or in chunks.
pub(crate) struct ChatLift {
    items: Items,
    tools: Arc<RenderedTools>,
    calls: Vec<Call>,
    chunks: u64,
    has_begun: bool,
    is_done: bool,
    finish: Option<FinishReason>,
    /// Whether content after the end was logged.
    has_warned: bool,
    usage: Option<Usage>,
    recover: Recover,
    /// What the model can quote: a call that stands there is not recovered.
    sent: SentText,
    /// All text so far, where calls are to be found in it.
    held: Option<String>,
    /// Remembers under which member the server gives reasoning.
    observed: ObservedField,
}

struct Call {
    place: CallPlace,
    index: Option<u64>,
    /// The chunk that last belonged to it.
    chunk: u64,
}

/// Whether calls that the model wrote as text are to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recover {
    /// Anywhere in the text.
    Calls,
    /// Only a call that is the whole text, in its plain form. An answer that quotes a call, or JSON
    /// of another form, stays text.
    LoneCall,
    Nothing,
}

impl ChatLift {
    pub(crate) fn new(tools: Arc<RenderedTools>, recover: Recover, sent: SentText) -> Self {
        let may_recover = recover != Recover::Nothing && !tools.tools().is_empty();
        Self {
            items: Items::new(Arc::clone(&tools)),
            tools,
            calls: Vec::new(),
            chunks: 0,
            has_begun: false,
            is_done: false,
            finish: None,
            has_warned: false,
            usage: None,
            recover,
            sent,
            held: may_recover.then(String::new),
            observed: ObservedField::default(),
        }
    }

    /// Records in `observed` under which member the server gives reasoning.
    pub(crate) fn observing(self, observed: ObservedField) -> Self {
        Self { observed, ..self }
    }

    /// Reads a whole answer.
    pub(crate) fn whole(mut self, json: &str) -> Result<Events, ModelError> {
        let mut events = Events::new();
        self.answer(json, 0, &mut events)?;
        // One that is whole is done, also where it does not say why.
        self.is_done = true;
        self.end(&mut events)?;
        Ok(events)
    }

    fn answer(&mut self, json: &str, chunk: u64, events: &mut Events) -> Result<(), ModelError> {
        let answer: Answer<'_> = serde_json::from_str(json).map_err(|_| not_json(json))?;
        if answer.has_error() {
            return Err(error_of(json));
        }
        let choice = answer.choice();
        if !self.has_begun && choice.is_some() {
            self.has_begun = true;
            events.push_back(ModelEvent::Started {
                response_id: answer.id(),
                model: answer.model(),
            });
        }
        self.usage = answer.usage().or(self.usage);
        if let Some(choice) = choice {
            if choice.has_error() {
                return Err(error_of(json));
            }
            self.choice(&choice, chunk, events);
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Choice<'_>, chunk: u64, events: &mut Events) {
        // The answer ended: what follows was not part of what the model was judged by.
        if self.finish.is_some() {
            let has_content = choice.said().is_some_and(|said| !said.is_empty());
            // Once: such a server may send many chunks more.
            if has_content && !self.has_warned {
                self.has_warned = true;
                tracing::warn!("ignoring content after `finish_reason` in an answer of the model");
            }
            return;
        }
        if let Some(said) = choice.said() {
            if let Some((field, text)) = said.reasoning() {
                self.observed.record(field);
                self.items.think(text, field.as_str(), events);
            }
            // Some servers weigh the tokens of thoughts and calls as well.
            if said.has_content() {
                self.items.weigh(choice.logprobs());
            }
            if let Some(text) = said.content() {
                match &mut self.held {
                    Some(held) => {
                        held.push_str(&text);
                        if self.recover == Recover::LoneCall && !may_become_call(held) {
                            let text = self.held.take().unwrap_or_default();
                            self.items.say(text, events);
                        }
                    }
                    None => self.items.say(text, events),
                }
            }
            if let Some(text) = said.refusal() {
                self.items.refuse(text, events);
            }
            for piece in said.calls() {
                self.call(piece, chunk, events);
            }
        }
        self.finish = choice.finish();
    }

    fn call(&mut self, piece: CallPiece, chunk: u64, events: &mut Events) {
        let at = self.belongs_to(&piece, chunk).unwrap_or_else(|| {
            self.calls.push(Call {
                place: self.items.call(events),
                index: piece.index,
                chunk,
            });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        call.chunk = chunk;
        self.items.identify(call.place, piece.id, piece.name);
        self.items
            .argue(call.place, &piece.arguments.unwrap_or_default(), events);
    }

    /// Which of the calls so far a piece belongs to; none if it begins a new one.
    ///
    /// By index where there is one, else by id, else to the last. A new id begins a new call unless
    /// the one it would belong to is unfinished: some servers give each piece an id of its own.
    fn belongs_to(&self, piece: &CallPiece, chunk: u64) -> Option<usize> {
        let by_index = piece.index.and_then(|index| {
            self.calls
                .iter()
                .rposition(|call| call.index == Some(index))
        });
        let at = match (piece.index, &piece.id) {
            (Some(_), _) => by_index?,
            (None, Some(id)) => {
                let same_id = |call: &Call| self.items.so_far(call.place).0 == id;
                if let Some(at) = self.calls.iter().rposition(same_id) {
                    // Some servers give all calls one id: a name beside it tells them apart.
                    let call = &self.calls[at];
                    let known = self.items.so_far(call.place).1;
                    let is_other = piece.name.as_ref().is_some_and(|name| {
                        call.chunk == chunk || (!known.is_empty() && name != known)
                    });
                    return (!is_other).then_some(at);
                }
                self.calls.len().checked_sub(1)?
            }
            (None, None) => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[at];
        let (id, name, arguments) = self.items.so_far(call.place);
        let other = |known: &str, new: &Option<String>| {
            new.as_ref()
                .is_some_and(|new| !known.is_empty() && new != known)
        };
        // Looked at only where it decides, and only where the end looks like one.
        let is_whole = || {
            arguments.trim_end().ends_with('}')
                && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
        };
        let begins_new = match piece.index {
            Some(_) => other(id, &piece.id) && (other(name, &piece.name) || is_whole()),
            // Pieces of one chunk are different calls.
            None => {
                piece.name.is_some()
                    && (call.chunk == chunk || other(name, &piece.name) || is_whole())
            }
        };
        (!begins_new).then_some(at)
    }

    /// Tells of the text that was held back, and of the calls in it.
    fn release(&mut self, events: &mut Events) {
        let Some(text) = self.held.take().filter(|text| !text.is_empty()) else {
            return;
        };
        let is_normal = self.finish == Some(FinishReason::Normal);
        let found = if is_normal && !self.items.has_call() {
            recovered(&text, |name| self.tools.tool(name).is_some())
        } else {
            None
        };
        let is_lone = |found: &Found| {
            found.prose.is_empty() && matches!(&found.calls[..], [call] if call.is_plain)
        };
        let found = found.filter(|found| self.recover == Recover::Calls || is_lone(found));
        let found = found.filter(|found| !self.is_quoted(found));
        let Some(found) = found else {
            return self.items.say(text, events);
        };
        // They are not those of what is said now.
        self.items.unweigh();
        if !found.prose.is_empty() {
            self.items.say(found.prose, events);
        }
        for call in found.calls {
            let place = self.items.call(events);
            self.items.identify(place, None, Some(call.name));
            self.items.mark_recovered(place);
            self.items.argue(place, &call.arguments, events);
        }
    }

    /// Whether one of the calls stands in what was sent: the model may repeat it without meaning it.
    fn is_quoted(&self, found: &Found) -> bool {
        let quoted = found.calls.iter().find(|call| self.sent.holds(call));
        if let Some(call) = quoted {
            tracing::debug!(
                tool = call.name,
                "not recovering a call from text: it repeats one in the conversation"
            );
        }
        quoted.is_some()
    }
}

impl Lift for ChatLift {
    type Frame = SseEvent;

    fn take(&mut self, frame: SseEvent, events: &mut Events) -> Result<Flow, ModelError> {
        let data = frame.data.trim();
        if data == "[DONE]" {
            self.is_done = true;
            return Ok(Flow::Over);
        }
        if data.is_empty() {
            return Ok(Flow::More);
        }
        if frame.event == "error" {
            return Err(error_of(data));
        }
        self.chunks += 1;
        self.answer(data, self.chunks, events)?;
        Ok(if self.finish.is_some() {
            Flow::Whole
        } else {
            Flow::More
        })
    }

    fn end(&mut self, events: &mut Events) -> Result<(), ModelError> {
        if self.finish.is_none() && !self.is_done {
            return Err(broken_off());
        }
        if !self.has_begun {
            let words = "the answer holds no `choices`";
            return Err(ModelError::new(ModelErrorKind::Protocol, words));
        }
        if self.finish == Some(FinishReason::Error) {
            let words = "the provider says that the answer failed";
            return Err(ModelError::new(ModelErrorKind::ServerError, words));
        }
        self.release(events);
        let finish = self.finish.unwrap_or_default();
        self.items.finish(finish, self.usage, events);
        Ok(())
    }
}

fn error_of(json: &str) -> ModelError {
    let value: Value =
        serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()));
    let in_choice = value
        .pointer("/choices/0/error")
        .map(|error| serde_json::json!({"error": error}));
    in_stream(&in_choice.unwrap_or(value))
}
