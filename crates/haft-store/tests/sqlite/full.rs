//! A disk that takes no more is noticed by a check, and what was acknowledged before is there.

use std::path::Path;
use std::process::{Command, Output};

use haft_core::{Alongside, Store as _, StoreError};
use haft_store::SqliteStore;

use crate::common::{owner, response};

/// Says to a process of this test which file it is to fill.
const PATH: &str = "HAFT_STORE_TEST_FULL";

/// Not a test by itself: `a_check_notices_a_full_disk` starts this test's program again with only this
/// in it, in a process whose files cannot grow beyond some hundred kilobytes.
#[tokio::test]
#[ignore = "another test starts it"]
async fn a_process_that_fills_its_disk() {
    let Ok(path) = std::env::var(PATH) else {
        return;
    };
    let store = SqliteStore::open(path).unwrap();
    store.check().await.unwrap();
    let mut written = 0;
    let refused = loop {
        let write = response(&format!("r{written}"), &"text ".repeat(1_000));
        let write = store.put_response(&owner(), write, Alongside::default());
        match write.await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1_000, "the disk never becomes full");
    };
    assert!(matches!(refused, StoreError::Failed(_)), "{refused}");
    let mut checks = 0;
    // A check is smaller than a response: some may find room yet.
    while store.check().await.is_ok() {
        checks += 1;
        assert!(checks < 1_000, "the check notices nothing");
    }
    assert!(matches!(store.check().await, Err(StoreError::Failed(_))));
    // What is there can still be read.
    let read = store.response(&owner(), "r0").await.unwrap();
    assert!(read.is_some());
    println!("\nwritten {written}");
}

fn fill(path: &Path) -> Output {
    // A shell, because only it can set the limit for what it becomes. Without the signal, which would
    // end the process, a write beyond the limit is an error, as on a full disk.
    let program = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 600; exec "$0" "$@""#])
        .arg(program)
        .args(["full::a_process_that_fills_its_disk", "--exact"])
        .args(["--ignored", "--nocapture"])
        .env(PATH, path)
        .output()
        .unwrap()
}

#[tokio::test]
async fn a_check_notices_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let output = fill(&path);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let written = said.lines().find_map(|line| line.strip_prefix("written "));
    let written: usize = written.unwrap().parse().unwrap();
    assert!(written > 0);
    // There is room again, and everything that was acknowledged.
    let store = SqliteStore::open(&path).unwrap();
    store.check().await.unwrap();
    for number in 0..written {
        let read = store.response(&owner(), &format!("r{number}")).await;
        assert!(read.unwrap().is_some());
    }
    let lost = store.response(&owner(), &format!("r{written}")).await;
    assert!(lost.unwrap().is_none());
}
