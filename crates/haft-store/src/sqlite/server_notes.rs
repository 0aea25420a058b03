//! What the server notes about itself.

use rusqlite::{Connection, OptionalExtension as _};

use super::failure::Outcome;

/// The note under a key.
pub(super) fn get(connection: &Connection, key: &str) -> Outcome<Option<String>> {
    let mut select = connection.prepare_cached("SELECT note FROM server_notes WHERE key = ?1")?;
    Ok(select.query_row([key], |row| row.get(0)).optional()?)
}

/// Writes a note, in place of an earlier one.
pub(super) fn put(connection: &Connection, key: &str, note: &str) -> Outcome<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO server_notes (key, note) VALUES (?1, ?2)")?
        .execute([key, note])?;
    Ok(())
}
