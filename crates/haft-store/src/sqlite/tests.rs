//! What only the inside of the store can show.

mod groups;
mod statements;

use haft_core::{Alongside, Owner, StoredItem, StoredResponse};
use serde_json::value::RawValue;

fn owner() -> Owner {
    Owner::default()
}

fn json(text: impl Into<String>) -> Box<RawValue> {
    RawValue::from_string(text.into()).unwrap()
}

/// A finished response with four items of so many bytes each.
fn response(id: &str, previous: Option<&str>, size: usize) -> StoredResponse {
    let item = |name: &str| StoredItem {
        id: format!("{id}_{name}"),
        json: json(format!("\"{}\"", "x".repeat(size))),
    };
    StoredResponse {
        id: id.to_owned(),
        previous: previous.map(str::to_owned),
        created_at: 1_000,
        is_finished: true,
        resource: json("{}"),
        input: vec![item("a"), item("b")],
        output: vec![item("c"), item("d")],
    }
}

/// Nothing goes along with it but the conversation that its items are added to.
fn appended_to(conversation: &str) -> Alongside {
    Alongside {
        append_to: Some(conversation.to_owned()),
        ..Alongside::default()
    }
}
