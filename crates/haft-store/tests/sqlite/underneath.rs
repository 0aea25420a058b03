//! What happens to the files under a store that is open, or was.

use std::fs::{self, OpenOptions};
use std::path::Path;

use haft_core::{Alongside, Store as _, StoreError};
use haft_store::{DatabaseLock, OpenError, SqliteStore, check_database, copy_database};

use crate::common::{owner, response};

async fn write(store: &SqliteStore, id: &str) -> Result<bool, StoreError> {
    let record = response(id, "text");
    store
        .put_response(&owner(), record, Alongside::default())
        .await
}

async fn opened(directory: &Path) -> SqliteStore {
    let store = SqliteStore::open(directory.join("haft.db")).unwrap();
    assert_eq!(write(&store, "before").await, Ok(true));
    store
}

#[tokio::test]
async fn writes_fail_when_the_folder_is_moved_and_succeed_when_it_is_back() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, away) = (parent.path().join("data"), parent.path().join("away"));
    let store = opened(&folder).await;
    fs::rename(&folder, &away).unwrap();
    let error = write(&store, "lost").await.unwrap_err().to_string();
    assert!(error.contains("was removed while it was in use"), "{error}");
    assert!(store.check().await.is_err());
    fs::rename(&away, &folder).unwrap();
    assert_eq!(write(&store, "after").await, Ok(true));
}

#[tokio::test]
async fn writes_fail_when_the_folder_is_replaced() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, other) = (parent.path().join("data"), parent.path().join("other"));
    drop(opened(&other).await);
    let store = opened(&folder).await;
    fs::rename(&folder, parent.path().join("away")).unwrap();
    fs::rename(&other, &folder).unwrap();
    let error = write(&store, "lost").await.unwrap_err().to_string();
    assert!(
        error.contains("was replaced while it was in use"),
        "{error}"
    );
}

#[tokio::test]
async fn writes_fail_when_the_log_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = opened(directory.path()).await;
    fs::remove_file(directory.path().join("haft.db-wal")).unwrap();
    let error = write(&store, "lost").await.unwrap_err().to_string();
    assert!(error.contains("haft.db-wal` was removed"), "{error}");
}

#[tokio::test]
async fn writes_fail_when_the_file_is_emptied_or_truncated() {
    for length in [0, 4096] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("haft.db");
        drop(opened(directory.path()).await);
        let store = SqliteStore::open(&path).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(length).unwrap();
        // Closing it would end SQLite's locks.
        std::mem::forget(file);
        let error = write(&store, "lost").await.unwrap_err().to_string();
        assert!(
            error.contains("was truncated") || error.contains("was emptied"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn second_store_is_refused_without_the_lock_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = opened(directory.path()).await;
    fs::remove_file(directory.path().join("haft.db.lock")).unwrap();
    for _ in 0..2 {
        let refused = SqliteStore::open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
        let refused = DatabaseLock::acquire(&path).unwrap_err();
        assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    }
    assert_eq!(write(&store, "after").await, Ok(true));
    drop(store);
    assert!(SqliteStore::open(&path).is_ok());
}

#[tokio::test]
async fn database_that_lost_its_content_is_not_taken_for_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    drop(opened(directory.path()).await);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, "").unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Emptied { .. }), "{refused}");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    fs::remove_file(&path).unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Missing { .. }), "{refused}");
    assert!(!path.exists(), "nothing was made in its place");
    fs::write(&path, &whole).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert!(store.response(&owner(), "before").await.unwrap().is_some());
    drop(store);
    // On purpose.
    fs::remove_file(&path).unwrap();
    fs::remove_file(directory.path().join("haft.db.lock")).unwrap();
    assert!(SqliteStore::open(&path).is_ok());
}

#[tokio::test]
async fn copy_of_a_database_in_use_is_whole_and_stands_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (
        directory.path().join("haft.db"),
        directory.path().join("copy/haft.db"),
    );
    fs::create_dir(directory.path().join("copy")).unwrap();
    let store = opened(directory.path()).await;
    let version = copy_database(&path, &copy).unwrap();
    assert_eq!(write(&store, "after").await, Ok(true));
    assert_eq!(check_database(&copy).unwrap(), version);
    let beside = fs::read_dir(directory.path().join("copy")).unwrap().count();
    assert_eq!(beside, 1, "no log stands beside the copy");
    assert!(copy_database(&path, &copy).is_err(), "it is there already");
    let copied = SqliteStore::open(&copy).unwrap();
    assert!(copied.response(&owner(), "before").await.unwrap().is_some());
    assert!(copied.response(&owner(), "after").await.unwrap().is_none());
}
