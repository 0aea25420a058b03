//! What was acknowledged before a process is killed is there afterwards, and nothing is there by
//! halves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use haft_core::{
    Alongside, PageQuery, Store as _, StoredConversation, StoredEvent, StoredItem, StoredResponse,
};
use haft_store::SqliteStore;
use serde_json::value::RawValue;

use crate::common::{appended_to, json, owner};

/// Says to a process of this test that it is to write, and where.
const PATH: &str = "HAFT_STORE_TEST_PATH";
const ROUND: &str = "HAFT_STORE_TEST_ROUND";
const WRITERS: usize = 8;

/// A response that can be checked against its id: how many items it has and how large they are
/// follows from the number in it.
fn expected(id: &str) -> StoredResponse {
    let number = number(id);
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

/// What is done with a response, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begun,
    Noted,
    Written,
    Deleted,
}

const STEPS: [Step; 3] = [Step::Begun, Step::Noted, Step::Written];

impl Step {
    async fn take(self, store: &SqliteStore, id: &str) {
        let is_done = match self {
            Self::Begun => {
                let begun = StoredResponse {
                    is_finished: false,
                    output: Vec::new(),
                    ..expected(id)
                };
                let alongside = Alongside {
                    events: events(0..1),
                    checkpoint: Some(checkpoint(self)),
                    ..Alongside::default()
                };
                store.put_response(&owner(), begun, alongside).await
            }
            Self::Noted => {
                let note = checkpoint(self);
                store.put_checkpoint(&owner(), id, note, events(1..3)).await
            }
            Self::Written => {
                let alongside = Alongside {
                    events: events(3..4),
                    trace: Some(json("\"trace\"")),
                    ..appended_to("c")
                };
                store.put_response(&owner(), expected(id), alongside).await
            }
            Self::Deleted => store.delete_response(&owner(), id).await,
        };
        assert!(is_done.unwrap());
    }

    /// How many events the log has then.
    fn events(self) -> usize {
        match self {
            Self::Begun => 1,
            Self::Noted => 3,
            Self::Written => 4,
            Self::Deleted => 0,
        }
    }
}

fn checkpoint(step: Step) -> Box<RawValue> {
    json(format!("\"{step:?}\""))
}

fn events(numbers: Range<u64>) -> Vec<StoredEvent> {
    let event = |sequence_number| StoredEvent {
        sequence_number,
        json: json(format!("{sequence_number}")),
    };
    numbers.map(event).collect()
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
                for step in STEPS {
                    step.take(&store, &id).await;
                    println!("\n{step:?} {id}");
                }
                if is_deleted_then(number) {
                    Step::Deleted.take(&store, &id).await;
                    println!("\n{:?} {id}", Step::Deleted);
                }
            }
        });
    }
    loop {
        std::thread::park();
    }
}

fn is_deleted_then(number: usize) -> bool {
    number % 5 == 4
}

fn number(id: &str) -> usize {
    id.rsplit('_').next().unwrap().parse().unwrap()
}

/// What the killed process was told.
#[derive(Default)]
struct Acknowledged {
    /// The last step of each response.
    steps: BTreeMap<String, Step>,
}

impl Acknowledged {
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
            let Some((word, id)) = line.split_once(' ') else {
                continue;
            };
            let all = [Step::Begun, Step::Noted, Step::Written, Step::Deleted];
            let named = |step: &Step| format!("{step:?}") == word;
            let Some(step) = all.into_iter().find(named) else {
                continue;
            };
            self.steps.insert(id.to_owned(), step);
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
    for (id, last) in &acknowledged.steps {
        let found = step_of(store, id).await;
        // The step after it may have happened without being acknowledged.
        assert!(found >= *last, "`{id}` was {last:?}, but is {found:?}");
        let is_possible = found != Step::Deleted || is_deleted_then(number(id));
        assert!(is_possible, "`{id}` is lost");
    }
    // Also what nobody was told of is there wholly or not at all.
    let unfinished = store.unfinished().await.unwrap();
    let all = store.responses(Some(&owner()), everything()).await.unwrap();
    let listed = all.responses.iter();
    let open = listed.filter(|response| !response.is_finished).count();
    assert_eq!(open, unfinished.len());
    for response in all.responses {
        assert_ne!(step_of(store, &response.id).await, Step::Deleted);
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
        assert!(seen.insert(id), "twice in the conversation");
    }
    for (id, last) in &acknowledged.steps {
        let is_there = seen.contains(id);
        assert!(is_there || *last < Step::Written, "`{id}` is not in it");
    }
}

fn everything() -> PageQuery {
    PageQuery {
        after: None,
        limit: usize::MAX,
        is_descending: false,
    }
}

/// How far a response has come, if all that belongs to it has come equally far.
async fn step_of(store: &SqliteStore, id: &str) -> Step {
    let response = store.response(&owner(), id).await.unwrap();
    let checkpoint = store.checkpoint(&owner(), id).await.unwrap();
    let checkpoint = checkpoint.as_deref().map(RawValue::get);
    let trace = store.trace(&owner(), id).await.unwrap();
    let log = store.events(&owner(), id, None, 10).await.unwrap();
    let step = match (&response, checkpoint) {
        (None, None) => Step::Deleted,
        (Some(response), None) if response.is_finished => Step::Written,
        (Some(response), Some("\"Begun\"")) if !response.is_finished => Step::Begun,
        (Some(response), Some("\"Noted\"")) if !response.is_finished => Step::Noted,
        other => panic!("{other:?}"),
    };
    assert_eq!(trace.is_some(), step == Step::Written, "`{id}`");
    let count = step.events() as u64;
    assert_eq!(format!("{log:?}"), format!("{:?}", events(0..count)));
    if let Some(response) = response {
        let mut whole = expected(id);
        if step < Step::Written {
            whole.is_finished = false;
            whole.output.clear();
        }
        assert_eq!(format!("{response:?}"), format!("{whole:?}"));
    }
    step
}
