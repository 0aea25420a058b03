//! Keys that are claimed once.

use haft_core::Owner;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Outcome;

/// Claims a key; whether it was free.
pub(super) fn take(connection: &Connection, owner: &Owner, key: &str, note: &str) -> Outcome<bool> {
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO taken (owner, word, note) VALUES (?1, ?2, ?3)")?;
    Ok(insert.execute(params![owner.as_str(), key, note])? > 0)
}

/// Those of the keys that are claimed, with their notes.
pub(super) fn list(
    connection: &Connection,
    owner: &Owner,
    keys: Vec<String>,
) -> Outcome<Vec<(String, Option<String>)>> {
    let mut select =
        connection.prepare_cached("SELECT note FROM taken WHERE owner = ?1 AND word = ?2")?;
    let mut taken = Vec::new();
    for key in keys {
        let note = select
            .query_row(params![owner.as_str(), key], |row| row.get(0))
            .optional()?;
        taken.extend(note.map(|note| (key, note)));
    }
    Ok(taken)
}
