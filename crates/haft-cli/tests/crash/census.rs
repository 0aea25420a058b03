//! What must hold of everything in the file, also of what nobody was told of.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use haft_core::{Owner, PageQuery, Store as _, StoredResponse};
use haft_store::SqliteStore;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::backend::{Asked, text};
use crate::checks::{Allowed, is_whole};

/// No response needs so long to come to its end after a restart.
const SETTLING: Duration = Duration::from_mins(1);

/// What was counted already.
#[derive(Default)]
pub(crate) struct Census {
    seen: BTreeSet<String>,
}

impl Census {
    /// Looks at every response that was not there before. A server has the file open, but works on
    /// nothing.
    pub(crate) async fn count(&mut self, database: &Path) -> Vec<String> {
        let store = match SqliteStore::open_read_only(database) {
            Ok(store) => store,
            Err(error) => return vec![error.to_string()],
        };
        let mut problems = Vec::new();
        for (owner, id) in self.new_ones(&store).await {
            let response = store.response(&owner, &id).await.unwrap();
            // Deleted meanwhile, by nobody that this test knows.
            let Some(response) = response else {
                problems.push(format!("`{id}` is listed, but not there"));
                continue;
            };
            if let Err(problem) = check(&response) {
                problems.push(format!("`{id}` in the file: {problem}"));
            }
        }
        problems.extend(check_file(database));
        problems
    }

    async fn new_ones(&mut self, store: &SqliteStore) -> Vec<(Owner, String)> {
        let mut new = Vec::new();
        let mut after = None;
        loop {
            let query = PageQuery {
                after,
                limit: 200,
                is_descending: true,
            };
            let page = store.responses(None, query).await.unwrap();
            let count = new.len();
            for listed in &page.responses {
                if self.seen.insert(listed.id.clone()) {
                    new.push((listed.owner.clone(), listed.id.clone()));
                }
            }
            after = page.responses.last().map(|listed| listed.id.clone());
            // The newest come first: behind a page of those that were seen there are no others.
            if !page.has_more || new.len() == count {
                return new;
            }
        }
    }
}

/// Waits until nothing is worked on any more, also of what nobody was told of.
pub(crate) async fn settled(database: &Path) -> Vec<String> {
    let store = SqliteStore::open_read_only(database).unwrap();
    let deadline = Instant::now() + SETTLING;
    loop {
        let unfinished = store.unfinished().await.unwrap();
        if unfinished.is_empty() {
            return Vec::new();
        }
        if Instant::now() > deadline {
            return vec![format!("nobody works on {unfinished:?}")];
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn check(response: &StoredResponse) -> Result<(), String> {
    let mut resource: Value =
        serde_json::from_str(response.resource.get()).map_err(|error| error.to_string())?;
    let items = |items: &[haft_core::StoredItem]| -> Vec<Value> {
        let item = |item: &haft_core::StoredItem| serde_json::from_str(item.json.get());
        items.iter().map(|json| item(json).unwrap()).collect()
    };
    let question = items(&response.input)
        .last()
        .map(|item| text(&item["content"]));
    let Some(asked) = question.as_deref().and_then(Asked::read) else {
        return Err(format!("its input is {:?}", response.input));
    };
    resource["output"] = json!(items(&response.output));
    // Whether somebody wanted that is known to who did it, and checked there.
    let is_background = resource["background"] == true;
    let allowed = Allowed {
        cancelled: is_background,
        told_in_part: is_background,
    };
    is_whole(&resource, &asked, allowed)
}

/// Looks at the file itself.
pub(crate) fn check_file(database: &Path) -> Vec<String> {
    let file = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let verdict: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    let mut problems = Vec::new();
    if verdict != "ok" {
        problems.push(format!("integrity_check says {verdict}"));
    }
    let promises = [
        (
            "a log with a gap",
            "SELECT count(*) FROM (SELECT 1 FROM events GROUP BY response
             HAVING min(sequence_number) <> 0 OR max(sequence_number) <> count(*) - 1)",
        ),
        (
            "a log without an end, or with several",
            "SELECT count(*) FROM (SELECT 1 FROM events GROUP BY response
             HAVING sum(json ->> 'type' IN
                 ('response.completed', 'response.failed', 'response.incomplete')) <> 1)",
        ),
        (
            "a checkpoint of a finished response",
            "SELECT count(*) FROM checkpoints JOIN responses ON seq = response WHERE is_finished",
        ),
        (
            "a row that belongs to nothing",
            "SELECT count(*) FROM pragma_foreign_key_check",
        ),
    ];
    for (what, sql) in promises {
        let count: i64 = file.query_row(sql, [], |row| row.get(0)).unwrap();
        if count > 0 {
            problems.push(format!("{what}, {count} times in the file"));
        }
    }
    problems
}
