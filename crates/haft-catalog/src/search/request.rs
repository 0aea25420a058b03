//! What may be asked (`tool-selection.md` §7).

/// The most queries of one request, and the longest, in characters.
pub const MAX_QUERIES: usize = 8;
/// The longest query, in characters.
pub const MAX_QUERY_CHARS: usize = 1_000;
/// How many tools are returned if nobody says.
pub const DEFAULT_K: usize = 8;

/// How much is said of each tool that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Its name.
    Names,
    /// Its name and one line.
    #[default]
    Brief,
    /// Its full definition.
    Full,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SearchRequest {
    /// What is wanted, one query for each step: 1 to 8, of at most 1,000 characters each.
    pub queries: Vec<String>,
    /// How many tools to return, beside those of `always` and those that are needed by others.
    pub k: usize,
    /// Only tools of servers with these labels.
    pub servers: Option<Vec<String>>,
    /// Only tools of sections with these keys.
    pub sections: Option<Vec<String>>,
    /// How much to say of each tool.
    pub detail: Detail,
    /// The most that the answer may cost, in tokens; what does not fit is cut from the end.
    pub budget_tokens: Option<usize>,
    /// Tools that are returned whatever is asked.
    pub always: Vec<String>,
    /// Tools that are not returned whatever is asked.
    pub exclude: Vec<String>,
    /// How many tools may be added because others need them.
    pub max_dependencies: usize,
}

impl SearchRequest {
    /// How many needed tools are added if nobody says.
    pub const MAX_DEPENDENCIES: usize = 12;

    /// A search for one thing.
    pub fn new(query: impl Into<String>) -> Self {
        Self::of([query.into()])
    }

    /// A search for several things, the results of which are dealt out in turn.
    pub fn of(queries: impl IntoIterator<Item = String>) -> Self {
        Self {
            queries: queries.into_iter().collect(),
            k: DEFAULT_K,
            max_dependencies: Self::MAX_DEPENDENCIES,
            ..Self::default()
        }
    }

    /// At most so many tools.
    #[must_use]
    pub fn k(mut self, k: usize) -> Self {
        self.k = k;
        self
    }

    /// Only tools of these servers.
    #[must_use]
    pub fn servers(mut self, labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.servers = Some(labels.into_iter().map(Into::into).collect());
        self
    }

    /// Only tools of these sections.
    #[must_use]
    pub fn sections(mut self, keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sections = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// So much of each tool.
    #[must_use]
    pub fn detail(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }

    /// An answer of at most so many tokens.
    #[must_use]
    pub fn budget_tokens(mut self, tokens: usize) -> Self {
        self.budget_tokens = Some(tokens);
        self
    }

    /// With these tools, whatever is asked.
    #[must_use]
    pub fn always(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.always = names.into_iter().map(Into::into).collect();
        self
    }

    /// Without these tools, whatever is asked.
    #[must_use]
    pub fn exclude(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exclude = names.into_iter().map(Into::into).collect();
        self
    }

    /// With at most so many tools that others need.
    #[must_use]
    pub fn max_dependencies(mut self, tools: usize) -> Self {
        self.max_dependencies = tools;
        self
    }

    pub(super) fn check(&self) -> Result<(), SearchError> {
        if self.queries.is_empty() {
            return Err(SearchError::NoQuery);
        }
        if self.queries.len() > MAX_QUERIES {
            return Err(SearchError::TooManyQueries {
                count: self.queries.len(),
            });
        }
        let lengths = self.queries.iter().map(|query| query.chars().count());
        match lengths.zip(0..).find(|&(chars, _)| chars > MAX_QUERY_CHARS) {
            Some((chars, at)) => Err(SearchError::QueryTooLong { at, chars }),
            None => Ok(()),
        }
    }
}

/// A search that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// Nothing is asked.
    #[error("`queries` is empty: put 1 to {MAX_QUERIES} queries there")]
    NoQuery,
    /// Too much is asked at once.
    #[error("`queries` has {count} entries: at most {MAX_QUERIES} fit; make two searches of it")]
    TooManyQueries {
        /// How many there are.
        count: usize,
    },
    /// A query is no query any more.
    #[error(
        "`queries[{at}]` has {chars} characters: at most {MAX_QUERY_CHARS} fit; say what one step needs"
    )]
    QueryTooLong {
        /// Which one.
        at: usize,
        /// How long it is.
        chars: usize,
    },
}
