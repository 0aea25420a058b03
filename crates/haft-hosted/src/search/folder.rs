//! A folder, and nothing beyond it.
//!
//! Every path is opened step by step from the folder down, and no step follows a link: whoever puts
//! one there, before or meanwhile, makes the step fail instead of leading it out. Files behind links
//! within a folder are found where they really are.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};

use super::config::Folder;
use super::error::FileSearchError;

/// The longest name of a folder, in characters.
const MAX_NAME_CHARS: usize = 64;

/// A folder that is searched: where it really is, and what it is called.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) real: PathBuf,
    /// Whose it is; none if everybody's.
    pub(super) tenants: Option<BTreeSet<String>>,
}

impl Place {
    pub(super) fn of(folder: &Folder) -> Result<Self, FileSearchError> {
        let path = folder.path.clone();
        let real = path.canonicalize();
        let real = real.and_then(|real| Root::open(&real).map(|_| real));
        let real = match real {
            Ok(real) => real,
            Err(source) => return Err(FileSearchError::Folder { path, source }),
        };
        let own = || real.file_name().and_then(OsStr::to_str).map(str::to_owned);
        let is_usable = |name: &String| {
            (1..=MAX_NAME_CHARS).contains(&name.chars().count())
                && !name.contains(|c: char| c == '/' || c.is_control())
        };
        let name = folder.name.clone().or_else(own).filter(is_usable);
        let Some(name) = name else {
            return Err(FileSearchError::Name { path });
        };
        let tenants = folder.tenants.clone();
        let tenants: Option<BTreeSet<_>> = tenants.map(|names| names.into_iter().collect());
        let is_nobodys = |names: &BTreeSet<String>| names.is_empty() || names.contains("");
        if tenants.as_ref().is_some_and(is_nobodys) {
            return Err(FileSearchError::Tenants { path });
        }
        Ok(Self {
            name,
            real,
            tenants,
        })
    }
}

/// An open folder.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

/// What is in a directory: names that can be shown, and what they are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_directory: bool,
}

impl Root {
    pub(super) fn open(real: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(
            real,
            directory_flags(),
            Mode::empty(),
        )?))
    }

    /// Opens a directory by its path below the folder; the folder itself by an empty one.
    fn directory(&self, path: &str) -> io::Result<OwnedFd> {
        let mut directory = self.0.try_clone()?;
        for step in path.split('/').filter(|step| !step.is_empty()) {
            directory = rustix::fs::openat(&directory, step, directory_flags(), Mode::empty())?;
        }
        Ok(directory)
    }

    /// The regular files and directories in a directory, sorted; at most so many.
    pub(super) fn entries(&self, path: &str, most: usize) -> io::Result<Vec<Entry>> {
        let directory = self.directory(path)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_directory = match kind_of(&directory, name, entry.file_type()) {
                FileType::Directory => true,
                FileType::RegularFile => false,
                // Links, pipes, sockets and devices.
                _ => continue,
            };
            // A name that is no text could not be shown.
            if let Some(name) = name.to_str().filter(|name| !matches!(*name, "." | "..")) {
                let name = name.to_owned();
                entries.push(Entry { name, is_directory });
            }
            if entries.len() >= most {
                break;
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }

    /// Opens a file by its path below the folder.
    pub(super) fn file(&self, path: &str) -> io::Result<File> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.directory(parent)?;
        // Not to wait for whoever writes into a pipe that was put there meanwhile.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&parent, name, flags, Mode::empty())?;
        Ok(File::from(file))
    }
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Some file systems do not say with the name what it is.
fn kind_of(directory: &OwnedFd, name: &OsStr, said: FileType) -> FileType {
    match said {
        FileType::Unknown => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |stat| {
                FileType::from_raw_mode(stat.st_mode)
            }),
        known => known,
    }
}
