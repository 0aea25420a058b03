//! The logs of streams that can be read again.

use haft_core::{Owner, StoreError, StoredEvent};
use rusqlite::{Connection, params};

use super::failure::Outcome;
use super::{items, responses};

/// Adds events to the log of a response that is not deleted.
pub(super) fn append(
    connection: &Connection,
    owner: &Owner,
    response_id: &str,
    events: &[StoredEvent],
) -> Outcome<()> {
    let Some(response) = responses::living(connection, owner, response_id)? else {
        return Ok(());
    };
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (response, sequence_number, json) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET json = excluded.json",
    )?;
    for event in events {
        let number = crate::refusals::storable_number(event.sequence_number)?;
        insert.execute(params![response.seq, number, event.json.get()])?;
    }
    Ok(())
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
