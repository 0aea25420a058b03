//! A damaged file gives errors, never a panic and never something else than was written.

use std::fs;
use std::path::Path;

use haft_core::{Alongside, Store as _, StoreError};
use haft_store::{OpenError, SqliteStore};

use crate::common::{owner, response};

const RECORDS: usize = 60;

/// A closed store with some records, and its bytes.
async fn filled(path: &Path) -> Vec<u8> {
    let store = SqliteStore::open(path).unwrap();
    for number in 0..RECORDS {
        let text = "long enough to fill some pages ".repeat(20);
        let write = response(&format!("r{number}"), &text);
        assert!(
            store
                .put_response(&owner(), write, Alongside::default())
                .await
                .unwrap()
        );
    }
    drop(store);
    fs::read(path).unwrap()
}

/// Reads and writes what it can; how often something failed.
async fn use_it(path: &Path) -> usize {
    let store = match SqliteStore::open(path) {
        Ok(store) => store,
        Err(
            OpenError::Damaged { .. }
            | OpenError::NotADatabase { .. }
            | OpenError::Foreign { .. }
            | OpenError::Failed { .. },
        ) => return 1,
        Err(error) => panic!("{error}"),
    };
    let mut failures = 0;
    for number in 0..RECORDS {
        let id = format!("r{number}");
        match store.response(&owner(), &id).await {
            Ok(_) => {}
            Err(StoreError::Failed(_)) => failures += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let write = store.put_response(&owner(), response("new", "text"), Alongside::default());
    match write.await {
        Ok(_) => {}
        Err(StoreError::Failed(_)) => failures += 1,
        Err(error) => panic!("{error}"),
    }
    failures
}

#[tokio::test]
async fn a_file_that_was_cut_off_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let whole = filled(&path).await;
    for part in [3, 2] {
        fs::write(&path, &whole[..whole.len() / part / 4096 * 4096]).unwrap();
        assert!(use_it(&path).await > 0);
    }
}

#[tokio::test]
async fn pages_that_were_overwritten_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let whole = filled(&path).await;
    let mut reported = 0;
    let pages = whole.len() / 4096;
    for page in 0..pages {
        let mut damaged = whole.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        reported += usize::from(use_it(&path).await > 0);
    }
    // A page of an index that nothing here reads may go unnoticed; most cannot.
    assert!(reported * 2 > pages, "{reported} of {pages}");
}
