//! Both stores give the same answers to the same calls, whatever these are.
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests are tests too; clippy.toml exempts only the functions"
)]

use std::fmt::Debug;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haft_core::{
    Alongside, Cleaned, Owner, PageQuery, Retention, Store, StoreError, StoredConversation,
    StoredEvent, StoredItem, StoredResponse,
};
use haft_store::{MemoryStore, SqliteStore};
use proptest::prelude::*;
use serde_json::value::RawValue;

/// A call. Names are small numbers, so that calls meet each other.
#[derive(Debug, Clone)]
enum Call {
    PutResponse {
        owner: u8,
        id: u8,
        previous: Option<u8>,
        created_at: i64,
        is_finished: bool,
        input: Vec<Item>,
        output: Vec<Item>,
        along: Along,
    },
    DeleteResponse(u8, u8),
    PutCheckpoint(u8, u8, u8, Vec<Event>),
    List {
        owner: Option<u8>,
        after: Option<u8>,
        limit: usize,
        is_descending: bool,
    },
    Check,
    AppendEvents(u8, u8, Vec<Event>),
    Events(u8, u8, Option<u64>, usize),
    PutConversation(u8, u8, u8),
    DeleteConversation(u8, u8),
    AppendItems(u8, u8, Vec<Item>),
    Page {
        owner: u8,
        id: u8,
        after: Option<u8>,
        limit: usize,
        is_descending: bool,
    },
    DeleteItem(u8, u8, u8),
    Clean {
        max_age: Option<u64>,
        max_bytes: Option<u64>,
        is_late: bool,
        batch: usize,
    },
    Reopen,
}

/// What goes along with a response.
#[derive(Debug, Clone)]
struct Along {
    append_to: Option<u8>,
    events: Vec<Event>,
    checkpoint: Option<u8>,
    trace: Option<u8>,
}

/// An id and what it says.
type Item = (u8, u8);

/// A number, and whether it says something else than usual.
type Event = (u64, bool);

const OWNERS: u8 = 2;
const RESPONSES: u8 = 7;
const CONVERSATIONS: u8 = 2;
const ITEMS: u8 = 5;

fn calls() -> impl Strategy<Value = Call> {
    let owner = || 0..OWNERS;
    let response = || 0..RESPONSES;
    let conversation = || 0..CONVERSATIONS;
    let items = || prop::collection::vec((0..ITEMS, 0..3_u8), 0..4);
    let number = || prop_oneof![40 => 0..6_u64, 1 => Just(u64::MAX)];
    let events = || prop::collection::vec((number(), prop::bool::weighted(0.05)), 0..4);
    let note = || prop::option::weighted(0.3, any::<u8>());
    let along = (
        prop::option::weighted(0.2, conversation()),
        prop_oneof![2 => Just(Vec::new()), 1 => events()],
        note(),
        note(),
    )
        .prop_map(|(append_to, events, checkpoint, trace)| Along {
            append_to,
            events,
            checkpoint,
            trace,
        });
    let put_response = (
        (owner(), response(), prop::option::of(response())),
        (0..20_i64, prop::bool::weighted(0.7)),
        (items(), items(), along),
    )
        .prop_map(
            |((owner, id, previous), (created_at, is_finished), (input, output, along))| {
                Call::PutResponse {
                    owner,
                    id,
                    previous,
                    created_at,
                    is_finished,
                    input,
                    output,
                    along,
                }
            },
        );
    let list = (
        (prop::option::of(owner()), prop::option::of(response())),
        (0..9_usize, any::<bool>()),
    )
        .prop_map(|((owner, after), (limit, is_descending))| Call::List {
            owner,
            after,
            limit,
            is_descending,
        });
    let page = (
        (owner(), conversation()),
        (prop::option::of(0..ITEMS), 0..5_usize, any::<bool>()),
    )
        .prop_map(|((owner, id), (after, limit, is_descending))| Call::Page {
            owner,
            id,
            after,
            limit,
            is_descending,
        });
    let clean = (
        prop::option::of(0..15_u64),
        prop::option::of(0..2_000_u64),
        prop::bool::weighted(0.1),
        1..4_usize,
    )
        .prop_map(|(max_age, max_bytes, is_late, batch)| Call::Clean {
            max_age,
            max_bytes,
            is_late,
            batch,
        });
    let after = prop::option::of(0..6_u64);
    prop_oneof![
        12 => put_response,
        6 => (owner(), response()).prop_map(|(owner, id)| Call::DeleteResponse(owner, id)),
        3 => (owner(), response(), any::<u8>(), events())
            .prop_map(|(owner, id, note, log)| Call::PutCheckpoint(owner, id, note, log)),
        3 => list,
        1 => Just(Call::Check),
        3 => (owner(), response(), events())
            .prop_map(|(owner, id, log)| Call::AppendEvents(owner, id, log)),
        1 => (owner(), response(), after, 0..4_usize)
            .prop_map(|(owner, id, after, limit)| Call::Events(owner, id, after, limit)),
        3 => (owner(), conversation(), any::<u8>())
            .prop_map(|(owner, id, text)| Call::PutConversation(owner, id, text)),
        1 => (owner(), conversation())
            .prop_map(|(owner, id)| Call::DeleteConversation(owner, id)),
        3 => (owner(), conversation(), items())
            .prop_map(|(owner, id, items)| Call::AppendItems(owner, id, items)),
        3 => page,
        1 => (owner(), conversation(), 0..ITEMS)
            .prop_map(|(owner, id, item)| Call::DeleteItem(owner, id, item)),
        2 => clean,
        1 => Just(Call::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_give_the_same_answers(calls in prop::collection::vec(calls(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("haft.db");
        runtime.block_on(compare(&path, calls))?;
    }
}

async fn compare(path: &Path, calls: Vec<Call>) -> Result<(), TestCaseError> {
    let memory = MemoryStore::new();
    let mut file = SqliteStore::open(path).unwrap();
    for (number, call) in calls.into_iter().enumerate() {
        if matches!(call, Call::Reopen) {
            drop(file);
            file = SqliteStore::open(path).unwrap();
            continue;
        }
        let in_memory = perform(&memory, call.clone()).await;
        let in_file = perform(&file, call.clone()).await;
        prop_assert_eq!(&in_memory, &in_file, "{:?}", call);
        if number % 10 == 9 {
            prop_assert_eq!(everything(&memory).await, everything(&file).await);
        }
    }
    prop_assert_eq!(everything(&memory).await, everything(&file).await);
    // However they came there, the bytes they count are the same: the same is too much.
    for max_bytes in (0..2_000_u32).step_by(125).rev() {
        let retention = Retention {
            max_age: None,
            max_bytes: Some(max_bytes.into()),
        };
        let in_memory = memory.clean(retention, 0, 1).await;
        let in_file = file.clean(retention, 0, 1).await;
        prop_assert_eq!(in_memory, in_file, "at most {} bytes", max_bytes);
    }
    Ok(())
}

fn owner(number: u8) -> Owner {
    Owner::new(format!("owner{number}"))
}

fn json(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap()
}

fn items(items: Vec<Item>) -> Vec<StoredItem> {
    let item = |(id, text): Item| StoredItem {
        id: format!("i{id}"),
        json: json(format!("\"{}\"", "text ".repeat(usize::from(text)))),
    };
    items.into_iter().map(item).collect()
}

fn events(events: Vec<Event>) -> Vec<StoredEvent> {
    let event = |(sequence_number, is_other): Event| StoredEvent {
        sequence_number,
        json: json(format!("[{sequence_number},{is_other}]")),
    };
    events.into_iter().map(event).collect()
}

/// A note, some longer and some shorter.
fn noted(number: u8) -> Box<RawValue> {
    json(format!("\"{}\"", "n".repeat(usize::from(number))))
}

fn alongside(along: Along) -> Alongside {
    Alongside {
        append_to: along.append_to.map(|id| format!("c{id}")),
        events: events(along.events),
        checkpoint: along.checkpoint.map(noted),
        trace: along.trace.map(noted),
    }
}

/// Does it; what came of it, as text.
#[allow(clippy::too_many_lines, reason = "one short arm for each call")]
async fn perform(store: &dyn Store, call: Call) -> String {
    match call {
        Call::PutResponse {
            owner: name,
            id,
            previous,
            created_at,
            is_finished,
            input,
            output,
            along,
        } => {
            let response = StoredResponse {
                id: format!("r{id}"),
                previous: previous.map(|previous| format!("r{previous}")),
                created_at,
                is_finished,
                resource: json(format!("{created_at}")),
                input: items(input),
                output: items(output),
            };
            let put = store.put_response(&owner(name), response, alongside(along));
            text(put.await)
        }
        Call::DeleteResponse(name, id) => {
            text(store.delete_response(&owner(name), &format!("r{id}")).await)
        }
        Call::PutCheckpoint(name, id, note, log) => {
            let id = format!("r{id}");
            let put = store.put_checkpoint(&owner(name), &id, noted(note), events(log));
            text(put.await)
        }
        Call::List {
            owner: name,
            after,
            limit,
            is_descending,
        } => {
            let query = PageQuery {
                after: after.map(|id| format!("r{id}")),
                limit,
                is_descending,
            };
            text(store.responses(name.map(owner).as_ref(), query).await)
        }
        Call::Check => text(store.check().await),
        Call::AppendEvents(name, id, log) => {
            let id = format!("r{id}");
            text(store.append_events(&owner(name), &id, events(log)).await)
        }
        Call::Events(name, id, after, limit) => {
            let id = format!("r{id}");
            text(store.events(&owner(name), &id, after, limit).await)
        }
        Call::PutConversation(name, id, metadata) => {
            let conversation = StoredConversation {
                id: format!("c{id}"),
                created_at: i64::from(metadata),
                metadata: json(format!("{metadata}")),
            };
            text(store.put_conversation(&owner(name), conversation).await)
        }
        Call::DeleteConversation(name, id) => {
            let id = format!("c{id}");
            text(store.delete_conversation(&owner(name), &id).await)
        }
        Call::AppendItems(name, id, new) => {
            let id = format!("c{id}");
            text(store.append_items(&owner(name), &id, items(new)).await)
        }
        Call::Page {
            owner: name,
            id,
            after,
            limit,
            is_descending,
        } => {
            let query = PageQuery {
                after: after.map(|id| format!("i{id}")),
                limit,
                is_descending,
            };
            let id = format!("c{id}");
            text(store.conversation_page(&owner(name), &id, query).await)
        }
        Call::DeleteItem(name, id, item) => {
            let (id, item) = (format!("c{id}"), format!("i{item}"));
            text(store.delete_item(&owner(name), &id, &item).await)
        }
        Call::Clean {
            max_age,
            max_bytes,
            is_late,
            batch,
        } => {
            let retention = Retention {
                max_age: max_age.map(Duration::from_secs),
                max_bytes,
            };
            text(clean(store, retention, is_late, batch).await)
        }
        Call::Reopen => String::new(),
    }
}

/// Cleans to the end: which of several conversations goes first is nobody's business.
async fn clean(
    store: &dyn Store,
    retention: Retention,
    is_late: bool,
    batch: usize,
) -> Result<Cleaned, StoreError> {
    // Conversations know the real time; so they are too old only if it is late enough.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = if is_late {
        i64::try_from(since.as_secs()).unwrap() + 1_000
    } else {
        20
    };
    let mut sum = Cleaned::default();
    loop {
        let cleaned = store.clean(retention, now, batch).await?;
        sum.responses += cleaned.responses;
        sum.conversations += cleaned.conversations;
        if !cleaned.has_more {
            return Ok(sum);
        }
    }
}

/// All that anybody can read.
async fn everything(store: &dyn Store) -> String {
    let mut all = vec![text(store.unfinished().await)];
    let whole = PageQuery {
        after: None,
        limit: 100,
        is_descending: false,
    };
    all.push(text(store.responses(None, whole).await));
    for name in 0..OWNERS {
        let owner = owner(name);
        for id in 0..RESPONSES {
            let id = format!("r{id}");
            all.push(text(store.response(&owner, &id).await));
            all.push(text(store.chain(&owner, &id).await));
            all.push(text(store.events(&owner, &id, None, 100).await));
            all.push(text(store.checkpoint(&owner, &id).await));
            all.push(text(store.trace(&owner, &id).await));
        }
        for id in 0..CONVERSATIONS {
            let id = format!("c{id}");
            all.push(text(store.conversation(&owner, &id).await));
            all.push(text(store.conversation_items(&owner, &id).await));
        }
        for id in 0..ITEMS {
            all.push(text(store.item(&owner, &format!("i{id}")).await));
        }
    }
    all.join("\n")
}

fn text(value: impl Debug) -> String {
    format!("{value:?}")
}
