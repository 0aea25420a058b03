//! How many statements there are, and what they read.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_core::{Alongside, PageQuery, Retention, StoredConversation, StoredEvent};
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, StatementStatus};

use super::{appended_to, json, owner, response};
use crate::sqlite::notes::{self, Note};
use crate::sqlite::{chains, cleaning, connection, conversations, events, items, lists, responses};

fn open(directory: &Path) -> Connection {
    let path = directory.join("haft.db");
    std::fs::File::create(&path).unwrap();
    connection::open_writer(&path, Duration::from_secs(1)).unwrap()
}

/// The statements that ended, each with the rows that it went through without an index.
type Seen = Arc<Mutex<Vec<(String, i32)>>>;

fn trace(connection: &mut Connection) -> Seen {
    let seen = Seen::default();
    let sink = Arc::clone(&seen);
    let note = move |event: TraceEvent<'_>| {
        if let TraceEvent::Profile(statement, _) = event {
            let steps = statement.get_status(StatementStatus::FullscanStep);
            sink.lock()
                .unwrap()
                .push((statement.sql().into_owned(), steps));
        }
    };
    connection
        .trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, Some(note))
        .unwrap();
    seen
}

/// A chain of so many, `r0` being the oldest.
fn fill(connection: &Connection, length: usize, size: usize) {
    connection.execute_batch("BEGIN").unwrap();
    let mut previous: Option<String> = None;
    for number in 0..length {
        let id = format!("r{number}");
        let response = response(&id, previous.as_deref(), size);
        assert!(responses::put(connection, &owner(), &response, &Alongside::default()).unwrap());
        previous = Some(id);
    }
    connection.execute_batch("COMMIT").unwrap();
}

#[test]
fn a_chain_of_a_thousand_is_one_statement() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = open(directory.path());
    fill(&connection, 1_000, 10);
    let seen = trace(&mut connection);
    let chain = chains::chain(&connection, &owner(), "r999").unwrap();
    assert_eq!(chain.unwrap().len(), 1_000);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn a_chain_longer_than_the_longest_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open(directory.path());
    // A circle, which only a damaged file can have.
    fill(&connection, 3, 10);
    connection
        .execute("UPDATE responses SET previous = 'r2' WHERE id = 'r0'", [])
        .unwrap();
    let refused = chains::chain(&connection, &owner(), "r2").unwrap_err();
    assert_eq!(
        refused.0.to_string(),
        "the store failed: response `r2` continues 100000 others or more: compact the chain and \
         begin anew"
    );
}

#[test]
fn no_statement_reads_a_table_from_end_to_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = open(directory.path());
    fill(&connection, 50, 10);
    let seen = trace(&mut connection);
    let (owner, db) = (owner(), &connection);
    let conversation = |id: &str| StoredConversation {
        id: id.to_owned(),
        created_at: 0,
        metadata: json("{}"),
    };
    for id in ["c", "d", "e"] {
        conversations::put(db, &owner, &conversation(id)).unwrap();
        let items = response("x", None, 10).input;
        assert!(conversations::append(db, &owner, id, &items).unwrap());
    }
    let mut unfinished = response("r49", Some("r48"), 10);
    unfinished.is_finished = false;
    unfinished.output.clear();
    responses::put(db, &owner, &unfinished, &appended_to("c")).unwrap();
    let log = [0, 1, 2].map(|sequence_number| StoredEvent {
        sequence_number,
        json: json("1"),
    });
    events::append(db, &owner, "r49", &log).unwrap();
    events::append(db, &owner, "r49", &log).unwrap();
    let checkpoint = json("1");
    assert!(notes::put_checkpoint(db, &owner, "r49", &checkpoint, &log).unwrap());
    for note in [Note::Checkpoint, Note::Trace] {
        notes::get(db, note, &owner, "r49").unwrap();
    }
    assert_eq!(
        events::list(db, &owner, "r49", Some(0), 9).unwrap().len(),
        2
    );
    // Dangling, so that the way up is walked.
    responses::put(
        db,
        &owner,
        &response("late", Some("lost"), 10),
        &Alongside::default(),
    )
    .unwrap();
    responses::put(
        db,
        &owner,
        &response("lost", Some("r9"), 10),
        &Alongside::default(),
    )
    .unwrap();
    assert!(chains::one(db, &owner, "r7").unwrap().is_some());
    assert!(items::newest(db, &owner, "r7_a").unwrap().is_some());
    assert!(conversations::get(db, &owner, "c").unwrap().is_some());
    assert!(conversations::list(db, &owner, "c").unwrap().is_some());
    for is_descending in [false, true] {
        let query = |after: Option<&str>| PageQuery {
            after: after.map(str::to_owned),
            limit: 2,
            is_descending,
        };
        conversations::page(db, &owner, "c", &query(Some("x_a"))).unwrap();
        for after in [None, Some("r30")] {
            let page = lists::list(db, Some(&owner), &query(after)).unwrap();
            assert!(page.has_more);
        }
    }
    assert!(conversations::delete_item(db, &owner, "c", "x_a").unwrap());
    assert!(conversations::delete(db, &owner, "d").unwrap());
    for id in ["r20", "late", "lost", "r49"] {
        assert!(responses::delete(db, &owner, id).unwrap().is_some());
    }
    let retention = Retention {
        max_age: Some(Duration::ZERO),
        max_bytes: Some(0),
    };
    let cleaned = cleaning::clean(db, retention, i64::MAX, 20).unwrap();
    assert_eq!((cleaned.responses, cleaned.has_more), (20, true));
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 50);
    for (sql, steps) in seen.iter() {
        assert_eq!(*steps, 0, "{sql}");
    }
}

#[test]
fn the_list_of_all_owners_reads_no_more_than_it_must() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open(directory.path());
    fill(&connection, 50, 10);
    for is_descending in [false, true] {
        for after in [None, Some("r30".to_owned())] {
            let query = PageQuery {
                after,
                limit: 2,
                is_descending,
            };
            let sql = format!("EXPLAIN QUERY PLAN {}", lists::statement(false, &query));
            let mut plan = connection.prepare(&sql).unwrap();
            let values = plan.parameter_count();
            let steps = plan
                .query_map(rusqlite::params_from_iter(vec![1; values]), |row| {
                    row.get::<_, String>(3)
                })
                .unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            let scans = |table: &str| steps.contains(&format!("SCAN {table}"));
            assert!(scans("o") && scans("w"), "{steps:#?}");
            assert!(!scans("r") && !scans("responses"), "{steps:#?}");
            let seeks = steps.iter().any(|step| {
                step.starts_with("SEARCH responses USING")
                    && step.contains("INDEX responses_by_time (owner=?")
            });
            assert!(seeks, "{steps:#?}");
        }
    }
}

#[test]
fn what_is_acknowledged_is_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open(directory.path());
    let text = |name| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0));
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    assert_eq!(text("journal_mode").unwrap(), "wal");
    // FULL.
    assert_eq!(number("synchronous").unwrap(), 2);
    assert_eq!(number("foreign_keys").unwrap(), 1);
    assert_eq!(number("secure_delete").unwrap(), 1);
}

/// `cargo test --release -p haft-store how_long -- --ignored --nocapture`
#[test]
#[ignore = "a measurement, not a test"]
fn how_long_a_chain_of_a_thousand_takes() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open(directory.path());
    for size in [100, 1_000, 10_000] {
        connection.execute_batch("DELETE FROM responses").unwrap();
        fill(&connection, 1_000, size);
        for _ in 0..3 {
            let start = Instant::now();
            let chain = chains::chain(&connection, &owner(), "r999").unwrap();
            println!(
                "{} responses with 4 items of {size} bytes: {:?}",
                chain.unwrap().len(),
                start.elapsed()
            );
        }
    }
}
