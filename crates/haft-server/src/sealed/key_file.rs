//! The file with the keys: JSON, readable by its owner alone, replaced as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use super::{KEY_BYTES, KEY_ID_BYTES, SealingKeys};

const VERSION: u32 = 1;

/// No file of keys is larger: some thousands of rotations.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct KeyFile {
    version: u32,
    /// The newest last.
    keys: Vec<StoredKey>,
}

/// A key as the file holds it. It has no `Debug`, so that nobody prints it.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredKey {
    id: String,
    created_at: u64,
    key: String,
}

impl StoredKey {
    pub(super) fn random(created_at: u64) -> Result<Self, KeyFileError> {
        let random = SystemRandom::new();
        let mut id = [0; KEY_ID_BYTES];
        let mut key = [0; KEY_BYTES];
        random.fill(&mut id).map_err(|_| KeyFileError::NoRandom)?;
        random.fill(&mut key).map_err(|_| KeyFileError::NoRandom)?;
        Ok(Self {
            id: STANDARD.encode(id),
            created_at,
            key: STANDARD.encode(key),
        })
    }

    pub(super) fn id(&self) -> Option<[u8; KEY_ID_BYTES]> {
        STANDARD.decode(&self.id).ok()?.try_into().ok()
    }

    pub(super) fn key(&self) -> Option<[u8; KEY_BYTES]> {
        STANDARD.decode(&self.key).ok()?.try_into().ok()
    }
}

pub(super) fn open(path: &Path) -> Result<SealingKeys, KeyFileError> {
    if let Some(file) = read(path)? {
        return SealingKeys::from_stored(&file.keys, path);
    }
    change(path, |keys| {
        // Another process may have been first.
        if keys.is_empty() {
            keys.push(StoredKey::random(now())?);
        }
        Ok(())
    })
}

pub(super) fn rotate(path: &Path) -> Result<SealingKeys, KeyFileError> {
    change(path, |keys| {
        keys.push(StoredKey::random(now())?);
        Ok(())
    })
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Changes the file while no other process does.
fn change(
    path: &Path,
    edit: impl FnOnce(&mut Vec<StoredKey>) -> Result<(), KeyFileError>,
) -> Result<SealingKeys, KeyFileError> {
    let failed = |source| KeyFileError::io(path, source);
    let lock = private()
        .create(true)
        .truncate(false)
        .open(beside(path, "lock"))
        .map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut keys = read(path)?.map(|file| file.keys).unwrap_or_default();
    edit(&mut keys)?;
    let file = KeyFile {
        version: VERSION,
        keys,
    };
    write(path, &file).map_err(failed)?;
    SealingKeys::from_stored(&file.keys, path)
}

fn read(path: &Path) -> Result<Option<KeyFile>, KeyFileError> {
    let failed = |source| KeyFileError::io(path, source);
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    check_private(path, &file)?;
    let mut json = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut json)
        .map_err(failed)?;
    let damaged = || KeyFileError::Damaged { path: path.into() };
    if json.len() as u64 > MAX_FILE_BYTES {
        return Err(damaged());
    }
    let file: KeyFile = serde_json::from_slice(&json).map_err(|_| damaged())?;
    if file.version != VERSION {
        return Err(KeyFileError::Version {
            path: path.into(),
            version: file.version,
        });
    }
    Ok(Some(file))
}

/// Writes the file beside its place and moves it there, so that no crash leaves half of it.
fn write(path: &Path, file: &KeyFile) -> io::Result<()> {
    let new = beside(path, "new");
    // Left behind by a process that died; nobody else writes while the lock is held.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = private().create_new(true).open(&new)?;
    let mut json = serde_json::to_vec_pretty(file)?;
    json.push(b'\n');
    out.write_all(&json)?;
    out.sync_all()?;
    fs::rename(&new, path)?;
    sync_directory(path)
}

/// The path with another ending behind its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn check_private(path: &Path, file: &File) -> Result<(), KeyFileError> {
    use std::os::unix::fs::PermissionsExt as _;
    const OTHERS: u32 = 0o077;
    let metadata = file.metadata();
    let metadata = metadata.map_err(|source| KeyFileError::io(path, source))?;
    if metadata.permissions().mode() & OTHERS == 0 {
        Ok(())
    } else {
        Err(KeyFileError::TooOpen { path: path.into() })
    }
}

#[cfg(not(unix))]
fn check_private(_path: &Path, _file: &File) -> Result<(), KeyFileError> {
    Ok(())
}

/// Makes the move itself last.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("the file of sealing keys `{path}` cannot be used: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others can read it.
    #[error("others can read the sealing keys in `{path}`: run `chmod 600` on it", path = path.display())]
    TooOpen {
        /// The file.
        path: PathBuf,
    },
    /// It holds something else.
    #[error(
        "`{path}` is no file of sealing keys, or it is damaged: restore it from a backup; without \
         it, what was sealed cannot be opened any more",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A later release wrote it.
    #[error("`{path}` has version {version}, which this release does not know: use a newer one", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers to make a key of")]
    NoRandom,
}

impl KeyFileError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }
}
