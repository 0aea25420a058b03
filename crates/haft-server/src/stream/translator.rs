//! The events of one run become the events of one response.

use std::collections::{HashMap, HashSet};

use haft_core::{
    CallOutput, ContentPart, FinishReason, Item, ItemKind, ItemStatus, Message, Role, ToolCall,
    ToolProgress,
};
use haft_engine::EventKind;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::history::{TURN, Unsaid};
use crate::wire::{ResponseResource, ResponseStatus, TextMessage};

use super::answer::{Answer, Closed, Placing as _, ShownCall};
use super::behind::{Behind, Invoked};
use super::entry::Undecided;
use super::event::{WireEvent, Writer};
use super::items::{self, HostedCall, OpenItem, Opening, Piece, Place, Shown};
use super::output::{Keeping, Output};
use super::searching::Search;
use super::snapshot::Snapshot;
use super::translation::Translation;
use super::unseen::Calls;

/// Writes the events of one response.
#[derive(Debug)]
pub(crate) struct Translator {
    pub(super) translation: Translation,
    pub(super) resource: Box<ResponseResource>,
    pub(super) writer: Writer,
    pub(super) output: Output,
    pub(super) answer: Answer,
    pub(super) turn: u64,
    /// Hosted calls without result, by call id.
    pub(super) running: HashMap<String, Running>,
    /// Hosted calls that are not shown yet, by call id: it is not decided what becomes of them.
    pub(super) held: HashMap<String, HostedCall>,
    /// Searches for tools that are not over, by call id.
    pub(super) searches: HashMap<String, Search>,
    /// What they have found.
    pub(super) loaded: Vec<String>,
    /// What became of calls that wait behind them.
    pub(super) behind: Vec<Behind>,
    /// The calls, for those among them that nobody sees.
    pub(super) calls: Calls,
    /// The tools whose calls may repeat an earlier one, by the name that the model calls them by: those that were
    /// called before, where repeated calls are left out.
    pub(super) called: HashSet<String>,
    /// The calls of the last answer that the token limit fell into.
    pub(super) cut_calls: HashSet<String>,
    /// What is to be remembered of searches that nobody sees.
    pub(super) unsaid: Option<Unsaid>,
    /// Calls of the client that are open, and whether their items are whole.
    pub(super) pending: HashMap<String, ItemStatus>,
    /// What calls of the client were answered with that were not made. Shown where the response
    /// goes on behind them: at its end they are the client's to answer.
    pub(super) unexecuted: Vec<(String, CallOutput)>,
    /// Whether the last answer showed anything.
    pub(super) has_answer: bool,
    /// Whether a tool of this server was started.
    pub(super) has_run_tools: bool,
    /// Whether the first events were told.
    pub(super) has_begun: bool,
    pub(super) keeping: Keeping,
    /// The only item, where nobody needs more of it than its text.
    pub(super) text_only: Option<TextMessage>,
    /// How far it had come before the answer that another process did not finish; until the next
    /// one begins.
    pub(super) put_away: Option<Snapshot>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) place: Place,
    #[serde(flatten)]
    pub(super) call: HostedCall,
}

impl Translator {
    pub(crate) fn new(resource: Box<ResponseResource>, translation: Translation) -> Box<Self> {
        Box::new(Self {
            writer: Writer::new(translation.view.clone(), translation.raw_as_summary),
            unsaid: translation.unsaid.clone(),
            called: translation.called.clone().unwrap_or_default(),
            translation,
            resource,
            output: Output::default(),
            answer: Answer::default(),
            turn: 0,
            running: HashMap::new(),
            held: HashMap::new(),
            searches: HashMap::new(),
            loaded: Vec::new(),
            behind: Vec::new(),
            calls: Calls::default(),
            cut_calls: HashSet::new(),
            pending: HashMap::new(),
            unexecuted: Vec::new(),
            has_answer: false,
            has_run_tools: false,
            has_begun: false,
            keeping: Keeping::Everything,
            text_only: None,
            put_away: None,
        })
    }

    /// Nobody will hear of events: they are not written.
    pub(crate) fn mute(&mut self) {
        self.writer.mute();
    }

    /// Nobody will go on from this response: what only a model needs to know of its items is not kept.
    pub(crate) fn keep_only_shown(&mut self) {
        self.keeping = Keeping::Shown;
    }

    /// The first events: the response is there, and it is being worked on. Nothing where another
    /// process has told so.
    pub(crate) fn begin(&mut self) -> Vec<WireEvent> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Vec::new();
        }
        if self.resource.status == ResponseStatus::Queued {
            self.write_response(&["response.created", "response.queued"]);
            self.resource.status = ResponseStatus::InProgress;
            self.write_response(&["response.in_progress"]);
        } else {
            self.resource.status = ResponseStatus::InProgress;
            self.write_response(&["response.created", "response.in_progress"]);
        }
        self.writer.take()
    }

    /// Takes in thoughts and messages of the model that are whole, as the one answer of a response.
    pub(crate) fn take_answer(&mut self, mut items: Vec<Item>) {
        self.has_answer = true;
        if self.keeping == Keeping::Shown
            && self.output.items.is_empty()
            && let [Item::Message(message)] = items.as_mut_slice()
            && let Some(text) = only_text(message)
        {
            let place = self.output.place(message.id.as_deref(), "msg");
            let id = place.item_id;
            self.text_only = Some(TextMessage { id, text });
            return;
        }
        for item in &items {
            let (opening, prefix) = match item {
                Item::Reasoning(_) => (Opening::Reasoning, "rs"),
                _ => (Opening::Message, "msg"),
            };
            let place = self.output.place(item.id(), prefix);
            let at = place.output_index;
            let open = OpenItem::open(place, opening, &mut self.writer);
            let item = open.close(Some(item), ItemStatus::Completed, &mut self.writer);
            self.output.items[at] = Some(item);
        }
    }

    pub(crate) fn resource(&self) -> &ResponseResource {
        &self.resource
    }

    /// How many items are finished.
    pub(crate) fn finished_items(&self) -> usize {
        let others = self.output.items.iter().flatten().count();
        others + usize::from(self.text_only.is_some())
    }

    /// Whether a tool ran here: then the request must not be repeated.
    pub(crate) fn has_run_tools(&self) -> bool {
        self.has_run_tools
    }

    /// Tells the response as it is now, by each of these events.
    pub(super) fn write_response(&mut self, kinds: &[&'static str]) {
        #[derive(Serialize)]
        struct Lifecycle<'e> {
            response: &'e RawValue,
        }
        // Written once, however often it is told.
        let response = if self.writer.is_heard() {
            to_raw_value(&self.resource).unwrap_or_default()
        } else {
            Box::default()
        };
        for kind in kinds {
            let response = &*response;
            self.writer.write(kind, &Lifecycle { response });
        }
    }

    /// Adds an item that stands in front of what the model writes.
    pub(crate) fn add_whole(
        &mut self,
        prefix: &str,
        json: impl FnOnce(&str) -> Value,
    ) -> Vec<WireEvent> {
        let place = self.output.place(None, prefix);
        let at = place.output_index;
        let json = json(&place.item_id);
        let item = items::whole(place, json, &mut self.writer);
        self.output.items[at] = Some(item);
        // Until the model is asked, it is all the answer that there is.
        self.has_answer = true;
        self.writer.take()
    }

    /// Takes one event in and gives those that follow from it.
    pub(crate) fn translate(&mut self, event: EventKind) -> Vec<WireEvent> {
        let Some(event) = self.put_behind(event) else {
            return Vec::new();
        };
        match event {
            EventKind::TurnStarted { turn, tool_choice } => {
                self.release();
                let closed = self.answer.cut(ItemStatus::Completed, &mut self.writer);
                self.keep(closed);
                self.put_away = None;
                self.place_unseen();
                self.show_unexecuted();
                self.turn = turn;
                self.has_answer = false;
                self.answer = Answer::new(tool_choice, self.translation.holds_text);
            }
            EventKind::ItemStarted { index, id, item } => self.start_item(index, id, item),
            EventKind::TextDelta { index, text } => self.piece(index, Piece::Text(text)),
            EventKind::RefusalDelta { index, text } => self.piece(index, Piece::Refusal(text)),
            EventKind::ReasoningDelta { index, text } => self.piece(index, Piece::Thought(text)),
            EventKind::SummaryDelta { index, part, text } => {
                self.piece(index, Piece::Summary { part, text });
            }
            EventKind::ArgumentsDelta { index, text } => {
                self.piece(index, Piece::Arguments(text));
            }
            EventKind::ProviderEvent { index, body } => self.piece(index, Piece::Provider(body)),
            EventKind::ItemFinished { index, item } => {
                self.answer.finish(index, item);
                self.show();
            }
            EventKind::FenceRemoved { text } => self.answer.replace_text(&text),
            EventKind::ToolCallsRequested { calls } => {
                self.cut_calls = calls.iter().filter_map(cut_id).collect();
                self.answer.drop_text_beside_calls();
                self.answer.judge();
                self.show();
            }
            EventKind::RepeatedCallSuppressed {
                tool_name,
                call_id,
                count,
            } => {
                self.answer.leave_out(&call_id);
                if self.translation.has_vendor_events {
                    let event = json!({"name": tool_name, "call_id": call_id, "count": count});
                    self.writer.write("haft:repeated_call_suppressed", &event);
                }
            }
            EventKind::ToolLoaded { tool_name, call_id } => {
                self.loaded_by_call(&tool_name, &call_id);
            }
            EventKind::ToolsFound {
                call_id,
                tool_names,
            } => self.found(&call_id, &tool_names),
            EventKind::ToolInvoked {
                call_id,
                success,
                error_kind,
                duration_ms,
                repaired,
                output,
                ..
            } => {
                self.drop_held_behind_cut();
                let invoked = Invoked {
                    success,
                    error_kind: error_kind.map(str::to_owned),
                    duration_ms,
                    repaired,
                    output,
                };
                if !self.search_done(&call_id, &invoked.output) {
                    self.invoked(&call_id, &invoked);
                }
            }
            EventKind::ToolStarted { call_id, .. } => {
                self.show_held(&call_id);
                self.has_run_tools = true;
            }
            EventKind::ApprovalRequested {
                call_id, arguments, ..
            } => self.ask(&call_id, &arguments),
            EventKind::ItemAdded { item, .. } => self.item_added(item),
            EventKind::ToolProgress { call_id, progress } => self.progress(&call_id, &progress),
            _ => {}
        }
        self.writer.take()
    }

    fn start_item(&mut self, index: usize, id: Option<String>, item: ItemKind) {
        if !self.shows(&item) {
            return;
        }
        let shown = match &item {
            ItemKind::FunctionCall {
                name, recovered, ..
            } => self.shown(name, *recovered),
            _ => None,
        };
        let only_one = !self.translation.is_parallel;
        self.answer.start(index, id, item, shown, only_one);
        self.show();
    }

    /// Passes on what a running call reports, to clients that asked for such events.
    fn progress(&mut self, call_id: &str, progress: &ToolProgress) {
        if let Some(running) = self.running.get(call_id)
            && self.translation.has_vendor_events
        {
            let event = json!({
                "item_id": running.place.item_id,
                "output_index": running.place.output_index,
                "progress": progress,
            });
            self.writer.write("haft:tool_progress", &event);
        }
    }

    /// Whether the client asked for anything that items of this kind come of.
    fn shows(&self, item: &ItemKind) -> bool {
        let ItemKind::Provider { item } = item else {
            return true;
        };
        let item_type = item.get("type").and_then(Value::as_str).unwrap_or_default();
        self.translation.provider.declares_item(item_type)
    }

    pub(super) fn shown(&self, name: &str, is_recovered: bool) -> Option<ShownCall> {
        let shown = self.translation.tools.get(name)?.clone();
        let is_loaded = || self.loaded.iter().any(|loaded| loaded == name);
        let undecided = if self.translation.held.contains(name) && !is_loaded() {
            Some(Undecided::Unloaded)
        } else {
            let is_called = self.called.contains(name);
            is_called.then_some(Undecided::Repeated)
        };
        let is_held = match shown {
            Shown::InternalSearch => return None,
            Shown::ServerSearch => true,
            // A call that was recovered from text may need approval, whatever the tool.
            Shown::Mcp { .. } | Shown::Hosted { .. } if is_recovered => true,
            _ => self.translation.asking.contains(name),
        };
        Some(ShownCall {
            shown,
            is_held,
            undecided,
        })
    }

    fn piece(&mut self, index: usize, piece: Piece) {
        self.answer.add(index, piece);
        self.show();
    }

    pub(super) fn show(&mut self) {
        let cut_calls = &self.cut_calls;
        let status_of = |item: &Item| match item {
            Item::FunctionCall(call) if cut_calls.contains(&call.call_id) && is_cut(call) => {
                ItemStatus::Incomplete
            }
            _ => ItemStatus::Completed,
        };
        let closed = self
            .answer
            .show(&mut self.output, &mut self.writer, &status_of);
        self.keep(closed);
    }

    pub(super) fn keep(&mut self, closed: Vec<Closed>) {
        self.has_answer |= self.answer.has_shown();
        for closed in closed {
            match closed {
                Closed::Item(at, mut item) => {
                    if let Some(call_id) = open_call_of(&item.json) {
                        let status = match item.json["status"].as_str() {
                            Some("incomplete") => ItemStatus::Incomplete,
                            _ => ItemStatus::Completed,
                        };
                        self.pending.insert(call_id, status);
                        item.json[TURN] = self.turn.into();
                    }
                    self.output.items[at] = Some(item);
                }
                Closed::Hosted {
                    place,
                    call_id,
                    call,
                } => {
                    self.running.insert(call_id, Running { place, call });
                }
                Closed::Held { call_id, call } if call.item_type == items::SEARCH_CALL => {
                    let begun = Search::begun(call.arguments);
                    self.searches.entry(call_id).or_insert(begun);
                }
                Closed::Held { call_id, call } => {
                    self.held.insert(call_id, call);
                }
            }
        }
    }

    fn item_added(&mut self, item: Item) {
        if let Item::FunctionCallOutput(output) = &item {
            self.call_answered(output);
        }
        match item {
            Item::FunctionCall(call) => {
                if self.translation.called.is_some() {
                    self.called.insert(call.name.clone());
                }
                self.call_made(call);
            }
            // The host complains about an answer: it was not valid and nobody saw it.
            Item::Message(message) if message.role != Role::Assistant => {
                self.answer.drop_waiting();
            }
            // A call of the client that was not made: the history needs its end.
            Item::FunctionCallOutput(output)
                if self.pending.remove(&output.call_id) == Some(ItemStatus::Completed) =>
            {
                self.unexecuted.push((output.call_id, output.output));
            }
            _ => {}
        }
    }

    pub(super) fn show_unexecuted(&mut self) {
        for (call_id, output) in std::mem::take(&mut self.unexecuted) {
            self.unexecuted(&call_id, &output);
        }
    }

    fn unexecuted(&mut self, call_id: &str, output: &CallOutput) {
        let calls = self.output.items.iter().flatten();
        let mut calls = calls.filter(|item| item.json["call_id"] == call_id);
        let is_custom = calls.any(|item| item.json["type"] == "custom_tool_call");
        let (prefix, kind) = if is_custom {
            ("ctco", "custom_tool_call_output")
        } else {
            ("fco", "function_call_output")
        };
        let place = self.output.place(None, prefix);
        let at = place.output_index;
        let json = json!({
            "id": place.item_id, "type": kind, "status": "completed",
            "call_id": call_id, "output": output, "is_error": true,
        });
        self.output.items[at] = Some(items::whole(place, json, &mut self.writer));
    }
}

/// The id of a call that its client is to answer.
fn open_call_of(item: &Value) -> Option<String> {
    let kind = item["type"].as_str()?;
    matches!(
        kind,
        "function_call" | "custom_tool_call" | "tool_search_call"
    )
    .then(|| item["call_id"].as_str().map(str::to_owned))?
}

/// The id of a call that the token limit may have fallen into.
fn cut_id(asked: &ToolCall) -> Option<String> {
    let is_last = asked.finish == FinishReason::Length;
    asked.call_id.clone().filter(|_| is_last)
}

/// Whether it did.
fn is_cut(call: &haft_core::FunctionCall) -> bool {
    call.status == Some(ItemStatus::Incomplete)
        || serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_err()
}

/// The text of a message that is one text and nothing else, taken out of it.
fn only_text(message: &mut Message) -> Option<String> {
    let [
        ContentPart::OutputText {
            text,
            annotations,
            extra,
        },
    ] = message.content.as_mut_slice()
    else {
        return None;
    };
    let is_bare = |(key, value): (&String, &Value)| key == "logprobs" && *value == json!([]);
    let is_plain = annotations.is_empty() && extra.iter().all(is_bare);
    (is_plain && message.extra.is_empty()).then(|| std::mem::take(text))
}
