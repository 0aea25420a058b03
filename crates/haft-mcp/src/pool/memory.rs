//! What is remembered of servers from one process to the next: their last good list and their era.
//!
//! One file for each server, replaced as a whole. A file that cannot be read is as good as none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_files::PrivateFile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::Era;
use crate::listing::{Listing, ToolList};
use crate::settings::{ServerSettings, TransportSettings};
use crate::tool::ToolDef;

const FOLDER: &str = "mcp-servers";

/// A list may be 32 MiB as the server writes it.
const MAX_FILE_BYTES: u64 = 64 << 20;

const VERSION: u32 = 1;

/// The folder of what is remembered.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    folder: PathBuf,
}

/// What is remembered of one server.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    pub(super) era: Option<Era>,
    pub(super) list: Option<ToolList>,
}

#[derive(Deserialize)]
struct Written {
    version: u32,
    place: String,
    era: Option<WrittenEra>,
    tools: Option<Vec<Value>>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenEra {
    Legacy,
    Modern,
}

impl Memory {
    pub(super) fn in_folder(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join(FOLDER),
        }
    }

    /// What is remembered of this server, as long as it is at the same place.
    pub(super) fn recall(&self, settings: &ServerSettings) -> Remembered {
        let Ok(Some(bytes)) = self.file(settings).read(MAX_FILE_BYTES) else {
            return Remembered::default();
        };
        let Ok(written) = serde_json::from_slice::<Written>(&bytes) else {
            return Remembered::default();
        };
        if written.version != VERSION || written.place != place(settings) {
            return Remembered::default();
        }
        let list = written.tools.map(|tools| {
            let mut listing = Listing::new(settings, false);
            listing.page(&json!({ "tools": tools }), 0);
            listing.finish()
        });
        let era = written.era.map(|era| match era {
            WrittenEra::Legacy => Era::Legacy,
            WrittenEra::Modern => Era::Modern,
        });
        Remembered { era, list }
    }

    /// Remembers a server. That it fails costs the next process a moment, and nobody else anything.
    pub(super) fn keep(&self, settings: &ServerSettings, era: Era, tools: Option<&[Arc<ToolDef>]>) {
        let era = match era {
            Era::Legacy => WrittenEra::Legacy,
            Era::Modern => WrittenEra::Modern,
        };
        let tools = tools.map(|tools| {
            let tools = tools.iter().map(|tool| super::tools::written(tool));
            tools.collect::<Vec<_>>()
        });
        let written = json!({
            "version": VERSION,
            "place": place(settings),
            "era": era,
            "tools": tools,
        });
        if let Err(error) = self.write(settings, written.to_string().as_bytes()) {
            tracing::warn!(server = %settings.label, %error, folder = %self.folder.display(),
                "the server's tools cannot be remembered: check the data folder");
        }
    }

    fn write(&self, settings: &ServerSettings, bytes: &[u8]) -> std::io::Result<()> {
        private_folder(&self.folder)?;
        let file = self.file(settings);
        let lock = file.lock()?;
        file.replace(&lock, bytes)
    }

    /// Labels are legal names of files.
    fn file(&self, settings: &ServerSettings) -> PrivateFile {
        PrivateFile::new(self.folder.join(format!("{}.json", settings.label)))
    }
}

#[cfg(unix)]
fn private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn private_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// Where a server is, without secrets: whoever is configured anew is not remembered.
pub(super) fn place(settings: &ServerSettings) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update(text.as_bytes());
        hash.update(b"\0");
    };
    match &settings.transport {
        TransportSettings::Stdio(stdio) => {
            add("stdio");
            add(&stdio.command);
            stdio.args.iter().for_each(|argument| add(argument));
        }
        TransportSettings::Http(http) => {
            add("http");
            add(http.url.as_str());
        }
        TransportSettings::Custom => add("custom"),
    }
    let digest = hash.finalize();
    digest[..16].iter().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::names::Label;

    fn settings(command: &str) -> ServerSettings {
        ServerSettings::stdio(Label::new("files").unwrap(), command)
    }

    #[test]
    fn a_server_is_remembered_as_long_as_it_is_at_the_same_place() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::in_folder(folder.path());
        assert!(memory.recall(&settings("one")).list.is_none());
        let tool = json!({"name": "read", "inputSchema": {"type": "object"}});
        let one = settings("one");
        let mut listing = Listing::new(&one, false);
        listing.page(&json!({"tools": [tool]}), 0);
        let list = listing.finish();
        let tools: Vec<_> = list.tools.iter().cloned().map(Arc::new).collect();
        memory.keep(&one, Era::Modern, Some(&tools));
        let remembered = memory.recall(&one);
        assert_eq!(remembered.era, Some(Era::Modern));
        assert_eq!(remembered.list.unwrap().tools, list.tools);
        assert!(memory.recall(&settings("other")).list.is_none());
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::in_folder(folder.path());
        memory.keep(&settings("one"), Era::Legacy, None);
        let path = folder.path().join(FOLDER).join("files.json");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.truncate(text.len() / 2);
        std::fs::write(&path, text).unwrap();
        assert!(memory.recall(&settings("one")).era.is_none());
    }
}
