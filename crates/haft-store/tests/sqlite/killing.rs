//! What was acknowledged before a process is killed is there afterwards, and nothing is there by
//! halves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use haft_core::{Store as _, StoredConversation, StoredEvent, StoredItem, StoredResponse};
use haft_store::SqliteStore;

use crate::common::{appended_to, json, owner};

/// Says to a process of this test that it is to write, and where.
const PATH: &str = "HAFT_STORE_TEST_PATH";
const ROUND: &str = "HAFT_STORE_TEST_ROUND";
const WRITERS: usize = 8;

/// A response that can be checked against its id: how many items it has and how large they are
/// follows from the number in it.
fn expected(id: &str) -> StoredResponse {
    let number: usize = id.rsplit('_').next().unwrap().parse().unwrap();
    let items = |name: &str, count: usize| {
        let item = |index| StoredItem {
            id: format!("{id}_{name}_{index}"),
            json: json(format!("\"{}\"", "x".repeat(number * 37 % 5_000))),
        };
        (0..count).map(item).collect()
    };
    StoredResponse {
        id: id.to_owned(),
        previous: None,
        created_at: 1_000,
        is_finished: true,
        resource: json(format!("\"{id}\"")),
        input: items("in", number % 3 + 1),
        output: items("out", number % 4 + 1),
    }
}

/// Not a test by itself: `what_was_acknowledged_survives_being_killed` starts this test's program
/// again with only this in it, and kills it.
#[test]
#[ignore = "runs until it is killed; another test starts it"]
fn a_process_that_writes_until_it_is_killed() {
    let (Ok(path), Ok(round)) = (std::env::var(PATH), std::env::var(ROUND)) else {
        return;
    };
    let store = Arc::new(SqliteStore::open(path).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .unwrap();
    for writer in 0..WRITERS {
        let (store, round) = (Arc::clone(&store), round.clone());
        runtime.spawn(async move {
            for number in 0.. {
                let id = format!("{round}_{writer}_{number}");
                let write = store.put_response(&owner(), expected(&id), appended_to("c"));
                assert!(write.await.unwrap());
                println!("\nwritten {id}");
                let events = (0..3).map(|number| StoredEvent {
                    sequence_number: number,
                    json: json("1"),
                });
                store
                    .append_events(&owner(), &id, events.collect())
                    .await
                    .unwrap();
                println!("\nlogged {id}");
                if number % 5 == 4 {
                    store.delete_response(&owner(), &id).await.unwrap();
                    println!("\ndeleted {id}");
                }
            }
        });
    }
    loop {
        std::thread::park();
    }
}

/// What the killed process was told.
#[derive(Default)]
struct Acknowledged {
    /// The last word about each response.
    words: BTreeMap<String, String>,
}

impl Acknowledged {
    fn ids(&self, word: &str) -> impl Iterator<Item = &String> {
        let same = move |(_, last): &(&String, &String)| *last == word;
        self.words.iter().filter(same).map(|(id, _)| id)
    }

    /// Starts a process that writes, and kills it after so many lines.
    fn take_from_a_killed_process(&mut self, path: &Path, round: usize, lines: usize) {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "killing::a_process_that_writes_until_it_is_killed",
                "--exact",
            ])
            .args(["--ignored", "--nocapture"])
            .env(PATH, path)
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut read = 0;
        // Also what it wrote between the signal and its death.
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let Some((word @ ("written" | "logged" | "deleted"), id)) = line.split_once(' ') else {
                continue;
            };
            self.words.insert(id.to_owned(), word.to_owned());
            read += 1;
            if read == lines {
                process.kill().unwrap();
            }
        }
        assert!(!process.wait().unwrap().success());
        assert!(read >= lines, "the process ended by itself");
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_being_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = SqliteStore::open(&path).unwrap();
    let conversation = StoredConversation {
        id: "c".to_owned(),
        created_at: 0,
        metadata: json("{}"),
    };
    store
        .put_conversation(&owner(), conversation)
        .await
        .unwrap();
    drop(store);
    let mut acknowledged = Acknowledged::default();
    for (round, lines) in [1, 40, 117, 300, 555].into_iter().enumerate() {
        acknowledged.take_from_a_killed_process(&path, round, lines);
        // Nobody has to clean up after the dead.
        let store = SqliteStore::open(&path).unwrap();
        check(&store, &acknowledged).await;
        drop(store);
        let file = rusqlite::Connection::open(&path).unwrap();
        let verdict: String = file
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(verdict, "ok");
    }
}

async fn check(store: &SqliteStore, acknowledged: &Acknowledged) {
    let text = |response: &StoredResponse| format!("{response:?}");
    for word in ["written", "logged"] {
        for id in acknowledged.ids(word) {
            // Its deletion may have happened without being acknowledged.
            let number: usize = id.rsplit('_').next().unwrap().parse().unwrap();
            let Some(read) = store.response(&owner(), id).await.unwrap() else {
                assert!(word == "logged" && number % 5 == 4, "`{id}` is lost");
                continue;
            };
            assert_eq!(text(&read), text(&expected(id)));
            let events = store.events(&owner(), id, None, 10).await.unwrap();
            // Written or not, but not by halves.
            assert!(events.len() == 3 || word == "written" && events.is_empty());
        }
    }
    for id in acknowledged.ids("deleted") {
        assert!(store.response(&owner(), id).await.unwrap().is_none());
    }
    // The conversation holds what came to it in one step with the responses: wholly, and all of it.
    let items = store.conversation_items(&owner(), "c").await.unwrap();
    let items = items.unwrap();
    let mut rest = items.as_slice();
    let mut seen = BTreeSet::new();
    while let Some(first) = rest.first() {
        let id = first.id.split("_in_").next().unwrap().to_owned();
        let whole = expected(&id);
        let whole: Vec<_> = whole.input.into_iter().chain(whole.output).collect();
        let (these, others) = rest.split_at(whole.len());
        assert_eq!(format!("{these:?}"), format!("{whole:?}"));
        rest = others;
        seen.insert(id);
    }
    for id in acknowledged.words.keys() {
        assert!(seen.contains(id), "`{id}` is not in the conversation");
    }
}
