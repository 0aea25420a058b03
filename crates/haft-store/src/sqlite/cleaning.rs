//! Letting go what the retention lets go.

use haft_core::{Cleaned, Owner, Retention};
use rusqlite::{Connection, OptionalExtension as _};

use super::failure::Outcome;
use super::responses;
use crate::cutoff::cutoff;

/// At most so many free pages go back to the file system at a time.
const PAGES: usize = 1024;

/// Removes at most `batch` records, the oldest first.
pub(super) fn clean(
    connection: &Connection,
    retention: Retention,
    now: i64,
    batch: usize,
) -> Outcome<Cleaned> {
    let mut cleaned = Cleaned::default();
    let mut taken = 0;
    while taken < batch
        && let Some(candidate) = next(connection, retention, now)?
    {
        match candidate {
            Candidate::Response(owner, id) => {
                // What it takes along is work too, and nobody shall wait long for it.
                taken += responses::delete(connection, &owner, &id)?.unwrap_or(1);
                cleaned.responses += 1;
            }
            Candidate::Conversation(seq) => {
                connection
                    .prepare_cached("DELETE FROM conversations WHERE seq = ?1")?
                    .execute([seq])?;
                taken += 1;
                cleaned.conversations += 1;
            }
        }
    }
    cleaned.has_more = next(connection, retention, now)?.is_some();
    free_pages(connection)?;
    Ok(cleaned)
}

enum Candidate {
    Response(Owner, String),
    Conversation(i64),
}

/// What must go next, if anything.
fn next(connection: &Connection, retention: Retention, now: i64) -> Outcome<Option<Candidate>> {
    if let Some(max_age) = retention.max_age {
        let cutoff = cutoff(now, max_age);
        if let Some(found) = oldest_response(connection, cutoff)? {
            return Ok(Some(found));
        }
        let found: Option<i64> = connection
            .prepare_cached("SELECT seq FROM conversations WHERE touched_at < ?1 LIMIT 1")?
            .query_row([cutoff], |row| row.get(0))
            .optional()?;
        if let Some(seq) = found {
            return Ok(Some(Candidate::Conversation(seq)));
        }
    }
    if let Some(max_bytes) = retention.max_bytes {
        let bytes: i64 = connection
            .prepare_cached("SELECT bytes FROM totals")?
            .query_row([], |row| row.get(0))?;
        if u64::try_from(bytes).is_ok_and(|bytes| bytes > max_bytes) {
            return oldest_response(connection, i64::MAX);
        }
    }
    Ok(None)
}

fn oldest_response(connection: &Connection, before: i64) -> Outcome<Option<Candidate>> {
    let mut query = connection.prepare_cached(
        "SELECT owner, id FROM responses
         WHERE is_finished = 1 AND is_deleted = 0 AND created_at < ?1
         ORDER BY created_at, seq LIMIT 1",
    )?;
    let found = query.query_row([before], |row| {
        let owner = Owner::new(row.get::<_, String>(0)?);
        Ok(Candidate::Response(owner, row.get(1)?))
    });
    Ok(found.optional()?)
}

fn free_pages(connection: &Connection) -> Outcome<()> {
    // One row, and one step, for each page.
    let mut vacuum = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}
