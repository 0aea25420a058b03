//! One look through all folders.
//!
//! It takes as many steps as it needs, each a bounded piece of work in one transaction: directories
//! are read, new and changed files put into the index, and at the end those removed that were not
//! met. What is in between is searched as it is.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant, SystemTime};

use haft_core::Cancel;
use rusqlite::Transaction;

use super::folder::{Place, Root};
use super::index::{Stamp, file_numbers, known_file, put_file, remove_file};
use super::rules::Rules;
use super::text::text_of;

/// The most files that are searched.
const MAX_FILES: usize = 200_000;

/// How much is read in one step.
const STEP_BYTES: u64 = 16 * 1024 * 1024;

/// How many files and directories are looked at in one step.
const STEP_ENTRIES: usize = 100_000;

/// How long a step takes, if nothing else ends it before.
const STEP_TIME: Duration = Duration::from_secs(3);

/// Whatever was changed less than this ago may change again without a new time: clocks of file
/// systems tick some hundred times a second.
const TICK: Duration = Duration::from_millis(50);

/// What a sweep is about.
pub(super) struct Plan<'p> {
    pub(super) places: &'p [Place],
    /// Their numbers in the index.
    pub(super) numbers: &'p [i64],
    pub(super) rules: &'p Rules,
    pub(super) max_file_bytes: u64,
    pub(super) files_per_step: usize,
    pub(super) cancel: &'p Cancel,
}

/// What a step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) read: usize,
    pub(super) removed: usize,
    pub(super) is_complete: bool,
}

/// How far the look through the folders is.
pub(super) struct Sweep {
    /// One for each place; none for those that cannot be read.
    roots: Vec<Option<Root>>,
    waiting: Vec<Waiting>,
    seen: HashSet<i64>,
    /// Files that are to be removed, once that is known.
    leaving: Option<Vec<i64>>,
    has_too_many: bool,
}

struct Waiting {
    place: usize,
    path: String,
    is_directory: bool,
}

/// What a step may still do.
struct Budget {
    bytes: u64,
    files: usize,
    entries: usize,
    end: Instant,
}

impl Budget {
    fn is_used_up(&self) -> bool {
        self.bytes == 0 || self.files == 0 || self.entries == 0 || Instant::now() >= self.end
    }
}

impl Sweep {
    pub(super) fn start(places: &[Place]) -> Self {
        let root = |place: &Place| match Root::open(&place.real) {
            Ok(root) => Some(root),
            Err(error) => {
                let folder = place.real.display();
                tracing::warn!(%folder, %error, "a folder cannot be searched");
                None
            }
        };
        let directories = (0..places.len()).rev().map(|place| Waiting {
            place,
            path: String::new(),
            is_directory: true,
        });
        Self {
            roots: places.iter().map(root).collect(),
            waiting: directories.collect(),
            seen: HashSet::new(),
            leaving: None,
            has_too_many: false,
        }
    }

    /// Whether there are more files than are searched.
    pub(super) fn has_too_many(&self) -> bool {
        self.has_too_many
    }

    /// The positions of folders that cannot be read.
    pub(super) fn unreadable(&self) -> Vec<usize> {
        let roots = self.roots.iter().enumerate();
        let missing = roots.filter(|(_, root)| root.is_none());
        missing.map(|(position, _)| position).collect()
    }

    /// Goes on for a while. After an error the sweep is of no use any more: it counts as seen what
    /// the transaction took back.
    pub(super) fn step(
        &mut self,
        plan: &Plan<'_>,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<Done> {
        let mut budget = Budget {
            bytes: STEP_BYTES,
            files: plan.files_per_step.max(1),
            entries: STEP_ENTRIES,
            end: Instant::now() + STEP_TIME,
        };
        let mut done = Done::default();
        while !budget.is_used_up() && !plan.cancel.is_cancelled() {
            budget.entries -= 1;
            if let Some(next) = self.waiting.pop() {
                if next.is_directory {
                    self.visit_directory(&next, plan);
                } else if self.visit_file(&next, plan, transaction, &mut budget)? {
                    done.read += 1;
                }
                continue;
            }
            let leaving = match &mut self.leaving {
                Some(leaving) => leaving,
                unknown => {
                    let mut numbers = file_numbers(transaction)?;
                    numbers.retain(|number| !self.seen.contains(number));
                    unknown.insert(numbers)
                }
            };
            let Some(file) = leaving.pop() else {
                done.is_complete = true;
                break;
            };
            remove_file(transaction, file)?;
            done.removed += 1;
            budget.files -= 1;
        }
        Ok(done)
    }

    /// What cannot be read is not there: perhaps it may not be read any more.
    fn visit_directory(&mut self, directory: &Waiting, plan: &Plan<'_>) {
        let Some(Some(root)) = self.roots.get(directory.place) else {
            return;
        };
        let most = MAX_FILES.saturating_sub(self.seen.len() + self.waiting.len());
        let Ok(entries) = root.entries(&directory.path, most) else {
            return;
        };
        self.has_too_many |= entries.len() >= most;
        for entry in entries.into_iter().rev() {
            let path = match directory.path.as_str() {
                "" => entry.name,
                above => format!("{above}/{}", entry.name),
            };
            if !plan.rules.skip(&path) {
                self.waiting.push(Waiting {
                    place: directory.place,
                    path,
                    is_directory: entry.is_directory,
                });
            }
        }
    }

    /// Says whether the file was read.
    fn visit_file(
        &mut self,
        file: &Waiting,
        plan: &Plan<'_>,
        transaction: &Transaction<'_>,
        budget: &mut Budget,
    ) -> rusqlite::Result<bool> {
        let root = self.roots.get(file.place).and_then(Option::as_ref);
        let place = plan
            .places
            .get(file.place)
            .zip(plan.numbers.get(file.place));
        let (Some(root), Some((place, &folder))) = (root, place) else {
            return Ok(false);
        };
        let Ok((open, stamp)) = open_file(root, &file.path, plan.max_file_bytes) else {
            return Ok(false);
        };
        if let Some((number, known)) = known_file(transaction, folder, &file.path)?
            && known == stamp
        {
            self.seen.insert(number);
            return Ok(false);
        }
        let Ok(bytes) = read_file(open, plan.max_file_bytes) else {
            return Ok(false);
        };
        let text = text_of(&bytes);
        let stamp = settled(stamp);
        let shown = format!("{}/{}", place.name, file.path);
        let paths = (file.path.as_str(), shown.as_str());
        let number = put_file(transaction, folder, paths, stamp, text.as_deref())?;
        self.seen.insert(number);
        budget.files -= 1;
        budget.bytes = budget.bytes.saturating_sub(bytes.len() as u64);
        Ok(true)
    }
}

/// A regular file that is not too large.
fn open_file(root: &Root, path: &str, max_bytes: u64) -> io::Result<(File, Stamp)> {
    let file = root.file(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if metadata.len() > max_bytes {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let nanoseconds =
        |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    let stamp = Stamp {
        size: i64::try_from(metadata.len()).unwrap_or(i64::MAX),
        modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    };
    Ok((file, stamp))
}

fn read_file(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        // It grew meanwhile.
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// The stamp by which the file is known from now on: none that it can have, if it was changed just
/// now, so that it is read once more.
fn settled(stamp: Stamp) -> Stamp {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let before = now.unwrap_or_default().saturating_sub(TICK);
    if i128::from(stamp.changed) < i128::try_from(before.as_nanos()).unwrap_or(i128::MAX) {
        stamp
    } else {
        Stamp {
            changed: -1,
            ..stamp
        }
    }
}
