//! Where tokens are kept between two runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use haft_files::{Locked, PrivateFile, Unreadable};
use reqwest::Url;
use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};

/// How large the file may be: some hundred servers.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The form of the file.
const VERSION: u32 = 1;

/// The form of a file with tokens of users: releases that do not know them must not take them for everybody's.
const VERSION_WITH_USERS: u32 = 2;

/// Tokens of servers, each for its own server and from its own issuer, and for no other.
///
/// The file is its owner's alone, and changed as a whole or not at all.
#[derive(Clone)]
pub struct TokenStore {
    place: Arc<Place>,
    /// Whose tokens are seen; those without a user where none is named.
    user: Option<Arc<str>>,
}

enum Place {
    File(PrivateFile),
    Memory(Mutex<Vec<Entry>>),
}

/// Why tokens could not be read or kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenStoreError {
    /// The system says no.
    #[error("the file of tokens `{}`: {reason}", path.display())]
    Io {
        /// Where it is.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// Others can read it, so that its tokens are no secrets any more.
    #[error("the file of tokens `{}` can be read by others: run `chmod 600` on it, or delete it and log in again", path.display())]
    TooOpen {
        /// Where it is.
        path: PathBuf,
    },
    /// It holds something else.
    #[error("the file of tokens `{}` cannot be understood: {reason}; delete it and log in again", path.display())]
    Malformed {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// The tokens of one server from one issuer.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The address of the server without its query: a token is made out to that, and two servers of an
    /// origin may have different ones.
    server: String,
    issuer: Option<String>,
    /// The tenant that logged in; none for the login that all share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    saved_at: u64,
    /// The secret of a client that was registered by haft itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    pub(super) credentials: StoredCredentials,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    tokens: Vec<Entry>,
}

impl std::fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.place {
            Place::File(file) => write!(f, "TokenStore({})", file.path().display()),
            Place::Memory(_) => f.write_str("TokenStore(memory)"),
        }
    }
}

/// What a server is kept under.
pub(super) fn key(server: &Url) -> String {
    let mut key = server.clone();
    key.set_query(None);
    key.set_fragment(None);
    // They cannot fail: it has a host.
    let _ = key.set_username("");
    let _ = key.set_password(None);
    key.into()
}

impl TokenStore {
    /// The tokens in the file `mcp-tokens.json` of a folder, which is usually the data directory.
    ///
    /// ```
    /// use haft_mcp::{TokenStore, Url};
    ///
    /// # let folder = std::env::temp_dir();
    /// let tokens = TokenStore::in_folder(&folder);
    /// let server = Url::parse("https://mcp.example.com/mcp")?;
    /// assert!(!tokens.has(&server)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_folder(folder: &Path) -> Self {
        Self::file(folder.join("mcp-tokens.json"))
    }

    /// The tokens in this file. It need not be there; its folder must be.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::of(Place::File(PrivateFile::new(path)))
    }

    /// Tokens that are gone with this process.
    pub fn memory() -> Self {
        Self::of(Place::Memory(Mutex::default()))
    }

    fn of(place: Place) -> Self {
        Self {
            place: Arc::new(place),
            user: None,
        }
    }

    /// The tokens of one user in the same place: those of others, and those without a user, are not seen.
    ///
    /// ```
    /// use haft_mcp::TokenStore;
    /// let of_acme = TokenStore::memory().for_user("acme");
    /// assert_eq!(of_acme.user(), Some("acme"));
    /// ```
    #[must_use]
    pub fn for_user(&self, user: &str) -> Self {
        Self {
            place: Arc::clone(&self.place),
            user: Some(user.into()),
        }
    }

    /// Whose tokens are seen; none for those without a user.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    fn is_of(&self, entry: &Entry, server: &str) -> bool {
        entry.server == server && entry.user.as_deref() == self.user()
    }

    /// Whether there is a token for a server.
    pub fn has(&self, server: &Url) -> Result<bool, TokenStoreError> {
        Ok(self.entry(server)?.is_some())
    }

    /// Forgets the tokens of a server; `false` if there were none.
    pub fn forget(&self, server: &Url) -> Result<bool, TokenStoreError> {
        let key = key(server);
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| !self.is_of(entry, &key));
            before != entries.len()
        })
    }

    /// What was kept last for a server.
    pub(super) fn entry(&self, server: &Url) -> Result<Option<Entry>, TokenStoreError> {
        let key = key(server);
        let entries = match &*self.place {
            Place::File(file) => read(file)?,
            Place::Memory(entries) => entries
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        };
        let own = entries.into_iter().filter(|entry| self.is_of(entry, &key));
        Ok(own.max_by_key(|entry| entry.saved_at))
    }

    /// Keeps the tokens of a server in place of those that the same issuer gave before.
    pub(super) fn keep(
        &self,
        server: &Url,
        client_secret: Option<String>,
        credentials: StoredCredentials,
    ) -> Result<(), TokenStoreError> {
        let saved_at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let entry = Entry {
            server: key(server),
            issuer: credentials.issuer.clone(),
            user: self.user().map(str::to_owned),
            saved_at: u64::try_from(saved_at.as_millis()).unwrap_or(u64::MAX),
            client_secret,
            credentials,
        };
        self.change(|entries| {
            entries.retain(|it| !self.is_of(it, &entry.server) || it.issuer != entry.issuer);
            entries.push(entry);
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Entry>) -> T) -> Result<T, TokenStoreError> {
        match &*self.place {
            Place::Memory(entries) => Ok(change(
                &mut entries.lock().unwrap_or_else(PoisonError::into_inner),
            )),
            Place::File(file) => {
                let failed = |error: io::Error| io_error(file.path(), &error);
                let locked = file.lock().map_err(failed)?;
                let mut tokens = read(file)?;
                let changed = change(&mut tokens);
                let content = Content {
                    version: if tokens.iter().any(|it| it.user.is_some()) {
                        VERSION_WITH_USERS
                    } else {
                        VERSION
                    },
                    tokens,
                };
                let bytes = serde_json::to_vec_pretty(&content);
                let bytes = bytes.map_err(|error| io_error(file.path(), &error.into()))?;
                file.replace(&locked, &bytes).map_err(failed)?;
                Ok(changed)
            }
        }
    }

    /// Held while a token is exchanged for a new one, so that two processes do not both use up the old
    /// one. Not the lock of the file itself: that is needed meanwhile.
    pub(super) fn refreshing(&self) -> Result<Option<Locked>, TokenStoreError> {
        match &*self.place {
            Place::Memory(_) => Ok(None),
            Place::File(file) => {
                let mut name = file.path().as_os_str().to_owned();
                name.push(".refresh");
                let locked = PrivateFile::new(name).lock();
                locked
                    .map(Some)
                    .map_err(|error| io_error(file.path(), &error))
            }
        }
    }
}

fn io_error(path: &Path, error: &io::Error) -> TokenStoreError {
    TokenStoreError::Io {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

fn read(file: &PrivateFile) -> Result<Vec<Entry>, TokenStoreError> {
    let path = || file.path().to_owned();
    let malformed = |reason: String| TokenStoreError::Malformed {
        path: path(),
        reason,
    };
    let bytes = file.read(MAX_FILE_BYTES).map_err(|error| match error {
        Unreadable::Io(error) => io_error(file.path(), &error),
        Unreadable::TooOpen => TokenStoreError::TooOpen { path: path() },
        Unreadable::TooLarge => malformed("it is too large".into()),
    })?;
    let Some(bytes) = bytes else {
        return Ok(Vec::new());
    };
    // What serde says may hold a piece of a token; where it stands is enough.
    let content: Content = serde_json::from_slice(&bytes)
        .map_err(|error| malformed(format!("line {}, column {}", error.line(), error.column())))?;
    if ![VERSION, VERSION_WITH_USERS].contains(&content.version) {
        return Err(malformed(format!(
            "its version is {}, at most {VERSION_WITH_USERS} is known",
            content.version
        )));
    }
    Ok(content.tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn credentials(token: &str, issuer: &str) -> StoredCredentials {
        serde_json::from_value(json!({
            "client_id": "x",
            "token_response": {"access_token": token, "token_type": "bearer", "refresh_token": "r"},
            "issuer": issuer,
        }))
        .unwrap()
    }

    fn token(store: &TokenStore, server: &str) -> Option<String> {
        let entry = store.entry(&Url::parse(server).unwrap()).unwrap()?;
        let value = serde_json::to_value(entry.credentials).unwrap();
        Some(
            value["token_response"]["access_token"]
                .as_str()
                .unwrap()
                .to_owned(),
        )
    }

    #[test]
    fn tokens_last_and_each_server_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp-tokens.json");
        for store in [TokenStore::file(&path), TokenStore::memory()] {
            let one = Url::parse("https://one.example/mcp?key=1").unwrap();
            let two = Url::parse("https://two.example/mcp").unwrap();
            store
                .keep(
                    &one,
                    Some("s".into()),
                    credentials("a", "https://as.example"),
                )
                .unwrap();
            store
                .keep(&one, None, credentials("b", "https://as.example"))
                .unwrap();
            store
                .keep(&two, None, credentials("c", "https://as.example"))
                .unwrap();
            assert_eq!(
                token(&store, "https://one.example/mcp").as_deref(),
                Some("b")
            );
            assert_eq!(
                token(&store, "https://two.example/mcp").as_deref(),
                Some("c")
            );
            for stranger in [
                "https://one.example/",
                "http://one.example/mcp",
                "https://one.example:444/mcp",
            ] {
                assert_eq!(token(&store, stranger), None);
            }
            assert!(store.forget(&one).unwrap());
            assert!(!store.forget(&one).unwrap());
            assert!(store.has(&two).unwrap());
        }
        assert_eq!(
            token(&TokenStore::file(&path), "https://two.example/mcp").as_deref(),
            Some("c")
        );
    }

    #[test]
    fn users_see_their_own_tokens_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp-tokens.json");
        let server = "https://one.example/mcp";
        let url = Url::parse(server).unwrap();
        for store in [TokenStore::file(&path), TokenStore::memory()] {
            let (acme, other) = (store.for_user("acme"), store.for_user("other"));
            store.keep(&url, None, credentials("shared", "i")).unwrap();
            assert_eq!(token(&acme, server), None);
            acme.keep(&url, None, credentials("own", "i")).unwrap();
            assert_eq!(token(&acme, server).as_deref(), Some("own"));
            assert_eq!(token(&store, server).as_deref(), Some("shared"));
            assert_eq!(token(&other, server), None);
            assert!(!other.forget(&url).unwrap());
            assert!(acme.forget(&url).unwrap());
            assert_eq!(token(&store, server).as_deref(), Some("shared"));
            acme.keep(&url, None, credentials("own", "i")).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("\"version\": 2"),
            "older releases must refuse it: {text}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused_and_the_own_one_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp-tokens.json");
        let store = TokenStore::file(&path);
        let server = Url::parse("https://one.example/").unwrap();
        store.keep(&server, None, credentials("a", "i")).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let told = store.has(&server).unwrap_err();
        assert_eq!(told, TokenStoreError::TooOpen { path: path.clone() });
        assert!(store.keep(&server, None, credentials("b", "i")).is_err());
    }

    #[test]
    fn what_is_no_file_of_tokens_is_told_without_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp-tokens.json");
        let file = PrivateFile::new(&path);
        for content in [
            r#"{"version": 1, "tokens": "hunter2"}"#,
            "hunter2",
            r#"{"version": 9, "tokens": []}"#,
        ] {
            file.replace(&file.lock().unwrap(), content.as_bytes())
                .unwrap();
            let told = TokenStore::file(&path).has(&Url::parse("https://x.example/").unwrap());
            let told = told.unwrap_err().to_string();
            assert!(told.contains("cannot be understood"), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
        assert!(!format!("{:?}", TokenStore::file(&path)).contains("hunter2"));
    }
}
