//! A store in one SQLite file: one writer, some readers.

mod backup;
mod chains;
mod claim;
mod cleaning;
mod connection;
mod conversations;
mod database_file;
mod events;
mod failure;
mod items;
mod lists;
mod notes;
mod readers;
mod responses;
mod schema;
mod server_notes;
mod store;
mod taken;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::OpenError;
use claim::Claim;
use readers::Readers;
use writer::Writer;

pub use backup::{check_database, copy_database, read_server_note};
pub use claim::DatabaseLock;

/// A store in one SQLite file.
///
/// All writes go through one thread, which takes what waits into one transaction, commits it, and
/// acknowledges it then: many writers at a time cost hardly more than one. Reads go beside it, each on
/// a thread of its own, and see everything that was acknowledged before they started.
///
/// Only one store at a time can have the file open for writing; locks on `<file>.lock` and on the file
/// itself see to that and end with the process. A write is acknowledged only if the path still names the file
/// that was opened: one that was removed, replaced or cut underneath makes every write fail. Dropping the store waits until everything that was handed to it is on disk.
///
/// The methods need a tokio runtime with its timers enabled.
pub struct SqliteStore {
    path: PathBuf,
    /// So long a check waits for the disk.
    check_wait: Duration,
    // In the order in which they must go: the writer's last checkpoint wants the readers gone, and the
    // file must be free only after the writer has let go of it.
    readers: Readers,
    writer: Writer,
    _claim: Option<Claim>,
}

/// How much waits, and for how long.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// So many writes wait before others must wait to wait.
    queue: usize,
    /// So many reads happen at a time.
    readers: usize,
    /// So long a write waits for a place in the queue, a read for a connection, a check for the disk.
    wait: Duration,
    /// So long SQLite waits for a lock that a stranger holds.
    busy_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue: 1024,
            readers: 4,
            wait: Duration::from_secs(10),
            busy_timeout: Duration::from_secs(5),
        }
    }
}

impl SqliteStore {
    /// Opens the store in this file. The file and its directory are made if they are missing, readable
    /// for their owner only; an older version of the file is brought up to date, wholly or not at all,
    /// and refused by older programs from then on.
    ///
    /// No copy of the older version is kept: what is deleted later would live on in it. Who wants to be
    /// able to go back copies the file while no server runs.
    ///
    /// This touches the disk and blocks meanwhile.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("data/haft.db");
    /// use haft_store::{OpenError, SqliteStore};
    ///
    /// let store = SqliteStore::open(&path)?;
    /// assert!(matches!(SqliteStore::open(&path), Err(OpenError::InUse { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path.as_ref(), Limits::default())
    }

    fn open_with(path: &Path, limits: Limits) -> Result<Self, OpenError> {
        let claim = Claim::of(path)?;
        let path = claim.path().to_owned();
        let connection = connection::open_writer(&path, limits.busy_timeout)?;
        let failed = |what: &str, error: std::io::Error| OpenError::Failed {
            path: path.clone(),
            reason: format!("cannot {what}: {error}"),
        };
        claim
            .mark()
            .map_err(|error| failed("write the lock file", error))?;
        let file = claim.file();
        file.watch()
            .map_err(|error| failed("start a thread", error))?;
        let writer = Writer::start(connection, Arc::clone(file), limits)
            .map_err(|error| failed("start the writer", error))?;
        tracing::debug!(path = %path.display(), "store opened");
        Ok(Self {
            readers: Readers::new(&path, limits, Some(Arc::clone(file))),
            writer,
            path,
            check_wait: limits.wait,
            _claim: Some(claim),
        })
    }

    /// Opens the store in this file for reading only, also while a server has it open: for tools that look
    /// at what is there.
    ///
    /// It takes no lock, leaves no file behind and changes nothing: a file of an earlier version is
    /// refused like one of a later version, and every method that writes fails,
    /// [`check`](haft_core::Store::check) included. What the server acknowledges is seen by the reads that start afterwards.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("haft.db");
    /// use haft_core::{Owner, Store};
    /// use haft_store::SqliteStore;
    ///
    /// let server = SqliteStore::open(&path)?;
    /// let tool = SqliteStore::open_read_only(&path)?;
    /// assert!(tool.response(&Owner::default(), "resp_1").await?.is_none());
    /// assert!(tool.delete_response(&Owner::default(), "resp_1").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let limits = Limits::default();
        let path = Claim::none_on(path.as_ref())?;
        connection::check_for_reading(&path, limits.busy_timeout)?;
        Ok(Self {
            readers: Readers::new(&path, limits, None),
            writer: Writer::missing(),
            path,
            check_wait: limits.wait,
            _claim: None,
        })
    }

    /// The file, as an absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
