//! Copies of a database, made while it is in use and checked before they are trusted.

use std::fs::OpenOptions;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::claim::{Claim, open_private};
use super::failure::Failure;
use super::{connection, schema, server_notes};
use crate::OpenError;

/// How long SQLite waits for a lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a copy that finds the database locked is tried again.
const TRIES: u32 = 100;

/// The pause between two of these tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Copies the database `from` into the new file `to`, which only its owner may read, and checks the copy.
/// Gives its version.
///
/// The copy is one moment of the database, with everything that was acknowledged before and nothing half;
/// a server may go on writing meanwhile and does not wait. Nothing stands beside the copy.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let (path, copy) = (directory.path().join("haft.db"), directory.path().join("copy.db"));
/// use haft_store::{SqliteStore, check_database, copy_database};
///
/// let server = SqliteStore::open(&path)?;
/// let version = copy_database(&path, &copy)?;
/// assert_eq!(check_database(&copy)?, version);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn copy_database(from: &Path, to: &Path) -> Result<i64, OpenError> {
    let from = Claim::none_on(from)?;
    let explain = |error: rusqlite::Error| OpenError::from_sqlite(&from, &error);
    let source = connection::open_reader(&from, BUSY_TIMEOUT).map_err(explain)?;
    let version = schema::check(&source, &from)?;
    open_private(OpenOptions::new().write(true).create_new(true), to).map_err(|source| {
        OpenError::File {
            path: to.to_owned(),
            source,
        }
    })?;
    let written = |error: rusqlite::Error| OpenError::from_sqlite(to, &error);
    let mut copy = open(to).map_err(written)?;
    {
        let backup = Backup::new(&source, &mut copy).map_err(explain)?;
        let mut tries = 1;
        // All pages in one step: between two, a write of another process makes SQLite start again.
        while backup.step(-1).map_err(explain)? != StepResult::Done {
            if tries == TRIES {
                return Err(OpenError::InUse { path: from });
            }
            tries += 1;
            thread::sleep(PAUSE);
        }
    }
    // The copy says of itself that it has a log beside it, as the original does. It has none.
    copy.pragma_update(None, "journal_mode", "DELETE")
        .map_err(written)?;
    drop(copy);
    check_database(to)?;
    Ok(version)
}

/// Reads all of a database that no server uses and makes sure that it is whole. Gives its version.
pub fn check_database(path: &Path) -> Result<i64, OpenError> {
    let path = Claim::none_on(path)?;
    let explain = |error: rusqlite::Error| OpenError::from_sqlite(&path, &error);
    let connection = open(&path).map_err(explain)?;
    let version = schema::check(&connection, &path)?;
    let verdict: String = connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(explain)?;
    if verdict == "ok" {
        return Ok(version);
    }
    Err(OpenError::Damaged {
        path: path.clone(),
        reason: verdict,
    })
}

/// Reads a note of the server ([`Store::server_note`](haft_core::Store::server_note)) from a database that no server
/// uses.
pub fn read_server_note(path: &Path, key: &str) -> Result<Option<String>, OpenError> {
    let path = Claim::none_on(path)?;
    let explain = |error: rusqlite::Error| OpenError::from_sqlite(&path, &error);
    let connection = open(&path).map_err(explain)?;
    server_notes::get(&connection, key).map_err(|Failure(error)| OpenError::Failed {
        path: path.clone(),
        reason: error.to_string(),
    })
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}
