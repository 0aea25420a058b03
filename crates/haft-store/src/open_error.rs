//! Why a file could not be opened as a store.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why [`SqliteStore::open`](crate::SqliteStore::open) failed, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory is not there and cannot be made.
    #[error(
        "cannot make the directory `{path}` of the store: {source}; make it, or give the store \
         another path"
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file or its lock file cannot be made, or not be used.
    #[error("cannot use `{path}` for the store: {source}; check the path and its permissions")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process, or another store of this one, has the file open.
    #[error(
        "`{path}` is in use by another haft: stop that one, or give this one a file of its own"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file has no content, although it had some.
    #[error(
        "`{path}` is empty, although it held data: restore it from a backup, or remove it with its \
         `-wal` and `.lock` files to begin anew"
    )]
    Emptied {
        /// The file.
        path: PathBuf,
    },
    /// The file is gone.
    #[error(
        "`{path}` is missing, although there was one: restore it from a backup, or remove \
         `{path}.lock` to begin anew"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("`{path}` is not a SQLite database: move it away, or give the store another path")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database, but not one of haft.
    #[error(
        "`{path}` is a database of another application (id `{application_id:#010x}`): give the \
         store a file of its own"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose it says it is; zero if it says nothing.
        application_id: i32,
    },
    /// A later haft wrote the file.
    #[error(
        "`{path}` has version {found}, but this haft knows only versions up to {known}: use the \
         newer haft that wrote it, or give the store another path"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// An earlier haft wrote the file, and it was to be opened only for reading.
    #[error(
        "`{path}` has version {found}, but this haft reads only version {known}: start its server \
         once, which brings the file up to date, or use the older haft that wrote it"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// The version of the file; zero if nothing was ever written to it.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// The file is broken.
    #[error(
        "`{path}` is damaged: {reason}; restore it from a backup, or move it and its `-wal` and \
         `.lock` files away to begin anew"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// Anything else that SQLite or the system did not want to do.
    #[error("cannot open the store `{path}`: {reason}; check the disk and the permissions")]
    Failed {
        /// The file.
        path: PathBuf,
        /// What was said.
        reason: String,
    },
}

impl OpenError {
    /// What SQLite's refusal means for somebody who wants to open a store.
    pub(crate) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged {
                path,
                reason: error.to_string(),
            },
            _ => Self::Failed {
                path,
                reason: error.to_string(),
            },
        }
    }
}
