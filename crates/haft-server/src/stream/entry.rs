//! One item of an answer, as far as the model has come with it.

use haft_core::{ContentPart, Item, ItemStatus};
use serde_json::{Map, Value};

use super::answer::{Closed, Placing};
use super::event::Writer;
use super::items::{OpenItem, Opening, Piece, Shown};
use crate::wire::foreign_prefix;

/// What the id of a provider's item begins with: the provider's own prefix, which clients know the type by.
fn provider_prefix<'i>(id: Option<&'i str>, announced: &'i Map<String, Value>) -> &'i str {
    let own = id
        .and_then(|id| id.split_once('_'))
        .map(|(prefix, _)| prefix);
    let kind = announced.get("type").and_then(Value::as_str);
    own.filter(|prefix| !prefix.is_empty())
        .or_else(|| kind.and_then(foreign_prefix))
        .unwrap_or("item")
}

/// One item.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: Option<String>,
    pub(super) opening: Option<Opening>,
    /// Whether it is handed on unseen once the model is done with it.
    pub(super) is_held: bool,
    /// Whether its arguments decide if it is shown: a call that is left out is never opened.
    pub(super) undecided: Option<Undecided>,
    /// Pieces that came before the item could be opened.
    pub(super) waiting: Vec<Piece>,
    /// The item, when the model is done with it.
    pub(super) finished: Option<Item>,
    pub(super) state: State,
}

/// What is not known of a call before its arguments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undecided {
    /// It calls a deferred tool that is not loaded: only a call with valid arguments loads it and is shown.
    Unloaded,
    /// Its tool was called before: a call that repeats an earlier one may be left out.
    Repeated,
}

/// How far it has come.
#[derive(Debug)]
pub(super) enum State {
    Waiting,
    Open(OpenItem),
    /// A search of this server that is not over: what the model wrote behind it waits.
    Searching,
    /// Closed, or a hosted call whose result is still to come.
    Passed,
}

impl Entry {
    /// Whether it can be shown by now.
    pub(super) fn can_open(&self, is_judged: bool, holds_text: bool) -> bool {
        if self.undecided.is_some() {
            return false;
        }
        if self.is_held {
            return is_judged;
        }
        match &self.opening {
            None => false,
            Some(Opening::Message) => self.has_words() && (is_judged || !holds_text),
            Some(Opening::Reasoning) => self.has_words(),
            Some(Opening::Call { .. } | Opening::Provider(_)) => true,
        }
    }

    /// Opens it if it is not open, and adds what has come since.
    pub(super) fn open(&mut self, placing: &mut dyn Placing, writer: &mut Writer) {
        if let (State::Waiting, Some(opening)) = (&self.state, &self.opening) {
            let prefix = match opening {
                Opening::Message => "msg",
                Opening::Reasoning => "rs",
                Opening::Call { shown, .. } => shown.id_prefix(),
                Opening::Provider(announced) => provider_prefix(self.id.as_deref(), announced),
            };
            let place = placing.place(self.id.as_deref(), prefix);
            self.state = State::Open(OpenItem::open(place, opening.clone(), writer));
        }
        if let State::Open(open) = &mut self.state {
            for piece in self.waiting.drain(..) {
                open.add(&piece, writer);
            }
        }
    }

    /// Puts another text in place of what a message says.
    pub(super) fn replace_text(&mut self, text: &str) {
        self.waiting = vec![Piece::Text(text.to_owned())];
        if let Some(Item::Message(message)) = &mut self.finished {
            message.content = vec![ContentPart::output_text(text)];
        }
    }

    /// Whether it is a message without a refusal that was not shown yet.
    pub(super) fn is_waiting_text(&self) -> bool {
        let is_waiting = matches!(self.state, State::Waiting);
        let is_refusal = |piece: &Piece| matches!(piece, Piece::Refusal(_));
        let has_refusal = match &self.finished {
            Some(Item::Message(message)) => {
                let mut parts = message.content.iter();
                parts.any(|part| matches!(part, ContentPart::Refusal { .. }))
            }
            _ => self.waiting.iter().any(is_refusal),
        };
        is_waiting && matches!(self.opening, Some(Opening::Message)) && !has_refusal
    }

    /// Hands a call on without showing it.
    pub(super) fn hold_back(&mut self) -> Option<Closed> {
        self.state = if self.is_search_here() {
            State::Searching
        } else {
            State::Passed
        };
        let Some(Opening::Call { call_id, shown }) = &self.opening else {
            return None;
        };
        let pieces = self.waiting.iter().map(|piece| match piece {
            Piece::Arguments(text) => text.as_str(),
            _ => "",
        });
        let written = match &self.finished {
            Some(Item::FunctionCall(call)) => call.arguments.clone(),
            _ => pieces.collect(),
        };
        let written = match written.trim() {
            "" => "{}",
            _ => &written,
        };
        Some(Closed::Held {
            call_id: call_id.clone(),
            call: shown.hosted(written)?,
        })
    }

    pub(super) fn is_hosted(&self) -> bool {
        matches!(&self.opening, Some(Opening::Call { shown, .. }) if shown.is_hosted())
    }

    /// Whether it is an item of one of the provider's own tools.
    pub(super) fn is_of_provider(&self) -> bool {
        matches!(self.opening, Some(Opening::Provider(_)))
    }

    pub(super) fn call(&self) -> Option<(&str, &Shown)> {
        match &self.opening {
            Some(Opening::Call { call_id, shown }) => Some((call_id, shown)),
            _ => None,
        }
    }

    pub(super) fn call_id(&self) -> Option<&str> {
        self.call().map(|(call_id, _)| call_id)
    }

    /// Whether it is a search of the client.
    pub(super) fn is_search(&self) -> bool {
        matches!(self.call(), Some((_, Shown::ToolSearch)))
    }

    /// Whether it is a search of this server.
    pub(super) fn is_search_here(&self) -> bool {
        matches!(self.call(), Some((_, Shown::ServerSearch)))
    }

    pub(super) fn is_searching(&self) -> bool {
        matches!(self.state, State::Searching)
    }

    /// Shows a client's search, which is known only as a whole.
    pub(super) fn search(
        &mut self,
        placing: &mut dyn Placing,
        writer: &mut Writer,
        status_of: &dyn Fn(&Item) -> ItemStatus,
    ) -> Option<Closed> {
        let item = self.finished.as_ref()?;
        let (Some(Opening::Call { call_id, .. }), Item::FunctionCall(call)) = (&self.opening, item)
        else {
            return None;
        };
        let status = status_of(item);
        let place = placing.place(self.id.as_deref(), "tsc");
        let at = place.output_index;
        let item = super::items::search_call(place, call_id, &call.arguments, status, writer);
        self.state = State::Passed;
        Some(Closed::Item(at, item))
    }

    /// Whether later items wait for it: it will be shown, and is not yet.
    pub(super) fn blocks(&self, is_judged: bool) -> bool {
        if self.undecided.is_some() {
            return !is_judged;
        }
        // Calls stay in the order in which the model made them, so that it reads them so again.
        if self.is_search_here() {
            return true;
        }
        !is_judged && !self.is_held && self.opening.is_some() && self.has_words()
    }

    /// Whether there is anything in it to be seen.
    pub(super) fn has_words(&self) -> bool {
        let has_pieces = self.waiting.iter().any(|piece| match piece {
            Piece::Text(text)
            | Piece::Refusal(text)
            | Piece::Thought(text)
            | Piece::Summary { text, .. } => !text.is_empty(),
            Piece::Arguments(_) | Piece::Provider(_) => false,
        });
        has_pieces
            || match &self.finished {
                Some(Item::Message(message)) => message.content.iter().any(|part| match part {
                    ContentPart::Refusal { refusal } => !refusal.is_empty(),
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
