//! From passages that were found to what a model reads.

use std::collections::HashMap;

use rusqlite::{Connection, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::path_glob::PathGlob;
use super::rules::Rules;
use super::snippet::{BEGIN, END, snippet};

/// The most results.
pub(super) const MAX_LIMIT: u32 = 50;

/// How many results there are if nothing is said.
const DEFAULT_LIMIT: u32 = 10;

/// How many passages of one file are shown: others may have something to say too.
const PER_FILE: usize = 3;

/// The most bytes of all results together.
const MAX_BYTES: usize = 24 * 1024;

/// What to look for, and where.
///
/// ```
/// use haft_hosted::SearchRequest;
/// let request = SearchRequest { limit: Some(3), ..SearchRequest::new("retry \"back off\"") };
/// assert_eq!(request.folder, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
// Models need no Rust.
#[schemars(description = "What to look for, and where.")]
pub struct SearchRequest {
    /// The words to look for. `"in quotation marks"` they must stand together, `begin*` finds words
    /// that begin so, `-word` leaves passages with the word out.
    #[schemars(length(min = 1, max = 1_000))]
    pub query: String,
    /// How many results to give; 10 if not given.
    #[schemars(range(min = 1, max = 50))]
    pub limit: Option<u32>,
    /// Only files of this folder.
    pub folder: Option<String>,
    /// Only files whose path matches, for example `*.md` or `docs/**/*.txt`.
    #[schemars(length(max = 256))]
    pub path_glob: Option<String>,
}

impl SearchRequest {
    /// Looks for these words everywhere.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            limit: None,
            folder: None,
            path_glob: None,
        }
    }

    pub(super) fn wanted(&self) -> usize {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct SearchResults {
    /// The places, best first.
    pub results: Vec<Hit>,
    /// What to know about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hit {
    /// 1 for the best.
    pub rank: usize,
    /// The file: the name of the folder and the path in it.
    pub path: String,
    /// The number of the line, from 1.
    pub line: u32,
    /// The line and its neighbours, each with its number.
    pub snippet: String,
}

/// What a passage must be beside found.
pub(super) struct Narrowing<'n> {
    pub(super) folder: Option<&'n str>,
    pub(super) glob: Option<&'n PathGlob>,
    /// Checked again here: the index may be older than the rules.
    pub(super) rules: &'n Rules,
}

impl Narrowing<'_> {
    fn admits(&self, folder: &str, path: &str, shown: &str) -> bool {
        self.folder.is_none_or(|wanted| wanted == folder)
            && (self.glob).is_none_or(|glob| glob.matches(shown) || glob.matches(path))
            && !self.rules.skip_within(path)
    }
}

struct Candidate {
    passage: i64,
    first_line: u32,
    shown: String,
}

/// Looks for the best passages; says whether there are more.
pub(super) fn find(
    connection: &mut Connection,
    expression: &str,
    narrowing: &Narrowing<'_>,
    wanted: usize,
) -> rusqlite::Result<(Vec<Hit>, bool)> {
    // One view of the index, whatever is written meanwhile.
    let transaction = connection.transaction()?;
    let (candidates, mut has_more) = candidates(&transaction, expression, narrowing, wanted)?;
    let marked = "SELECT highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ? AND rowid = ?";
    let mut marked = transaction.prepare_cached(marked)?;
    let mut hits: Vec<Hit> = Vec::new();
    let mut bytes = 0;
    for candidate in candidates {
        let (begin, end) = (BEGIN.to_string(), END.to_string());
        let values = params![begin, end, expression, candidate.passage];
        let text: String = marked.query_row(values, |row| row.get(0))?;
        let shown = snippet(&text, candidate.first_line);
        bytes += shown.text.len() + candidate.shown.len();
        if bytes > MAX_BYTES && !hits.is_empty() {
            has_more = true;
            break;
        }
        hits.push(Hit {
            rank: hits.len() + 1,
            path: candidate.shown,
            line: shown.line,
            snippet: shown.text,
        });
    }
    Ok((hits, has_more))
}

fn candidates(
    connection: &Connection,
    expression: &str,
    narrowing: &Narrowing<'_>,
    wanted: usize,
) -> rusqlite::Result<(Vec<Candidate>, bool)> {
    // In the order of the index, which gives the best first. Only files of the folders that are
    // listed now have one to be joined with.
    let select = "SELECT passages.id, passages.first_line, files.id, files.path, folders.name
        FROM texts CROSS JOIN passages ON passages.id = texts.rowid
        CROSS JOIN files ON files.id = passages.file
        CROSS JOIN folders ON folders.id = files.folder
        WHERE texts MATCH ? ORDER BY texts.rank";
    let mut select = connection.prepare_cached(select)?;
    let mut rows = select.query([expression])?;
    let mut found = Vec::new();
    let mut of_file: HashMap<i64, usize> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (path, folder): (String, String) = (row.get(3)?, row.get(4)?);
        let shown = format!("{folder}/{path}");
        if !narrowing.admits(&folder, &path, &shown) {
            continue;
        }
        let count = of_file.entry(row.get(2)?).or_default();
        *count += 1;
        if *count > PER_FILE {
            continue;
        }
        if found.len() == wanted {
            return Ok((found, true));
        }
        found.push(Candidate {
            passage: row.get(0)?,
            first_line: row.get(1)?,
            shown,
        });
    }
    Ok((found, false))
}
