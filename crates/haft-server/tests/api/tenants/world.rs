//! A server with two tenants, one of which has something.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, say};
use haft_server::ModelEntry;
use serde_json::{Value, json};

use super::noted::NotedStore;
use crate::access::Keys;
use crate::support::{Answer, Served, Setup};

pub(super) struct World {
    pub(super) served: Served,
    pub(super) store: Arc<NotedStore>,
    pub(super) keys: Keys,
    /// The key of the tenant that has something, and another one of it.
    pub(super) own: String,
    pub(super) colleague: String,
    /// The key of the tenant that has nothing.
    pub(super) foreign: String,
    pub(super) revoked: String,
    pub(super) expired: String,
}

/// What a tenant has: ids of everything that can be named.
pub(super) struct Estate {
    /// A response.
    pub(super) response: String,
    /// An item that it brought, and one that it gave.
    pub(super) input_item: String,
    pub(super) output_item: String,
    /// A background response with a log of events that is over.
    pub(super) finished: String,
    /// One that never ends.
    pub(super) running: String,
    pub(super) conversation: String,
    pub(super) conversation_item: String,
}

impl World {
    pub(super) async fn new() -> Self {
        let keys = Keys::new();
        let own = keys.add("own", "acme");
        let colleague = keys.add("colleague", "acme");
        let foreign = keys.add("foreign", "other");
        let revoked = keys.add("revoked", "acme");
        keys.file().revoke("revoked").unwrap();
        let expired = keys.expired("acme");
        let store = Arc::new(NotedStore::default());
        let setup = Setup::of(ScriptedModel::new([say("hello").forever()]));
        let hang = Step::default().fault(Fault::Hang).forever();
        let mut setup = Setup {
            store: Arc::clone(&store) as _,
            data_dir: Some(keys.folder().to_owned()),
            ..setup
        };
        let endless = ModelEntry::new("endless", ScriptedModel::new([hang]));
        setup.models.push(endless);
        Self {
            served: setup.serve().await,
            store,
            keys,
            own,
            colleague,
            foreign,
            revoked,
            expired,
        }
    }

    /// Everything that a tenant can have, for the holder of a key.
    pub(super) async fn estate(&self, key: &str) -> Estate {
        let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
        let create = async |body: Value| self.served.post_as(key, "/responses", body).await.ok();
        let response = create(json!({"input": "the input"})).await;
        let inputs = format!("/responses/{}/input_items", id(&response));
        let inputs = self.served.get_as(key, &inputs).await.ok();
        let logged = json!({"input": "go", "background": true, "stream": true});
        let stream = self.served.post_as(key, "/responses", logged).await.body;
        let events = crate::support::events(stream.as_str().unwrap());
        let running = json!({"input": "go", "background": true, "model": "endless"});
        let running = create(running).await;
        let items = json!({"items": [{"role": "user", "content": "kept"}]});
        let conversation = self.served.post_as(key, "/conversations", items).await.ok();
        let kept = format!("/conversations/{}/items", id(&conversation));
        let kept = self.served.get_as(key, &kept).await.ok();
        Estate {
            input_item: id(&inputs["data"][0]),
            output_item: id(&response["output"][0]),
            response: id(&response),
            finished: id(&events[0]["response"]),
            running: id(&running),
            conversation_item: id(&kept["data"][0]),
            conversation: id(&conversation),
        }
    }

    /// What a request comes to: the answer without the ids of its own, and what the store was asked.
    pub(super) async fn seen(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
        ids: &[&str],
    ) -> Seen {
        // What runs by itself has nothing more to write.
        self.quiet().await;
        let answer = self.served.ask(Some(key), method, path, body).await;
        Seen {
            asked: self.store.take(),
            ..Seen::of(&answer, ids)
        }
    }

    /// Waits until nobody asks the store anything.
    async fn quiet(&self) {
        loop {
            self.store.take();
            tokio::time::sleep(Duration::from_millis(30)).await;
            if self.store.take().is_empty() {
                return;
            }
        }
    }
}

/// What somebody sees who asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: u16,
    pub(super) code: Option<String>,
    body: String,
    headers: BTreeSet<String>,
    /// What the store was asked.
    pub(super) asked: Vec<&'static str>,
}

impl Seen {
    pub(super) fn of(answer: &Answer, ids: &[&str]) -> Self {
        let mut body = answer.body.to_string();
        for id in ids.iter().filter(|id| !id.is_empty()) {
            body = body.replace(id, "ID");
        }
        let headers = answer.headers.keys().map(ToString::to_string);
        Self {
            status: answer.status,
            code: answer.body["error"]["code"].as_str().map(str::to_owned),
            body,
            headers: headers.collect(),
            asked: Vec::new(),
        }
    }
}

/// An id of the same form that nobody has.
pub(super) fn unknown(id: &str) -> String {
    let (prefix, rest) = id.split_once('_').unwrap();
    let other: String = rest
        .chars()
        .map(|it| if it == '0' { '1' } else { '0' })
        .collect();
    format!("{prefix}_{other}")
}
