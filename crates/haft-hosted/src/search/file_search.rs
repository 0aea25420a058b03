//! The search: folders, index, and who may write when.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use haft_core::{Cancel, cut};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::config::FileSearchConfig;
use super::error::{FileSearchError, SearchError};
use super::folder::Place;
use super::index::{Index, is_damaged, set_folders};
use super::path_glob::PathGlob;
use super::query::Query;
use super::results::{Hit, Narrowing, SearchRequest, SearchResults, find};
use super::rules::Rules;
use super::sweep::{Plan, Sweep};

/// How long the index may look for something.
const SEARCH_TIME: Duration = Duration::from_secs(10);

/// How often a search looks whether it shall stop, in steps of the database's machine.
const SEARCH_STEPS: i32 = 10_000;

/// Full-text search over folders. Clones share it.
///
/// Everything here blocks: asynchronous code calls it beside the runtime's threads, as
/// [`search_files`](crate::search_files) does.
///
/// ```
/// use haft_hosted::{FileSearch, FileSearchConfig, SearchRequest};
///
/// # let directory = tempfile::tempdir()?;
/// # let docs = directory.path().join("docs");
/// # std::fs::create_dir(&docs)?;
/// std::fs::write(docs.join("guide.md"), "# Guide\n\nRetry with a growing delay.\n")?;
///
/// let config = FileSearchConfig::of_folders([&docs]);
/// let search = FileSearch::open(directory.path().join("search.db"), &config)?;
/// let found = search.search(&SearchRequest::new("retry delay"), &haft_core::Cancel::new())?;
/// assert_eq!(found.results[0].path, "docs/guide.md");
/// assert_eq!(found.results[0].line, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FileSearch(Arc<Inner>);

struct Inner {
    places: Vec<Place>,
    rules: Rules,
    config: FileSearchConfig,
    index: Index,
    writer: Mutex<Writer>,
    /// Whether the folders were looked through to the end since the index was opened.
    is_complete: AtomicBool,
}

/// The one who writes.
struct Writer {
    connection: Connection,
    /// The numbers of the places in the index.
    numbers: Vec<i64>,
    /// The look through the folders that is under way.
    sweep: Option<Sweep>,
    /// When the last one ended, and what it left to say.
    last: Option<(Instant, Vec<String>)>,
}

/// What became of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshReport {
    /// How many new or changed files were read.
    pub read: usize,
    /// How many files that are no more there were removed.
    pub removed: usize,
    /// Whether everything was looked at; if not, the next refresh goes on.
    pub is_complete: bool,
}

impl FileSearch {
    /// Opens the search over the folders of `config`. What is known of their files is kept in the
    /// file `index`, which is made if it is not there and made anew if it is damaged.
    pub fn open(
        index: impl AsRef<Path>,
        config: &FileSearchConfig,
    ) -> Result<Self, FileSearchError> {
        if config.folders.is_empty() {
            return Err(FileSearchError::NoFolders);
        }
        let mut places: Vec<Place> = Vec::new();
        for folder in &config.folders {
            let place = Place::of(folder)?;
            if places.iter().any(|other| other.name == place.name) {
                let name = place.name;
                return Err(FileSearchError::DuplicateName { name });
            }
            places.push(place);
        }
        let rules = Rules::of(config)?;
        let path = index.as_ref();
        let (index, connection) = Index::open(path)?;
        let writer = match Writer::over(connection, &places) {
            Err(error) if is_damaged(&error) => Writer::over(index.rebuild()?, &places),
            writer => writer,
        };
        let writer = writer.map_err(|error| FileSearchError::Index {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self(Arc::new(Inner {
            places,
            rules,
            config: config.clone(),
            index,
            writer: Mutex::new(writer),
            is_complete: AtomicBool::new(false),
        })))
    }

    /// The names of the folders.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.places.iter().map(|place| place.name.as_str())
    }

    /// Looks through the folders now, as far as one refresh goes.
    pub fn refresh(&self, cancel: &Cancel) -> Result<RefreshReport, SearchError> {
        let mut writer = self.0.lock();
        self.0.refresh(&mut writer, cancel)
    }

    /// Brings the index up to date if that is due, then looks for what is wanted.
    pub fn search(
        &self,
        request: &SearchRequest,
        cancel: &Cancel,
    ) -> Result<SearchResults, SearchError> {
        self.0.search(request, cancel)
    }
}

impl fmt::Debug for FileSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSearch")
            .field("places", &self.0.places)
            .finish_non_exhaustive()
    }
}

impl Writer {
    fn over(mut connection: Connection, places: &[Place]) -> rusqlite::Result<Self> {
        Ok(Self {
            numbers: set_folders(&mut connection, places)?,
            connection,
            sweep: None,
            last: None,
        })
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic took its transaction back and its sweep along.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn search(
        &self,
        request: &SearchRequest,
        cancel: &Cancel,
    ) -> Result<SearchResults, SearchError> {
        if let Some(wanted) = &request.folder
            && !self.places.iter().any(|place| place.name == *wanted)
        {
            let names: Vec<_> = self
                .places
                .iter()
                .map(|place| place.name.as_str())
                .collect();
            return Err(SearchError::UnknownFolder {
                name: cut(wanted),
                known: names.join(", "),
            });
        }
        let glob = request.path_glob.as_deref().map(|pattern| {
            PathGlob::new(pattern).map_err(|error| SearchError::Pattern {
                pattern: cut(pattern),
                reason: error.to_string(),
            })
        });
        let glob = glob.transpose()?;
        let narrowing = Narrowing {
            folder: request.folder.as_deref(),
            glob: glob.as_ref(),
            rules: &self.rules,
        };
        let mut notes = self.refresh_if_due(cancel);
        let query = Query::read(&request.query);
        if query.is_empty() {
            notes.push("the query has no word to look for".to_owned());
            let results = Vec::new();
            return Ok(SearchResults { results, notes });
        }
        let wanted = request.wanted();
        let (mut results, mut has_more) = self.find(&query.all(), &narrowing, wanted, cancel)?;
        if results.is_empty()
            && let Some(any) = query.any()
        {
            (results, has_more) = self.find(&any, &narrowing, wanted, cancel)?;
            if !results.is_empty() {
                notes.push("no passage has all of the words: these have some".to_owned());
            }
        }
        if has_more {
            notes.push("there is more: raise `limit` or use rarer words".to_owned());
        }
        Ok(SearchResults { results, notes })
    }

    fn find(
        &self,
        expression: &str,
        narrowing: &Narrowing<'_>,
        wanted: usize,
        cancel: &Cancel,
    ) -> Result<(Vec<Hit>, bool), SearchError> {
        let attempt = || {
            self.index.read(|connection| {
                let (end, cancel) = (Instant::now() + SEARCH_TIME, cancel.clone());
                let is_over = move || cancel.is_cancelled() || Instant::now() >= end;
                connection.progress_handler(SEARCH_STEPS, Some(is_over))?;
                let found = find(connection, expression, narrowing, wanted);
                connection.progress_handler(0, None::<fn() -> bool>)?;
                found
            })
        };
        let found = match attempt() {
            Err(error) if is_damaged(&error) => {
                let mut writer = self.lock();
                self.rebuild(&mut writer)?;
                self.refresh(&mut writer, cancel)?;
                drop(writer);
                attempt()
            }
            found => found,
        };
        found.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => SearchError::TooSlow,
            _ => unusable(&error),
        })
    }

    /// Brings the index up to date if that is due; gives what there is to say about it.
    fn refresh_if_due(&self, cancel: &Cancel) -> Vec<String> {
        const PARTLY: &str = "not all files are in the index yet: search again for the rest";
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(writer)) => writer.into_inner(),
            // Somebody is at it; what is there already can be searched meanwhile.
            Err(TryLockError::WouldBlock) if self.is_complete.load(Ordering::Relaxed) => {
                return Vec::new();
            }
            Err(TryLockError::WouldBlock) => return vec![PARTLY.to_owned()],
        };
        let interval = Duration::from_secs(self.config.refresh_seconds);
        if writer.sweep.is_none()
            && let Some((ended, notes)) = &writer.last
            && ended.elapsed() < interval
        {
            return notes.clone();
        }
        match self.refresh(&mut writer, cancel) {
            Ok(report) if report.is_complete => {
                let last = writer.last.as_ref();
                last.map(|(_, notes)| notes.clone()).unwrap_or_default()
            }
            Ok(_) => vec![PARTLY.to_owned()],
            // What is there already can be searched all the same.
            Err(_) => vec!["the index could not be brought up to date".to_owned()],
        }
    }

    /// One step of the look through the folders. Made anew once, if the index is damaged.
    fn refresh(&self, writer: &mut Writer, cancel: &Cancel) -> Result<RefreshReport, SearchError> {
        match self.step(writer, cancel) {
            Err(error) if is_damaged(&error) => {
                self.rebuild(writer)?;
                self.step(writer, cancel)
            }
            done => done,
        }
        .map_err(|error| unusable(&error))
    }

    fn step(&self, writer: &mut Writer, cancel: &Cancel) -> rusqlite::Result<RefreshReport> {
        // Taken out: an error or a panic on the way leaves none.
        let sweep = writer.sweep.take();
        let mut sweep = sweep.unwrap_or_else(|| Sweep::start(&self.places));
        let plan = Plan {
            places: &self.places,
            numbers: &writer.numbers,
            rules: &self.rules,
            max_file_bytes: self.config.max_file_bytes,
            files_per_step: self.config.files_per_refresh,
            cancel,
        };
        let connection = &mut writer.connection;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = sweep.step(&plan, &transaction)?;
        transaction.commit()?;
        if done.is_complete {
            writer.last = Some((Instant::now(), self.notes(&sweep)));
            self.is_complete.store(true, Ordering::Relaxed);
        } else {
            writer.sweep = Some(sweep);
        }
        Ok(RefreshReport {
            read: done.read,
            removed: done.removed,
            is_complete: done.is_complete,
        })
    }

    fn notes(&self, sweep: &Sweep) -> Vec<String> {
        let unreadable = sweep.unreadable().into_iter();
        let unreadable = unreadable.filter_map(|position| self.places.get(position));
        let mut notes: Vec<_> = unreadable
            .map(|place| format!("the folder `{}` cannot be read now", place.name))
            .collect();
        if sweep.has_too_many() {
            notes.push("there are more files than are searched".to_owned());
        }
        notes
    }

    fn rebuild(&self, writer: &mut Writer) -> Result<(), SearchError> {
        let failed = |error: &dyn fmt::Display| {
            tracing::error!(%error, "the index cannot be made anew");
            SearchError::Index
        };
        self.is_complete.store(false, Ordering::Relaxed);
        let connection = self.index.rebuild().map_err(|error| failed(&error))?;
        *writer = Writer::over(connection, &self.places).map_err(|error| failed(&error))?;
        Ok(())
    }
}

fn unusable(error: &rusqlite::Error) -> SearchError {
    tracing::error!(%error, "the index cannot be used");
    SearchError::Index
}
