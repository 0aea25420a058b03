//! Paths within a directory, and nothing beyond it.
//!
//! A path is resolved once, symbolic links included, and checked. What it resolved to holds no link
//! any more, so it is then opened step by step from the directory down without following any: who
//! puts a link there in between makes the step fail instead of leading it out.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::refusal::Refusal;

/// The largest file that is read or replaced, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// An open directory, and where it really is.
pub(crate) struct Root {
    directory: OwnedFd,
    real: PathBuf,
}

/// A file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) mode: u32,
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let real = path.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&real, flags, Mode::empty())?;
        Ok(Self { directory, real })
    }

    /// Where the directory really is.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// The path without links, relative to the root. Its last steps need not exist.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, Refusal> {
        let wanted = lexical(path).ok_or_else(|| Refusal::outside(path))?;
        let failed = |error: &io::Error| Refusal::io(path, error);
        let mut rest = Vec::new();
        let mut existing = self.real.join(&wanted);
        let real = loop {
            match existing.canonicalize() {
                Ok(real) => break real,
                // A link to nowhere: where it would lead cannot be known.
                Err(_) if existing.is_symlink() => return Err(Refusal::outside(path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match existing.file_name() {
                        Some(name) if existing != self.real => rest.push(name.to_owned()),
                        _ => return Err(failed(&error)),
                    }
                    existing.pop();
                }
                Err(error) => return Err(failed(&error)),
            }
        };
        let below = real.strip_prefix(&self.real);
        let mut resolved = below.map_err(|_| Refusal::outside(path))?.to_owned();
        resolved.extend(rest.iter().rev());
        Ok(resolved)
    }

    /// Opens a directory by its resolved path.
    pub(crate) fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut directory = self.directory.try_clone()?;
        for step in path {
            directory = open_directory(&directory, step)?;
        }
        Ok(directory)
    }

    /// The content of a regular file by its resolved path; `None` if there is nothing.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Option<Content>> {
        match self.read_existing(path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_existing(&self, path: &Path) -> io::Result<Content> {
        let (parent, name) = split(path)?;
        let parent = self.directory(parent)?;
        // Not to wait for whoever writes into a pipe: what is no regular file is refused below.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&parent, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let limit = format!("it is larger than {MAX_FILE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, limit));
        }
        Ok(Content {
            bytes: bytes.into(),
            mode: metadata.permissions().mode() & 0o7777,
        })
    }

    /// Makes the directories above a file; those that were not there before, from the top down.
    pub(crate) fn make_parents(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let (parent, _) = split(path)?;
        let mut directory = self.directory.try_clone()?;
        let (mut so_far, mut made) = (PathBuf::new(), Vec::new());
        for step in parent {
            so_far.push(step);
            match rustix::fs::mkdirat(&directory, step, Mode::from_raw_mode(0o777)) {
                Ok(()) => made.push(so_far.clone()),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            directory = open_directory(&directory, step)?;
        }
        Ok(made)
    }

    /// Puts a whole file in place at once: it is written beside its place and renamed.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        let (parent, name) = split(path)?;
        let parent = self.directory(parent)?;
        let (mut file, temporary) = create_beside(&parent)?;
        let written = file
            .write_all(bytes)
            .and_then(|()| match mode {
                Some(mode) => file.set_permissions(PermissionsExt::from_mode(mode)),
                None => Ok(()),
            })
            .and_then(|()| file.sync_all())
            .and_then(|()| {
                rustix::fs::renameat(&parent, &temporary, &parent, name).map_err(io::Error::from)
            });
        if written.is_err() {
            // The failure that is reported is the first one.
            let _ = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty());
        }
        written
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = split(path)?;
        let parent = self.directory(parent)?;
        Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?)
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let (parent, name) = split(path)?;
        let parent = self.directory(parent)?;
        Ok(rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?)
    }
}

fn open_directory(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

fn create_beside(parent: &OwnedFd) -> io::Result<(File, String)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".haft-{}-{number}.tmp", std::process::id());
        match rustix::fs::openat(parent, &temporary, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((file.into(), temporary)),
            // Left behind by a process of the same number: it is not ours to remove.
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A resolved path as directory and name; the root itself has no name.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(io::ErrorKind::IsADirectory.into()),
    }
}

/// The path as it reads, with `.` and `..` taken out; `None` where it leads out.
fn lexical(path: &str) -> Option<PathBuf> {
    let mut wanted = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(step) => wanted.push(step),
            Component::CurDir => {}
            Component::ParentDir if wanted.pop() => {}
            _ => return None,
        }
    }
    Some(wanted)
}
