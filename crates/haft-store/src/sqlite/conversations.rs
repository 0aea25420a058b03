//! Conversations and their items.

use haft_core::{Owner, Page, PageQuery, StoreError, StoredConversation, StoredItem};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Outcome;
use super::items::{self, Holder};
use crate::clock;

/// Writes the record of a conversation.
pub(super) fn put(
    connection: &Connection,
    owner: &Owner,
    conversation: &StoredConversation,
) -> Outcome<()> {
    connection
        .prepare_cached(
            "INSERT INTO conversations (owner, id, created_at, touched_at, metadata)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (owner, id) DO UPDATE SET
                 created_at = excluded.created_at, touched_at = excluded.touched_at,
                 metadata = excluded.metadata",
        )?
        .execute(params![
            owner.as_str(),
            conversation.id,
            conversation.created_at,
            clock::now(),
            conversation.metadata.get()
        ])?;
    Ok(())
}

/// The record of a conversation.
pub(super) fn get(
    connection: &Connection,
    owner: &Owner,
    id: &str,
) -> Outcome<Option<StoredConversation>> {
    let mut query = connection.prepare_cached(
        "SELECT id, created_at, metadata FROM conversations WHERE owner = ?1 AND id = ?2",
    )?;
    let mut rows = query.query(params![owner.as_str(), id])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(StoredConversation {
        id: row.get(0)?,
        created_at: row.get(1)?,
        metadata: items::json(row.get(2)?)?,
    }))
}

/// Removes a conversation; its items go with it. Says whether there was one.
pub(super) fn delete(connection: &Connection, owner: &Owner, id: &str) -> Outcome<bool> {
    let removed = connection
        .prepare_cached("DELETE FROM conversations WHERE owner = ?1 AND id = ?2")?
        .execute(params![owner.as_str(), id])?;
    Ok(removed > 0)
}

/// Adds items at the end. Says whether there was such a conversation.
pub(super) fn append<'a>(
    connection: &Connection,
    owner: &Owner,
    id: &str,
    items: impl IntoIterator<Item = &'a StoredItem>,
) -> Outcome<bool> {
    let Some(seq) = seq_of(connection, owner, id)? else {
        return Ok(false);
    };
    items::append(connection, owner, Holder::Conversation(seq), items)?;
    touch(connection, seq)?;
    Ok(true)
}

/// All items, in order.
pub(super) fn list(
    connection: &Connection,
    owner: &Owner,
    id: &str,
) -> Outcome<Option<Vec<StoredItem>>> {
    // Both statements see the same state.
    let transaction = connection.unchecked_transaction()?;
    let Some(seq) = seq_of(&transaction, owner, id)? else {
        return Ok(None);
    };
    let all = read(
        &transaction,
        "SELECT item_id, json FROM items WHERE conversation = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        (seq, i64::MIN, i64::MAX),
    )?;
    Ok(Some(all))
}

/// A piece of the items.
pub(super) fn page(
    connection: &Connection,
    owner: &Owner,
    id: &str,
    query: &PageQuery,
) -> Outcome<Option<Page>> {
    let transaction = connection.unchecked_transaction()?;
    let Some(seq) = seq_of(&transaction, owner, id)? else {
        return Ok(None);
    };
    let edge = match (&query.after, query.is_descending) {
        (Some(after), _) => edge(&transaction, owner, seq, after, query.is_descending)?,
        (None, false) => i64::MIN,
        (None, true) => i64::MAX,
    };
    // One more than asked for says whether there are more.
    let limit = i64::try_from(query.limit).map_or(i64::MAX, |limit| limit.saturating_add(1));
    let sql = if query.is_descending {
        "SELECT item_id, json FROM items
         WHERE conversation = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3"
    } else {
        "SELECT item_id, json FROM items
         WHERE conversation = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
    };
    let mut items = read(&transaction, sql, (seq, edge, limit))?;
    let has_more = items.len() > query.limit;
    items.truncate(query.limit);
    Ok(Some(Page { items, has_more }))
}

/// Removes an item. Says whether there was one.
pub(super) fn delete_item(
    connection: &Connection,
    owner: &Owner,
    id: &str,
    item_id: &str,
) -> Outcome<bool> {
    let Some(seq) = seq_of(connection, owner, id)? else {
        return Ok(false);
    };
    let removed = connection
        .prepare_cached(
            "DELETE FROM items WHERE owner = ?1 AND item_id = ?2 AND conversation = ?3",
        )?
        .execute(params![owner.as_str(), item_id, seq])?;
    if removed > 0 {
        touch(connection, seq)?;
    }
    Ok(removed > 0)
}

fn seq_of(connection: &Connection, owner: &Owner, id: &str) -> Outcome<Option<i64>> {
    let mut query =
        connection.prepare_cached("SELECT seq FROM conversations WHERE owner = ?1 AND id = ?2")?;
    Ok(query
        .query_row(params![owner.as_str(), id], |row| row.get(0))
        .optional()?)
}

fn touch(connection: &Connection, seq: i64) -> Outcome<()> {
    connection
        .prepare_cached("UPDATE conversations SET touched_at = ?2 WHERE seq = ?1")?
        .execute([seq, clock::now()])?;
    Ok(())
}

/// The place of the item, the last one in this order if there are several.
fn edge(
    connection: &Connection,
    owner: &Owner,
    conversation: i64,
    item_id: &str,
    is_descending: bool,
) -> Outcome<i64> {
    let mut query = connection.prepare_cached(
        "SELECT min(seq), max(seq) FROM items
         WHERE owner = ?1 AND item_id = ?2 AND +conversation = ?3",
    )?;
    let (first, last): (Option<i64>, Option<i64>) = query
        .query_row(params![owner.as_str(), item_id, conversation], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let unknown = || StoreError::UnknownItem {
        id: item_id.to_owned(),
    };
    let edge = if is_descending { first } else { last };
    Ok(edge.ok_or_else(unknown)?)
}

fn read(
    connection: &Connection,
    sql: &'static str,
    (conversation, edge, limit): (i64, i64, i64),
) -> Outcome<Vec<StoredItem>> {
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query([conversation, edge, limit])?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(items::item_of(row, 0, 1)?);
    }
    Ok(items)
}
