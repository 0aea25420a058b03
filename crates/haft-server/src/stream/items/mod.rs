//! The items of an output: the events by which each comes into being (`open-responses.md` §3.4).

mod call;
mod custom_input;
mod hosted;
mod message;
mod provider;
mod reasoning;

use haft_core::{Item, ItemStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::wire::{View, make_visible};

use super::event::Writer;

use call::OpenCall;
pub(super) use call::search_arguments;
pub(crate) use call::{HostedCall, SEARCH_CALL, Shown, call_item};
pub(crate) use hosted::{HostedEnd, hosted_item};
pub(super) use hosted::{open_hosted, tell_end};
use message::OpenMessage;
use provider::OpenProvider;
use reasoning::OpenReasoning;

/// A finished item, as it is stored: with what only some clients may see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OutputItem {
    pub(crate) id: String,
    pub(crate) json: Value,
}

/// Where an item stands: the members that all of its events have.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) item_id: String,
    pub(super) output_index: usize,
}

/// A piece of an item that the model writes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Refusal(String),
    Thought(String),
    Summary {
        part: usize,
        text: String,
    },
    Arguments(String),
    /// An event of the provider about an item of one of its own tools.
    Provider(Map<String, Value>),
}

/// An item that was opened and not yet closed.
#[derive(Debug)]
pub(super) struct OpenItem {
    pub(super) place: Place,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Message(OpenMessage),
    Reasoning(OpenReasoning),
    Call(OpenCall),
    Provider(OpenProvider),
}

/// What an item is, as far as it is known when it is opened.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Opening {
    Message,
    Reasoning,
    Call {
        call_id: String,
        shown: Shown,
    },
    /// An item of one of the provider's own tools, as it was announced.
    Provider(Map<String, Value>),
}

impl OpenItem {
    /// Opens an item and tells so.
    pub(super) fn open(place: Place, opening: Opening, writer: &mut Writer) -> Self {
        let id = place.item_id.as_str();
        let item = writer.heard(|| match &opening {
            Opening::Message => json!({
                "id": id, "type": "message", "status": "in_progress",
                "role": "assistant", "content": [],
            }),
            Opening::Reasoning => {
                json!({"id": id, "type": "reasoning", "status": "in_progress", "summary": []})
            }
            Opening::Call { call_id, shown } => call_item(id, call_id, shown, "", "in_progress"),
            Opening::Provider(announced) => provider::added(announced, id),
        });
        write_item("response.output_item.added", &place, &item, writer);
        if let Opening::Call {
            shown: Shown::Mcp { .. },
            ..
        } = &opening
        {
            writer.write("response.mcp_call.in_progress", &place);
        }
        let body = match opening {
            Opening::Message => Body::Message(OpenMessage::default()),
            Opening::Reasoning => Body::Reasoning(OpenReasoning::default()),
            Opening::Call { call_id, shown } => Body::Call(OpenCall::new(call_id, shown)),
            Opening::Provider(announced) => Body::Provider(OpenProvider::new(announced)),
        };
        Self { place, body }
    }

    /// The next piece of it.
    pub(super) fn add(&mut self, piece: &Piece, writer: &mut Writer) {
        match (&mut self.body, piece) {
            (Body::Message(message), Piece::Text(text)) => {
                message.text(text, &self.place, writer);
            }
            (Body::Message(message), Piece::Refusal(text)) => {
                message.refusal(text, &self.place, writer);
            }
            (Body::Reasoning(reasoning), Piece::Thought(text)) => {
                reasoning.raw(text, &self.place, writer);
            }
            (Body::Reasoning(reasoning), Piece::Summary { part, text }) => {
                reasoning.summary(*part, text, &self.place, writer);
            }
            (Body::Call(call), Piece::Arguments(text)) => call.add(text, &self.place, writer),
            (Body::Provider(_), Piece::Provider(event)) => {
                OpenProvider::event(event, &self.place, writer);
            }
            _ => {}
        }
    }

    /// Leaves a call that runs here open until there is a result. Gives the call and its id; none if
    /// the client executes it.
    pub(super) fn hand_over(
        self,
        written: Option<&str>,
        writer: &mut Writer,
    ) -> Option<(Place, String, HostedCall)> {
        let Body::Call(call) = self.body else {
            return None;
        };
        let (call_id, call) = call.hand_over(written, &self.place, writer)?;
        Some((self.place, call_id, call))
    }

    /// Closes it with what the model made of it, where it came so far; tells so, and gives the item.
    /// A hosted call is not closed here: its result is still to come.
    pub(super) fn close(
        mut self,
        item: Option<&Item>,
        status: ItemStatus,
        writer: &mut Writer,
    ) -> OutputItem {
        if let Body::Provider(open) = self.body {
            let json = open.close(item, status, &self.place);
            return finish(self.place, Value::Object(json), writer);
        }
        let mut json = match (&mut self.body, item) {
            (Body::Message(message), Some(Item::Message(item))) => {
                message.close(Some(item), &self.place, writer)
            }
            (Body::Message(message), _) => message.close(None, &self.place, writer),
            (Body::Reasoning(reasoning), Some(Item::Reasoning(item))) => {
                reasoning.close(Some(item), &self.place, writer)
            }
            (Body::Reasoning(reasoning), _) => reasoning.close(None, &self.place, writer),
            (Body::Call(call), item) => call.close(item, &self.place, writer),
            (Body::Provider(_), _) => Map::new(),
        };
        json.insert("status".into(), json!(status));
        finish(self.place, Value::Object(json), writer)
    }
}

/// An item as the client may see it.
pub(crate) fn visible(mut item: Value, view: &View) -> Value {
    if let Some(members) = item.as_object_mut() {
        make_visible(members, "", view);
    }
    item
}

/// Tells that an item is done.
pub(super) fn finish(place: Place, json: Value, writer: &mut Writer) -> OutputItem {
    let visible = writer.heard(|| visible(json.clone(), &writer.view));
    write_item("response.output_item.done", &place, &visible, writer);
    OutputItem {
        id: place.item_id,
        json,
    }
}

/// An item that has no events of its own: added, done.
pub(super) fn whole(place: Place, json: Value, writer: &mut Writer) -> OutputItem {
    let begun = writer.heard(|| {
        let mut begun = visible(json.clone(), &writer.view);
        begun["status"] = "in_progress".into();
        begun
    });
    write_item("response.output_item.added", &place, &begun, writer);
    finish(place, json, writer)
}

/// A client's search for tools, which is known only as a whole.
pub(super) fn search_call(
    place: Place,
    call_id: &str,
    arguments: &str,
    status: ItemStatus,
    writer: &mut Writer,
) -> OutputItem {
    let json = json!({
        "id": place.item_id, "type": "tool_search_call", "status": status,
        "call_id": call_id, "execution": "client", "arguments": search_arguments(arguments),
    });
    whole(place, json, writer)
}

pub(super) fn write_item(kind: &'static str, place: &Place, item: &Value, writer: &mut Writer) {
    #[derive(Serialize)]
    struct ItemEvent<'e> {
        output_index: usize,
        item: &'e Value,
    }
    let output_index = place.output_index;
    writer.write(kind, &ItemEvent { output_index, item });
}

/// The members that every item has, in front of its own.
fn head(id: &str, kind: &str) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("id".into(), id.into());
    members.insert("type".into(), kind.into());
    members.insert("status".into(), "in_progress".into());
    members
}

/// What of `whole` is not yet told, if what was told is its beginning.
fn rest<'t>(told: &str, whole: &'t str) -> Option<&'t str> {
    whole.strip_prefix(told).filter(|rest| !rest.is_empty())
}
