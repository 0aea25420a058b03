//! Responses: writing them, deleting them, and what is left of them then.
//!
//! **Invariant:** a deleted response has a row only while a living one continues it, over however
//! many others. So whether anything living depends on a response is the question whether any row
//! continues it, and deleting walks up only as far as it removes.

use haft_core::{Alongside, Owner, StoredResponse};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Outcome;
use super::items::{self, Holder};
use super::notes::Note;
use super::{conversations, events, notes};
use crate::refusals;

/// A row that is there and not deleted.
pub(super) struct Living {
    pub(super) seq: i64,
    pub(super) previous: Option<String>,
    pub(super) is_finished: bool,
}

/// The response of this id, if nobody deleted it.
pub(super) fn living(connection: &Connection, owner: &Owner, id: &str) -> Outcome<Option<Living>> {
    let mut query = connection.prepare_cached(
        "SELECT seq, previous, is_finished FROM responses
         WHERE owner = ?1 AND id = ?2 AND is_deleted = 0",
    )?;
    let found = query.query_row(params![owner.as_str(), id], |row| {
        Ok(Living {
            seq: row.get(0)?,
            previous: row.get(1)?,
            is_finished: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}

/// Writes a response and what goes along with it. Says whether the conversation was there that its items
/// were to be added to.
pub(super) fn put(
    connection: &Connection,
    owner: &Owner,
    response: &StoredResponse,
    alongside: &Alongside,
) -> Outcome<bool> {
    // Also that of a deleted one.
    let earlier_previous: Option<Option<String>> = connection
        .prepare_cached("SELECT previous FROM responses WHERE owner = ?1 AND id = ?2")?
        .query_row(params![owner.as_str(), response.id], |row| row.get(0))
        .optional()?;
    let moves = earlier_previous.as_ref() != Some(&response.previous);
    if moves && let Some(previous) = &response.previous {
        refuse_circle(connection, owner, &response.id, previous)?;
    }
    let seq: i64 = connection
        .prepare_cached(
            "INSERT INTO responses
                 (owner, id, previous, created_at, is_finished, is_deleted, resource)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)
             ON CONFLICT (owner, id) DO UPDATE SET
                 previous = excluded.previous, created_at = excluded.created_at,
                 is_finished = excluded.is_finished, is_deleted = 0,
                 resource = excluded.resource
             RETURNING seq",
        )?
        .query_row(
            params![
                owner.as_str(),
                response.id,
                response.previous,
                response.created_at,
                response.is_finished,
                response.resource.get()
            ],
            |row| row.get(0),
        )?;
    put_items(connection, owner, seq, response)?;
    if !response.is_finished {
        notes::put(
            connection,
            Note::Checkpoint,
            seq,
            alongside.checkpoint.as_deref(),
        )?;
    } else if earlier_previous.is_some() {
        notes::remove(connection, Note::Checkpoint, seq)?;
    }
    notes::put(connection, Note::Trace, seq, alongside.trace.as_deref())?;
    events::append_to(connection, seq, &response.id, &alongside.events)?;
    if moves && let Some(Some(earlier)) = earlier_previous {
        prune(connection, owner, Some(earlier))?;
    }
    match &alongside.append_to {
        None => Ok(true),
        Some(conversation) => conversations::append(
            connection,
            owner,
            conversation,
            response.input.iter().chain(&response.output),
        ),
    }
}

/// Writes the items behind those that are there already and unchanged: a run that goes on only adds
/// to them, and its input may be large.
fn put_items(
    connection: &Connection,
    owner: &Owner,
    seq: i64,
    response: &StoredResponse,
) -> Outcome<()> {
    let mut wanted = response
        .input
        .iter()
        .map(|item| (false, item))
        .chain(response.output.iter().map(|item| (true, item)));
    let mut kept = 0;
    let mut last_kept = i64::MIN;
    {
        let mut query = connection.prepare_cached(
            "SELECT seq, is_output, item_id, json FROM items WHERE response = ?1 ORDER BY seq",
        )?;
        let mut rows = query.query([seq])?;
        while let Some(row) = rows.next()? {
            let Some((is_output, item)) = wanted.next() else {
                break;
            };
            let is_same = row.get::<_, bool>(1)? == is_output
                && row.get_ref(2)?.as_str().is_ok_and(|id| id == item.id)
                && row
                    .get_ref(3)?
                    .as_str()
                    .is_ok_and(|json| json == item.json.get());
            if !is_same {
                break;
            }
            kept += 1;
            last_kept = row.get(0)?;
        }
    }
    connection
        .prepare_cached("DELETE FROM items WHERE response = ?1 AND seq > ?2")?
        .execute([seq, last_kept])?;
    let input = response.input.iter().skip(kept);
    let output = response
        .output
        .iter()
        .skip(kept.saturating_sub(response.input.len()));
    items::append(connection, owner, Holder::Input(seq), input)?;
    items::append(connection, owner, Holder::Output(seq), output)
}

/// Refuses to let a response continue one that continues it. That can be asked for only where
/// something continues it already, which is hardly ever so.
fn refuse_circle(connection: &Connection, owner: &Owner, id: &str, previous: &str) -> Outcome<()> {
    let is_circle = previous == id
        || has_continuation(connection, owner, id)?
            && connection
                .prepare_cached(
                    "WITH RECURSIVE up (id, previous) AS (
                         SELECT id, previous FROM responses WHERE owner = ?1 AND id = ?2
                         UNION
                         SELECT r.id, r.previous
                         FROM up CROSS JOIN responses AS r ON r.owner = ?1 AND r.id = up.previous
                     )
                     SELECT EXISTS (SELECT 1 FROM up WHERE previous = ?3)",
                )?
                .query_row(params![owner.as_str(), previous, id], |row| row.get(0))?;
    if is_circle {
        return Err(refusals::circle(id, previous).into());
    }
    Ok(())
}

/// Deletes a response: wholly if nothing continues it, and what was left of others for its sake.
/// How many rows that took away or emptied; none if there was no such response.
pub(super) fn delete(connection: &Connection, owner: &Owner, id: &str) -> Outcome<Option<usize>> {
    let Some(response) = living(connection, owner, id)? else {
        return Ok(None);
    };
    if has_continuation(connection, owner, id)? {
        connection
            .prepare_cached("UPDATE responses SET is_deleted = 1, resource = NULL WHERE seq = ?1")?
            .execute([response.seq])?;
        connection
            .prepare_cached("DELETE FROM events WHERE response = ?1")?
            .execute([response.seq])?;
        notes::remove(connection, Note::Checkpoint, response.seq)?;
        notes::remove(connection, Note::Trace, response.seq)?;
        return Ok(Some(1));
    }
    remove(connection, response.seq)?;
    let pruned = prune(connection, owner, response.previous)?;
    Ok(Some(1 + pruned))
}

/// Removes a deleted response that nothing continues any more, then the one that it continued, and so
/// on. How many.
fn prune(connection: &Connection, owner: &Owner, id: Option<String>) -> Outcome<usize> {
    let mut deleted = connection.prepare_cached(
        "SELECT seq, previous FROM responses WHERE owner = ?1 AND id = ?2 AND is_deleted = 1",
    )?;
    let mut next = id;
    let mut pruned = 0;
    while let Some(id) = next.take() {
        let found: Option<(i64, Option<String>)> = deleted
            .query_row(params![owner.as_str(), id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if let Some((seq, previous)) = found
            && !has_continuation(connection, owner, &id)?
        {
            remove(connection, seq)?;
            pruned += 1;
            next = previous;
        }
    }
    Ok(pruned)
}

/// Removes a row; its items, events and notes go with it.
fn remove(connection: &Connection, seq: i64) -> Outcome<()> {
    connection
        .prepare_cached("DELETE FROM responses WHERE seq = ?1")?
        .execute([seq])?;
    Ok(())
}

fn has_continuation(connection: &Connection, owner: &Owner, id: &str) -> Outcome<bool> {
    let mut query = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM responses WHERE owner = ?1 AND previous = ?2)",
    )?;
    Ok(query.query_row(params![owner.as_str(), id], |row| row.get(0))?)
}
