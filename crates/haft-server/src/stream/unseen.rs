//! Calls that no client sees, for whoever goes on from the response: searches without a word, searches that
//! could not be carried out, calls of tools that there are not.

use haft_core::{FunctionCall, FunctionCallOutput};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::items::OutputItem;
use super::translator::Translator;
use crate::history::{CALL, FOUND, UNSEEN, Unseen, UnseenCall};

/// The calls of a response, as far as they matter for those that nobody sees.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Calls {
    /// Those of the turn, in order.
    made: Vec<FunctionCall>,
    /// What those were answered with that are not shown.
    unseen: Vec<FunctionCallOutput>,
    /// Those of earlier turns that nobody saw, each with the place of the item that it stands in front of.
    placed: Vec<(usize, UnseenCall)>,
}

impl Translator {
    /// The model has made a call.
    pub(super) fn call_made(&mut self, call: FunctionCall) {
        self.calls.made.push(call);
    }

    /// A call was answered, in these words.
    pub(super) fn call_answered(&mut self, output: &FunctionCallOutput) {
        let Some(at) = self.places_of(&output.call_id).next_back() else {
            self.calls.unseen.push(output.clone());
            return;
        };
        // What was added for the model is part of what it reads again.
        let item = self.output.items.get_mut(at).and_then(Option::as_mut);
        if let Some(found) = item.and_then(|item| item.json.get_mut(FOUND)) {
            *found = output.output.to_text().into();
        }
    }

    /// The places of the items of a call; none if it is not shown.
    fn places_of(&self, call_id: &str) -> impl DoubleEndedIterator<Item = usize> {
        let is_it =
            move |item: &OutputItem| item.json[CALL] == call_id || item.json["call_id"] == call_id;
        let items = self.output.items.iter().enumerate();
        items.filter_map(move |(at, item)| item.as_ref().is_some_and(is_it).then_some(at))
    }

    /// A turn is over: puts those of its calls that nobody saw in front of the next one that somebody did, or of
    /// what comes behind the turn.
    pub(super) fn place_unseen(&mut self) {
        let made = std::mem::take(&mut self.calls.made);
        let mut unseen = std::mem::take(&mut self.calls.unseen);
        if unseen.is_empty() {
            return;
        }
        let mut next = self.output.items.len();
        let mut placed = Vec::new();
        for call in made.into_iter().rev() {
            let answer = unseen.iter().position(|it| it.call_id == call.call_id);
            match answer {
                Some(answer) => {
                    let output = unseen.swap_remove(answer);
                    let turn = self.turn;
                    placed.push((next, UnseenCall { turn, call, output }));
                }
                None => next = self.places_of(&call.call_id).next().unwrap_or(next),
            }
        }
        placed.reverse();
        self.calls.placed.append(&mut placed);
    }

    /// Notes the calls that nobody saw in the items that they stand beside.
    pub(super) fn note_unseen(&mut self) {
        self.place_unseen();
        let mut beside: Vec<Unseen> = Vec::new();
        beside.resize_with(self.output.items.len(), Unseen::default);
        for (at, call) in std::mem::take(&mut self.calls.placed) {
            let items = &self.output.items;
            let next = (at..items.len()).find(|at| items[*at].is_some());
            if let Some(next) = next {
                beside[next].before.push(call);
            } else if let Some(last) = items.iter().rposition(Option::is_some) {
                beside[last].behind.push(call);
            }
        }
        for (item, unseen) in self.output.items.iter_mut().zip(beside) {
            if let Some(item) = item
                && unseen != Unseen::default()
            {
                item.json[UNSEEN] = json!(unseen);
            }
        }
    }
}
