//! A tool can look at what a running server keeps, and do nothing to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use haft_core::{Alongside, Retention, Store as _, StoreError, StoredConversation};
use haft_store::{OpenError, SqliteStore};
use rusqlite::Connection;

use crate::common::{NEWEST, json, owner, response};
use crate::reading::everything;

fn refusal(path: &Path) -> String {
    SqliteStore::open_read_only(path).unwrap_err().to_string()
}

async fn put(store: &SqliteStore, id: &str) {
    let write = store.put_response(&owner(), response(id, "text"), Alongside::default());
    assert!(write.await.unwrap());
}

/// The files of a directory with their contents.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

#[tokio::test]
async fn what_a_running_server_acknowledges_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let server = SqliteStore::open(&path).unwrap();
    put(&server, "resp_plain").await;
    let tool = SqliteStore::open_read_only(&path).unwrap();
    assert_eq!(tool.path(), server.path());
    assert!(
        tool.response(&owner(), "resp_plain")
            .await
            .unwrap()
            .is_some()
    );
    put(&server, "resp_new").await;
    assert!(tool.response(&owner(), "resp_new").await.unwrap().is_some());
    assert_eq!(everything(&tool).await, everything(&server).await);
    // Neither is in the way of the other's end.
    drop(server);
    assert!(tool.response(&owner(), "resp_new").await.unwrap().is_some());
    let server = SqliteStore::open(&path).unwrap();
    drop(tool);
    put(&server, "resp_a").await;
}

#[tokio::test]
async fn a_store_for_reading_refuses_to_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let server = SqliteStore::open(&path).unwrap();
    put(&server, "resp_plain").await;
    let before = everything(&server).await;
    let tool = SqliteStore::open_read_only(&path).unwrap();
    let owner = owner();
    let refused = StoreError::Failed(
        "it is open for reading only: let the server that keeps it write".to_owned(),
    );
    let new = response("resp_new", "text");
    let write = tool.put_response(&owner, new, Alongside::default());
    assert_eq!(write.await, Err(refused.clone()));
    let write = tool.put_checkpoint(&owner, "resp_plain", json("1"), Vec::new());
    assert_eq!(write.await, Err(refused.clone()));
    let write = tool.delete_response(&owner, "resp_plain");
    assert_eq!(write.await, Err(refused.clone()));
    let write = tool.append_events(&owner, "resp_plain", Vec::new());
    assert_eq!(write.await, Err(refused.clone()));
    let conversation = StoredConversation {
        id: "conv_1".to_owned(),
        created_at: 0,
        metadata: json("{}"),
    };
    let write = tool.put_conversation(&owner, conversation);
    assert_eq!(write.await, Err(refused.clone()));
    let write = tool.delete_conversation(&owner, "conv_1");
    assert_eq!(write.await, Err(refused.clone()));
    let write = tool.append_items(&owner, "conv_1", Vec::new());
    assert_eq!(write.await, Err(refused.clone()));
    let write = tool.delete_item(&owner, "conv_1", "msg_1");
    assert_eq!(write.await, Err(refused.clone()));
    let write = tool.clean(Retention::default(), 0, 1);
    assert_eq!(write.await, Err(refused.clone()));
    assert_eq!(tool.check().await, Err(refused.clone()));
    assert_eq!(
        refused.to_string(),
        "the store failed: it is open for reading only: let the server that keeps it write"
    );
    assert_eq!(everything(&server).await, before);
}

#[tokio::test]
async fn looking_at_a_closed_store_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let server = SqliteStore::open(&path).unwrap();
    put(&server, "resp_plain").await;
    drop(server);
    let before = files(directory.path());
    let tool = SqliteStore::open_read_only(&path).unwrap();
    assert!(
        tool.response(&owner(), "resp_plain")
            .await
            .unwrap()
            .is_some()
    );
    drop(tool);
    assert_eq!(files(directory.path()), before);
}

#[test]
fn a_file_that_is_missing_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/haft.db");
    assert_eq!(
        refusal(&path),
        format!(
            "cannot use `{}` for the store: No such file or directory (os error 2); check the path \
             and its permissions",
            path.display()
        )
    );
    assert!(!directory.path().join("deep").exists());
    let refused = SqliteStore::open_read_only(directory.path());
    assert!(matches!(refused, Err(OpenError::File { .. })));
}

#[test]
fn a_file_of_another_version_is_refused_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let shown = fs::canonicalize(directory.path()).unwrap().join("haft.db");
    let shown = shown.display();
    fs::write(&path, "").unwrap();
    assert_eq!(
        refusal(&path),
        format!(
            "`{shown}` has version 0, but this haft reads only version {NEWEST}: start its server once, \
             which brings the file up to date, or use the older haft that wrote it"
        )
    );
    fs::write(&path, "x").unwrap();
    let refused = SqliteStore::open_read_only(&path);
    assert!(matches!(refused, Err(OpenError::NotADatabase { .. })));
    fs::remove_file(&path).unwrap();
    drop(SqliteStore::open(&path).unwrap());
    for (version, text) in [
        (
            1,
            format!(
                "has version 1, but this haft reads only version {NEWEST}: start its server once, \
                 which brings the file up to date, or use the older haft that wrote it"
            ),
        ),
        (
            NEWEST + 1,
            format!(
                "has version {}, but this haft knows only versions up to {NEWEST}: use the newer haft \
                 that wrote it, or give the store another path",
                NEWEST + 1
            ),
        ),
    ] {
        let file = Connection::open(&path).unwrap();
        file.pragma_update(None, "user_version", version).unwrap();
        drop(file);
        let before = files(directory.path());
        assert_eq!(refusal(&path), format!("`{shown}` {text}"));
        assert_eq!(files(directory.path()), before);
    }
}
