//! The one thread that writes.
//!
//! It takes what waits into one transaction, commits once, and then tells everybody: so a commit's
//! wait for the disk is shared by all who wait at the same time. Each job has its own savepoint: one
//! that fails leaves nothing behind and takes nobody with it.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haft_core::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::Limits;
use super::database_file::DatabaseFile;
use super::failure::{Failure, Outcome};
use crate::refusals;

/// At most so many jobs share a commit, so that the first does not wait for ever more.
const GROUP: usize = 256;

/// The way to the thread that writes.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    wait: Duration,
    /// Nobody ever wrote, and nobody will.
    is_missing: bool,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        connection: Connection,
        file: Arc<DatabaseFile>,
        limits: Limits,
    ) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel(limits.queue);
        let thread = thread::Builder::new()
            .name("haft-store".to_owned())
            .spawn(move || {
                run(&connection, &file, waiting);
                // In this order: the file must outlive the connection.
                drop(connection);
                drop(file);
            })?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            wait: limits.wait,
            is_missing: false,
        })
    }

    /// No writer: refuses everything.
    pub(super) fn missing() -> Self {
        Self {
            jobs: None,
            thread: None,
            wait: Duration::ZERO,
            is_missing: true,
        }
    }

    /// Does this in a transaction and waits until it is on disk. It may be done more than once, but
    /// only the last time counts.
    pub(super) async fn write<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: Fn(&Connection) -> Outcome<T> + Send + 'static,
    {
        if self.is_missing {
            return Err(refusals::read_only());
        }
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        let (reply, answer) = oneshot::channel();
        let place = match jobs.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Closed(())) => return Err(gone()),
            Err(mpsc::error::TrySendError::Full(())) => {
                tokio::time::timeout(self.wait, jobs.reserve())
                    .await
                    .map_err(|_| StoreError::Busy)?
                    .map_err(|_| gone())?
            }
        };
        place.send(Box::new(Write {
            work,
            value: None,
            reply,
        }));
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    /// Waits until everything that was handed over is written.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes the store had panicked");
        }
    }
}

fn gone() -> StoreError {
    StoreError::Failed("the thread that writes is gone: open the store anew".to_owned())
}

/// Something to write, and somebody who waits for it.
trait Job: Send {
    fn run(&mut self, connection: &Connection) -> Outcome<()>;
    fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Write<T, W> {
    work: W,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Job for Write<T, W>
where
    T: Send,
    W: Fn(&Connection) -> Outcome<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> Outcome<()> {
        self.value = Some((self.work)(connection)?);
        Ok(())
    }

    fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { value, reply, .. } = *self;
        let answer = outcome.and_then(|()| value.ok_or_else(gone));
        // Nobody listens any more if the caller gave up waiting; the write stands all the same.
        let _ = reply.send(answer);
    }
}

fn run(connection: &Connection, file: &DatabaseFile, mut waiting: mpsc::Receiver<Box<dyn Job>>) {
    while let Some(first) = waiting.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = waiting.try_recv()
        {
            group.push(next);
        }
        perform(connection, file, group);
    }
    file.closes();
    // The last one out moves the log into the file, so that a copy of the file alone is whole.
    let closing = connection
        .pragma_query(None, "optimize", |_| Ok(()))
        .and_then(|()| connection.pragma(None, "wal_checkpoint", "TRUNCATE", |_| Ok(())));
    if let Err(error) = closing {
        tracing::warn!(%error, "the store's log was not moved into its file; the next start does it");
    }
}

fn perform(connection: &Connection, file: &DatabaseFile, mut group: Vec<Box<dyn Job>>) {
    let outcomes = match together(connection, &mut group) {
        Ok(outcomes) => outcomes,
        // What takes the whole transaction with it, like a full disk, may be the fault of one.
        Err(Lost::Transaction(_)) if group.len() > 1 => {
            group.iter_mut().map(|job| alone(connection, job)).collect()
        }
        Err(Lost::Transaction(error) | Lost::Start(error)) => {
            vec![Err(error); group.len()]
        }
    };
    // SQLite commits to a file that has lost its name as well: nobody would find it again.
    let lost = file.verify().err();
    for (job, outcome) in group.into_iter().zip(outcomes) {
        let outcome = match &lost {
            Some(reason) => Err(StoreError::Failed(reason.clone())),
            None => outcome,
        };
        if let Err(error) = &outcome {
            tracing::warn!(%error, "a write to the store failed");
        }
        job.acknowledge(outcome);
    }
}

/// Why a whole group failed.
enum Lost {
    /// There was no transaction.
    Start(StoreError),
    /// It went wrong on its way or at its end.
    Transaction(StoreError),
}

fn alone(connection: &Connection, job: &mut Box<dyn Job>) -> Result<(), StoreError> {
    match together(connection, std::slice::from_mut(job)) {
        Ok(outcomes) => outcomes.into_iter().collect(),
        Err(Lost::Start(error) | Lost::Transaction(error)) => Err(error),
    }
}

/// Runs the jobs in one transaction; what each came to, once that is on disk.
fn together(
    connection: &Connection,
    group: &mut [Box<dyn Job>],
) -> Result<Vec<Result<(), StoreError>>, Lost> {
    execute(connection, "BEGIN IMMEDIATE").map_err(|Failure(error)| Lost::Start(error))?;
    let outcome = group
        .iter_mut()
        .map(|job| in_savepoint(connection, job))
        .collect::<Outcome<Vec<_>>>()
        .and_then(|outcomes| {
            execute(connection, "COMMIT")?;
            Ok(outcomes)
        });
    outcome.map_err(|Failure(error)| {
        // Where SQLite has not rolled back by itself.
        if !connection.is_autocommit()
            && let Err(Failure(error)) = execute(connection, "ROLLBACK")
        {
            tracing::error!(%error, "the store could not roll back");
        }
        Lost::Transaction(error)
    })
}

/// The outer result is lost where the transaction is; the inner one is the job's own.
fn in_savepoint(
    connection: &Connection,
    job: &mut Box<dyn Job>,
) -> Outcome<Result<(), StoreError>> {
    execute(connection, "SAVEPOINT job")?;
    let outcome = job.run(connection);
    if let Err(failure) = outcome {
        if connection.is_autocommit() {
            return Err(failure);
        }
        execute(connection, "ROLLBACK TO job")?;
        execute(connection, "RELEASE job")?;
        return Ok(Err(failure.0));
    }
    execute(connection, "RELEASE job")?;
    Ok(Ok(()))
}

fn execute(connection: &Connection, sql: &'static str) -> Outcome<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
