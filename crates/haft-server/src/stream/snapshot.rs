//! A translation that was put away with its run, and goes on in another process.
//!
//! The snapshot says what had been told when it was made. What was told after it stands in the log of
//! events: the beginning of an answer that nobody will ever finish. It is taken in again without a word,
//! so that the items that are open can be closed and the numbers go on.

use std::collections::{HashMap, HashSet};

use haft_core::{CallOutput, Item, ItemKind, ItemStatus, is_provider_item};
use haft_engine::EventKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::Answer;
use super::behind::Behind;
use super::event::WireEvent;
use super::items::{HostedCall, OutputItem};
use super::output::Output;
use super::searching::Search;
use super::translator::{Running, Translator};
use super::unseen::Calls;
use crate::history::Unsaid;
use crate::wire::{ResponseResource, ResponseStatus};

/// How far a translation has come, between two answers of the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    next: u64,
    items: Vec<Option<OutputItem>>,
    ids: Vec<String>,
    turn: u64,
    running: HashMap<String, Running>,
    #[serde(default)]
    held: HashMap<String, HostedCall>,
    #[serde(default)]
    searches: HashMap<String, Search>,
    #[serde(default)]
    loaded: Vec<String>,
    /// Searches that are not over and what waits behind them, as the model wrote it.
    #[serde(default)]
    waiting: Vec<(Option<String>, Item)>,
    #[serde(default)]
    behind: Vec<Behind>,
    #[serde(default)]
    calls: Calls,
    #[serde(default)]
    cut_calls: HashSet<String>,
    #[serde(default)]
    unsaid: Option<Unsaid>,
    #[serde(default)]
    called: HashSet<String>,
    pending: HashMap<String, ItemStatus>,
    unexecuted: Vec<(String, CallOutput)>,
    has_answer: bool,
    has_run_tools: bool,
}

impl Translator {
    /// How far it has come. What another process began to tell and did not finish counts for nothing
    /// until that is closed: it stands in the log, and is taken in again from there.
    pub(crate) fn snapshot(&self) -> Snapshot {
        if let Some(put_away) = &self.put_away {
            return put_away.clone();
        }
        let mut ids: Vec<_> = self.output.taken.iter().cloned().collect();
        ids.sort_unstable();
        Snapshot {
            next: self.writer.next(),
            items: self.output.items.clone(),
            ids,
            turn: self.turn,
            running: self.running.clone(),
            held: self.held.clone(),
            searches: self.searches.clone(),
            loaded: self.loaded.clone(),
            waiting: (self.answer.behind_searches())
                .map(|(id, item)| (id.map(str::to_owned), item.clone()))
                .collect(),
            behind: self.behind.clone(),
            calls: self.calls.clone(),
            cut_calls: self.cut_calls.clone(),
            unsaid: self.unsaid.clone(),
            called: self.called.clone(),
            pending: self.pending.clone(),
            unexecuted: self.unexecuted.clone(),
            has_answer: self.has_answer,
            has_run_tools: self.has_run_tools,
        }
    }

    /// This translation, which has not begun, as that of a response that another process began. `log` is
    /// what was told of it. None if the two do not belong together.
    pub(crate) fn restored(
        self,
        resource: Box<ResponseResource>,
        snapshot: Option<Snapshot>,
        log: &[WireEvent],
    ) -> Option<Box<Self>> {
        let mut translator = Self::new(resource, self.translation);
        translator.answer = Answer::new(None, false);
        let mut told = 0;
        if let Some(snapshot) = snapshot {
            told = snapshot.next;
            translator.writer.continue_at(snapshot.next);
            translator.output = Output {
                items: snapshot.items,
                taken: snapshot.ids.into_iter().collect(),
            };
            translator.turn = snapshot.turn;
            translator.running = snapshot.running;
            translator.held = snapshot.held;
            translator.searches = snapshot.searches;
            translator.loaded = snapshot.loaded;
            if snapshot.unsaid.is_some() {
                translator.unsaid = snapshot.unsaid;
            }
            translator.called.extend(snapshot.called);
            translator.pending = snapshot.pending;
            translator.unexecuted = snapshot.unexecuted;
            translator.has_answer = snapshot.has_answer;
            translator.has_run_tools = snapshot.has_run_tools;
            translator.behind = snapshot.behind;
            translator.calls = snapshot.calls;
            translator.cut_calls = snapshot.cut_calls;
            translator.wait_again(snapshot.waiting);
        }
        translator.has_begun = translator.writer.next() > 0 || !log.is_empty();
        let put_away = translator.snapshot();
        let behind = log.iter().filter(|event| event.sequence_number >= told);
        let mut again = Vec::new();
        for event in behind.clone() {
            let body = serde_json::from_str(&event.json).ok()?;
            if let Some(kind) = translated(&event.kind, body) {
                let is_done = matches!(kind, EventKind::ItemFinished { .. });
                again.extend(translator.translate(kind));
                if is_done {
                    again.extend(translator.close_answer());
                }
            }
        }
        // The items that are open here are those that are open for whoever reads the log.
        if !items_of(again.iter()).eq(items_of(behind)) {
            return None;
        }
        if let Some(last) = log.last() {
            translator.writer.continue_at(last.sequence_number + 1);
        }
        // Otherwise it goes on from within a turn, and everything counts.
        translator.put_away = Some(put_away).filter(|_| !again.is_empty());
        if translator.has_begun {
            translator.resource.status = ResponseStatus::InProgress;
        }
        Some(translator)
    }
}

impl Translator {
    /// Puts what waits behind searches where it was. Nothing of it was told.
    fn wait_again(&mut self, waiting: Vec<(Option<String>, Item)>) {
        if waiting.is_empty() {
            return;
        }
        for (index, (id, item)) in waiting.into_iter().enumerate() {
            let (kind, shown) = match &item {
                Item::FunctionCall(call) => {
                    let kind = ItemKind::FunctionCall {
                        call_id: call.call_id.clone(),
                        name: call.name.clone(),
                        recovered: call.is_recovered(),
                    };
                    (kind, self.shown(&call.name, call.is_recovered()))
                }
                Item::Message(_) => (ItemKind::Message, None),
                Item::Reasoning(_) => (ItemKind::Reasoning, None),
                Item::Other(members) if is_provider_item(item.kind()) => {
                    let item = members.clone();
                    (ItemKind::Provider { item }, None)
                }
                // No other kind is shown.
                _ => continue,
            };
            self.answer.start(index, id, kind, shown, false);
            self.answer.finish(index, item);
        }
        self.answer.judge();
        self.show();
    }

    /// Closes what was finished, although the answer that it is part of may go on: it goes on as another.
    fn close_answer(&mut self) -> Vec<WireEvent> {
        self.answer.judge();
        self.show();
        self.answer = Answer::new(None, false);
        self.writer.take()
    }
}

/// The events that open and close items.
fn items_of<'e>(events: impl Iterator<Item = &'e WireEvent>) -> impl Iterator<Item = &'e str> {
    let kinds = events.map(|event| &*event.kind);
    kinds.filter(|kind| kind.starts_with("response.output_item."))
}

/// The event of the run that an event of the response told of.
fn translated(kind: &str, mut body: Value) -> Option<EventKind> {
    let index = usize::try_from(body["output_index"].as_u64()?).ok()?;
    let text = |body: &Value| Some(body["delta"].as_str()?.to_owned());
    Some(match kind {
        "response.output_item.added" => EventKind::ItemStarted {
            index,
            id: body["item"]["id"].as_str().map(str::to_owned),
            item: match body["item"]["type"].as_str()? {
                "message" => ItemKind::Message,
                "reasoning" => ItemKind::Reasoning,
                own if is_provider_item(own) => ItemKind::Provider {
                    item: serde_json::from_value(body["item"].take()).ok()?,
                },
                // Calls are told together with the snapshot that knows of them.
                _ => return None,
            },
        },
        "response.output_text.delta" => EventKind::TextDelta {
            index,
            text: text(&body)?,
        },
        "response.refusal.delta" => EventKind::RefusalDelta {
            index,
            text: text(&body)?,
        },
        "response.reasoning.delta" => EventKind::ReasoningDelta {
            index,
            text: text(&body)?,
        },
        "response.reasoning_summary_text.delta" => EventKind::SummaryDelta {
            index,
            part: usize::try_from(body["summary_index"].as_u64()?).ok()?,
            text: text(&body)?,
        },
        "response.output_item.done" => EventKind::ItemFinished {
            index,
            item: serde_json::from_value::<Item>(body["item"].take()).ok()?,
        },
        _ => return None,
    })
}
