//! Connections for reading, each used by one blocking thread at a time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::database_file::DatabaseFile;
use super::failure::Outcome;
use super::{Limits, connection};

/// A few connections, opened as they are needed.
pub(super) struct Readers {
    pool: Arc<Pool>,
    places: Arc<Semaphore>,
    wait: Duration,
}

struct Pool {
    path: PathBuf,
    busy_timeout: Duration,
    idle: Mutex<Vec<Connection>>,
    /// The file that the store has open, which outlives the connections; none for those who only look.
    file: Option<Arc<DatabaseFile>>,
}

impl Readers {
    /// Readers of this file.
    pub(super) fn new(path: &Path, limits: Limits, file: Option<Arc<DatabaseFile>>) -> Self {
        Self {
            pool: Arc::new(Pool {
                path: path.to_owned(),
                busy_timeout: limits.busy_timeout,
                idle: Mutex::new(Vec::new()),
                file,
            }),
            places: Arc::new(Semaphore::new(limits.readers)),
            wait: limits.wait,
        }
    }

    /// Does this on a thread that may block.
    pub(super) async fn read<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    {
        let place = tokio::time::timeout(self.wait, Arc::clone(&self.places).acquire_owned())
            .await
            .map_err(|_| StoreError::Busy)?
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        let pool = Arc::clone(&self.pool);
        tokio::task::spawn_blocking(move || {
            let outcome = pool.run(work);
            drop(place);
            outcome
        })
        .await
        .map_err(|error| StoreError::Failed(format!("a read ended early: {error}")))?
    }
}

impl Pool {
    fn run<T>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T, StoreError> {
        let connection = match self.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        let value = work(&connection);
        // Also after an error: the statements are reset and the transactions rolled back.
        self.put_back(connection);
        value.map_err(|failure| failure.0)
    }

    /// A new connection, to the file that the store has open and to no other of the same name.
    fn open(&self) -> Result<Connection, StoreError> {
        if let Some(file) = &self.file {
            file.verify_names().map_err(StoreError::Failed)?;
        }
        connection::open_reader(&self.path, self.busy_timeout)
            .map_err(|error| StoreError::Failed(error.to_string()))
    }

    fn take(&self) -> Option<Connection> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    fn put_back(&self, connection: Connection) {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
    }
}
