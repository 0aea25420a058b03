//! `search_files`: words in the operator's files.
//!
//! What comes in: a query of a model, and the folders that the operator listed. What goes out:
//! lines of files in these folders, best first. Nothing that lies elsewhere is ever read: links are
//! not followed, and what looks like a secret is passed over.
//!
//! - [`config`] says what the operator may set;
//! - [`rules`] and [`path_glob`] decide which names count, [`folder`] opens them without being led
//!   out, [`text`] decides what is text and cuts it into passages;
//! - [`sweep`] brings the [`index`] up to date, a bounded piece of work at a time;
//! - [`query`] makes of any text something that the index understands, [`snippet`] makes of what is
//!   found there something to read, and [`results`] collects it;
//! - [`file_search`] holds it together.

mod config;
mod error;
mod file_search;
mod folder;
mod index;
mod path_glob;
mod query;
mod results;
mod rules;
mod snippet;
mod sweep;
mod text;
mod tool;

pub use config::{FileSearchConfig, Folder};
pub use error::{FileSearchError, SearchError};
pub use file_search::{FileSearch, RefreshReport};
pub use results::{Hit, SearchRequest, SearchResults};
pub use tool::search_files;
