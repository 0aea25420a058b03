//! One answer of the model: what of it is shown, and when.
//!
//! An item that was opened is never taken back, so nothing is opened before it is certain that it
//! stays: where a call is demanded, or none may be made, everything waits for the first piece that
//! follows the choice. What the model writes comes out strictly one item after the other, in whatever
//! order its pieces arrive.

use std::collections::BTreeMap;

use haft_core::{AllowedMode, Item, ItemKind, ItemStatus, ToolChoice};

use super::entry::{Entry, State, Undecided};
use super::event::Writer;
use super::items::{HostedCall, OpenItem, Opening, OutputItem, Piece, Place, Shown};

/// The answer that is being written.
#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about one answer"
)]
pub(super) struct Answer {
    choice: Option<ToolChoice>,
    entries: BTreeMap<usize, Entry>,
    /// Something follows the choice: the answer will be used.
    is_released: bool,
    /// Whether messages wait until the whole answer is judged.
    holds_text: bool,
    is_judged: bool,
    /// A call was taken where only one may be.
    has_call: bool,
}

/// What an item becomes that the model has written to its end.
pub(super) enum Closed {
    Item(usize, OutputItem),
    /// A hosted call: its item stays open until there is a result.
    Hosted {
        place: Place,
        call_id: String,
        call: HostedCall,
    },
    /// A hosted call that is not shown before it is decided what becomes of it.
    Held {
        call_id: String,
        call: HostedCall,
    },
}

/// What a call that the model begins is for the client.
#[derive(Debug, Clone)]
pub(super) struct ShownCall {
    pub(super) shown: Shown,
    /// Whether it is decided only by its arguments whether it is shown as a call.
    pub(super) is_held: bool,
    /// Whether its arguments decide if it is shown at all.
    pub(super) undecided: Option<Undecided>,
}

/// Who gives items their ids and places.
pub(super) trait Placing {
    fn place(&mut self, id: Option<&str>, prefix: &str) -> Place;
}

impl Answer {
    pub(super) fn new(choice: Option<ToolChoice>, holds_text: bool) -> Self {
        Self {
            is_released: !is_binding(choice.as_ref()),
            choice,
            holds_text,
            ..Self::default()
        }
    }

    /// The model begins an item; `shown` says what a call is for the client, if it may see it.
    pub(super) fn start(
        &mut self,
        index: usize,
        id: Option<String>,
        kind: ItemKind,
        shown: Option<ShownCall>,
        only_one_call: bool,
    ) {
        let is_held = shown.as_ref().is_some_and(|call| call.is_held);
        let undecided = shown.as_ref().and_then(|call| call.undecided);
        let opening = match kind {
            ItemKind::Message => Some(Opening::Message),
            ItemKind::Reasoning => Some(Opening::Reasoning),
            ItemKind::FunctionCall { call_id, name, .. } => {
                let follows = self.call_follows(&name);
                self.is_released |= follows;
                let is_left_out = only_one_call && (self.has_call || !follows);
                self.has_call |= follows;
                let shown = shown.filter(|_| !is_left_out && self.permits(&name));
                shown.map(|call| Opening::Call {
                    call_id,
                    shown: call.shown,
                })
            }
            ItemKind::Provider { item } => {
                // It fulfils a demand for any tool, and not one for a certain function.
                self.is_released |= !matches!(self.choice, Some(ToolChoice::Function(_)));
                Some(Opening::Provider(item))
            }
            _ => None,
        };
        self.entries.insert(
            index,
            Entry {
                id,
                opening,
                is_held,
                undecided,
                waiting: Vec::new(),
                finished: None,
                state: State::Waiting,
            },
        );
    }

    /// Whether a call of this tool is what the choice demands.
    fn call_follows(&self, name: &str) -> bool {
        match &self.choice {
            Some(ToolChoice::Function(demanded)) => demanded == name,
            _ => self.may_call(),
        }
    }

    /// Whether a call of this tool may be shown at all. An answer with one that may not is used all
    /// the same: the model is told, and nobody else.
    fn permits(&self, name: &str) -> bool {
        match &self.choice {
            Some(ToolChoice::Allowed(allowed)) => {
                self.may_call() && allowed.names.iter().any(|allowed| allowed == name)
            }
            _ => self.may_call(),
        }
    }

    fn may_call(&self) -> bool {
        match &self.choice {
            Some(ToolChoice::None) => false,
            Some(ToolChoice::Allowed(allowed)) => allowed.mode != AllowedMode::None,
            _ => true,
        }
    }

    pub(super) fn add(&mut self, index: usize, piece: Piece) {
        if !self.may_call() && matches!(&piece, Piece::Text(text) if !text.is_empty()) {
            self.is_released = true;
        }
        if let Some(entry) = self.entries.get_mut(&index) {
            entry.waiting.push(piece);
        }
    }

    pub(super) fn finish(&mut self, index: usize, item: Item) {
        if let Item::Message(message) = &item
            && !self.may_call()
            && !message.text().is_empty()
        {
            self.is_released = true;
        }
        if let Some(entry) = self.entries.get_mut(&index) {
            entry.finished = Some(item);
        }
    }

    /// The answer is used as it is.
    pub(super) fn judge(&mut self) {
        self.is_judged = true;
        self.is_released = true;
        for entry in self.entries.values_mut() {
            if entry.undecided.take() == Some(Undecided::Unloaded) {
                entry.opening = None;
            }
        }
    }

    /// A call has loaded its deferred tool: it is shown like any other.
    pub(super) fn load(&mut self, call_id: &str) {
        for entry in self.entries.values_mut() {
            if entry.call_id() == Some(call_id) {
                entry.undecided = None;
            }
        }
    }

    /// A call is left out: it is never shown.
    pub(super) fn leave_out(&mut self, call_id: &str) {
        for entry in self.entries.values_mut() {
            if entry.call_id() == Some(call_id) && matches!(entry.state, State::Waiting) {
                entry.undecided = None;
                entry.opening = None;
            }
        }
    }

    /// The answer is not used; what was not opened never will be.
    pub(super) fn drop_waiting(&mut self) {
        let is_waiting = |entry: &Entry| matches!(entry.state, State::Waiting);
        self.entries.retain(|_, entry| !is_waiting(entry));
    }

    /// Drops the text beside tool calls where a strict format is demanded: only the final text has to match it, and
    /// clients that parse every message would fail on other text. A refusal is kept.
    pub(super) fn drop_text_beside_calls(&mut self) {
        if self.holds_text {
            self.entries.retain(|_, entry| !entry.is_waiting_text());
        }
    }

    /// The answer says this and nothing else. What is open was read by the client and stays.
    pub(super) fn replace_text(&mut self, text: &str) {
        let mut text = Some(text);
        for entry in self.entries.values_mut() {
            if matches!(entry.state, State::Waiting)
                && matches!(entry.opening, Some(Opening::Message))
            {
                entry.replace_text(text.take().unwrap_or_default());
            }
        }
    }

    /// Whether anything of it was shown.
    pub(super) fn has_shown(&self) -> bool {
        let mut entries = self.entries.values();
        entries.any(|entry| !matches!(entry.state, State::Waiting))
    }

    /// A search is over: what stands behind it waits no longer.
    pub(super) fn settle(&mut self, call_id: &str) {
        let mut entries = self.entries.values_mut();
        let search = entries.find(|entry| entry.is_searching() && entry.call_id() == Some(call_id));
        if let Some(search) = search {
            search.state = State::Passed;
        }
    }

    /// No search will come to its end any more.
    pub(super) fn settle_all(&mut self) {
        let searches = self.entries.values_mut().filter(|it| it.is_searching());
        searches.for_each(|search| search.state = State::Passed);
    }

    /// Whether a call is not shown yet because a search in front of it is not over.
    pub(super) fn waits(&self, call_id: &str) -> bool {
        let mut entries = self.entries.values();
        // What is left behind the first of them.
        let is_behind = entries.any(Entry::is_searching);
        let is_it = |entry: &Entry| {
            matches!(entry.state, State::Waiting | State::Searching)
                && entry.call_id() == Some(call_id)
        };
        is_behind && entries.any(is_it)
    }

    /// The searches that are not over and what waits behind them, with the ids that were given.
    pub(super) fn behind_searches(&self) -> impl Iterator<Item = (Option<&str>, &Item)> {
        let entries = self.entries.values();
        let entries = entries.skip_while(|entry| !entry.is_searching());
        let left = entries.filter(|entry| !matches!(entry.state, State::Passed));
        left.filter_map(|entry| Some((entry.id.as_deref(), entry.finished.as_ref()?)))
    }

    /// Shows what can be shown by now, one item after the other. `status_of` says how the last item
    /// of the answer ends; before the answer is judged, the last one stays open.
    pub(super) fn show(
        &mut self,
        placing: &mut dyn Placing,
        writer: &mut Writer,
        status_of: &dyn Fn(&Item) -> ItemStatus,
    ) -> Vec<Closed> {
        let mut closed = Vec::new();
        if !self.is_released {
            return closed;
        }
        while let Some(index) = self.next() {
            let is_last = self.is_last(index);
            let is_judged = self.is_judged;
            let Some(entry) = self.entries.get_mut(&index) else {
                break;
            };
            if entry.is_held {
                closed.extend(entry.hold_back());
                continue;
            }
            if entry.is_search() {
                let Some(item) = entry.search(placing, writer, status_of) else {
                    break;
                };
                closed.push(item);
                continue;
            }
            entry.open(placing, writer);
            let Some(item) = &entry.finished else {
                break;
            };
            // The provider says itself how its own items end.
            let is_certain = is_judged || entry.is_hosted() || entry.is_of_provider();
            if is_last && !is_certain {
                break;
            }
            let status = if is_last {
                status_of(item)
            } else {
                ItemStatus::Completed
            };
            if let State::Open(open) = std::mem::replace(&mut entry.state, State::Passed) {
                match item {
                    Item::FunctionCall(call) if entry.is_hosted() => {
                        closed.extend(hand_over(open, Some(&call.arguments), writer));
                    }
                    item => closed.push(close(open, item, status, writer)),
                }
            }
        }
        closed
    }

    /// The item that is being shown, or the next one that can be.
    fn next(&self) -> Option<usize> {
        let mut open = self.entries.iter();
        if let Some((&index, _)) = open.find(|(_, entry)| matches!(entry.state, State::Open(_))) {
            return Some(index);
        }
        let mut is_searching = false;
        for (&index, entry) in &self.entries {
            match entry.state {
                State::Searching => is_searching = true,
                // A search that waits for another is known all the same.
                State::Waiting if is_searching && self.is_judged && entry.is_search_here() => {
                    return Some(index);
                }
                State::Waiting if !is_searching => {}
                State::Waiting | State::Open(_) | State::Passed => continue,
            }
            if is_searching {
                continue;
            }
            if entry.can_open(self.is_judged, self.holds_text) {
                return Some(index);
            }
            if entry.blocks(self.is_judged) {
                return None;
            }
        }
        None
    }

    /// Whether nothing of the answer would be shown behind this item.
    fn is_last(&self, index: usize) -> bool {
        let mut others = self.entries.iter().filter(|(other, _)| **other != index);
        !others.any(|(_, entry)| {
            matches!(entry.state, State::Waiting)
                && (entry.can_open(self.is_judged, self.holds_text) || entry.blocks(self.is_judged))
        })
    }

    /// Closes what is open although nothing more comes of it: the answer was cut off, or it is not
    /// used and what was shown of it stays.
    pub(super) fn cut(&mut self, status: ItemStatus, writer: &mut Writer) -> Vec<Closed> {
        let mut closed = Vec::new();
        for entry in self.entries.values_mut() {
            if !matches!(entry.state, State::Open(_)) {
                continue;
            }
            if let State::Open(mut open) = std::mem::replace(&mut entry.state, State::Passed) {
                for piece in entry.waiting.drain(..) {
                    open.add(&piece, writer);
                }
                if entry.is_hosted() {
                    closed.extend(hand_over(open, None, writer));
                    continue;
                }
                let at = open.place.output_index;
                let item = open.close(entry.finished.as_ref(), status, writer);
                closed.push(Closed::Item(at, item));
            }
        }
        closed
    }
}

fn close(open: OpenItem, item: &Item, status: ItemStatus, writer: &mut Writer) -> Closed {
    let at = open.place.output_index;
    Closed::Item(at, open.close(Some(item), status, writer))
}

/// The model is done with a call that runs here.
fn hand_over(open: OpenItem, written: Option<&str>, writer: &mut Writer) -> Option<Closed> {
    let (place, call_id, call) = open.hand_over(written, writer)?;
    Some(Closed::Hosted {
        place,
        call_id,
        call,
    })
}

/// Whether an answer can break the choice.
fn is_binding(choice: Option<&ToolChoice>) -> bool {
    match choice {
        None | Some(ToolChoice::Auto) => false,
        Some(ToolChoice::Required | ToolChoice::Function(_) | ToolChoice::None) => true,
        Some(ToolChoice::Allowed(allowed)) => allowed.mode != AllowedMode::Auto,
    }
}
