//! What is left when a store is closed, and what is not.

use std::fs;
use std::path::Path;
use std::time::Duration;

use haft_core::{Alongside, Retention, Store as _, StoredEvent};
use haft_store::SqliteStore;

use crate::common::{json, owner, response};

fn contains(path: &Path, text: &str) -> bool {
    let bytes = fs::read(path).unwrap();
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_closed_store_is_one_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..20 {
        let write = response(&format!("r{number}"), "text");
        store
            .put_response(&owner(), write, Alongside::default())
            .await
            .unwrap();
    }
    store.response(&owner(), "r1").await.unwrap().unwrap();
    drop(store);
    assert!(!directory.path().join("haft.db-wal").exists());
    let copy = directory.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    let copy = SqliteStore::open(&copy).unwrap();
    for number in 0..20 {
        let read = copy.response(&owner(), &format!("r{number}")).await;
        assert!(read.unwrap().is_some());
    }
}

#[tokio::test]
async fn what_was_handed_over_is_written_although_nobody_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..50 {
        let write = response(&format!("r{number}"), "text");
        let mut write = store.put_response(&owner(), write, Alongside::default());
        // Handed over by the first poll, and then forgotten.
        std::future::poll_fn(|context| {
            let _ = write.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..50 {
        let read = store.response(&owner(), &format!("r{number}")).await;
        assert!(read.unwrap().is_some());
    }
}

#[tokio::test]
async fn what_was_deleted_is_not_in_the_file_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let secret = "the-very-secret-words";
    let store = SqliteStore::open(&path).unwrap();
    for id in ["kept", "r1", "r2"] {
        let text = if id == "kept" { "open words" } else { secret };
        let write = response(id, &text.repeat(500));
        store
            .put_response(&owner(), write, Alongside::default())
            .await
            .unwrap();
    }
    let event = StoredEvent {
        sequence_number: 0,
        json: json(format!("\"{secret}\"")),
    };
    store
        .append_events(&owner(), "r1", vec![event])
        .await
        .unwrap();
    drop(store);
    assert!(contains(&path, secret));
    let store = SqliteStore::open(&path).unwrap();
    for id in ["r1", "r2"] {
        assert!(store.delete_response(&owner(), id).await.unwrap());
    }
    drop(store);
    assert!(!contains(&path, secret));
    assert!(contains(&path, "open words"));
}

#[tokio::test]
async fn a_cleaned_file_becomes_smaller() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..100 {
        let write = response(&format!("r{number}"), &"text".repeat(1_000));
        store
            .put_response(&owner(), write, Alongside::default())
            .await
            .unwrap();
    }
    drop(store);
    let before = fs::metadata(&path).unwrap().len();
    let store = SqliteStore::open(&path).unwrap();
    let retention = Retention {
        max_age: Some(Duration::ZERO),
        ..Retention::default()
    };
    while store.clean(retention, 2_000, 7).await.unwrap().has_more {}
    drop(store);
    let after = fs::metadata(&path).unwrap().len();
    assert!(after * 10 < before, "{after} of {before} bytes are left");
}
