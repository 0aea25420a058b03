//! What the tools changed, so that it can be undone.
//!
//! The changes of a call that runs are kept under its id until it is committed or rolled back. Once
//! somebody captured the workspace, committed changes are kept too, as far as there is room, so that
//! it can be brought back to that moment. A file that somebody else changed since is left alone.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use haft_core::{ResourceError, TransactionId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::place::{Content, Root};

/// How much old content of committed changes is kept, in bytes.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// One file, changed.
#[derive(Debug)]
struct Change {
    path: PathBuf,
    before: Option<Content>,
    /// The digest of what was there then.
    after: Option<[u8; 32]>,
    /// The directories that were made for it, from the top down.
    directories: Vec<PathBuf>,
}

impl Change {
    fn size(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.bytes.len())
    }
}

/// All changes that can still be undone.
#[derive(Debug)]
pub(crate) struct History {
    /// The changes of calls that are not over.
    open: HashMap<TransactionId, Vec<Change>>,
    /// Committed changes, kept from the first capture on.
    committed: VecDeque<Change>,
    /// The position of the first of them.
    start: u64,
    kept_bytes: usize,
    recording: bool,
    /// Tells this history from that of another process.
    id: String,
}

/// A moment in the history.
#[derive(Serialize, Deserialize)]
struct Moment {
    history: String,
    position: u64,
}

impl Default for History {
    fn default() -> Self {
        // The hasher's keys are random.
        let random = || RandomState::new().build_hasher().finish();
        Self {
            open: HashMap::new(),
            committed: VecDeque::new(),
            start: 0,
            kept_bytes: 0,
            recording: false,
            id: format!("{:016x}{:016x}", random(), random()),
        }
    }
}

impl History {
    /// Writes a file. The change is kept under the call, if its end will be heard of.
    pub(crate) fn write(
        &mut self,
        root: &Root,
        call: Option<TransactionId>,
        path: &Path,
        bytes: &[u8],
    ) -> io::Result<()> {
        let before = root.read(path)?;
        let directories = root.make_parents(path)?;
        let mode = before.as_ref().map(|before| before.mode);
        if let Err(error) = root.write(path, bytes, mode) {
            remove_all(root, &directories);
            return Err(error);
        }
        let change = Change {
            path: path.to_owned(),
            before,
            after: Some(digest(bytes)),
            directories,
        };
        match call {
            Some(call) => self.open.entry(call).or_default().push(change),
            None => self.keep(change),
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self, call: TransactionId) {
        for change in self.open.remove(&call).unwrap_or_default() {
            self.keep(change);
        }
    }

    /// Whether this call changed anything that can be undone.
    pub(crate) fn has_changes(&self, call: TransactionId) -> bool {
        self.open.contains_key(&call)
    }

    /// Undoes a call's changes, the last one first. All are tried; the first failure is reported.
    pub(crate) fn roll_back(
        &mut self,
        root: &Root,
        call: TransactionId,
    ) -> Result<(), ResourceError> {
        let mut outcome = Ok(());
        for change in self.open.remove(&call).unwrap_or_default().iter().rev() {
            match undo(root, change) {
                Ok(Some(_)) => {}
                // Somebody wrote over it: what they would go back to is not there any more.
                Ok(None) => self.forget(change),
                Err(error) => outcome = outcome.and(Err(failed(&change.path, &error))),
            }
        }
        outcome
    }

    /// Where the history is now. From the first time on, committed changes are kept.
    pub(crate) fn capture(&mut self) -> Value {
        self.recording = true;
        json!(Moment {
            history: self.id.clone(),
            position: self.end(),
        })
    }

    /// Undoes every committed change since a captured moment, or none.
    pub(crate) fn restore(&mut self, root: &Root, captured: &Value) -> Result<(), ResourceError> {
        let moment = Moment::deserialize(captured)
            .map_err(|error| ResourceError::new(format!("this was not captured here: {error}")))?;
        let kept = self.start..=self.end();
        if moment.history != self.id || !kept.contains(&moment.position) {
            return Err(ResourceError::new(
                "the changes since then are not known any more: files cannot be brought back",
            ));
        }
        let from = usize::try_from(moment.position - self.start).unwrap_or(usize::MAX);
        let mut undone = Vec::new();
        for change in self.committed.range(from..).rev() {
            match undo(root, change) {
                Ok(inverse) => undone.extend(inverse),
                Err(error) => {
                    for inverse in undone.iter().rev() {
                        if let Err(error) = undo(root, inverse) {
                            let path = inverse.path.display();
                            tracing::error!(%path, %error, "a file could not be put back");
                        }
                    }
                    return Err(failed(&change.path, &error));
                }
            }
        }
        // Going back is a change like others, and can be undone in turn.
        for inverse in undone {
            self.keep(inverse);
        }
        Ok(())
    }

    fn end(&self) -> u64 {
        self.start + self.committed.len() as u64
    }

    fn keep(&mut self, change: Change) {
        if !self.recording {
            return;
        }
        self.kept_bytes += change.size();
        self.committed.push_back(change);
        while self.kept_bytes > MAX_KEPT_BYTES {
            let Some(oldest) = self.committed.pop_front() else {
                break;
            };
            self.kept_bytes -= oldest.size();
            self.start += 1;
        }
    }

    /// Calls that would go back to what this change wrote go back to what was there before it.
    fn forget(&mut self, change: &Change) {
        for other in self.open.values_mut().flatten() {
            let was = other.before.as_ref().map(|before| digest(&before.bytes));
            if other.path == change.path && was == change.after {
                other.before.clone_from(&change.before);
            }
        }
    }
}

/// Undoes a change, unless the file is no longer as the change left it; the change that this was.
fn undo(root: &Root, change: &Change) -> io::Result<Option<Change>> {
    let now = root.read(&change.path)?;
    if now.as_ref().map(|now| digest(&now.bytes)) != change.after {
        return Ok(None);
    }
    let mut directories = Vec::new();
    match &change.before {
        Some(before) => {
            directories = root.make_parents(&change.path)?;
            root.write(&change.path, &before.bytes, Some(before.mode))?;
        }
        None if now.is_some() => root.remove(&change.path)?,
        None => {}
    }
    remove_all(root, &change.directories);
    Ok(Some(Change {
        path: change.path.clone(),
        after: change.before.as_ref().map(|before| digest(&before.bytes)),
        before: now,
        directories,
    }))
}

/// Removes directories from the bottom up; one that somebody else put something into stays.
fn remove_all(root: &Root, directories: &[PathBuf]) {
    for directory in directories.iter().rev() {
        if root.remove_directory(directory).is_err() {
            break;
        }
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn failed(path: &Path, error: &io::Error) -> ResourceError {
    ResourceError::new(format!("`{}`: {error}", path.display()))
}
