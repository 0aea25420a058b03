//! Everything that can be read of a store, as one JSON value.

use haft_core::{Owner, Store, StoredItem, StoredResponse};
use serde_json::{Value, json};

/// Who may have something in a store that is read.
pub(crate) const OWNERS: [&str; 4] = ["default", "acme", "Zo\u{eb}", "nobody"];
const RESPONSES: [&str; 9] = [
    "resp_plain",
    "resp_a",
    "resp_b",
    "resp_c",
    "resp_gone",
    "resp_running",
    "resp_logged",
    "resp_odd",
    "resp_new",
];
const CONVERSATIONS: [&str; 3] = ["conv_1", "conv_empty", "conv_gone"];
const ITEMS: [&str; 6] = [
    "msg_1",
    "msg_2",
    "resp_a_in",
    "resp_plain_in",
    "resp_plain_out",
    "resp_c_out",
];

/// What the owners find under these ids.
pub(crate) async fn everything(store: &dyn Store) -> Value {
    let unfinished = store.unfinished().await.unwrap();
    let unfinished = unfinished
        .iter()
        .map(|(owner, response)| json!([owner.as_str(), of_response(response)]));
    let mut all = json!({ "unfinished": unfinished.collect::<Vec<_>>() });
    for name in OWNERS {
        all[name] = of_owner(store, &Owner::new(name)).await;
    }
    all
}

async fn of_owner(store: &dyn Store, owner: &Owner) -> Value {
    let mut found = json!({});
    for id in RESPONSES {
        if let Some(response) = store.response(owner, id).await.unwrap() {
            found[id] = of_response(&response);
        }
        if let Some(chain) = store.chain(owner, id).await.unwrap() {
            let chain: Vec<_> = chain.iter().map(of_response).collect();
            found[format!("chain of {id}")] = chain.into();
        }
        let events = store.events(owner, id, None, 100).await.unwrap();
        if !events.is_empty() {
            let events = events
                .iter()
                .map(|event| json!([event.sequence_number, event.json.get()]));
            found[format!("events of {id}")] = events.collect();
        }
    }
    for id in CONVERSATIONS {
        if let Some(record) = store.conversation(owner, id).await.unwrap() {
            let items = store.conversation_items(owner, id).await.unwrap();
            found[id] = json!({
                "created_at": record.created_at,
                "metadata": record.metadata.get(),
                "items": items.map(|items| of_items(&items)),
            });
        }
    }
    for id in ITEMS {
        if let Some(item) = store.item(owner, id).await.unwrap() {
            found[format!("item {id}")] = item.json.get().into();
        }
    }
    found
}

fn of_response(response: &StoredResponse) -> Value {
    json!({
        "id": response.id,
        "previous": response.previous,
        "created_at": response.created_at,
        "is_finished": response.is_finished,
        "resource": response.resource.get(),
        "input": of_items(&response.input),
        "output": of_items(&response.output),
    })
}

fn of_items(items: &[StoredItem]) -> Vec<Value> {
    items
        .iter()
        .map(|item| json!([item.id, item.json.get()]))
        .collect()
}
