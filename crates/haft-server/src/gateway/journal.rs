//! The record of gateway calls: a bounded file of JSON lines in the data folder.
//!
//! Input: calls that ended. Output: the last of them, for `haft mcp calls` and the HTTP API. The file is shared
//! by every haft process of a data folder (`haft serve` and any number of `haft mcp serve`), which a database
//! that one process opens could not be. Writing happens on a thread of its own: a call never waits for the
//! disk, and where the disk cannot keep up, entries are dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use haft_files::PrivateFile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The file, and the one before it.
const FILE: &str = "mcp-calls.jsonl";
const OLDER_FILE: &str = "mcp-calls.1.jsonl";

/// A file that is larger becomes the older one, in whose place the one before it is deleted.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// How many entries may wait to be written.
const MAX_PENDING: usize = 4_096;

/// Longer arguments are not stored.
const MAX_ARGUMENT_BYTES: usize = 16 * 1024;

/// The longest wait for entries to be written when a process stops.
const FLUSH: Duration = Duration::from_secs(2);

/// One call through a gateway.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CallEntry {
    /// The id of the entry.
    pub id: String,
    /// When the call began, in seconds since the epoch.
    pub started_at: f64,
    /// How long it took.
    pub duration_ms: f64,
    /// The endpoint: a path such as `/mcp`, or `stdio`.
    pub endpoint: String,
    /// The tenant, or `local` for the client of `haft mcp serve`.
    pub caller: String,
    /// The label of the server; none for haft's own tools and for unknown names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool by the server's own name; for a name that no tool has, that name.
    pub tool: String,
    /// `succeeded`, `tool_error`, `failed`, `denied`, `cancelled` or `rejected`.
    pub outcome: String,
    /// What failed, without content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// About how many bytes the arguments have.
    pub bytes_in: u64,
    /// About how many bytes the result has.
    pub bytes_out: u64,
    /// The trace that the call belongs to, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The arguments as they were received, where the operator wants them stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// Which entries are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallQuery {
    /// Only those of this caller.
    pub caller: Option<String>,
    /// Only those of this server.
    pub server: Option<String>,
    /// Only those of this tool.
    pub tool: Option<String>,
    /// Only those that did not succeed.
    pub only_errors: bool,
    /// At most so many, the newest.
    pub limit: usize,
}

impl CallQuery {
    fn admits(&self, entry: &CallEntry) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == value)
        };
        is(&self.caller, Some(&entry.caller))
            && is(&self.server, entry.server.as_deref())
            && is(&self.tool, Some(&entry.tool))
            && !(self.only_errors && entry.outcome == "succeeded")
    }
}

enum Message {
    Entry(Box<CallEntry>),
    Flush(SyncSender<()>),
}

/// The record of a data folder. Clones share one writer.
#[derive(Debug, Clone)]
pub struct CallJournal {
    folder: PathBuf,
    writer: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
    has_arguments: bool,
}

impl CallJournal {
    /// The record in this data folder. `has_arguments`: whether the arguments of calls are stored.
    ///
    /// ```
    /// use haft_server::{CallJournal, CallQuery};
    /// # let folder = tempfile::tempdir()?;
    /// let journal = CallJournal::in_folder(folder.path(), false)?;
    /// assert_eq!(CallJournal::read(folder.path(), &CallQuery::default())?, []);
    /// # journal.flush();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn in_folder(folder: &Path, has_arguments: bool) -> io::Result<Self> {
        let (writer, messages) = sync_channel(MAX_PENDING);
        let target = folder.to_owned();
        let thread = std::thread::Builder::new().name("mcp-calls".into());
        thread.spawn(move || write_all(&target, &messages))?;
        Ok(Self {
            folder: folder.to_owned(),
            writer,
            dropped: Arc::default(),
            has_arguments,
        })
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn has_arguments(&self) -> bool {
        self.has_arguments
    }

    /// Adds an entry, without waiting.
    pub(super) fn append(&self, mut entry: CallEntry) {
        let is_long = |arguments: &Value| super::monitor::size_of(arguments) > MAX_ARGUMENT_BYTES;
        if entry.arguments.as_ref().is_some_and(is_long) {
            entry.arguments = None;
        }
        if let Err(TrySendError::Full(_)) = self.writer.try_send(Message::Entry(Box::new(entry))) {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                tracing::warn!(
                    dropped,
                    "calls are missing in the record: the disk is too slow"
                );
            }
        }
    }

    /// Waits until everything is written, but not for long.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.writer.try_send(Message::Flush(done)).is_ok() {
            let _ = written.recv_timeout(FLUSH);
        }
    }

    /// The entries of a data folder that a query asks for, the newest first.
    pub fn read(folder: &Path, query: &CallQuery) -> io::Result<Vec<CallEntry>> {
        let mut entries = Vec::new();
        for name in [OLDER_FILE, FILE] {
            let file = match File::open(folder.join(name)) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for line in BufReader::new(file).lines() {
                // A line that another version or a full disk left behind is skipped.
                let entry = serde_json::from_str::<CallEntry>(&line?);
                entries.extend(entry.ok().filter(|it| query.admits(it)));
            }
        }
        entries.reverse();
        entries.truncate(query.limit);
        Ok(entries)
    }
}

/// Writes entries until the last sender is gone.
fn write_all(folder: &Path, messages: &Receiver<Message>) {
    let mut has_failed = false;
    while let Ok(first) = messages.recv() {
        let mut lines = Vec::new();
        let mut flushed = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Entry(entry) => {
                    if serde_json::to_writer(&mut lines, &entry).is_ok() {
                        lines.push(b'\n');
                    }
                }
                Message::Flush(done) => flushed.push(done),
            }
            next = messages.try_recv().ok();
        }
        match append(folder, &lines) {
            Ok(()) => has_failed = false,
            Err(error) if !has_failed => {
                has_failed = true;
                tracing::warn!(%error, "the record of calls cannot be written");
            }
            Err(_) => {}
        }
        for done in flushed {
            let _ = done.try_send(());
        }
    }
}

fn append(folder: &Path, lines: &[u8]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let path = folder.join(FILE);
    rotate(folder, &path)?;
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    // One write: what several processes append does not mix.
    options.open(&path)?.write_all(lines)
}

/// Makes room for a new file. The lock keeps a second process from replacing the older file once more.
fn rotate(folder: &Path, path: &Path) -> io::Result<()> {
    let is_full = || std::fs::metadata(path).is_ok_and(|it| it.len() >= MAX_FILE_BYTES);
    if !is_full() {
        return Ok(());
    }
    let _lock = PrivateFile::new(path).lock()?;
    if is_full() {
        std::fs::rename(path, folder.join(OLDER_FILE))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64, caller: &str) -> CallEntry {
        CallEntry {
            id: format!("call_{number}"),
            caller: caller.to_owned(),
            tool: "t".to_owned(),
            outcome: "succeeded".to_owned(),
            ..CallEntry::default()
        }
    }

    #[test]
    fn the_newest_entries_are_read_first_and_only_those_that_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let journal = CallJournal::in_folder(folder.path(), false).unwrap();
        for number in 0..10 {
            journal.append(entry(number, if number % 2 == 0 { "a" } else { "b" }));
        }
        journal.flush();
        let query = CallQuery {
            caller: Some("a".into()),
            limit: 2,
            ..CallQuery::default()
        };
        let read = CallJournal::read(folder.path(), &query).unwrap();
        let ids: Vec<_> = read.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["call_8", "call_6"]);
    }

    #[test]
    fn a_full_file_becomes_the_older_one_and_the_record_stays_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let full = vec![b'\n'; usize::try_from(MAX_FILE_BYTES).unwrap()];
        for _ in 0..3 {
            std::fs::write(folder.path().join(FILE), &full).unwrap();
            append(folder.path(), b"{\"id\":\"call_1\"}\n").unwrap();
        }
        let sizes =
            [FILE, OLDER_FILE].map(|it| std::fs::metadata(folder.path().join(it)).unwrap().len());
        assert_eq!(sizes, [16, MAX_FILE_BYTES]);
        let query = CallQuery {
            limit: 9,
            ..CallQuery::default()
        };
        assert_eq!(CallJournal::read(folder.path(), &query).unwrap().len(), 1);
    }

    #[test]
    fn a_damaged_line_costs_itself() {
        let folder = tempfile::tempdir().unwrap();
        append(
            folder.path(),
            b"{\"id\":\"call_1\"}\nnot json\n{\"id\":\"call_2\"}\n",
        )
        .unwrap();
        let query = CallQuery {
            limit: 9,
            ..CallQuery::default()
        };
        assert_eq!(CallJournal::read(folder.path(), &query).unwrap().len(), 2);
    }
}
