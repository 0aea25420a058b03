//! The events of one run become the events of one response.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::{CallOutput, FinishReason, Item, ItemStatus, Role, ToolCall, Usage};
use haft_engine::{End, EventKind};
use haft_mcp::CallLog;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::history::{DEFERRAL, TURN, Unsaid};
use crate::mcp::QuestionIds;
use crate::toolkit::Declared;

use crate::wire::{
    Include, IncompleteDetails, ResponseError, ResponseResource, ResponseStatus, UsageBody, new_id,
};

use super::answer::{Answer, Closed, Placing, ShownCall};
use super::behind::{Behind, Invoked};
use super::event::{WireEvent, Writer};
use super::items::{self, HostedCall, OutputItem, Piece, Place};
use super::searching::Search;
use super::snapshot::Snapshot;
use super::unseen::Calls;

pub(crate) use super::items::Shown;

/// What the translation of a run depends on, besides its events.
#[derive(Debug, Clone, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent wishes of one request"
)]
pub(crate) struct Translation {
    /// What each tool is for the client, by the name that the model calls it by.
    pub(crate) tools: HashMap<String, Shown>,
    /// The tools about whose calls somebody may be asked, by the same name.
    pub(crate) asking: HashSet<String>,
    /// Gives questions ids that nobody else can make.
    pub(crate) questions: Option<QuestionIds>,
    /// Hears what MCP servers say to calls.
    pub(crate) calls: Arc<CallLog>,
    /// The tools as their client declared them, by the name that the model calls them by.
    pub(crate) declared: Arc<HashMap<String, Declared>>,
    /// The tools that cannot be called before they are found, by the same name.
    pub(crate) held: HashSet<String>,
    /// What is to be remembered of searches that nobody sees; none where there are none.
    pub(crate) unsaid: Option<Unsaid>,
    pub(crate) include: Include,
    /// Whether an answer may hold several calls.
    pub(crate) is_parallel: bool,
    /// Whether messages wait until it is certain that they are valid.
    pub(crate) holds_text: bool,
    /// Whether vendor events are sent.
    pub(crate) has_vendor_events: bool,
    /// Whether a response that waits for its client says so.
    pub(crate) is_agentic: bool,
}

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

/// What is left of the items when a response is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// What the client may see, and all that the next response needs.
    Everything,
    /// What the client may see.
    Shown,
}

/// The items by their place; those that are not done yet are holes.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) items: Vec<Option<OutputItem>>,
    /// The ids that were given, also those of items that are not done.
    pub(super) taken: HashSet<String>,
}

impl Placing for Output {
    fn place(&mut self, id: Option<&str>, prefix: &str) -> Place {
        let is_ours = |id: &str| {
            let rest = id.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with('_')) && id.len() <= 128
        };
        let id = id.filter(|id| is_ours(id) && !self.taken.contains(*id));
        let item_id = id.map_or_else(|| new_id(prefix), str::to_owned);
        self.taken.insert(item_id.clone());
        self.items.push(None);
        Place {
            item_id,
            output_index: self.items.len() - 1,
        }
    }
}

/// How a response ended: what is stored before anybody is told.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The resource, without its items.
    pub(crate) resource: Box<ResponseResource>,
    /// The items as the client may see them.
    pub(crate) shown: Vec<Value>,
    /// Whole; none where only what is shown is kept.
    pub(crate) items: Vec<OutputItem>,
    /// The last events, the terminal one included: to be sent when the response is stored.
    pub(crate) events: Vec<WireEvent>,
}

impl Finished {
    /// The same response, which could not be stored: then it has failed, and nobody may rely on it.
    pub(crate) fn unstored(self, error: &ApiError) -> Self {
        // What was told of items stays; the end is another.
        let is_end = |event: &WireEvent| {
            matches!(
                &*event.kind,
                "error" | "response.completed" | "response.incomplete" | "response.failed"
            )
        };
        let mut events = self.events;
        let end = events.iter().position(is_end).unwrap_or(events.len());
        let next = events.get(end).map(|event| event.sequence_number);
        events.truncate(end);
        let mut resource = self.resource;
        resource.completed_at = None;
        resource.incomplete_details = None;
        let mut translator = Translator::new(resource, Translation::default());
        translator.writer.continue_at(next.unwrap_or_default());
        translator.output.items = self.items.into_iter().map(Some).collect();
        let mut failed = translator.fail(error);
        events.append(&mut failed.events);
        Self { events, ..failed }
    }
}

impl Translator {
    pub(crate) fn new(resource: Box<ResponseResource>, translation: Translation) -> Box<Self> {
        Box::new(Self {
            writer: Writer::new(translation.include),
            unsaid: translation.unsaid.clone(),
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

    pub(crate) fn resource(&self) -> &ResponseResource {
        &self.resource
    }

    /// How many items are finished.
    pub(crate) fn finished_items(&self) -> usize {
        self.output.items.iter().flatten().count()
    }

    /// Whether a tool ran here: then the request must not be repeated.
    pub(crate) fn has_run_tools(&self) -> bool {
        self.has_run_tools
    }

    /// Tells the response as it is now, by each of these events.
    fn write_response(&mut self, kinds: &[&'static str]) {
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
            EventKind::ItemStarted { index, id, item } => {
                let shown = match &item {
                    haft_core::ItemKind::FunctionCall { name, .. } => self.shown(name),
                    _ => None,
                };
                let only_one = !self.translation.is_parallel;
                self.answer.start(index, id, item, shown, only_one);
                self.show();
            }
            EventKind::TextDelta { index, text } => self.piece(index, Piece::Text(text)),
            EventKind::RefusalDelta { index, text } => self.piece(index, Piece::Refusal(text)),
            EventKind::ReasoningDelta { index, text } => self.piece(index, Piece::Thought(text)),
            EventKind::SummaryDelta { index, part, text } => {
                self.piece(index, Piece::Summary { part, text });
            }
            EventKind::ArgumentsDelta { index, text } => {
                self.piece(index, Piece::Arguments(text));
            }
            EventKind::ItemFinished { index, item } => {
                self.answer.finish(index, item);
                self.show();
            }
            EventKind::ToolCallsRequested { calls } => {
                self.cut_calls = calls.iter().filter_map(cut_id).collect();
                self.answer.judge();
                self.show();
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
            EventKind::ToolProgress { call_id, progress } => {
                if let Some(running) = self.running.get(&call_id)
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
            _ => {}
        }
        self.writer.take()
    }

    pub(super) fn shown(&self, name: &str) -> Option<ShownCall> {
        let shown = self.translation.tools.get(name)?.clone();
        let is_loaded = || self.loaded.iter().any(|loaded| loaded == name);
        if self.translation.held.contains(name) && !is_loaded() {
            return None;
        }
        let is_held = match shown {
            Shown::InternalSearch => return None,
            Shown::ServerSearch => true,
            _ => self.translation.asking.contains(name),
        };
        Some(ShownCall { shown, is_held })
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

    fn keep(&mut self, closed: Vec<Closed>) {
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
            Item::FunctionCall(call) => self.call_made(call),
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

    fn show_unexecuted(&mut self) {
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

    /// The run is over: closes what is open, and gives what is to be stored and the last events.
    pub(crate) fn finish(mut self: Box<Self>, end: &End, usage: &Usage, now: i64) -> Finished {
        match end {
            End::Completed | End::Waiting(_) => {
                self.answer.judge();
                self.release();
                if !self.has_answer && matches!(end, End::Completed) {
                    self.add_empty_message();
                }
                // Behind a call that somebody is asked about, others may have been held back.
                self.close_running();
            }
            End::Incomplete { reason, .. } => self.close_incomplete(reason.as_str()),
            _ => {}
        }
        self.resource.usage = Some(UsageBody::from(usage));
        match end {
            End::Completed | End::Waiting(_) => {
                let is_waiting = matches!(end, End::Waiting(_)) && self.translation.is_agentic;
                self.resource.status = if is_waiting {
                    ResponseStatus::RequiresAction
                } else {
                    ResponseStatus::Completed
                };
                self.resource.completed_at = Some(now);
                self.terminal("response.completed")
            }
            End::Incomplete { reason, .. } => {
                self.resource.status = ResponseStatus::Incomplete;
                self.resource.incomplete_details = Some(IncompleteDetails {
                    reason: reason.as_str().to_owned(),
                });
                self.terminal("response.incomplete")
            }
            End::Failed { reason, message } => {
                let error = crate::failure::of_run(reason, message);
                self.fail(&error)
            }
            // `End` may grow; whatever it is, the response did not come to its end.
            _ => self.cancel(),
        }
    }

    /// Ends the response without asking the model.
    pub(crate) fn warm_up(mut self: Box<Self>, now: i64) -> Finished {
        self.resource.usage = Some(UsageBody::from(&Usage::default()));
        self.resource.status = ResponseStatus::Completed;
        self.resource.completed_at = Some(now);
        self.terminal("response.completed")
    }

    /// Ends the response with an error.
    pub(crate) fn fail(mut self: Box<Self>, error: &ApiError) -> Finished {
        #[derive(Serialize)]
        struct ErrorEvent<'e> {
            error: crate::error::ErrorBody<'e>,
        }
        tracing::warn!(
            id = self.resource.id,
            code = error.code.as_str(),
            "a response failed"
        );
        let body = ErrorEvent {
            error: error.body(),
        };
        self.writer.write("error", &body);
        self.resource.status = ResponseStatus::Failed;
        self.resource.error = Some(ResponseError {
            code: error.code.as_str().to_owned(),
            message: error.message.clone(),
        });
        self.terminal("response.failed")
    }

    /// Ends the response because somebody wanted it to stop.
    pub(crate) fn cancel(mut self: Box<Self>) -> Finished {
        self.resource.status = ResponseStatus::Cancelled;
        self.resource.error = Some(ResponseError {
            code: "response_cancelled".to_owned(),
            message: "the response was cancelled before it was finished".to_owned(),
        });
        self.terminal("response.failed")
    }

    fn close_incomplete(&mut self, reason: &str) {
        let is_cut = matches!(reason, "max_output_tokens" | "content_filter");
        let is_judged_whole = !is_cut;
        self.searches.clear();
        self.answer.settle_all();
        if is_judged_whole {
            self.answer.judge();
            self.show();
            // Nothing comes behind an item that was cut off.
            if !self.has_cut_item() {
                self.show_unexecuted();
            }
        }
        // The last item was cut off: by the limit, or because the time was over.
        self.answer.judge();
        let status = |_: &Item| ItemStatus::Incomplete;
        let closed = self
            .answer
            .show(&mut self.output, &mut self.writer, &status);
        self.keep(closed);
        let closed = self.answer.cut(ItemStatus::Incomplete, &mut self.writer);
        self.keep(closed);
        self.tell_behind();
        self.close_running();
    }

    pub(super) fn has_cut_item(&self) -> bool {
        let mut items = self.output.items.iter().flatten();
        items.any(|item| item.json["status"] == "incomplete")
    }

    fn add_empty_message(&mut self) {
        let place = self.output.place(None, "msg");
        let at = place.output_index;
        let open = items::OpenItem::open(place, items::Opening::Message, &mut self.writer);
        let item = open.close(None, ItemStatus::Completed, &mut self.writer);
        self.output.items[at] = Some(item);
    }

    fn terminal(mut self: Box<Self>, kind: &'static str) -> Finished {
        self.note_unseen();
        let mut items: Vec<OutputItem> = self.output.items.drain(..).flatten().collect();
        if let (Some(last), Some(unsaid)) = (items.last_mut(), &self.unsaid) {
            last.json[DEFERRAL] = json!(unsaid);
        }
        let include = self.translation.include;
        let (whole, items) = match self.keeping {
            Keeping::Everything => (items.iter().map(|item| item.json.clone()).collect(), items),
            Keeping::Shown => (
                items.into_iter().map(|item| item.json).collect(),
                Vec::new(),
            ),
        };
        let visible = <Vec<_>>::into_iter(whole).map(|item| items::visible(item, include));
        self.resource.output = visible.collect();
        self.write_response(&[kind]);
        Finished {
            shown: std::mem::take(&mut self.resource.output),
            resource: self.resource,
            items,
            events: self.writer.take(),
        }
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
