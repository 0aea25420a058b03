//! From a provider's answer to model events.
//!
//! What comes in: frames of one answer, in order. What goes out: [`ModelEvent`]s as they are
//! documented: every item is begun and done, `Finished` comes once and last. An answer that breaks
//! off is an error, never a normal end.

mod anthropic;
pub(crate) mod chat;
#[cfg(test)]
mod invariants;
mod items;
pub(crate) mod ollama;
pub(crate) mod quoted;
mod recover;
mod responses;
mod restoring;
mod stream;

pub(crate) use anthropic::AnthropicLift;
pub(crate) use items::{Items, REASONING_FIELD};
pub(crate) use responses::ResponsesLift;
pub(crate) use restoring::{Restoring, restored};
pub(crate) use stream::{Flow, Lift, lifted};

use std::collections::VecDeque;

use haft_core::{ModelError, ModelErrorKind, ModelEvent, ModelStream, cut};
use serde_json::{Map, Value};

/// The member of a reasoning item that says under which id its provider sealed it, where that is
/// another than the one under which it was announced.
pub(crate) const WIRE_ID: &str = "wire_id";

/// Removes the members that only haft writes from an item or event of a server: they would be taken
/// for haft's own notes, here or by a client.
pub(crate) fn remove_private(members: &mut Map<String, Value>) {
    let is_private = |name: &str| {
        matches!(
            name,
            REASONING_FIELD | WIRE_ID | "haft" | "provenance" | "recovered"
        ) || name.starts_with("haft_")
    };
    if members.keys().any(|name| is_private(name)) {
        members.retain(|name, _| !is_private(name));
    }
}

/// Where a lifter puts its events.
pub(crate) type Events = VecDeque<ModelEvent>;

/// How many items an answer may have: no model writes so many, and whoever works on them looks at all
/// of them for each.
const MAX_ITEMS: usize = 1024;

/// Events that are all there.
pub(crate) fn ready(events: Events) -> ModelStream {
    let events = events
        .into_iter()
        .map(|event| match one_too_many(&event) {
            Some(error) => Err(error),
            None => Ok(event),
        })
        .scan(false, |has_failed, event| {
            let is_over = std::mem::replace(has_failed, event.is_err());
            (!is_over).then_some(event)
        });
    Box::pin(futures_util::stream::iter(events))
}

/// What is wrong with an answer that begins another item, if it has too many.
fn one_too_many(event: &ModelEvent) -> Option<ModelError> {
    match event {
        ModelEvent::ItemStarted { index, .. } if *index >= MAX_ITEMS => Some(ModelError::new(
            ModelErrorKind::Protocol,
            format!("the answer has more than {MAX_ITEMS} items"),
        )),
        _ => None,
    }
}

/// A frame that is not what the protocol says.
pub(crate) fn not_json(frame: &str) -> ModelError {
    let words = format!("a piece of the answer is no JSON: `{}`", cut(frame));
    ModelError::new(ModelErrorKind::Protocol, words)
}

/// An answer of another kind, in which nothing can be read.
pub(crate) fn not_an_answer(kind: &str) -> ModelError {
    let words = format!(
        "the answer is `{kind}` and holds nothing that a model says: the base address may be that \
         of something else"
    );
    ModelError::new(ModelErrorKind::Protocol, words).with_operator_note(
        "what answers there is not a model server: set `base_url` to its API, which usually ends in `/v1`",
    )
}

/// A stream that ended before the answer did.
pub(crate) fn broken_off() -> ModelError {
    ModelError::new(
        ModelErrorKind::Unreachable,
        "the stream ended before the model had finished",
    )
}
