//! What is noted down about the run of a response: how far it has come, and how it went.

use haft_core::{Owner, StoredEvent};
use rusqlite::{Connection, params};
use serde_json::value::RawValue;

use super::failure::Outcome;
use super::{events, items, responses};

/// Which note.
#[derive(Debug, Clone, Copy)]
pub(super) enum Note {
    /// How far it has come. **Invariant:** only what is unfinished has one.
    Checkpoint,
    /// How it went.
    Trace,
}

/// Writes a checkpoint and the events that it accounts for. Says whether there is such a response and
/// it is unfinished; nothing is written otherwise.
pub(super) fn put_checkpoint(
    connection: &Connection,
    owner: &Owner,
    response_id: &str,
    checkpoint: &RawValue,
    log: &[StoredEvent],
) -> Outcome<bool> {
    let Some(response) = responses::living(connection, owner, response_id)? else {
        return Ok(false);
    };
    if response.is_finished {
        return Ok(false);
    }
    put(connection, Note::Checkpoint, response.seq, Some(checkpoint))?;
    events::append_to(connection, response.seq, response_id, log)?;
    Ok(true)
}

/// Writes a note about the response in this row, if there is one to write, in place of the earlier.
pub(super) fn put(
    connection: &Connection,
    note: Note,
    response: i64,
    json: Option<&RawValue>,
) -> Outcome<()> {
    let Some(json) = json else {
        return Ok(());
    };
    let sql = match note {
        Note::Checkpoint => {
            "INSERT INTO checkpoints (response, json) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET json = excluded.json"
        }
        Note::Trace => {
            "INSERT INTO traces (response, json) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET json = excluded.json"
        }
    };
    connection
        .prepare_cached(sql)?
        .execute(params![response, json.get()])?;
    Ok(())
}

/// Removes the note about the response in this row.
pub(super) fn remove(connection: &Connection, note: Note, response: i64) -> Outcome<()> {
    let sql = match note {
        Note::Checkpoint => "DELETE FROM checkpoints WHERE response = ?1",
        Note::Trace => "DELETE FROM traces WHERE response = ?1",
    };
    connection.prepare_cached(sql)?.execute([response])?;
    Ok(())
}

/// The note about a response that is not deleted.
pub(super) fn get(
    connection: &Connection,
    note: Note,
    owner: &Owner,
    response_id: &str,
) -> Outcome<Option<Box<RawValue>>> {
    let sql = match note {
        Note::Checkpoint => {
            "SELECT n.json FROM responses AS r CROSS JOIN checkpoints AS n ON n.response = r.seq
             WHERE r.owner = ?1 AND r.id = ?2 AND r.is_deleted = 0"
        }
        Note::Trace => {
            "SELECT n.json FROM responses AS r CROSS JOIN traces AS n ON n.response = r.seq
             WHERE r.owner = ?1 AND r.id = ?2 AND r.is_deleted = 0"
        }
    };
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query(params![owner.as_str(), response_id])?;
    match rows.next()? {
        Some(row) => Ok(Some(items::json(row.get(0)?)?)),
        None => Ok(None),
    }
}
