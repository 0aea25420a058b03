//! Items of tools that the model's provider runs or defines: passed on as they come, under the numbers and ids
//! of this response.

use haft_core::{Item, ItemStatus};
use serde_json::{Map, Value};

use super::Place;
use crate::history::WIRE_ID;
use crate::stream::event::Writer;

/// An item that the provider has announced.
#[derive(Debug)]
pub(super) struct OpenProvider {
    announced: Map<String, Value>,
}

/// The item as it is added.
pub(super) fn added(announced: &Map<String, Value>, id: &str) -> Value {
    let mut item = announced.clone();
    item.insert("id".into(), id.into());
    item.insert("status".into(), "in_progress".into());
    Value::Object(item)
}

impl OpenProvider {
    pub(super) fn new(announced: Map<String, Value>) -> Self {
        Self { announced }
    }

    /// An event of the provider about the item.
    pub(super) fn event(event: &Map<String, Value>, place: &Place, writer: &mut Writer) {
        let kind = event.get("type").and_then(Value::as_str);
        let Some(kind) = kind.filter(|kind| is_event_name(kind)) else {
            return;
        };
        let mut body = event.clone();
        body.shift_remove("type");
        body.shift_remove("sequence_number");
        body.insert("item_id".into(), place.item_id.as_str().into());
        body.insert("output_index".into(), place.output_index.into());
        writer.write_named(kind.to_owned().into(), &body);
    }

    /// The item as it is done. One that the provider did not finish ends as `cut` says.
    pub(super) fn close(
        self,
        item: Option<&Item>,
        cut: ItemStatus,
        place: &Place,
    ) -> Map<String, Value> {
        let mut json = if let Some(Item::Other(members)) = item {
            members.clone()
        } else {
            let mut json = self.announced;
            let status = match cut {
                ItemStatus::Incomplete => "incomplete",
                ItemStatus::InProgress | ItemStatus::Completed => "failed",
            };
            json.insert("status".into(), status.into());
            json
        };
        let own = json.get("id").and_then(Value::as_str).unwrap_or_default();
        if own != place.item_id {
            let own = own.to_owned();
            json.insert(WIRE_ID.into(), own.into());
            json.insert("id".into(), place.item_id.as_str().into());
        }
        if json.get("status").is_none_or(Value::is_null) {
            json.insert("status".into(), "completed".into());
        }
        json
    }
}

/// Whether this is the name of an event about one item, and can be written as it is.
fn is_event_name(kind: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let mut bytes = kind.bytes();
    kind.starts_with("response.") && bytes.all(|byte| is_plain(byte) || byte == b'.')
}
