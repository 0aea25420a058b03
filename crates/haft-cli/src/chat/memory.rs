//! Where the last conversation with each server ended, for `--continue`.
//!
//! A server knows tenants, not people: its newest response may be a colleague's. So the ids of what was
//! said from here are kept in a small file that only its owner can read. It holds addresses and ids, no
//! content and no key. What cannot be kept or read is forgotten: nothing depends on it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use haft::models::Lookup;
use serde::{Deserialize, Serialize};

use crate::text::without_password;

/// The file, below the folder for what programs remember.
const FILE: &str = "haft/chats.json";

/// How many servers are remembered, the latest ones.
const MOST_SERVERS: usize = 50;

/// How large the file may be.
const MOST_BYTES: u64 = 256 * 1024;

/// The file, if there is a place for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    file: Option<PathBuf>,
}

/// What a conversation goes on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Last {
    Response(String),
    Conversation(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    server: String,
    last: Last,
}

impl Memory {
    /// Below `XDG_STATE_HOME`, or `~/.local/state` where that says nothing.
    pub(super) fn of_this_user(lookup: Lookup<'_>) -> Self {
        let folder = |name: &str| {
            let folder = lookup(name).map(PathBuf::from);
            folder.filter(|folder| folder.is_absolute())
        };
        let state = folder("XDG_STATE_HOME");
        let state = state.or_else(|| folder("HOME").map(|home| home.join(".local/state")));
        Self {
            file: state.map(|state| state.join(FILE)),
        }
    }

    /// Where the last conversation with a server ended.
    pub(super) fn recall(&self, server: &str) -> Option<Last> {
        let server = without_password(server);
        let mut entries = self.entries().into_iter();
        entries
            .find(|it| it.server == server)
            .map(|entry| entry.last)
    }

    /// Keeps it, in place of what was kept for the same server.
    pub(super) fn keep(&self, server: &str, last: Last) {
        let Some(file) = &self.file else {
            return;
        };
        let server = without_password(server);
        let mut entries = self.entries();
        entries.retain(|it| it.server != server);
        entries.insert(0, Entry { server, last });
        entries.truncate(MOST_SERVERS);
        if let Ok(text) = serde_json::to_string_pretty(&entries) {
            // The conversation itself is safe with the server.
            let _ = write(file, &text);
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let read = || {
            let file = fs::File::open(self.file.as_ref()?).ok()?;
            let mut text = String::new();
            file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
            serde_json::from_str(&text).ok()
        };
        read().unwrap_or_default()
    }
}

/// Writes a file for its owner alone: all of it, or nothing.
fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    let draft = file.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(folder: &Path) -> Memory {
        let home = folder.to_str().unwrap().to_owned();
        Memory::of_this_user(&|name| (name == "HOME").then(|| home.clone()))
    }

    #[test]
    fn each_server_has_its_own_last_conversation() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        let last = |id: &str| Last::Response(id.to_owned());
        assert_eq!(memory.recall("http://a/v1"), None);
        memory.keep("http://me:hunter2@a/v1", last("resp_1"));
        memory.keep("http://b/v1", Last::Conversation("conv_1".into()));
        memory.keep("http://a/v1", last("resp_2"));
        assert_eq!(memory.recall("http://a/v1"), Some(last("resp_2")));
        assert_eq!(
            memory.recall("http://b/v1"),
            Some(Last::Conversation("conv_1".into()))
        );
        for number in 0..MOST_SERVERS {
            memory.keep(&format!("http://{number}/v1"), last("resp_3"));
        }
        assert_eq!(memory.recall("http://b/v1"), None, "it is bounded");
        let file = folder.path().join(".local/state").join(FILE);
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let rights = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(rights(&file), 0o600);
            assert_eq!(rights(file.parent().unwrap()), 0o700);
        }
        let others = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(others, 1, "no draft is left");
    }

    #[test]
    fn what_cannot_be_read_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        let file = folder.path().join(".local/state").join(FILE);
        write(&file, "no JSON").unwrap();
        assert_eq!(memory.recall("http://a/v1"), None);
        let nowhere = Memory::of_this_user(&|_| Some(String::from("relative")));
        nowhere.keep("http://a/v1", Last::Response("resp_1".into()));
        assert_eq!(nowhere.recall("http://a/v1"), None);
    }
}
