//! The search: folders, index, and who may write when.

use std::collections::BTreeSet;
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
pub struct FileSearch {
    inner: Arc<Inner>,
    /// Which of the folders are seen.
    seen_by: SeenBy,
}

/// Who looks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SeenBy {
    /// The operator: all folders are his.
    Operator,
    /// Whoever it is.
    Everybody,
    Tenant(String),
}

impl SeenBy {
    fn sees(&self, place: &Place) -> bool {
        match (self, &place.tenants) {
            (Self::Operator, _) | (_, None) => true,
            (Self::Everybody, Some(_)) => false,
            (Self::Tenant(name), Some(tenants)) => tenants.contains(name),
        }
    }
}

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
    last: Option<(Instant, Vec<Note>)>,
}

/// Something to say, for those who see the folder that it is about.
#[derive(Debug, Clone)]
struct Note {
    folder: Option<usize>,
    text: String,
}

impl Note {
    fn of_all(text: &str) -> Self {
        Self {
            folder: None,
            text: text.to_owned(),
        }
    }
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
    /// Opens the search over all folders of `config`, as their operator sees them: those for some
    /// tenants only, too. What is known of their files is kept in the
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
        let inner = Arc::new(Inner {
            places,
            rules,
            config: config.clone(),
            index,
            writer: Mutex::new(writer),
            is_complete: AtomicBool::new(false),
        });
        Ok(Self {
            inner,
            seen_by: SeenBy::Operator,
        })
    }

    /// The same search, over the folders that everybody may see.
    #[must_use]
    pub fn for_everybody(&self) -> Self {
        self.seen(SeenBy::Everybody)
    }

    /// The same search, over the folders that this tenant may see.
    ///
    /// ```
    /// use haft_hosted::{FileSearch, FileSearchConfig, Folder};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # for name in ["docs", "plans"] { std::fs::create_dir(directory.path().join(name))?; }
    /// let docs = Folder::from(directory.path().join("docs"));
    /// let plans = Folder::from(directory.path().join("plans")).for_tenants(["acme"]);
    /// let config = FileSearchConfig::of_folders([docs, plans]);
    /// let search = FileSearch::open(directory.path().join("search.db"), &config)?;
    /// assert_eq!(search.for_tenant("acme").folders().count(), 2);
    /// assert_eq!(search.for_tenant("other").folders().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn for_tenant(&self, tenant: &str) -> Self {
        self.seen(SeenBy::Tenant(tenant.to_owned()))
    }

    fn seen(&self, seen_by: SeenBy) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            seen_by,
        }
    }

    /// The tenants that have folders of their own.
    pub fn tenants(&self) -> BTreeSet<&str> {
        let tenants = self.inner.places.iter().flat_map(|place| &place.tenants);
        tenants.flatten().map(String::as_str).collect()
    }

    /// The names of the folders that are seen.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let places = self.inner.places.iter();
        let seen = places.filter(|place| self.seen_by.sees(place));
        seen.map(|place| place.name.as_str())
    }

    /// Looks through the folders now, as far as one refresh goes.
    pub fn refresh(&self, cancel: &Cancel) -> Result<RefreshReport, SearchError> {
        let mut writer = self.inner.lock();
        self.inner.refresh(&mut writer, cancel)
    }

    /// Brings the index up to date if that is due, then looks for what is wanted.
    pub fn search(
        &self,
        request: &SearchRequest,
        cancel: &Cancel,
    ) -> Result<SearchResults, SearchError> {
        self.inner.search(request, &self.seen_by, cancel)
    }
}

impl fmt::Debug for FileSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSearch")
            .field("places", &self.inner.places)
            .field("seen_by", &self.seen_by)
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
        seen_by: &SeenBy,
        cancel: &Cancel,
    ) -> Result<SearchResults, SearchError> {
        let visible = self.places.iter().filter(|place| seen_by.sees(place));
        let visible: Vec<_> = visible.map(|place| place.name.as_str()).collect();
        if let Some(wanted) = &request.folder
            && !visible.contains(&wanted.as_str())
        {
            return Err(SearchError::UnknownFolder {
                name: cut(wanted),
                known: visible.join(", "),
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
            visible: &visible,
            folder: request.folder.as_deref(),
            glob: glob.as_ref(),
            rules: &self.rules,
        };
        let notes = self.refresh_if_due(cancel).into_iter();
        let is_seen = |note: &Note| {
            let folder = note.folder.and_then(|at| self.places.get(at));
            folder.is_none_or(|place| seen_by.sees(place))
        };
        let notes = notes.filter(is_seen);
        let mut notes: Vec<_> = notes.map(|note| note.text).collect();
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
    fn refresh_if_due(&self, cancel: &Cancel) -> Vec<Note> {
        const PARTLY: &str = "not all files are in the index yet: search again for the rest";
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(writer)) => writer.into_inner(),
            // Somebody is at it; what is there already can be searched meanwhile.
            Err(TryLockError::WouldBlock) if self.is_complete.load(Ordering::Relaxed) => {
                return Vec::new();
            }
            Err(TryLockError::WouldBlock) => return vec![Note::of_all(PARTLY)],
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
            Ok(_) => vec![Note::of_all(PARTLY)],
            // What is there already can be searched all the same.
            Err(_) => vec![Note::of_all("the index could not be brought up to date")],
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

    fn notes(&self, sweep: &Sweep) -> Vec<Note> {
        let unreadable = sweep.unreadable().into_iter();
        let mut notes: Vec<_> = unreadable
            .filter_map(|at| Some((at, self.places.get(at)?)))
            .map(|(at, place)| Note {
                folder: Some(at),
                text: format!("the folder `{}` cannot be read now", place.name),
            })
            .collect();
        if sweep.has_too_many() {
            notes.push(Note::of_all("there are more files than are searched"));
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
