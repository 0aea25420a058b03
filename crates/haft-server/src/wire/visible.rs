//! What of a stored item a client may see.
//!
//! Items are kept with everything that came with them. Shown is what was asked for by `include`, in
//! the form that typed clients need: `id`, `type` and `status` on every item, `annotations` and
//! `logprobs` on every text of the model (`open-responses.md` §2.2, §4).

use std::borrow::Cow;

use haft_core::StoredItem;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::request::Include;
use crate::history::is_mark;
use crate::reasoning::ReasoningSeal;

/// The member of reasoning items in which adapters note where their server gave the text.
const WIRE_FIELD: &str = "wire_field";

/// How items are presented to one client.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// What the client asked to be included.
    pub(crate) include: Include,
    /// Makes `encrypted_content` for reasoning that its backend did not encrypt.
    pub(crate) seal: Option<ReasoningSeal>,
}

/// A stored item as its owner sees it; the bytes of the store where nothing has to change.
pub(crate) fn visible_item<'i>(item: &'i StoredItem, view: &View) -> Cow<'i, RawValue> {
    if Glance::at(&item.json).is_some_and(|glance| glance.is_visible_as_it_is(view.include)) {
        return Cow::Borrowed(&item.json);
    }
    let Ok(mut members) = serde_json::from_str::<Map<String, Value>>(item.json.get()) else {
        return Cow::Borrowed(&item.json);
    };
    make_visible(&mut members, &item.id, view);
    match to_raw_value(&members) {
        Ok(json) => Cow::Owned(json),
        Err(_) => Cow::Borrowed(&item.json),
    }
}

/// Makes an item what its owner may see; `id` is its id if it does not say one itself.
pub(crate) fn make_visible(item: &mut Map<String, Value>, id: &str, view: &View) {
    let include = view.include;
    let is_reasoning = item.get("type").and_then(Value::as_str) == Some("reasoning");
    if is_reasoning && include.encrypted_reasoning {
        let sealed = view.seal.as_ref().and_then(|seal| seal.seal(item));
        if let Some(sealed) = sealed {
            item.insert("encrypted_content".into(), sealed.into());
        }
    }
    item.retain(|key, _| !is_mark(key));
    if item.get("type").is_none_or(Value::is_null) {
        item.insert(String::from("type"), "message".into());
    }
    for (key, value) in [("id", id), ("status", "completed")] {
        if item.get(key).is_none_or(Value::is_null) {
            item.insert(key.to_owned(), value.into());
        }
    }
    let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
    let omitted: &[&str] = match kind {
        "reasoning" => &["content", "encrypted_content", "created_by"],
        "message" => &["phase", "created_by"],
        "function_call" | "custom_tool_call" => &["namespace", "created_by"],
        _ => &[],
    };
    for key in omitted {
        if item.get(*key).is_some_and(Value::is_null) {
            item.shift_remove(*key);
        }
    }
    if is_reasoning {
        // Which member of a chat message the reasoning came in is the backend's affair.
        item.shift_remove(WIRE_FIELD);
        if !include.encrypted_reasoning {
            item.shift_remove("encrypted_content");
        }
        if item
            .get("content")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            item.shift_remove("content");
        }
    }
    let parts = item.get_mut("content").and_then(Value::as_array_mut);
    for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
        fill_text(part, include);
    }
}

/// Gives a text of the model the lists that belong to it.
fn fill_text(part: &mut Map<String, Value>, include: Include) {
    if part.get("type").and_then(Value::as_str) != Some("output_text") {
        return;
    }
    let empty = || Value::Array(Vec::new());
    if !part.get("annotations").is_some_and(Value::is_array) {
        part.insert(String::from("annotations"), empty());
    }
    if !include.logprobs || !part.get("logprobs").is_some_and(Value::is_array) {
        part.insert(String::from("logprobs"), empty());
    }
}

/// As much of an item as says whether it has to be changed.
#[derive(Deserialize)]
struct Glance<'j> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'j, str>>,
    id: Option<IgnoredAny>,
    status: Option<IgnoredAny>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    content: Option<&'j RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    encrypted_content: Option<&'j RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    phase: Option<&'j RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    namespace: Option<&'j RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    created_by: Option<&'j RawValue>,
    /// [`TURN`](crate::history::TURN)
    haft_turn: Option<IgnoredAny>,
    /// [`UNSEEN`](crate::history::UNSEEN)
    haft_unseen: Option<IgnoredAny>,
    /// [`DEFERRAL`](crate::history::DEFERRAL)
    haft_deferral: Option<IgnoredAny>,
    /// [`WIRE_ID`](crate::history::WIRE_ID)
    haft_wire_id: Option<IgnoredAny>,
    /// [`RAW_SUMMARY`](crate::history::RAW_SUMMARY)
    haft_raw_summary: Option<IgnoredAny>,
    /// [`WIRE_FIELD`]
    wire_field: Option<IgnoredAny>,
}

/// A member that is there, be it null.
fn even_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'j> Glance<'j> {
    fn at(json: &'j RawValue) -> Option<Self> {
        serde_json::from_str(json.get()).ok()
    }

    fn is_visible_as_it_is(&self, include: Include) -> bool {
        let marks = [
            &self.haft_turn,
            &self.haft_unseen,
            &self.haft_deferral,
            &self.haft_wire_id,
            &self.haft_raw_summary,
            &self.wire_field,
        ];
        let is_marked = marks.into_iter().any(Option::is_some);
        let has_head = self.id.is_some() && self.status.is_some() && !is_marked;
        let content = self.content.map_or("", RawValue::get);
        let nullable = [
            self.phase,
            self.namespace,
            self.created_by,
            self.content,
            self.encrypted_content,
        ];
        let has_nulls = nullable
            .into_iter()
            .flatten()
            .any(|json| json.get() == "null");
        has_head
            && !has_nulls
            && match self.kind.as_deref() {
                None => false,
                Some("reasoning") => {
                    let is_plain = !include.encrypted_reasoning && self.encrypted_content.is_none();
                    is_plain && content != "[]"
                }
                // Escapes could hide the word, but nobody here writes it with any.
                Some(_) => !content.contains("output_text"),
            }
    }
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
