//! What becomes of files that are missing, in use, foreign or from the future.

use std::fs;
use std::path::Path;

use haft_core::{Alongside, Store as _};
use haft_store::{OpenError, SqliteStore};
use rusqlite::Connection;

use crate::common::{NEWEST, owner, response};

fn refusal(path: &Path) -> String {
    SqliteStore::open(path).unwrap_err().to_string()
}

#[cfg(unix)]
#[tokio::test]
async fn everything_that_is_made_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("deep/data");
    let store = SqliteStore::open(data.join("haft.db")).unwrap();
    let write = store.put_response(&owner(), response("r", "text"), Alongside::default());
    assert!(write.await.unwrap());
    store.response(&owner(), "r").await.unwrap().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory.path().join("deep")), 0o700);
    assert_eq!(mode(&data), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&data).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(
        names,
        ["haft.db", "haft.db-shm", "haft.db-wal", "haft.db.lock"]
    );
}

#[tokio::test]
async fn what_was_written_is_there_after_opening_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = SqliteStore::open(&path).unwrap();
    let write = store.put_response(&owner(), response("r", "text"), Alongside::default());
    assert!(write.await.unwrap());
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    let read = store.response(&owner(), "r").await.unwrap();
    assert_eq!(
        format!("{read:?}"),
        format!("{:?}", Some(response("r", "text")))
    );
}

#[test]
fn a_file_is_open_once_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(
        refusal(&path),
        format!(
            "`{}` is in use by another haft: stop that one, or give this one a file of its own",
            store.path().display()
        )
    );
    // The refused one has not spoilt the other's claim.
    assert!(matches!(
        SqliteStore::open(&path),
        Err(OpenError::InUse { .. })
    ));
    drop(store);
    SqliteStore::open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn another_name_of_the_file_is_the_same_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let _store = SqliteStore::open(&path).unwrap();
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let roundabout = directory
        .path()
        .join("../")
        .join(directory.path().file_name().unwrap());
    for other in [link, roundabout.join("haft.db")] {
        assert!(matches!(
            SqliteStore::open(&other),
            Err(OpenError::InUse { .. })
        ));
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    for length in [1, 511, 512, 1_024, 4_095, 4_096, 10_000] {
        let content = "x".repeat(length);
        fs::write(&path, &content).unwrap();
        assert_eq!(
            refusal(&path),
            format!(
                "`{}` is not a SQLite database: move it away, or give the store another path",
                fs::canonicalize(&path).unwrap().display()
            )
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn a_database_of_another_application_is_refused_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE t (a)").unwrap();
    other.pragma_update(None, "application_id", 0x1234).unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    assert_eq!(
        refusal(&path),
        format!(
            "`{}` is a database of another application (id `0x00001234`): give the store a file of \
             its own",
            fs::canonicalize(&path).unwrap().display()
        )
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_database_that_says_nothing_of_whose_it_is_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE t (a)").unwrap();
    drop(other);
    assert!(matches!(
        SqliteStore::open(&path),
        Err(OpenError::Foreign {
            application_id: 0,
            ..
        })
    ));
}

#[test]
fn a_file_of_a_later_version_is_refused_with_both_versions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    drop(SqliteStore::open(&path).unwrap());
    let later = Connection::open(&path).unwrap();
    later.pragma_update(None, "user_version", 7).unwrap();
    drop(later);
    assert_eq!(
        refusal(&path),
        format!(
            "`{}` has version 7, but this haft knows only versions up to {NEWEST}: use the newer haft \
             that wrote it, or give the store another path",
            fs::canonicalize(&path).unwrap().display()
        )
    );
}

#[test]
fn an_empty_file_becomes_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    fs::write(&path, "").unwrap();
    drop(SqliteStore::open(&path).unwrap());
    let file = Connection::open(&path).unwrap();
    let number = |name| file.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    assert_eq!(number("user_version").unwrap(), NEWEST);
    assert_eq!(number("application_id").unwrap(), 0x6861_6674);
    // Incremental: `clean` gives pages back.
    assert_eq!(number("auto_vacuum").unwrap(), 2);
}

#[test]
fn a_path_that_cannot_be_a_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for path in [Path::new("/"), Path::new(""), directory.path()] {
        assert!(matches!(
            SqliteStore::open(path),
            Err(OpenError::File { .. })
        ));
    }
    // And no lock file is left beside it.
    assert!(!directory.path().with_extension("lock").exists());
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let below = refusal(&file.join("haft.db"));
    assert!(below.starts_with("cannot make the directory `"), "{below}");
}

#[test]
fn what_is_shown_of_a_store_is_its_path_only() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("haft.db")).unwrap();
    assert_eq!(
        format!("{store:?}"),
        format!("SqliteStore {{ path: {:?}, .. }}", store.path())
    );
}
