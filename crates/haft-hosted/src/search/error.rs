//! What goes wrong when the search is opened, and when it searches.

use std::path::PathBuf;

/// Why the search could not be opened. For the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileSearchError {
    /// There is nothing to search.
    #[error("no folders are listed: add one to `folders`")]
    NoFolders,
    /// A folder is not there or may not be read.
    #[error("the folder `{path}` cannot be searched: {source}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A folder has no name that results could show.
    #[error(
        "the folder `{path}` has no usable name: give it a `name` without `/`, of at most 64 \
         characters",
        path = path.display()
    )]
    Name {
        /// The folder.
        path: PathBuf,
    },
    /// A folder is for no tenant.
    #[error(
        "the folder `{path}` is for no tenant: name some in `tenants`, or leave it out for everybody",
        path = path.display()
    )]
    Tenants {
        /// The folder.
        path: PathBuf,
    },
    /// Two folders have one name.
    #[error("two folders are called `{name}`: give one of them another `name`")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Something in `ignore` is no pattern.
    #[error("`{pattern}` in `ignore` is no pattern: {reason}")]
    Pattern {
        /// As it is written.
        pattern: String,
        /// What is wrong.
        reason: String,
    },
    /// The file of the index belongs to somebody else.
    #[error("`{path}` is a database of another program: give another file", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file of the index cannot be used.
    #[error("the index `{path}` cannot be used: {reason}", path = path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

/// Why a search gave nothing. In words for the model: no path of the server is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// No folder of this name.
    #[error("there is no folder `{name}`: folders are {known}")]
    UnknownFolder {
        /// The name as given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// `path_glob` is no pattern.
    #[error("`{pattern}` is no pattern: {reason}")]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong.
        reason: String,
    },
    /// It took too long, or was cancelled.
    #[error("the search took too long: use rarer words")]
    TooSlow,
    /// The index cannot be used. The log says why.
    #[error("the index cannot be used: the operator finds the reason in the log")]
    Index,
}
