//! Records to write.

use haft_core::{Alongside, Owner, StoredItem, StoredResponse};
use serde_json::value::RawValue;

/// The version of the files that this haft writes.
pub(crate) const NEWEST: i64 = 5;

pub(crate) fn owner() -> Owner {
    Owner::default()
}

pub(crate) fn json(text: impl Into<String>) -> Box<RawValue> {
    RawValue::from_string(text.into()).unwrap()
}

/// A finished response whose items say `text`.
pub(crate) fn response(id: &str, text: &str) -> StoredResponse {
    let item = |name: &str| StoredItem {
        id: format!("{id}_{name}"),
        json: json(format!("\"{name} {text}\"")),
    };
    StoredResponse {
        id: id.to_owned(),
        previous: None,
        created_at: 1_000,
        is_finished: true,
        resource: json(format!("\"resource {text}\"")),
        input: vec![item("in")],
        output: vec![item("out"), item("more")],
    }
}

/// Nothing goes along with it but the conversation that its items are added to.
pub(crate) fn appended_to(conversation: &str) -> Alongside {
    Alongside {
        append_to: Some(conversation.to_owned()),
        ..Alongside::default()
    }
}
