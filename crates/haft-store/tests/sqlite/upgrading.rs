//! A file of an earlier version becomes one of today's, wholly or not at all; one of a later version
//! stays as it is.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use haft_core::{Alongside, Owner, PageQuery, Retention, Store as _};
use haft_store::{OpenError, SqliteStore};
use rusqlite::Connection;
use serde_json::Value;

use crate::common::{NEWEST, json, owner, response};
use crate::reading::{OWNERS, everything};

/// A file of version 1 that the code of version 1 wrote, and what that code read of it.
const VERSION_1: &str = include_str!("../fixtures/version-1.sql");
const READ_BY_VERSION_1: &str = include_str!("../fixtures/version-1.json");

/// Makes the file anew, still open.
fn make_version_1(path: &Path) -> Connection {
    let file = Connection::open(path).unwrap();
    file.pragma_update(None, "auto_vacuum", "INCREMENTAL")
        .unwrap();
    file.pragma_update(None, "journal_mode", "WAL").unwrap();
    file.execute_batch(VERSION_1).unwrap();
    file.pragma_update(None, "application_id", 0x6861_6674)
        .unwrap();
    file.pragma_update(None, "user_version", 1).unwrap();
    file
}

fn read_by_version_1() -> Value {
    serde_json::from_str(READ_BY_VERSION_1).unwrap()
}

fn version(path: &Path) -> i64 {
    let file = Connection::open(path).unwrap();
    file.pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

/// Everything that defines a file, and that nothing in it is broken.
fn schema(path: &Path) -> Vec<String> {
    let file = Connection::open(path).unwrap();
    let verdict: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
    let violations = file
        .prepare("PRAGMA foreign_key_check")
        .unwrap()
        .exists([])
        .unwrap();
    assert!(!violations);
    let mut query = file
        .prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY 1")
        .unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_file_of_version_1_is_found_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    drop(make_version_1(&path));
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(everything(&store).await, read_by_version_1());
    drop(store);
    assert_eq!(version(&path), NEWEST);
    let new = directory.path().join("new.db");
    drop(SqliteStore::open(&new).unwrap());
    let statistics = |line: &String| !line.contains("sqlite_stat");
    let migrated: Vec<_> = schema(&path).into_iter().filter(statistics).collect();
    let new: Vec<_> = schema(&new).into_iter().filter(statistics).collect();
    assert_eq!(migrated, new, "it is like one that was made today");
}

#[tokio::test]
async fn a_file_of_version_1_can_be_written_and_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    drop(make_version_1(&path));
    let store = SqliteStore::open(&path).unwrap();
    let mut expected = read_by_version_1();
    let (default, acme) = (owner(), Owner::new("acme"));
    // Something new, and something for what was there.
    let noted = store.put_checkpoint(&acme, "resp_running", json("{}"), Vec::new());
    assert!(noted.await.unwrap());
    let traced = Alongside {
        trace: Some(json("[]")),
        ..Alongside::default()
    };
    let write = store.put_response(&default, response("resp_new", "text"), traced);
    assert!(write.await.unwrap());
    assert!(store.delete_response(&default, "resp_plain").await.unwrap());
    let before = everything(&store).await;
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    let after = everything(&store).await;
    assert_eq!(after, before);
    let checkpoint = store.checkpoint(&acme, "resp_running").await.unwrap();
    assert_eq!(checkpoint.unwrap().get(), "{}");
    assert!(store.trace(&default, "resp_new").await.unwrap().is_some());
    // Nothing else has changed.
    for name in [
        "resp_new",
        "chain of resp_new",
        "resp_plain",
        "chain of resp_plain",
    ] {
        expected["default"][name] = after["default"][name].clone();
    }
    for (name, value) in after["default"].as_object().unwrap() {
        assert_eq!(expected["default"][name], *value, "{name}");
    }
    for name in ["acme", "Zo\u{eb}", "unfinished"] {
        assert_eq!(expected[name], after[name], "{name}");
    }
}

#[tokio::test]
async fn what_was_there_is_listed_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    drop(make_version_1(&path));
    let store = SqliteStore::open(&path).unwrap();
    let whole = || PageQuery {
        after: None,
        limit: 100,
        is_descending: false,
    };
    let mut count = 0;
    for name in OWNERS {
        let page = store.responses(Some(&Owner::new(name)), whole()).await;
        count += page.unwrap().responses.len();
    }
    assert_eq!(count, 8);
    assert_eq!(
        store
            .responses(None, whole())
            .await
            .unwrap()
            .responses
            .len(),
        count
    );
    // The count of bytes went along: what is left when everything finished is gone is what the
    // unfinished ones and the conversations have.
    let everything = Retention {
        max_bytes: Some(0),
        ..Retention::default()
    };
    let cleaned = store.clean(everything, 0, 100).await.unwrap();
    assert_eq!((cleaned.responses, cleaned.has_more), (6, false));
    drop(store);
    let file = Connection::open(&path).unwrap();
    let counted: i64 = file
        .query_row("SELECT bytes FROM totals", [], |row| row.get(0))
        .unwrap();
    let real: i64 = file
        .query_row(
            "SELECT (SELECT coalesce(sum(octet_length(resource)), 0) FROM responses)
                  + (SELECT coalesce(sum(octet_length(metadata)), 0) FROM conversations)
                  + (SELECT coalesce(sum(octet_length(json)), 0) FROM items)
                  + (SELECT coalesce(sum(octet_length(json)), 0) FROM events)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(counted, real);
}

#[tokio::test]
async fn what_a_killed_process_left_in_the_log_is_migrated_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let open = make_version_1(&directory.path().join("open.db"));
    // Nothing is in the file yet: a copy of both is what a killed process leaves.
    for suffix in ["", "-wal"] {
        let from = directory.path().join(format!("open.db{suffix}"));
        let to = directory.path().join(format!("haft.db{suffix}"));
        fs::copy(from, to).unwrap();
    }
    assert!(fs::metadata(&path).unwrap().len() < 40_000);
    drop(open);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(everything(&store).await, read_by_version_1());
}

#[test]
fn a_file_of_a_later_version_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    drop(SqliteStore::open(&path).unwrap());
    let later = Connection::open(&path).unwrap();
    later
        .pragma_update(None, "user_version", NEWEST + 1)
        .unwrap();
    later
        .execute_batch("CREATE TABLE news (a); INSERT INTO news VALUES (1);")
        .unwrap();
    // Once as a process leaves it that was killed, with a log, and once closed.
    let killed = directory.path().join("killed.db");
    for suffix in ["", "-wal"] {
        let from = directory.path().join(format!("haft.db{suffix}"));
        let to = directory.path().join(format!("killed.db{suffix}"));
        fs::copy(from, to).unwrap();
    }
    drop(later);
    let log = directory.path().join("killed.db-wal");
    assert!(fs::metadata(&log).unwrap().len() > 0);
    for path in [&path, &killed] {
        let before = fs::read(path).unwrap();
        let log_before = fs::read(&log).unwrap();
        let refused = SqliteStore::open(path).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "`{}` has version {}, but this haft knows only versions up to {NEWEST}: use the newer haft \
                 that wrote it, or give the store another path",
                fs::canonicalize(path).unwrap().display(),
                NEWEST + 1
            )
        );
        assert!(fs::read(path).unwrap() == before);
        assert!(fs::read(&log).unwrap() == log_before);
    }
}

/// Says to a process of this test which file it is to bring up to date.
const PATH: &str = "HAFT_STORE_TEST_UPGRADE";

/// Not a test by itself: `a_killed_migration_leaves_a_whole_file` starts this test's program again with
/// only this in it, and kills it.
#[test]
#[ignore = "another test starts it"]
fn a_process_that_brings_a_file_up_to_date() {
    if let Ok(path) = std::env::var(PATH) {
        drop(SqliteStore::open(path).unwrap());
    }
}

fn migrate_in_a_process(path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "upgrading::a_process_that_brings_a_file_up_to_date",
            "--exact",
            "--ignored",
        ])
        .env(PATH, path)
        .stdout(Stdio::null());
    command
}

/// Many more responses, so that there is time to be killed.
const MORE: &str = "
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 40000)
    INSERT INTO responses (owner, id, created_at, is_finished, is_deleted, resource)
    SELECT 'many', 'resp_' || n, n, 1, 0, '{}' FROM numbers";

#[tokio::test]
async fn a_killed_migration_leaves_a_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let file = make_version_1(&path);
    file.execute_batch(MORE).unwrap();
    drop(file);
    let whole = fs::read(&path).unwrap();
    let old = schema(&path);
    let start = Instant::now();
    assert!(migrate_in_a_process(&path).status().unwrap().success());
    let took = start.elapsed();
    assert_eq!(version(&path), NEWEST);
    let new = schema(&path);
    let (mut is_old, mut is_new) = (0, 0);
    // From the start of the process to its end.
    for kill in 0..12 {
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(directory.path().join(format!("haft.db{suffix}")));
        }
        fs::write(&path, &whole).unwrap();
        let mut process = migrate_in_a_process(&path).spawn().unwrap();
        std::thread::sleep(took.mul_f64(f64::from(kill) / 11.0));
        process.kill().unwrap();
        process.wait().unwrap();
        match version(&path) {
            1 => {
                is_old += 1;
                assert_eq!(schema(&path), old);
            }
            NEWEST => {
                is_new += 1;
                assert_eq!(schema(&path), new);
            }
            // Between two steps: the next start takes the others.
            2..NEWEST => is_new += 1,
            other => panic!("version {other}"),
        }
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(everything(&store).await, read_by_version_1());
        let last = store.response(&Owner::new("many"), "resp_40000").await;
        assert!(last.unwrap().is_some());
    }
    println!("killed before: {is_old}, after: {is_new}");
    assert!(is_old > 0, "nothing was interrupted");
}

#[test]
fn a_migration_that_fails_leaves_the_old_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let file = make_version_1(&path);
    // Something is in the way of the last thing that the step makes.
    file.execute_batch("CREATE TRIGGER traces_removed AFTER DELETE ON totals BEGIN SELECT 1; END")
        .unwrap();
    drop(file);
    let old = schema(&path);
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Failed { .. }), "{refused}");
    assert_eq!(version(&path), 1);
    assert_eq!(schema(&path), old);
    // Once the obstacle is gone, it goes on.
    let file = Connection::open(&path).unwrap();
    file.execute_batch("DROP TRIGGER traces_removed").unwrap();
    drop(file);
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(version(&path), NEWEST);
}

/// For the day on which version 3 is made: writes down what version 2 reads of a file, to be kept beside
/// its dump like those of version 1.
///
/// `HAFT_STORE_TEST_KEEP=haft.db cargo test -p haft-store --test sqlite keep -- --ignored --nocapture`
#[tokio::test]
#[ignore = "makes a fixture"]
async fn what_is_read_of_a_file_to_keep() {
    if let Ok(path) = std::env::var("HAFT_STORE_TEST_KEEP") {
        let store = SqliteStore::open_read_only(path).unwrap();
        println!("{:#}", everything(&store).await);
    }
}
