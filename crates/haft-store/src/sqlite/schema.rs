//! Which version a file has, and how it becomes the newest.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::OpenError;

/// "haft" in ASCII, in the header of each of our files.
pub(super) const APPLICATION_ID: i32 = 0x6861_6674;

/// The version that this program writes.
pub(super) const NEWEST: u32 = 5;

/// The step at index `n` makes version `n + 1` of version `n`. What is released stays as it is: a
/// change of the schema is a new step.
const STEPS: [&str; NEWEST as usize] = [
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
];

/// The version of the file, if it is one that this program can use; zero for a file without content.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let explain = |error: rusqlite::Error| OpenError::from_sqlite(path, &error);
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(explain)?;
    let application_id: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(explain)?;
    let has_tables: bool = connection
        .query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| {
            row.get(0)
        })
        .map_err(explain)?;
    if application_id == 0 && version == 0 && !has_tables {
        return Ok(0);
    }
    if application_id != APPLICATION_ID {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
            application_id,
        });
    }
    if version > i64::from(NEWEST) {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: version,
            known: i64::from(NEWEST),
        });
    }
    if version < 1 || !has_tables {
        return Err(OpenError::Damaged {
            path: path.to_owned(),
            reason: format!("version {version} never existed"),
        });
    }
    Ok(version)
}

/// Takes the steps that lead from this version to the newest, each wholly or not at all.
pub(super) fn migrate(connection: &mut Connection, version: i64) -> rusqlite::Result<()> {
    for (reached, step) in (1..).zip(STEPS) {
        if reached <= version {
            continue;
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", reached)?;
        transaction.commit()?;
        if version > 0 {
            tracing::info!(version = reached, "the store was brought up to date");
        }
    }
    Ok(())
}
