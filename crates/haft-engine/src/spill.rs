//! Long results, kept in files or in memory, and the tool that reads them.
//!
//! What comes in: the result of a call that is too long to send. What goes out: its beginning with
//! a note for the model, and `recall_tool_result`, which gives any other part of it. Files lie in a
//! directory of their own that only this user may enter; their names are hashes, so no call id can
//! choose a path. They go when the store goes, unless it was told to keep them. A store in memory leaves
//! nothing on a disk, whatever becomes of the process.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::{
    DefinitionError, ToolDefinition, ToolError, ToolObject, ToolOutput, dynamic_tool,
    read_arguments,
};
use serde::Deserialize;
use serde_json::json;
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use crate::detect::digest_of;

/// How much of a spilled result the model sees at once, in bytes.
const HEAD_BYTES: usize = 512;

/// The tool that reads what was kept.
pub(crate) const RECALL_TOOL: &str = "recall_tool_result";

/// How much `recall_tool_result` gives unless told otherwise, in bytes.
const RECALL_BYTES: u64 = 4096;

/// How much `recall_tool_result` gives at most, in bytes.
const MAX_RECALL_BYTES: u64 = 1024 * 1024;

/// The longest a character is in UTF-8, less one.
const CHARACTER_REST: u64 = 3;

/// How many bytes a store in memory holds at most.
const MAX_STORE_BYTES: usize = 32 * 1024 * 1024;

/// How many bytes all stores in memory of this process hold at most.
const MAX_PROCESS_BYTES: usize = 256 * 1024 * 1024;

/// How many bytes they hold.
static BYTES_IN_MEMORY: AtomicUsize = AtomicUsize::new(0);

/// The long results of one run.
///
/// ```
/// use haft_engine::SpillStore;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let store = SpillStore::temporary()?;
/// store.write("call_7", &"long ".repeat(1000)).await?;
/// assert_eq!(store.read("call_7", 0, 4).await?.as_deref(), Some("long"));
/// assert_eq!(store.read("call_8", 0, 4).await?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SpillStore {
    results: Results,
    keep: AtomicBool,
}

/// Where the results are.
#[derive(Debug)]
enum Results {
    Files(PathBuf),
    Memory(Mutex<HashMap<String, Arc<str>>>),
}

impl SpillStore {
    /// A store below the system's directory for temporary files.
    pub fn temporary() -> io::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    /// A store in a new directory below this one, which is made if it is not there.
    pub fn below(parent: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(parent)?;
        loop {
            let directory = parent.join(format!("haft-spill-{:016x}", fastrand::u64(..)));
            // Made here or not used: nobody else can have prepared it.
            match own_directory(&directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    return made.map(|()| Self::new(Results::Files(directory)));
                }
            }
        }
    }

    /// A store that an earlier leg of the run made.
    pub fn reopened(directory: PathBuf) -> io::Result<Self> {
        if !directory.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self::new(Results::Files(directory)))
    }

    /// A store that no disk sees. It takes so much that a run can work with long results, and refuses more.
    pub fn in_memory() -> Self {
        Self::new(Results::Memory(Mutex::default()))
    }

    fn new(results: Results) -> Self {
        Self {
            results,
            keep: AtomicBool::new(false),
        }
    }

    /// The files stay when the store goes.
    #[must_use]
    pub fn keep(self) -> Self {
        self.stay();
        self
    }

    /// The same for a store that is in use: the run goes on later.
    pub(crate) fn stay(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    /// Where the files are; none for a store in memory.
    pub fn directory(&self) -> Option<&Path> {
        match &self.results {
            Results::Files(directory) => Some(directory),
            Results::Memory(_) => None,
        }
    }

    /// Keeps the result of a call.
    pub async fn write(&self, call_id: &str, text: &str) -> io::Result<()> {
        let directory = match &self.results {
            Results::Files(directory) => directory,
            Results::Memory(results) => return remember(results, call_id, text),
        };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        options.mode(0o600);
        let mut file = options.open(path(directory, call_id)).await?;
        file.write_all(text.as_bytes()).await?;
        file.flush().await
    }

    /// A range of a kept result, in bytes; `None` for a call that nothing was kept of.
    ///
    /// A range that begins or ends within a character is moved to that character's beginning, so
    /// ranges that follow each other give the whole text, every character once.
    pub async fn read(&self, call_id: &str, offset: u64, limit: u64) -> io::Result<Option<String>> {
        let directory = match &self.results {
            Results::Files(directory) => directory,
            Results::Memory(results) => {
                let text = lock(results).get(call_id).cloned();
                return Ok(text.map(|text| range(&text, offset, limit)));
            }
        };
        let mut file = match File::open(path(directory, call_id)).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.metadata().await?.len();
        let start = boundary(&mut file, offset.min(length)).await?;
        let end = boundary(&mut file, offset.saturating_add(limit).min(length)).await?;
        file.seek(io::SeekFrom::Start(start)).await?;
        let mut bytes = Vec::new();
        file.take(end.saturating_sub(start))
            .read_to_end(&mut bytes)
            .await?;
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// What the model gets instead of a spilled result: its beginning, and how to read the rest.
    pub fn head(text: &str, call_id: &str) -> String {
        let beginning = &text[..text.floor_char_boundary(HEAD_BYTES)];
        let bytes = text.len();
        format!(
            "{beginning}\n\n[Result truncated: {bytes} bytes in total. Call recall_tool_result \
             with tool_call_id \"{call_id}\" to read more.]"
        )
    }
}

fn path(directory: &Path, call_id: &str) -> PathBuf {
    let name = digest_of(&[call_id.as_bytes()]);
    directory.join(format!("{name}.txt"))
}

fn lock(
    results: &Mutex<HashMap<String, Arc<str>>>,
) -> std::sync::MutexGuard<'_, HashMap<String, Arc<str>>> {
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a result in memory, if there is room for it.
fn remember(
    results: &Mutex<HashMap<String, Arc<str>>>,
    call_id: &str,
    text: &str,
) -> io::Result<()> {
    let mut results = lock(results);
    if let Some(earlier) = results.remove(call_id) {
        BYTES_IN_MEMORY.fetch_sub(earlier.len(), Ordering::Relaxed);
    }
    let held: usize = results.values().map(|text| text.len()).sum();
    let all = BYTES_IN_MEMORY.fetch_add(text.len(), Ordering::Relaxed);
    if held + text.len() > MAX_STORE_BYTES || all + text.len() > MAX_PROCESS_BYTES {
        BYTES_IN_MEMORY.fetch_sub(text.len(), Ordering::Relaxed);
        return Err(io::ErrorKind::StorageFull.into());
    }
    results.insert(call_id.to_owned(), text.into());
    Ok(())
}

/// A range of a text as of a file.
fn range(text: &str, offset: u64, limit: u64) -> String {
    let boundary = |at: u64| text.floor_char_boundary(usize::try_from(at).unwrap_or(usize::MAX));
    let (start, end) = (boundary(offset), boundary(offset.saturating_add(limit)));
    text.get(start..end).unwrap_or_default().to_owned()
}

impl Drop for SpillStore {
    fn drop(&mut self) {
        match &self.results {
            Results::Memory(results) => {
                let held: usize = lock(results).values().map(|text| text.len()).sum();
                BYTES_IN_MEMORY.fetch_sub(held, Ordering::Relaxed);
            }
            Results::Files(directory) if !self.keep.load(Ordering::Relaxed) => {
                if let Err(error) = std::fs::remove_dir_all(directory) {
                    let directory = directory.display();
                    tracing::warn!(%directory, %error, "spilled results could not be removed");
                }
            }
            Results::Files(_) => {}
        }
    }
}

fn own_directory(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// The beginning of the character that covers this place.
async fn boundary(file: &mut File, at: u64) -> io::Result<u64> {
    let from = at.saturating_sub(CHARACTER_REST);
    file.seek(io::SeekFrom::Start(from)).await?;
    let mut bytes = Vec::new();
    (&mut *file)
        .take(at - from + 1)
        .read_to_end(&mut bytes)
        .await?;
    // Nothing at that place: it is the end of the text.
    if (bytes.len() as u64) <= at - from {
        return Ok(at);
    }
    let continued = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let back = bytes
        .iter()
        .rev()
        .take_while(|byte| continued(byte))
        .count();
    Ok(at - back as u64)
}

/// The tool `recall_tool_result`, which reads what this store keeps.
pub fn recall_tool_result(store: Arc<SpillStore>) -> Result<Arc<dyn ToolObject>, DefinitionError> {
    let definition = ToolDefinition::builder(RECALL_TOOL)
        .description(
            "Read more of a tool result that was truncated. Gives `limit` bytes from byte `offset` on.",
        )
        .parameters(json!({
            "type": "object",
            "properties": {
                "tool_call_id": {
                    "type": "string",
                    "description": "The id named in the note behind the truncated result."
                },
                "offset": {
                    "type": "integer", "minimum": 0, "default": 0,
                    "description": "The first byte to read."
                },
                "limit": {
                    "type": "integer", "minimum": 1, "maximum": MAX_RECALL_BYTES,
                    "default": RECALL_BYTES,
                    "description": "How many bytes to read."
                }
            },
            "required": ["tool_call_id"],
            "additionalProperties": false
        }))
        .read_only()
        .idempotent()
        .build()?;
    Ok(dynamic_tool(definition, move |arguments, _| {
        let store = Arc::clone(&store);
        async move {
            let Range {
                tool_call_id,
                offset,
                limit,
            } = read_arguments(&arguments)?;
            let limit = limit.unwrap_or(RECALL_BYTES).min(MAX_RECALL_BYTES);
            let read = store.read(&tool_call_id, offset.unwrap_or(0), limit).await;
            match read {
                Ok(Some(text)) => Ok(ToolOutput::text(text)),
                Ok(None) => Ok(ToolOutput::failure(format!(
                    "Unknown tool_call_id '{tool_call_id}'."
                ))),
                Err(error) => {
                    tracing::error!(%error, "a spilled result could not be read");
                    Err(ToolError::new("the result could not be read"))
                }
            }
        }
    }))
}

/// The arguments of `recall_tool_result`.
#[derive(Deserialize)]
struct Range {
    tool_call_id: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
