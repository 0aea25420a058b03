//! Writers that share a commit, and writers that wait for one.

use std::path::Path;
use std::time::Duration;

use haft_core::{Alongside, Store as _, StoreError, StoredEvent};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{appended_to, json, owner, response};
use crate::sqlite::{Limits, SqliteStore, responses};

fn open(path: &Path, limits: Limits) -> SqliteStore {
    SqliteStore::open_with(path, limits).unwrap()
}

/// Keeps the writer from beginning until it is dropped.
fn hold(path: &Path) -> Connection {
    let stranger = Connection::open(path).unwrap();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    stranger
}

/// Lets the writer take a job and stay with it, so that what comes then waits together.
async fn stop_at(store: &SqliteStore) -> oneshot::Sender<()> {
    let (go, gate) = oneshot::channel::<()>();
    let (begun, started) = oneshot::channel();
    let tools = std::sync::Mutex::new(Some((gate, begun)));
    let mut job = Box::pin(store.writer.write(move |_| {
        if let Some((gate, begun)) = tools.lock().unwrap().take() {
            begun.send(()).unwrap();
            gate.blocking_recv().unwrap();
        }
        Ok(())
    }));
    // Handed over by the first poll; nobody waits for its end.
    std::future::poll_fn(|context| {
        assert!(job.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    drop(job);
    started.await.unwrap();
    go
}

#[tokio::test]
async fn when_too_many_wait_the_next_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let limits = Limits {
        queue: 1,
        wait: Duration::from_millis(20),
        ..Limits::default()
    };
    let store = open(&path, limits);
    let go = stop_at(&store).await;
    let owner = owner();
    let waits = store.put_response(&owner, response("waits", None, 10), Alongside::default());
    let too_much = async {
        let refused = store
            .put_response(&owner, response("too_much", None, 10), Alongside::default())
            .await;
        go.send(()).unwrap();
        refused
    };
    let (waited, refused) = tokio::join!(waits, too_much);
    assert_eq!(waited, Ok(true));
    assert_eq!(refused, Err(StoreError::Busy));
    // The queue is free again.
    let write = store.put_response(&owner, response("later", None, 10), Alongside::default());
    assert_eq!(write.await, Ok(true));
    assert!(store.response(&owner, "too_much").await.unwrap().is_none());
}

#[tokio::test]
async fn a_stranger_who_writes_makes_the_store_busy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let limits = Limits {
        busy_timeout: Duration::from_millis(20),
        ..Limits::default()
    };
    let store = open(&path, limits);
    let stranger = hold(&path);
    let refused = store
        .put_response(&owner(), response("r", None, 10), Alongside::default())
        .await;
    assert_eq!(refused, Err(StoreError::Busy));
    drop(stranger);
    let write = store.put_response(&owner(), response("r", None, 10), Alongside::default());
    assert_eq!(write.await, Ok(true));
}

#[tokio::test]
async fn a_bad_write_leaves_nothing_and_harms_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"), Limits::default());
    let owner = owner();
    store
        .put_response(&owner, response("r", None, 10), Alongside::default())
        .await
        .unwrap();
    let go = stop_at(&store).await;
    let events = |numbers: &[u64]| {
        let event = |number: &u64| StoredEvent {
            sequence_number: *number,
            json: json("1"),
        };
        numbers.iter().map(event).collect::<Vec<_>>()
    };
    let before = store.put_response(&owner, response("before", None, 10), Alongside::default());
    // Its first event is written before the second is refused.
    let bad = store.append_events(&owner, "r", events(&[1, u64::MAX]));
    let after = store.append_events(&owner, "r", events(&[2]));
    let release = async { go.send(()).unwrap() };
    let (before, bad, after, ()) = tokio::join!(before, bad, after, release);
    assert_eq!(before, Ok(true));
    assert!(matches!(bad, Err(StoreError::Failed(_))));
    assert_eq!(after, Ok(()));
    assert!(store.response(&owner, "before").await.unwrap().is_some());
    let events = store.events(&owner, "r", None, 10).await.unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event.sequence_number).collect();
    assert_eq!(numbers, [2]);
}

#[tokio::test]
async fn a_write_that_takes_the_transaction_with_it_harms_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"), Limits::default());
    let owner = owner();
    let go = stop_at(&store).await;
    let before = store.put_response(&owner, response("before", None, 10), Alongside::default());
    // As a disk that fails does.
    let writer = owner.clone();
    let bad = store.writer.write(move |connection| {
        responses::put(
            connection,
            &writer,
            &response("bad", None, 10),
            &Alongside::default(),
        )?;
        connection.execute_batch("ROLLBACK")?;
        Err::<(), _>(StoreError::Failed("no more".to_owned()).into())
    });
    let after = store.put_response(&owner, response("after", None, 10), Alongside::default());
    let release = async { go.send(()).unwrap() };
    let (before, bad, after, ()) = tokio::join!(before, bad, after, release);
    assert_eq!((before, after), (Ok(true), Ok(true)));
    assert_eq!(bad, Err(StoreError::Failed("no more".to_owned())));
    for (id, is_there) in [("before", true), ("bad", false), ("after", true)] {
        let read = store.response(&owner, id).await.unwrap();
        assert_eq!(read.is_some(), is_there, "{id}");
    }
}

#[tokio::test]
async fn a_full_disk_is_reported_and_what_was_there_stays() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"), Limits::default());
    let owner = owner();
    let limit = store.writer.write(|connection| {
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        connection.pragma(None, "max_page_count", pages + 10, |_| Ok(()))?;
        Ok(())
    });
    limit.await.unwrap();
    let small = store.put_response(&owner, response("small", None, 10), Alongside::default());
    assert_eq!(small.await, Ok(true));
    let large = store.put_response(
        &owner,
        response("large", None, 1_000_000),
        Alongside::default(),
    );
    assert_eq!(
        large.await,
        Err(StoreError::Failed("database or disk is full".to_owned()))
    );
    let next = store.put_response(&owner, response("next", None, 10), Alongside::default());
    assert_eq!(next.await, Ok(true));
    for (id, is_there) in [("small", true), ("large", false), ("next", true)] {
        let read = store.response(&owner, id).await.unwrap();
        assert_eq!(read.is_some(), is_there, "{id}");
    }
}

#[tokio::test]
async fn every_write_to_a_conversation_touches_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"), Limits::default());
    let owner = owner();
    let conversation = || haft_core::StoredConversation {
        id: "c".to_owned(),
        created_at: 0,
        metadata: json("{}"),
    };
    store
        .put_conversation(&owner, conversation())
        .await
        .unwrap();
    for step in 0..4 {
        let age = store.writer.write(|connection| {
            connection.execute("UPDATE conversations SET touched_at = 0", [])?;
            Ok(())
        });
        age.await.unwrap();
        match step {
            0 => store
                .put_conversation(&owner, conversation())
                .await
                .unwrap(),
            1 => {
                let write = store.put_response(&owner, response("r", None, 10), appended_to("c"));
                assert!(write.await.unwrap());
            }
            2 => {
                let items = response("s", None, 10).input;
                assert!(store.append_items(&owner, "c", items).await.unwrap());
            }
            _ => assert!(store.delete_item(&owner, "c", "s_a").await.unwrap()),
        }
        let touched_at = store.writer.write(|connection| {
            Ok(
                connection.query_row("SELECT touched_at FROM conversations", [], |row| {
                    row.get::<_, i64>(0)
                })?,
            )
        });
        assert!(touched_at.await.unwrap() > 1_700_000_000, "step {step}");
    }
}

#[tokio::test]
async fn a_check_writes_and_shows_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"), Limits::default());
    for _ in 0..3 {
        store.check().await.unwrap();
    }
    let count = store.writer.write(|connection| {
        let mut query = connection.prepare("SELECT count FROM checks")?;
        Ok(query.query_row([], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(count.await, Ok(3));
}

#[tokio::test]
async fn a_check_does_not_wait_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits {
        wait: Duration::from_millis(20),
        ..Limits::default()
    };
    let store = open(&directory.path().join("haft.db"), limits);
    let go = stop_at(&store).await;
    assert_eq!(store.check().await, Err(StoreError::Busy));
    go.send(()).unwrap();
    // Those 20 milliseconds may be too short for a disk that works.
    let verdict = loop {
        match store.check().await {
            Err(StoreError::Busy) => {}
            verdict => break verdict,
        }
    };
    assert_eq!(verdict, Ok(()));
}

#[tokio::test]
async fn a_check_fails_when_nobody_writes_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"), Limits::default());
    let broken = store
        .writer
        .write(|_| -> crate::sqlite::failure::Outcome<()> { panic!("on purpose") });
    let gone = "the thread that writes is gone: open the store anew";
    assert_eq!(broken.await, Err(StoreError::Failed(gone.to_owned())));
    assert_eq!(
        store.check().await,
        Err(StoreError::Failed(gone.to_owned()))
    );
}
