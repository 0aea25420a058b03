//! Items, wherever they are kept.

use haft_core::{Owner, StoreError, StoredItem};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::value::RawValue;

use super::failure::Outcome;

/// Where an item is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holder {
    Input(i64),
    Output(i64),
    Conversation(i64),
}

/// Adds items behind those that are there.
pub(super) fn append<'a>(
    connection: &Connection,
    owner: &Owner,
    holder: Holder,
    items: impl IntoIterator<Item = &'a StoredItem>,
) -> Outcome<()> {
    let (response, conversation, is_output) = match holder {
        Holder::Input(response) => (Some(response), None, false),
        Holder::Output(response) => (Some(response), None, true),
        Holder::Conversation(conversation) => (None, Some(conversation), false),
    };
    let mut insert = connection.prepare_cached(
        "INSERT INTO items (owner, item_id, response, conversation, is_output, json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for item in items {
        insert.execute(params![
            owner.as_str(),
            item.id,
            response,
            conversation,
            is_output,
            item.json.get()
        ])?;
    }
    Ok(())
}

/// The item with this id that was written last, among those that anybody may see.
pub(super) fn newest(
    connection: &Connection,
    owner: &Owner,
    item_id: &str,
) -> Outcome<Option<StoredItem>> {
    let mut query = connection.prepare_cached(
        "SELECT i.item_id, i.json
         FROM items AS i LEFT JOIN responses AS r ON r.seq = i.response
         WHERE i.owner = ?1 AND i.item_id = ?2 AND (i.response IS NULL OR r.is_deleted = 0)
         ORDER BY i.seq DESC LIMIT 1",
    )?;
    let found = query
        .query_row(params![owner.as_str(), item_id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    found.map(|(id, json)| item(id, json)).transpose()
}

/// The item in the columns `item_id` and `json` of a row, at these places.
pub(super) fn item_of(row: &Row<'_>, id: usize, text: usize) -> Outcome<StoredItem> {
    item(row.get(id)?, row.get(text)?)
}

fn item(id: String, text: String) -> Outcome<StoredItem> {
    let json = json(text)?;
    Ok(StoredItem { id, json })
}

/// JSON as it was written.
pub(super) fn json(text: String) -> Outcome<Box<RawValue>> {
    RawValue::from_string(text).map_err(|error| {
        StoreError::Failed(format!(
            "a record is no JSON, so the file is damaged: {error}; restore it from a backup"
        ))
        .into()
    })
}
