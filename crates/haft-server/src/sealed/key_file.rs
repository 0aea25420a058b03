//! The file with the keys: JSON, readable by its owner alone, replaced as a whole or not at all.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_files::{PrivateFile, Unreadable};
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
    let private = PrivateFile::new(path);
    let locked = private.lock().map_err(failed)?;
    let mut keys = read(path)?.map(|file| file.keys).unwrap_or_default();
    edit(&mut keys)?;
    let file = KeyFile {
        version: VERSION,
        keys,
    };
    let mut json = serde_json::to_vec_pretty(&file).map_err(|error| failed(error.into()))?;
    json.push(b'\n');
    private.replace(&locked, &json).map_err(failed)?;
    SealingKeys::from_stored(&file.keys, path)
}

fn read(path: &Path) -> Result<Option<KeyFile>, KeyFileError> {
    let damaged = || KeyFileError::Damaged { path: path.into() };
    let json = PrivateFile::new(path).read(MAX_FILE_BYTES);
    let json = json.map_err(|error| match error {
        Unreadable::Io(source) => KeyFileError::io(path, source),
        Unreadable::TooOpen => KeyFileError::TooOpen { path: path.into() },
        Unreadable::TooLarge => damaged(),
    })?;
    let Some(json) = json else {
        return Ok(None);
    };
    let file: KeyFile = serde_json::from_slice(&json).map_err(|_| damaged())?;
    if file.version != VERSION {
        return Err(KeyFileError::Version {
            path: path.into(),
            version: file.version,
        });
    }
    Ok(Some(file))
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
