//! A file for its owner alone: read with a bound, replaced as a whole or not at all.
//!
//! What comes in: a path and bytes. What goes out: the bytes that were written last, never half of
//! them, whoever was killed in between. Whoever changes such a file holds its lock meanwhile, so that
//! two processes do not lose each other's changes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A file and what stands beside it while it is changed.
///
/// ```
/// use haft_files::PrivateFile;
///
/// # let folder = std::env::temp_dir().join(format!("private-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let file = PrivateFile::new(folder.join("secrets.json"));
/// let lock = file.lock()?;
/// file.replace(&lock, b"{}")?;
/// assert_eq!(file.read(1024).ok().flatten().as_deref(), Some(&b"{}"[..]));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PrivateFile {
    path: PathBuf,
}

/// Why it could not be read.
#[derive(Debug)]
pub enum Unreadable {
    /// What the system says.
    Io(io::Error),
    /// Others can read or write it.
    TooOpen,
    /// It has more bytes than such a file ever has.
    TooLarge,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Held while the file is changed.
#[derive(Debug)]
pub struct Locked {
    _lock: File,
}

impl PrivateFile {
    /// The file at this path. It need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds; none if it is not there.
    pub fn read(&self, most_bytes: u64) -> Result<Option<Vec<u8>>, Unreadable> {
        let is_not_there = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let metadata = match fs::metadata(&self.path) {
            Err(error) if is_not_there(&error) => return Ok(None),
            found => found?,
        };
        // A pipe would be waited for.
        if !metadata.is_file() {
            return Err(io::Error::other("it is no regular file").into());
        }
        let file = match File::open(&self.path) {
            Err(error) if is_not_there(&error) => return Ok(None),
            opened => opened?,
        };
        if !is_private(&file)? {
            return Err(Unreadable::TooOpen);
        }
        let mut bytes = Vec::new();
        file.take(most_bytes + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most_bytes {
            return Err(Unreadable::TooLarge);
        }
        Ok(Some(bytes))
    }

    /// Waits until nobody else changes it.
    pub fn lock(&self) -> io::Result<Locked> {
        let path = self.beside("lock");
        let lock = private().create(true).truncate(false).open(&path)?;
        give_to_owner_of(self.folder(), &path);
        lock.lock()?;
        Ok(Locked { _lock: lock })
    }

    /// Writes the file beside its place and moves it there, so that no crash leaves half of it.
    pub fn replace(&self, _locked: &Locked, bytes: &[u8]) -> io::Result<()> {
        let new = self.beside("new");
        // Left behind by a process that died; nobody else writes while the lock is held.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut out = private().create_new(true).open(&new)?;
        out.write_all(bytes)?;
        out.sync_all()?;
        give_to_owner_of(self.folder(), &new);
        fs::rename(&new, &self.path)?;
        self.sync_folder()
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// The path with another ending behind its name.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    }

    /// Makes the move itself last.
    #[cfg(unix)]
    fn sync_folder(&self) -> io::Result<()> {
        File::open(self.folder())?.sync_all()
    }

    #[cfg(not(unix))]
    #[allow(clippy::unnecessary_wraps, reason = "as on other systems")]
    fn sync_folder(&self) -> io::Result<()> {
        Ok(())
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn is_private(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    const OTHERS: u32 = 0o077;
    Ok(file.metadata()?.permissions().mode() & OTHERS == 0)
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "as on other systems")]
fn is_private(_file: &File) -> io::Result<bool> {
    Ok(true)
}

/// What an administrator writes into a server's folder must be readable for the server, whose folder
/// it is. Only he can give a file away; where that fails the server says that it cannot read it.
#[cfg(unix)]
fn give_to_owner_of(folder: &Path, file: &Path) {
    use std::os::unix::fs::{MetadataExt as _, chown};
    if let (Ok(folder), Ok(own)) = (fs::metadata(folder), fs::metadata(file))
        && (folder.uid(), folder.gid()) != (own.uid(), own.gid())
        && own.uid() == 0
    {
        let _ = chown(file, Some(folder.uid()), Some(folder.gid()));
    }
}

#[cfg(not(unix))]
fn give_to_owner_of(_folder: &Path, _file: &Path) {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_none_and_what_was_written_last_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = PrivateFile::new(folder.path().join("keys"));
        assert!(file.read(10).unwrap().is_none());
        let lock = file.lock().unwrap();
        file.replace(&lock, b"first").unwrap();
        file.replace(&lock, b"second").unwrap();
        assert_eq!(file.read(10).unwrap().as_deref(), Some(&b"second"[..]));
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = PrivateFile::new(folder.path().join("keys"));
        file.replace(&file.lock().unwrap(), b"eleven byte").unwrap();
        assert!(matches!(file.read(10), Err(Unreadable::TooLarge)));
        assert!(file.read(11).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = PrivateFile::new(folder.path().join("keys"));
        file.replace(&file.lock().unwrap(), b"secret").unwrap();
        let mode = |mode| {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            file.read(10)
        };
        assert!(matches!(mode(0o640), Err(Unreadable::TooOpen)));
        assert!(mode(0o600).is_ok());
    }

    #[test]
    fn what_a_process_left_half_written_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let file = PrivateFile::new(folder.path().join("keys"));
        fs::write(folder.path().join("keys.new"), b"half").unwrap();
        file.replace(&file.lock().unwrap(), b"whole").unwrap();
        assert_eq!(file.read(10).unwrap().as_deref(), Some(&b"whole"[..]));
    }
}
