//! The database file as it was opened, so that it can be told from another file that takes its name.
//!
//! SQLite writes to the file that it opened, whatever becomes of its name: in a folder that was removed or
//! replaced every commit succeeds, and the next start finds nothing of it.

use std::collections::HashSet;
use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// How often the folder is looked at when nothing is written.
const PAUSE: Duration = Duration::from_secs(1);

/// The bytes of a header up to and including its number of pages.
const HEADER_BYTES: usize = 32;

/// What every database begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// What the system knows a file by, whatever its name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FileId(u64, u64);

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
fn id_of(metadata: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    Some(FileId(metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn id_of(_metadata: &Metadata) -> Option<FileId> {
    None
}

/// The databases that this process has open. A second handle must not even be opened: closing any handle of
/// a file ends the POSIX locks that SQLite holds on it through another.
static OPEN: Mutex<Option<HashSet<FileId>>> = Mutex::new(None);

/// A database file that is held open, and locked against other processes.
///
/// It must be opened before SQLite opens the file, and live longer than all of SQLite's connections.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    file: File,
    id: Option<FileId>,
    /// SQLite's files beside it, since they were first seen: they hold what was acknowledged last.
    beside: [(PathBuf, OnceLock<FileId>); 2],
    /// Whether SQLite is about to close the file, and to remove those beside it.
    is_closing: AtomicBool,
}

impl DatabaseFile {
    /// Opens and locks the file; none if it is in use, here or by another process.
    ///
    /// The lock is one of `flock`, which on Linux has nothing to do with SQLite's own POSIX locks. Elsewhere
    /// both exclude each other, so there is none: the lock file beside it has to do.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        let id = id_of(&fs::metadata(path)?);
        if id.is_some_and(|id| open.contains(&id)) {
            return Ok(None);
        }
        let file = File::open(path)?;
        if cfg!(target_os = "linux") {
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        let id = id_of(&file.metadata()?);
        open.extend(id);
        let beside = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            (PathBuf::from(name), OnceLock::new())
        };
        Ok(Some(Self {
            path: path.to_owned(),
            file,
            id,
            beside: [beside("-wal"), beside("-shm")],
            is_closing: AtomicBool::new(false),
        }))
    }

    /// Whether what is committed now will be found by the next start: the path still names this file, and
    /// nobody has cut it. To be asked by the thread that writes, between transactions.
    pub(super) fn verify(&self) -> Result<(), String> {
        self.verify_names()?;
        self.verify_length()
    }

    /// Whether the path still names this file, and its log is there.
    pub(super) fn verify_names(&self) -> Result<(), String> {
        let Some(id) = self.id else {
            return Ok(());
        };
        verify_name(&self.path, id)?;
        for (path, known) in &self.beside {
            if let Some(id) = known.get() {
                verify_name(path, *id)?;
            } else if let Some(id) = fs::metadata(path).ok().as_ref().and_then(id_of) {
                known.get_or_init(|| id);
            }
        }
        Ok(())
    }

    fn verify_length(&self) -> Result<(), String> {
        let path = self.path.display();
        match self.header_bytes() {
            Ok(None) => Err(format!("`{path}` was emptied or overwritten")),
            Ok(Some(bytes)) if bytes > self.bytes() => Err(format!("`{path}` was truncated")),
            Ok(Some(_)) => Ok(()),
            Err(error) => Err(format!("`{path}` cannot be read: {error}")),
        }
    }

    /// Whether the file is a database and shorter than its header says. That is damage only where no log is
    /// beside it: a process that was killed while it moved the log into the file leaves the same.
    pub(super) fn is_truncated(&self) -> bool {
        matches!(self.header_bytes(), Ok(Some(bytes)) if bytes > self.bytes())
    }

    fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// The length that the header states; none if the file is no database.
    #[cfg(unix)]
    fn header_bytes(&self) -> io::Result<Option<u64>> {
        use std::os::unix::fs::FileExt as _;
        let mut header = [0; HEADER_BYTES];
        match self.file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 0x1_0000,
            bytes => u64::from(bytes),
        };
        let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
        let is_database = header.starts_with(MAGIC);
        Ok(is_database.then(|| page_bytes * u64::from(pages)))
    }

    #[cfg(not(unix))]
    #[allow(clippy::unnecessary_wraps, reason = "as on other systems")]
    fn header_bytes(&self) -> io::Result<Option<u64>> {
        Ok(Some(0))
    }

    /// SQLite is about to close the file: what it removes is not lost.
    pub(super) fn closes(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// Logs when the file is lost, even while there are no writes, until the file is closed.
    pub(super) fn watch(self: &Arc<Self>) -> io::Result<()> {
        let file = Arc::downgrade(self);
        let mut is_lost = false;
        thread::Builder::new()
            .name("haft-store-watch".to_owned())
            .spawn(move || {
                while let Some(file) = file.upgrade() {
                    let verified = file.verify_names();
                    if file.is_closing.load(Ordering::SeqCst) {
                        break;
                    }
                    match (verified, is_lost) {
                        (Err(reason), false) => {
                            tracing::error!(
                                reason,
                                "database file lost; writes fail until the file is back at its path"
                            );
                            is_lost = true;
                        }
                        (Ok(()), true) => {
                            tracing::warn!("database file is back; writes succeed again");
                            is_lost = false;
                        }
                        _ => {}
                    }
                    drop(file);
                    thread::sleep(PAUSE);
                }
            })
            .map(drop)
    }
}

impl Drop for DatabaseFile {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(open), Some(id)) = (&mut *open, &self.id) {
            open.remove(id);
        }
    }
}

fn verify_name(path: &Path, id: FileId) -> Result<(), String> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(metadata) if id_of(&metadata) == Some(id) => Ok(()),
        Ok(_) => Err(format!("`{shown}` was replaced while it was in use")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("`{shown}` was removed while it was in use"))
        }
        Err(error) => Err(format!("`{shown}` cannot be found: {error}")),
    }
}
