//! What is done only once.

use haft_core::Owner;
use rusqlite::{Connection, params};

use super::failure::Outcome;

/// Takes a word; whether nobody had it before.
pub(super) fn take(connection: &Connection, owner: &Owner, word: &str) -> Outcome<bool> {
    let mut insert =
        connection.prepare_cached("INSERT OR IGNORE INTO taken (owner, word) VALUES (?1, ?2)")?;
    Ok(insert.execute(params![owner.as_str(), word])? > 0)
}
