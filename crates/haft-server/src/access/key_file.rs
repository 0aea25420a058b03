//! The file of keys: made, listed and revoked by commands, read by the server.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use haft_files::{PrivateFile, Unreadable};
use serde::{Deserialize, Serialize};

use super::key::{Key, KeySecret, KeyState, NewKey, is_tenant};
use crate::app::now;

const VERSION: u32 = 1;

/// No file of keys is larger: some ten thousand of them.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    /// The newest last.
    keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The keys of a data folder, for whoever makes and revokes them.
///
/// Changes are whole or not at all, and two who change it at once do not lose each other's. A server
/// that runs takes them over within a second or so.
///
/// ```
/// use haft_server::access::{KeyFile, KeyState, NewKey};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let keys = KeyFile::in_folder(folder);
/// let (key, secret) = keys.add(NewKey::named("ci"))?;
/// assert!(secret.expose().ends_with(&key.ends_with));
/// assert_eq!(keys.read()?.unwrap_or_default(), [key.clone()]);
///
/// keys.revoke("ci")?;
/// let kept = keys.read()?.unwrap_or_default();
/// assert_eq!(kept[0].state(key.created_at), KeyState::Revoked);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct KeyFile {
    file: PrivateFile,
}

impl KeyFile {
    /// The name of the file in the data folder.
    pub const NAME: &str = "keys.json";

    /// The file of this data folder. It need not be there.
    pub fn in_folder(data_dir: &Path) -> Self {
        Self {
            file: PrivateFile::new(data_dir.join(Self::NAME)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// All keys, the oldest first, revoked ones included; none if there is no file.
    pub fn read(&self) -> Result<Option<Vec<Key>>, KeysError> {
        let json = self
            .file
            .read(MAX_FILE_BYTES)
            .map_err(|error| match error {
                Unreadable::Io(source) => self.failed(source),
                Unreadable::TooOpen => KeysError::TooOpen { path: self.at() },
                Unreadable::TooLarge => self.damaged(&"it is too large"),
            })?;
        let Some(json) = json else {
            return Ok(None);
        };
        let versioned: Versioned =
            serde_json::from_slice(&json).map_err(|error| self.damaged(&error))?;
        if versioned.version != VERSION {
            return Err(KeysError::Version {
                path: self.at(),
                version: versioned.version,
            });
        }
        let written: Written =
            serde_json::from_slice(&json).map_err(|error| self.damaged(&error))?;
        let mut ids = HashSet::new();
        for key in &written.keys {
            if !ids.insert(&*key.id) {
                return Err(self.damaged(&format!("two keys have the id `{}`", key.id)));
            }
            if !is_tenant(&key.tenant) {
                return Err(self.damaged(&format!("the tenant of `{}` has no name", key.id)));
            }
            if !key.roles.iter().all(|role| is_tenant(role)) {
                return Err(self.damaged(&format!("a role of `{}` has no valid name", key.id)));
            }
        }
        Ok(Some(written.keys))
    }

    /// Makes a key. The secret is shown now or never.
    pub fn add(&self, new: NewKey) -> Result<(Key, KeySecret), KeysError> {
        new.check()?;
        let now = now();
        self.change(|keys| {
            let same = |key: &&Key| key.name == new.name && key.state(now) == KeyState::Active;
            if let Some(taken) = keys.iter().find(same) {
                return Err(KeysError::NameTaken {
                    name: taken.name.clone(),
                    id: taken.id.clone(),
                });
            }
            let (key, secret) = new.make(now)?;
            keys.push(key.clone());
            Ok((key, secret))
        })
    }

    /// Revokes the key of this id, or the one of this name that still works. Gives it as it is now;
    /// one that was revoked before stays as it was.
    pub fn revoke(&self, id_or_name: &str) -> Result<Key, KeysError> {
        let now = now();
        self.change(|keys| {
            let is_it = |key: &Key| key.id == id_or_name || key.name == id_or_name;
            let active = |key: &Key| is_it(key) && key.state(now) != KeyState::Revoked;
            // The newest of a name that was used again.
            let at = keys.iter().rposition(active);
            let at = at.or_else(|| keys.iter().rposition(is_it));
            let Some(key) = at.and_then(|at| keys.get_mut(at)) else {
                return Err(KeysError::Unknown {
                    which: haft_core::cut(id_or_name),
                });
            };
            key.revoked_at.get_or_insert(now);
            Ok(key.clone())
        })
    }

    /// Changes the file while no other process does.
    fn change<T>(
        &self,
        edit: impl FnOnce(&mut Vec<Key>) -> Result<T, KeysError>,
    ) -> Result<T, KeysError> {
        let locked = self.file.lock().map_err(|source| self.failed(source))?;
        let mut keys = self.read()?.unwrap_or_default();
        let done = edit(&mut keys)?;
        let written = Written {
            version: VERSION,
            keys,
        };
        let json = serde_json::to_vec_pretty(&written);
        let mut json = json.map_err(|error| self.failed(error.into()))?;
        json.push(b'\n');
        if json.len() as u64 > MAX_FILE_BYTES {
            return Err(KeysError::TooMany { path: self.at() });
        }
        let replaced = self.file.replace(&locked, &json);
        replaced.map_err(|source| self.failed(source))?;
        Ok(done)
    }

    /// What tells whether the file is another than before; none if there is none.
    pub(super) fn stamp(&self) -> io::Result<Option<Stamp>> {
        match std::fs::metadata(self.path()) {
            Ok(metadata) => Ok(Some(Stamp {
                modified: metadata.modified()?,
                length: metadata.len(),
                file: inode(&metadata),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn at(&self) -> PathBuf {
        self.path().to_owned()
    }

    fn failed(&self, source: io::Error) -> KeysError {
        KeysError::Io {
            path: self.at(),
            source,
        }
    }

    fn damaged(&self, reason: &dyn std::fmt::Display) -> KeysError {
        KeysError::Damaged {
            path: self.at(),
            reason: reason.to_string(),
        }
    }
}

/// What tells one state of the file from another: every change makes a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: SystemTime,
    length: u64,
    /// Its number, and when anything about it was changed.
    file: (u64, i64, i64),
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> (u64, i64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn inode(_metadata: &std::fs::Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}

/// Why keys cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The file cannot be read or written.
    #[error("the file of keys `{path}` cannot be used: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others can read or write it.
    #[error("others can read or write the keys in `{path}`: run `chmod 600` on it", path = path.display())]
    TooOpen {
        /// The file.
        path: PathBuf,
    },
    /// It holds something else.
    #[error(
        "`{path}` is no file of keys, or it is damaged ({reason}): restore it from a backup, or remove \
         it and make new keys",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A later release wrote it.
    #[error("`{path}` has version {version}, which this release does not know: use a newer one", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// There is no room for another.
    #[error("`{path}` holds more keys than a server reads: remove revoked ones", path = path.display())]
    TooMany {
        /// The file.
        path: PathBuf,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers to make a key of")]
    NoRandom,
    /// A key cannot be called so.
    #[error(
        "this is no name for a key: use 1 to 64 characters, no spaces around them, and not `key_` in \
         front"
    )]
    Name,
    /// A tenant cannot be called so.
    #[error(
        "this is no name for a tenant: use 1 to 64 letters, digits, `.`, `_` and `-`, a letter or a \
         digit first"
    )]
    Tenant,
    /// A role cannot be called so.
    #[error(
        "`{role}` is no name for a role: use 1 to 64 letters, digits, `.`, `_` and `-`, a letter or a \
         digit first"
    )]
    Role {
        /// As given, shortened.
        role: String,
    },
    /// Another key that works is called so.
    #[error("the key `{id}` is called `{name}` already: revoke it first, or choose another name")]
    NameTaken {
        /// The name.
        name: String,
        /// The key that has it.
        id: String,
    },
    /// There is no such key.
    #[error("there is no key `{which}`: `haft keys list` shows those that there are")]
    Unknown {
        /// As it was asked for.
        which: String,
    },
}
