//! Full-text search over real files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail like tests"
)]

mod finding;
mod guarding;
mod keeping;
mod offering;
mod tenants;

use std::path::PathBuf;

use haft_core::Cancel;
use haft_hosted::{FileSearch, FileSearchConfig, SearchRequest, SearchResults};
use tempfile::TempDir;

/// A directory with the folder `docs`, something outside beside it, and an index.
struct Site {
    all: TempDir,
}

impl Site {
    fn new() -> Self {
        let all = tempfile::tempdir().unwrap();
        let site = Self { all };
        std::fs::create_dir(site.path("docs")).unwrap();
        site
    }

    /// A site with these files in `docs`.
    fn with(files: &[(&str, &str)]) -> Self {
        let site = Self::new();
        for (path, content) in files {
            site.put(&format!("docs/{path}"), content);
        }
        site
    }

    fn path(&self, path: &str) -> PathBuf {
        self.all.path().join(path)
    }

    /// Puts a file there, its directories included.
    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn index(&self) -> PathBuf {
        self.path("data/search.db")
    }

    /// Looks at the files before each search.
    fn config(&self) -> FileSearchConfig {
        FileSearchConfig {
            refresh_seconds: 0,
            ..FileSearchConfig::of_folders([self.path("docs")])
        }
    }

    fn open(&self) -> FileSearch {
        self.open_with(&self.config())
    }

    fn open_with(&self, config: &FileSearchConfig) -> FileSearch {
        FileSearch::open(self.index(), config).unwrap()
    }
}

fn ask(search: &FileSearch, request: &SearchRequest) -> SearchResults {
    search.search(request, &Cancel::new()).unwrap()
}

/// Where the words are: `docs/a.md:3`, sorted.
fn places(search: &FileSearch, query: &str) -> Vec<String> {
    let found = ask(search, &SearchRequest::new(query));
    let places = found.results.iter();
    let mut places: Vec<_> = places
        .map(|hit| format!("{}:{}", hit.path, hit.line))
        .collect();
    places.sort();
    places
}

/// Whether no file has all of the words.
fn finds_nothing(search: &FileSearch, query: &str) -> bool {
    places(search, query).is_empty()
}
