//! The file, and the right to be the only one that has it open.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::database_file::DatabaseFile;
use crate::OpenError;

/// The bytes of SQLite's smallest page.
const SMALLEST: u64 = 512;

/// The text that the lock file holds once there was a database beside it.
const MARK: &[u8] = b"a database was made beside this file\n";

/// The right to be the only process that changes a database, also one that is not there yet.
///
/// It is held by a lock on the file `<database>.lock` and, on Linux, by one on the database itself, so that
/// removing the lock file lets nobody in.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("haft.db");
/// use haft_store::{DatabaseLock, OpenError, SqliteStore};
///
/// let lock = DatabaseLock::acquire(&path)?;
/// assert!(matches!(SqliteStore::open(&path), Err(OpenError::InUse { .. })));
/// drop(lock);
/// assert!(SqliteStore::open(&path).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DatabaseLock {
    path: PathBuf,
    /// None where there is no database yet. It goes before the lock file does.
    file: Option<DatabaseFile>,
    lock: File,
}

impl DatabaseLock {
    /// Takes the lock. The directory is made if it is missing, the database is not.
    ///
    /// The lock file comes first, and the database is not opened before it is held: a process loses SQLite's
    /// locks on a file as soon as it closes any handle of it.
    pub fn acquire(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = resolve(path.as_ref())?;
        let lock_path = beside(&path, ".lock");
        let failed = |source| OpenError::File {
            path: lock_path.clone(),
            source,
        };
        let lock = open_private(OpenOptions::new().write(true).create(true), &lock_path)
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let file = if path.exists() {
            Some(open_file(&path)?)
        } else {
            None
        };
        Ok(Self { path, file, lock })
    }

    /// Whether there was a database with something in it.
    fn had_database(&self) -> bool {
        self.lock
            .metadata()
            .is_ok_and(|metadata| metadata.len() > 0)
    }
}

fn open_file(path: &Path) -> Result<DatabaseFile, OpenError> {
    let opened = DatabaseFile::open(path).map_err(|source| OpenError::File {
        path: path.to_owned(),
        source,
    })?;
    opened.ok_or_else(|| OpenError::InUse {
        path: path.to_owned(),
    })
}

/// A file that is there and that no other store has open, for as long as this lives.
pub(super) struct Claim {
    path: PathBuf,
    // Before the lock file.
    file: Arc<DatabaseFile>,
    lock: File,
}

impl Claim {
    /// Locks the file, and makes it where it is missing. One that is missing or empty although it held data
    /// is refused: it would be taken for a new one.
    pub(super) fn of(path: &Path) -> Result<Self, OpenError> {
        let claimed = DatabaseLock::acquire(path)?;
        let had_database = claimed.had_database();
        let DatabaseLock { path, file, lock } = claimed;
        let file = match file {
            Some(file) => {
                let is_empty = fs::metadata(&path).is_ok_and(|found| found.len() == 0);
                let log = fs::metadata(beside(&path, "-wal"));
                let has_log = log.is_ok_and(|log| log.len() > 0);
                if is_empty && (had_database || has_log) {
                    return Err(OpenError::Emptied { path });
                }
                if !has_log && file.is_truncated() {
                    let reason = "the file is shorter than its header says".to_owned();
                    return Err(OpenError::Damaged { path, reason });
                }
                file
            }
            None if had_database => return Err(OpenError::Missing { path }),
            None => {
                create(&path).map_err(|source| OpenError::File {
                    path: path.clone(),
                    source,
                })?;
                open_file(&path)?
            }
        };
        refuse_scrap(&path)?;
        Ok(Self {
            path,
            file: Arc::new(file),
            lock,
        })
    }

    /// The file, to be kept open for as long as a connection lives.
    pub(super) fn file(&self) -> &Arc<DatabaseFile> {
        &self.file
    }

    /// Notes in the lock file that there is a database now.
    pub(super) fn mark(&self) -> io::Result<()> {
        if self.lock.metadata()?.len() > 0 {
            return Ok(());
        }
        (&self.lock).write_all(MARK)?;
        self.lock.sync_all()
    }

    /// The one path of a file that is there, for those who only look: without a lock, and nothing is
    /// made.
    pub(super) fn none_on(path: &Path) -> Result<PathBuf, OpenError> {
        let found = fs::canonicalize(path).map_err(|source| OpenError::File {
            path: path.to_owned(),
            source,
        })?;
        if found.is_dir() {
            let source = io::ErrorKind::IsADirectory.into();
            return Err(OpenError::File {
                path: found,
                source,
            });
        }
        refuse_scrap(&found)?;
        Ok(found)
    }

    /// The absolute path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The one path of the file, whichever way it was named: two names must not give two locks.
fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    if let Ok(path) = fs::canonicalize(path) {
        if path.is_dir() {
            let source = io::ErrorKind::IsADirectory.into();
            return Err(OpenError::File { path, source });
        }
        return Ok(path);
    }
    let Some(name) = path.file_name() else {
        return Err(OpenError::File {
            path: path.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"),
        });
    };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    make_directory(directory)
        .and_then(|()| fs::canonicalize(directory))
        .map(|directory| directory.join(name))
        .map_err(|source| OpenError::Directory {
            path: directory.to_owned(),
            source,
        })
}

fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

fn create(path: &Path) -> io::Result<()> {
    match open_private(OpenOptions::new().write(true).create_new(true), path) {
        Ok(file) => {
            file.sync_all()?;
            drop(file);
            sync_directory(path)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a file that is too small for a database: SQLite would take it for an empty one and write
/// over it.
fn refuse_scrap(path: &Path) -> Result<(), OpenError> {
    let metadata = fs::metadata(path).map_err(|source| OpenError::File {
        path: path.to_owned(),
        source,
    })?;
    if metadata.is_file() && (1..SMALLEST).contains(&metadata.len()) {
        return Err(OpenError::NotADatabase {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// Makes the name of a new file last, not only its content.
fn sync_directory(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Opens a file that, if it is new, only its owner may read. SQLite gives its `-wal` and `-shm` files
/// the permissions of the database.
pub(super) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
