//! The logs of streams that can be read again.

use haft_core::{Owner, StoreError, StoredEvent};
use rusqlite::{Connection, params};

use super::failure::Outcome;
use super::{items, responses};
use crate::refusals;

/// Adds events to the log of a response that is not deleted.
pub(super) fn append(
    connection: &Connection,
    owner: &Owner,
    response_id: &str,
    events: &[StoredEvent],
) -> Outcome<()> {
    match responses::living(connection, owner, response_id)? {
        Some(response) => append_to(connection, response.seq, response_id, events),
        None => Ok(()),
    }
}

/// Adds events to the log of the response in this row. One that is there already stays as it is;
/// another one with its number is refused.
pub(super) fn append_to(
    connection: &Connection,
    response: i64,
    response_id: &str,
    events: &[StoredEvent],
) -> Outcome<()> {
    if events.is_empty() {
        return Ok(());
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (response, sequence_number, json) VALUES (?1, ?2, ?3)
         ON CONFLICT DO NOTHING",
    )?;
    for event in events {
        let number = refusals::storable_number(event.sequence_number)?;
        let written = insert.execute(params![response, number, event.json.get()])?;
        if written == 0 && !is_there(connection, response, number, event)? {
            return Err(refusals::other_event(response_id, event.sequence_number).into());
        }
    }
    Ok(())
}

fn is_there(
    connection: &Connection,
    response: i64,
    number: i64,
    event: &StoredEvent,
) -> Outcome<bool> {
    let mut query = connection
        .prepare_cached("SELECT json FROM events WHERE response = ?1 AND sequence_number = ?2")?;
    Ok(query.query_row([response, number], |row| {
        Ok(row.get_ref(0)?.as_str()? == event.json.get())
    })?)
}

/// The events behind this number.
pub(super) fn list(
    connection: &Connection,
    owner: &Owner,
    response_id: &str,
    after: Option<u64>,
    limit: usize,
) -> Outcome<Vec<StoredEvent>> {
    // Numbers are at least zero; behind one that cannot be stored there is nothing.
    let after = after.map_or(-1, |after| i64::try_from(after).unwrap_or(i64::MAX));
    let mut query = connection.prepare_cached(
        "SELECT e.sequence_number, e.json
         FROM responses AS r CROSS JOIN events AS e ON e.response = r.seq
         WHERE r.owner = ?1 AND r.id = ?2 AND r.is_deleted = 0 AND e.sequence_number > ?3
         ORDER BY e.sequence_number LIMIT ?4",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![owner.as_str(), response_id, after, limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        events.push(StoredEvent {
            sequence_number: u64::try_from(number)
                .map_err(|_| StoreError::Failed(format!("an event has the number `{number}`")))?,
            json: items::json(row.get(1)?)?,
        });
    }
    Ok(events)
}
