//! Connections, set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
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
    // Before the first change: a file that is not ours stays as it is. The last one out would also move
    // a log that a killed process left behind into it.
    keep_log(&connection, true).map_err(explain)?;
    let version = schema::check(&connection, path)?;
    keep_log(&connection, false).map_err(explain)?;
    prepare_writer(&connection).map_err(explain)?;
    schema::migrate(&mut connection, version).map_err(explain)?;
    Ok(connection)
}

/// Whether the log stays as it is when this connection is closed.
fn keep_log(connection: &Connection, is_kept: bool) -> rusqlite::Result<()> {
    let config = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(config, is_kept).map(drop)
}

/// Makes sure that a file has exactly the version that this program writes, for those who only look.
pub(super) fn check_for_reading(path: &Path, busy_timeout: Duration) -> Result<(), OpenError> {
    let explain = |error: rusqlite::Error| OpenError::from_sqlite(path, &error);
    let connection = open_reader(path, busy_timeout).map_err(explain)?;
    let version = schema::check(&connection, path)?;
    if version < i64::from(schema::NEWEST) {
        return Err(OpenError::Older {
            path: path.to_owned(),
            found: version,
            known: i64::from(schema::NEWEST),
        });
    }
    Ok(())
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
    // A process that was killed while it moved the log into the file may have left a header that counts pages
    // which only the log has. Until they are moved, the file looks truncated.
    connection.pragma(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()))
}
