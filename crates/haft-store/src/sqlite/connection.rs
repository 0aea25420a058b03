//! Connections, set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::schema;
use crate::OpenError;

/// More than there are different statements, so that each is prepared once.
const CACHED_STATEMENTS: usize = 64;
/// After a burst of writes the `-wal` file shrinks to this.
const WAL_BYTES: i64 = 16 * 1024 * 1024;

/// The connection of the writer, with the file at the newest version.
pub(super) fn open_writer(path: &Path, busy_timeout: Duration) -> Result<Connection, OpenError> {
    let explain = |error: rusqlite::Error| OpenError::from_sqlite(path, &error);
    let mut connection = open(path, busy_timeout).map_err(explain)?;
    // Before the first change: a file that is not ours stays as it is.
    let version = schema::check(&connection, path)?;
    prepare_writer(&connection).map_err(explain)?;
    schema::migrate(&mut connection, version).map_err(explain)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(super) fn open_reader(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let connection = open(path, busy_timeout)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn open(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    // Without `CREATE`: the file is there, with the right permissions. Without a mutex: each connection
    // is used by one thread at a time.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

fn prepare_writer(connection: &Connection) -> rusqlite::Result<()> {
    // Has an effect only on an empty file, and only before the journal mode is set.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some("the file system allows no write-ahead log".to_owned()),
        ));
    }
    // A commit returns when the log is on disk: what is acknowledged lasts.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES)?;
    // What is deleted is overwritten.
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(())
}
