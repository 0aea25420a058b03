//! The file, and the right to be the only one that has it open.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::OpenError;

/// The bytes of SQLite's smallest page.
const SMALLEST: u64 = 512;

/// A file that is there and that no other store has open, for as long as this lives.
pub(super) struct Claim {
    path: PathBuf,
    _lock: File,
}

impl Claim {
    /// Makes the file and its directory where they are missing, and locks it.
    ///
    /// The lock is on a file beside it: SQLite's own locks are those of POSIX, which a process loses as
    /// soon as it closes any handle of the file, and a lock by which SQLite keeps others out would keep
    /// out the readers of this store too. For the same reason nothing touches the file before the lock
    /// is held.
    pub(super) fn of(path: &Path) -> Result<Self, OpenError> {
        let path = resolve(path)?;
        let lock_path = beside(&path, ".lock");
        let lock = open_private(OpenOptions::new().write(true).create(true), &lock_path).map_err(
            |source| OpenError::File {
                path: lock_path.clone(),
                source,
            },
        )?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path }),
            Err(TryLockError::Error(source)) => {
                return Err(OpenError::File {
                    path: lock_path,
                    source,
                });
            }
        }
        create(&path).map_err(|source| OpenError::File {
            path: path.clone(),
            source,
        })?;
        refuse_scrap(&path)?;
        Ok(Self { path, _lock: lock })
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
fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
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
