//! One answer of the model: what of it is shown, and when.
//!
//! An item that was opened is never taken back, so nothing is opened before it is certain that it
//! stays: where a call is demanded, or none may be made, everything waits for the first piece that
//! follows the choice. What the model writes comes out strictly one item after the other, in whatever
//! order its pieces arrive.

use std::collections::BTreeMap;

use haft_core::{AllowedMode, Item, ItemKind, ItemStatus, ToolChoice};

use super::event::Writer;
use super::items::{OpenItem, Opening, OutputItem, Piece, Place, Shown};

/// The answer that is being written.
#[derive(Debug, Default)]
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

#[derive(Debug)]
struct Entry {
    id: Option<String>,
    opening: Option<Opening>,
    /// Pieces that came before the item could be opened.
    waiting: Vec<Piece>,
    /// The item, when the model is done with it.
    finished: Option<Item>,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting,
    Open(OpenItem),
    /// Closed, or a hosted call whose result is still to come.
    Passed,
}

/// What an item becomes that the model has written to its end.
pub(super) enum Closed {
    Item(usize, OutputItem),
    /// A hosted call: its item stays open until there is a result.
    Hosted {
        place: Place,
        call_id: String,
        item_type: String,
        arguments: String,
    },
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
        shown: Option<Shown>,
        only_one_call: bool,
    ) {
        let opening = match kind {
            ItemKind::Message => Some(Opening::Message),
            ItemKind::Reasoning => Some(Opening::Reasoning),
            ItemKind::FunctionCall { call_id, name } => {
                let follows = self.call_follows(&name);
                self.is_released |= follows;
                let is_left_out = only_one_call && (self.has_call || !follows);
                self.has_call |= follows;
                let shown = shown.filter(|_| !is_left_out && self.may_call());
                shown.map(|shown| Opening::Call { call_id, shown })
            }
            _ => None,
        };
        self.entries.insert(
            index,
            Entry {
                id,
                opening,
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
    }

    /// The answer is not used; what was not opened never will be.
    pub(super) fn drop_waiting(&mut self) {
        let is_waiting = |entry: &Entry| matches!(entry.state, State::Waiting);
        self.entries.retain(|_, entry| !is_waiting(entry));
    }

    /// Whether anything of it was shown.
    pub(super) fn has_shown(&self) -> bool {
        let mut entries = self.entries.values();
        entries.any(|entry| !matches!(entry.state, State::Waiting))
    }

    /// Shows what can be shown by now. `status_of` says how an item ends that is the last of its
    /// answer; before the answer is judged, the last one stays open.
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
        let last = self.entries.keys().next_back().copied();
        let (is_judged, holds_text) = (self.is_judged, self.holds_text);
        for (&index, entry) in &mut self.entries {
            let is_last = Some(index) == last;
            if matches!(entry.state, State::Passed) {
                continue;
            }
            if matches!(entry.state, State::Waiting) {
                let Some(opening) = entry.openable(is_judged, holds_text) else {
                    if entry.blocks(is_judged) {
                        break;
                    }
                    continue;
                };
                if let Opening::Call {
                    call_id,
                    shown: Shown::ToolSearch,
                } = &opening
                {
                    let Some(Item::FunctionCall(call)) = &entry.finished else {
                        break;
                    };
                    let place = placing.place(entry.id.as_deref(), "tsc");
                    let at = place.output_index;
                    let item = super::items::search_call(place, call_id, &call.arguments, writer);
                    closed.push(Closed::Item(at, item));
                    entry.state = State::Passed;
                    continue;
                }
                let prefix = match &opening {
                    Opening::Message => "msg",
                    Opening::Reasoning => "rs",
                    Opening::Call { shown, .. } => shown.id_prefix(),
                };
                let place = placing.place(entry.id.as_deref(), prefix);
                entry.state = State::Open(OpenItem::open(place, opening, writer));
            }
            let State::Open(open) = &mut entry.state else {
                continue;
            };
            for piece in entry.waiting.drain(..) {
                open.add(&piece, writer);
            }
            let Some(item) = &entry.finished else {
                break;
            };
            let is_hosted = matches!(
                &entry.opening,
                Some(Opening::Call { shown, .. }) if shown.is_hosted()
            );
            if is_last && !is_judged && !is_hosted {
                break;
            }
            if let State::Open(open) = std::mem::replace(&mut entry.state, State::Passed) {
                closed.push(close(open, entry.opening.as_ref(), item, status_of, writer));
            }
        }
        closed
    }

    /// Closes what is open although the model never finished it: the answer was cut off.
    pub(super) fn cut(&mut self, writer: &mut Writer) -> Vec<Closed> {
        let mut closed = Vec::new();
        for entry in self.entries.values_mut() {
            let is_call = matches!(entry.opening, Some(Opening::Call { .. }));
            if is_call || !matches!(entry.state, State::Open(_)) {
                continue;
            }
            if let State::Open(mut open) = std::mem::replace(&mut entry.state, State::Passed) {
                for piece in entry.waiting.drain(..) {
                    open.add(&piece, writer);
                }
                let at = open.place.output_index;
                let item = open.close(entry.finished.as_ref(), ItemStatus::Incomplete, writer);
                closed.push(Closed::Item(at, item));
            }
        }
        closed
    }
}

fn close(
    open: OpenItem,
    opening: Option<&Opening>,
    item: &Item,
    status_of: &dyn Fn(&Item) -> ItemStatus,
    writer: &mut Writer,
) -> Closed {
    if let (
        Some(Opening::Call {
            call_id,
            shown: Shown::Hosted { item_type },
        }),
        Item::FunctionCall(call),
    ) = (opening, item)
    {
        return Closed::Hosted {
            place: open.place,
            call_id: call_id.clone(),
            item_type: item_type.clone(),
            arguments: call.arguments.clone(),
        };
    }
    let at = open.place.output_index;
    Closed::Item(at, open.close(Some(item), status_of(item), writer))
}

impl Entry {
    /// What it can be opened as by now.
    fn openable(&self, is_judged: bool, holds_text: bool) -> Option<Opening> {
        let opening = self.opening.clone()?;
        let can_open = match &opening {
            Opening::Message => self.has_words() && (is_judged || !holds_text),
            Opening::Reasoning => self.has_words(),
            Opening::Call { .. } => true,
        };
        can_open.then_some(opening)
    }

    /// Whether later items wait for it: it will be shown, and is not yet.
    fn blocks(&self, is_judged: bool) -> bool {
        !is_judged && self.opening.is_some() && self.has_words()
    }

    /// Whether there is anything in it to be seen.
    fn has_words(&self) -> bool {
        let has_pieces = self.waiting.iter().any(|piece| match piece {
            Piece::Text(text)
            | Piece::Refusal(text)
            | Piece::Thought(text)
            | Piece::Summary { text, .. } => !text.is_empty(),
            Piece::Arguments(_) => false,
        });
        has_pieces
            || match &self.finished {
                Some(Item::Message(message)) => message.content.iter().any(|part| match part {
                    haft_core::ContentPart::Refusal { refusal } => !refusal.is_empty(),
                    other => other.text().is_some_and(|text| !text.is_empty()),
                }),
                Some(Item::Reasoning(reasoning)) => {
                    !reasoning.content.is_empty()
                        || !reasoning.summary.is_empty()
                        || reasoning.encrypted_content.is_some()
                }
                _ => false,
            }
    }
}

/// Whether an answer can break the choice.
fn is_binding(choice: Option<&ToolChoice>) -> bool {
    match choice {
        None | Some(ToolChoice::Auto) => false,
        Some(ToolChoice::Required | ToolChoice::Function(_) | ToolChoice::None) => true,
        Some(ToolChoice::Allowed(allowed)) => allowed.mode != AllowedMode::Auto,
    }
}
