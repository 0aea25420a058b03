//! The index: a database file with what the files say, passage by passage.
//!
//! It can always be made anew from the files, so what is damaged, or was made by another version, is
//! given up without regret. A database that is not an index is never touched. One connection
//! writes; any number read beside it.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};

use super::error::FileSearchError;
use super::folder::Place;
use super::text::passages;

/// `hafi` in ASCII: that a database is an index of haft.
const APPLICATION: i32 = 0x6861_6669;

/// The version of the tables below.
const VERSION: i32 = 1;

/// How long one connection waits for another.
const BUSY: Duration = Duration::from_secs(5);

/// How many connections are kept for the next searches.
const IDLE_READERS: usize = 8;

/// The numbers of folders are never given twice: files that still wait to be removed must not turn
/// up in another folder.
const TABLES: &str = "
    CREATE TABLE folders (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, real BLOB NOT NULL,
        UNIQUE (name, real)
    );
    CREATE TABLE files (
        id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, path TEXT NOT NULL,
        size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL,
        UNIQUE (folder, path)
    );
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY, file INTEGER NOT NULL, first_line INTEGER NOT NULL
    );
    CREATE INDEX passages_of_file ON passages (file);
    CREATE VIRTUAL TABLE texts USING fts5 (
        text, path, tokenize = 'unicode61 remove_diacritics 2'
    );
    INSERT INTO texts (texts, rank) VALUES ('rank', 'bm25(1.0, 2.0)');
";

/// What tells whether a file is the same as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) size: i64,
    /// When its content was changed, in nanoseconds.
    pub(super) modified: i64,
    /// When anything about it was changed, in nanoseconds: nobody can set that back.
    pub(super) changed: i64,
}

/// The file, and the connections that read it.
pub(super) struct Index {
    path: PathBuf,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    /// Grows when the file is made anew: older connections still read the old one.
    generation: u64,
    idle: Vec<Connection>,
}

/// What a database turned out to be.
enum Opened {
    Ready(Connection),
    OtherVersion,
    Foreign,
}

impl Index {
    /// Opens the index, or makes it; gives the connection that writes.
    pub(super) fn open(path: &Path) -> Result<(Self, Connection), FileSearchError> {
        let index = Self {
            path: path.to_owned(),
            readers: Mutex::default(),
        };
        let writer = index.open_writer()?;
        Ok((index, writer))
    }

    fn open_writer(&self) -> Result<Connection, FileSearchError> {
        let failed = |reason: String| FileSearchError::Index {
            path: self.path.clone(),
            reason,
        };
        let io_failed = |error: io::Error| failed(error.to_string());
        match self.try_open() {
            Ok(Opened::Ready(connection)) => return Ok(connection),
            Ok(Opened::Foreign) => {
                let path = self.path.clone();
                return Err(FileSearchError::Foreign { path });
            }
            Ok(Opened::OtherVersion) => {
                tracing::info!(index = %self.path.display(), "the index is of another version");
                self.remove_files().map_err(io_failed)?;
            }
            Err(error) if is_damaged(&error) => {
                // Perhaps it never was an index: it is put aside, not removed.
                tracing::warn!(index = %self.path.display(), %error, "the index is damaged");
                let aside = beside(&self.path, ".damaged");
                std::fs::rename(&self.path, aside).map_err(io_failed)?;
                self.remove_files().map_err(io_failed)?;
            }
            Err(error) => return Err(failed(error.to_string())),
        }
        match self.try_open() {
            Ok(Opened::Ready(connection)) => Ok(connection),
            Ok(_) => Err(failed("it was replaced meanwhile".to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn try_open(&self) -> rusqlite::Result<Opened> {
        create_private(&self.path).map_err(|error| {
            rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
                Some(error.to_string()),
            )
        })?;
        let mut connection = self.connect()?;
        let application: i32 = pragma(&connection, "application_id")?;
        let version: i32 = pragma(&connection, "user_version")?;
        let count = "SELECT count(*) FROM sqlite_schema";
        let tables: i64 = connection.query_row(count, [], |row| row.get(0))?;
        match (application, version) {
            (0, 0) if tables == 0 => {}
            (APPLICATION, VERSION) if has_tables(&connection)? => {
                return Ok(Opened::Ready(connection));
            }
            (APPLICATION, _) => return Ok(Opened::OtherVersion),
            _ => return Ok(Opened::Foreign),
        }
        let journal = "PRAGMA journal_mode = WAL";
        connection.query_row(journal, [], |_| Ok(()))?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
        Ok(Opened::Ready(connection))
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // What the file itself says is not trusted to call anything.
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(connection)
    }

    fn connect_reader(&self) -> rusqlite::Result<Connection> {
        let connection = self.connect()?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    /// Makes the index anew, because this one turned out to be damaged.
    pub(super) fn rebuild(&self) -> Result<Connection, FileSearchError> {
        tracing::warn!(index = %self.path.display(), "the index is damaged and is made anew");
        let removed = self.remove_files();
        removed.map_err(|error| FileSearchError::Index {
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        let mut readers = self.readers();
        readers.generation += 1;
        readers.idle.clear();
        drop(readers);
        self.open_writer()
    }

    fn remove_files(&self) -> io::Result<()> {
        for ending in ["", "-wal", "-shm"] {
            match std::fs::remove_file(beside(&self.path, ending)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Lends a connection that only reads.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let (generation, idle) = {
            let mut readers = self.readers();
            (readers.generation, readers.idle.pop())
        };
        let mut connection = idle.map_or_else(|| self.connect_reader(), Ok)?;
        let done = work(&mut connection)?;
        let mut readers = self.readers();
        if readers.generation == generation && readers.idle.len() < IDLE_READERS {
            readers.idle.push(connection);
        }
        Ok(done)
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        // A list of connections is whole, whoever panicked.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pragma<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> rusqlite::Result<T> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Whether the tables are those that are read and written here.
fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    let all = "SELECT folders.real, files.changed, passages.first_line, texts.path
        FROM folders, files, passages, texts LIMIT 0";
    match connection.prepare(all) {
        Ok(_) => Ok(true),
        Err(error) if is_damaged(&error) => Err(error),
        Err(_) => Ok(false),
    }
}

/// The file, readable by nobody else: it holds what the files say. Those that the database
/// puts beside it get the same rights.
fn create_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map(drop)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

pub(super) fn is_damaged(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// Makes the list of folders this one; gives their numbers. Files of others are found no more, and
/// are removed with the next sweep.
pub(super) fn set_folders(
    connection: &mut Connection,
    places: &[Place],
) -> rusqlite::Result<Vec<i64>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut numbers = Vec::new();
    for place in places {
        let real = place.real.as_os_str().as_bytes();
        let insert = "INSERT OR IGNORE INTO folders (name, real) VALUES (?, ?)";
        transaction.execute(insert, params![place.name, real])?;
        let select = "SELECT id FROM folders WHERE name = ? AND real = ?";
        let values = params![place.name, real];
        let number: i64 = transaction.query_row(select, values, |row| row.get(0))?;
        numbers.push(number);
    }
    let known: Vec<i64> = {
        let mut select = transaction.prepare("SELECT id FROM folders")?;
        let rows = select.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    for number in known.iter().filter(|number| !numbers.contains(number)) {
        transaction.execute("DELETE FROM folders WHERE id = ?", [number])?;
    }
    transaction.commit()?;
    Ok(numbers)
}

/// The number and stamp of a file that is in the index.
pub(super) fn known_file(
    transaction: &Transaction<'_>,
    folder: i64,
    path: &str,
) -> rusqlite::Result<Option<(i64, Stamp)>> {
    let select = "SELECT id, size, modified, changed FROM files WHERE folder = ? AND path = ?";
    let mut select = transaction.prepare_cached(select)?;
    let row = select.query_row(params![folder, path], |row| {
        let stamp = Stamp {
            size: row.get(1)?,
            modified: row.get(2)?,
            changed: row.get(3)?,
        };
        Ok((row.get(0)?, stamp))
    });
    row.optional()
}

/// Puts a file into the index, or in the place of what was there for it; gives its number. One
/// without text is remembered, so that it is not read again.
pub(super) fn put_file(
    transaction: &Transaction<'_>,
    folder: i64,
    (path, shown): (&str, &str),
    stamp: Stamp,
    text: Option<&str>,
) -> rusqlite::Result<i64> {
    let upsert = "INSERT INTO files (folder, path, size, modified, changed) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (folder, path) DO UPDATE
        SET size = excluded.size, modified = excluded.modified, changed = excluded.changed
        RETURNING id";
    let values = params![folder, path, stamp.size, stamp.modified, stamp.changed];
    let file: i64 = transaction
        .prepare_cached(upsert)?
        .query_row(values, |row| row.get(0))?;
    remove_passages(transaction, file)?;
    let mut passage_of = transaction
        .prepare_cached("INSERT INTO passages (file, first_line) VALUES (?, ?) RETURNING id")?;
    let mut text_of =
        transaction.prepare_cached("INSERT INTO texts (rowid, text, path) VALUES (?, ?, ?)")?;
    // The first passage also stands for the name, so that it is found once.
    let mut shown = shown;
    for passage in text.map(passages).unwrap_or_default() {
        let values = params![file, passage.first_line];
        let number: i64 = passage_of.query_row(values, |row| row.get(0))?;
        text_of.execute(params![number, passage.text, shown])?;
        shown = "";
    }
    Ok(file)
}

fn remove_passages(transaction: &Transaction<'_>, file: i64) -> rusqlite::Result<()> {
    let of_file = "DELETE FROM texts WHERE rowid IN (SELECT id FROM passages WHERE file = ?)";
    transaction.prepare_cached(of_file)?.execute([file])?;
    let passages = "DELETE FROM passages WHERE file = ?";
    transaction.prepare_cached(passages)?.execute([file])?;
    Ok(())
}

pub(super) fn remove_file(transaction: &Transaction<'_>, file: i64) -> rusqlite::Result<()> {
    remove_passages(transaction, file)?;
    let delete = "DELETE FROM files WHERE id = ?";
    transaction.prepare_cached(delete)?.execute([file])?;
    Ok(())
}

/// The numbers of all files that are in the index.
pub(super) fn file_numbers(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<i64>> {
    let mut select = transaction.prepare_cached("SELECT id FROM files")?;
    select.query_map([], |row| row.get(0))?.collect()
}
