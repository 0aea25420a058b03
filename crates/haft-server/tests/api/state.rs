//! What is kept, and what follows from it (`open-responses.md` §9).

use std::time::Duration;

use haft_core::{
    Alongside, BoxFuture, ClaimedKeys, Cleaned, Item, Owner, Page, PageQuery, ResponsePage,
    Retention, Store, StoreError, StoredConversation, StoredEvent, StoredItem, StoredResponse,
};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Pieces, Step, call, say};
use haft_store::MemoryStore;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::legal::assert_legal;
use crate::support::{Served, Setup, events, function, item_types, kinds, last, serve};
use crate::tools::{echo, endless, soon};

fn said(model: &ScriptedModel, request: usize) -> Vec<String> {
    let request = model.received()[request].clone();
    request.conversation.items().map(Item::text).collect()
}

fn message(role: &str, id: &str, text: &str) -> StoredItem {
    let kind = if role == "user" {
        "input_text"
    } else {
        "output_text"
    };
    let json = json!({"id": id, "type": "message", "role": role, "status": "completed",
        "content": [{"type": kind, "text": text}]});
    StoredItem {
        id: id.to_owned(),
        json: to_raw_value(&json).unwrap(),
    }
}

/// Puts a chain of so many turns into the store; gives the id of its last response. Everything but
/// the items is taken from a real response.
async fn chain(served: &Served, turns: usize) -> String {
    let owner = Owner::default();
    let made = served.create(json!({"input": "template"})).await;
    let id = made["id"].as_str().unwrap();
    let template = served.store.response(&owner, id).await.unwrap().unwrap();
    let mut previous = None;
    for turn in 0..turns {
        let id = format!("resp_{turn}");
        let mut resource: Value = serde_json::from_str(template.resource.get()).unwrap();
        resource["id"] = id.as_str().into();
        resource["previous_response_id"] = json!(previous);
        let response = StoredResponse {
            id: id.clone(),
            previous: previous.clone(),
            created_at: template.created_at,
            is_finished: true,
            resource: to_raw_value(&resource).unwrap(),
            input: vec![message(
                "user",
                &format!("msg_u{turn}"),
                &format!("question {turn}"),
            )],
            output: vec![message(
                "assistant",
                &format!("msg_a{turn}"),
                &format!("answer {turn}"),
            )],
        };
        served
            .store
            .put_response(&owner, response, Alongside::default())
            .await
            .unwrap();
        previous = Some(id);
    }
    previous.unwrap()
}

#[tokio::test]
async fn a_chain_of_a_thousand_turns_reaches_the_model_whole_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new([say("template"), say("the end")]);
    let served = Setup::of(model.clone())
        .on_disk(directory.path())
        .serve()
        .await;
    let last = chain(&served, 1000).await;
    let next = json!({"input": "and now?", "previous_response_id": last});
    let response = served.create(next).await;
    let told = said(&model, 1);
    assert_eq!(told.len(), 2001);
    for turn in 0..1000 {
        assert_eq!(told[2 * turn], format!("question {turn}"));
        assert_eq!(told[2 * turn + 1], format!("answer {turn}"));
    }
    assert_eq!(told[2000], "and now?");
    // The effective input is listed with everything that was inherited.
    let id = response["id"].as_str().unwrap();
    let page = served
        .get(&format!("/responses/{id}/input_items?limit=2"))
        .await
        .ok();
    assert_eq!(page["data"][0]["content"][0]["text"], "and now?");
    assert_eq!(page["data"][1]["id"], "msg_a999");
    assert_eq!(page["has_more"], true);
}

#[tokio::test]
async fn a_chain_may_branch() {
    let (served, model) = serve([say("root"), say("left"), say("right"), say("end")]).await;
    let root = served.create(json!({"input": "a"})).await;
    let go = |text: &str, from: &Value| json!({"input": text, "previous_response_id": from["id"]});
    let left = served.create(go("b", &root)).await;
    let right = served.create(go("c", &root)).await;
    served.create(go("d", &left)).await;
    assert_eq!(said(&model, 2), ["a", "root", "c"]);
    assert_eq!(said(&model, 3), ["a", "root", "b", "left", "d"]);
    assert_eq!(right["previous_response_id"], root["id"]);
}

#[tokio::test]
async fn what_continued_from_a_deleted_response_goes_on() {
    let (served, model) = serve([say("one"), say("two"), say("three")]).await;
    let first = served.create(json!({"input": "a"})).await;
    let go = |text: &str, from: &Value| json!({"input": text, "previous_response_id": from["id"]});
    let second = served.create(go("b", &first)).await;
    let id = first["id"].as_str().unwrap();
    let deleted = served.delete(&format!("/responses/{id}")).await.ok();
    assert_eq!(
        deleted,
        json!({"id": id, "object": "response.deleted", "deleted": true})
    );
    assert_eq!(served.get(&format!("/responses/{id}")).await.status, 404);
    assert_eq!(served.delete(&format!("/responses/{id}")).await.status, 404);
    let answer = served.post("/responses", go("x", &first)).await;
    assert_eq!(answer.error().1, "previous_response_not_found");
    // Its items cannot be had one by one either.
    let item = first["output"][0]["id"].clone();
    let reference = json!([{"type": "item_reference", "id": item}]);
    let answer = served.post("/responses", json!({"input": reference})).await;
    assert_eq!(answer.error().1, "item_not_found");
    served.create(go("c", &second)).await;
    assert_eq!(said(&model, 2), ["a", "one", "b", "two", "c"]);
}

#[tokio::test]
async fn fields_are_not_inherited_and_items_are() {
    let (served, model) = serve([say("one"), say("two")]).await;
    let first = served
        .create(
            json!({"input": "a", "instructions": "be kind", "temperature": 0.5,
            "tools": [function("look")], "metadata": {"a": "b"}}),
        )
        .await;
    let second = served
        .create(json!({"input": "b", "previous_response_id": first["id"]}))
        .await;
    assert_eq!(second["instructions"], Value::Null);
    assert_eq!(second["tools"], json!([]));
    assert_eq!(second["metadata"], json!({}));
    let request = &model.received()[1];
    assert_eq!(request.instructions, None);
    assert_eq!(request.options.temperature, None);
    assert!(request.tools.iter().next().is_none());
}

#[tokio::test]
async fn incomplete_and_failed_responses_can_be_continued_with_what_they_finished() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new([
        say("cut of").finish(haft_core::FinishReason::Length),
        say("whole"),
        call("echo", json!({"text": "x"})),
        Step::default().fault(Fault::status(500)),
        say("recovered"),
    ]);
    let served = Setup::of(model.clone()).tools([tool]).serve().await;
    let cut = served.create(json!({"input": "a"})).await;
    assert_eq!(cut["status"], "incomplete");
    assert_eq!(cut["output"][0]["status"], "incomplete");
    served
        .create(json!({"input": "b", "previous_response_id": cut["id"]}))
        .await;
    assert_eq!(said(&model, 1), ["a", "cut of", "b"]);
    let failed = served
        .create(json!({"input": "c", "tools": [{"type": "haft:echo"}]}))
        .await;
    assert_eq!(failed["status"], "failed");
    served
        .create(json!({"input": "d", "previous_response_id": failed["id"]}))
        .await;
    let request = model.received()[4].clone();
    let kinds: Vec<_> = request.conversation.items().map(Item::kind).collect();
    assert_eq!(
        kinds,
        [
            "message",
            "function_call",
            "function_call_output",
            "message"
        ]
    );
}

#[tokio::test]
async fn a_conversation_is_used_by_one_run_at_a_time() {
    let model = ScriptedModel::new([say("slow").fault(Fault::HangAfterEvents(2)), say("fine")]);
    let served = Setup::of(model.clone()).serve().await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let id = conversation["id"].as_str().unwrap();
    let body = json!({"input": "a", "conversation": id});
    let mut running = body.clone();
    running["background"] = true.into();
    let running = served.create(running).await;
    let answer = served.post("/responses", body.clone()).await;
    assert_eq!(
        answer.error(),
        (409, "conversation_locked", Some("conversation"))
    );
    let items = json!({"items": [{"role": "user", "content": "x"}]});
    let answer = served
        .post(&format!("/conversations/{id}/items"), items)
        .await;
    assert_eq!(answer.error().1, "conversation_locked");
    let response = running["id"].as_str().unwrap();
    served
        .post(&format!("/responses/{response}/cancel"), json!({}))
        .await
        .ok();
    // A run that was stopped leaves nothing in it.
    let page = served.get(&format!("/conversations/{id}/items")).await.ok();
    assert_eq!(page["data"], json!([]));
    served.create(body).await;
    assert_eq!(said(&model, 1), ["a"]);
    let page = served.get(&format!("/conversations/{id}/items")).await.ok();
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn failed_runs_are_not_added_to_a_conversation_and_incomplete_ones_are() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new([
        Step::default().fault(Fault::status(500)),
        call("echo", json!({"text": "x"})),
        Step::default().fault(Fault::status(500)),
        say("cut of").finish(haft_core::FinishReason::Length),
    ]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let id = conversation["id"].as_str().unwrap();
    let count = async || {
        let page = served.get(&format!("/conversations/{id}/items")).await.ok();
        page["data"].as_array().unwrap().len()
    };
    let body = json!({"input": "a", "conversation": id, "tools": [{"type": "haft:echo"}]});
    assert_eq!(served.post("/responses", body.clone()).await.status, 500);
    assert_eq!(count().await, 0);
    assert_eq!(served.create(body.clone()).await["status"], "failed");
    assert_eq!(count().await, 0);
    assert_eq!(served.create(body).await["status"], "incomplete");
    assert_eq!(count().await, 2);
}

#[tokio::test]
async fn deleting_a_conversation_leaves_its_responses() {
    let (served, _) = serve([say("one")]).await;
    let conversation = served.post("/conversations", json!({})).await.ok();
    let id = conversation["id"].as_str().unwrap();
    let response = served
        .create(json!({"input": "a", "conversation": id}))
        .await;
    let deleted = served.delete(&format!("/conversations/{id}")).await.ok();
    let expected = json!({"id": id, "object": "conversation.deleted", "deleted": true});
    assert_eq!(deleted, expected);
    assert_eq!(served.stored(&response["id"]).await, response);
    let body = json!({"input": "b", "conversation": id});
    let answer = served.post("/responses", body).await;
    assert_eq!(
        answer.error(),
        (404, "conversation_not_found", Some("conversation"))
    );
}

#[tokio::test]
async fn what_is_not_stored_leaves_no_trace_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new([
        call("echo", json!({"text": "TRACE-CALL"})),
        say("TRACE-ANSWER"),
        say("kept words"),
        say("TRACE-STREAM"),
    ]);
    let served = Setup::of(model)
        .tools([tool])
        .on_disk(directory.path())
        .serve()
        .await;
    let body = json!({"input": "TRACE-INPUT", "instructions": "TRACE-INSTRUCTIONS",
        "store": false, "metadata": {"a": "TRACE-METADATA"}, "tools": [{"type": "haft:echo"}]});
    served.create(body).await;
    served.create(json!({"input": "kept input"})).await;
    served
        .stream(json!({"input": "TRACE-INPUT", "store": false}))
        .await;
    let found = |bytes: &[u8], word: &str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    let mut all = Vec::new();
    let look = |all: &mut Vec<u8>| {
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                all.extend(std::fs::read(path).unwrap());
            }
        }
    };
    look(&mut all);
    served.stop().await;
    look(&mut all);
    assert!(found(&all, "kept input") && found(&all, "kept words"));
    assert!(!found(&all, "TRACE-"), "something was written");
}

/// Reads the events of a stored response.
pub(crate) async fn replay(served: &Served, id: &str, query: &str) -> Vec<Value> {
    let answer = served
        .get(&format!("/responses/{id}?stream=true{query}"))
        .await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream"),
        "{}",
        answer.body
    );
    events(answer.body.as_str().unwrap())
}

#[tokio::test]
async fn a_background_response_is_polled_until_it_is_done() {
    let model = ScriptedModel::new([say("slow words").pieces(Pieces::Each(1)).delay_ms(10)]);
    let served = Setup::of(model).serve().await;
    let queued = served
        .create(json!({"input": "go", "background": true}))
        .await;
    assert_eq!(queued["status"], "queued");
    assert_eq!(queued["output"], json!([]));
    assert_eq!(queued["background"], true);
    let done = served.settled(&queued["id"]).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(done["output"][0]["content"][0]["text"], "slow words");
    // It has no log: it was not streamed.
    let id = done["id"].as_str().unwrap();
    let answer = served.get(&format!("/responses/{id}?stream=true")).await;
    assert_eq!(
        answer.error(),
        (400, "unsupported_parameter", Some("stream"))
    );
}

#[tokio::test]
async fn a_background_response_that_fails_says_so() {
    let (served, _) = serve([Step::default().fault(Fault::status(500))]).await;
    let queued = served
        .create(json!({"input": "go", "background": true}))
        .await;
    let done = served.settled(&queued["id"]).await;
    assert_eq!(done["status"], "failed");
    assert_eq!(done["error"]["code"], "model_error");
}

#[tokio::test]
async fn a_background_stream_is_read_again_from_anywhere() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new([
        call("echo", json!({"text": "x"})),
        say("some words").pieces(Pieces::Each(1)),
    ]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let body = json!({"input": "go", "background": true, "tools": [{"type": "haft:echo"}]});
    let first = served.stream(body).await;
    let expected = [
        "response.created",
        "response.queued",
        "response.in_progress",
    ];
    assert_eq!(kinds(&first)[..3], expected);
    let id = last(&first)["id"].as_str().unwrap();
    assert_eq!(&served.stored(&last(&first)["id"]).await, last(&first));
    assert_eq!(replay(&served, id, "").await, first);
    for after in [0, 3, first.len() - 2] {
        let again = replay(&served, id, &format!("&starting_after={after}")).await;
        assert_eq!(again, first[after + 1..]);
    }
    let again = replay(&served, id, &format!("&starting_after={}", first.len())).await;
    assert_eq!(again, [] as [Value; 0]);
}

#[tokio::test]
async fn a_background_stream_goes_on_without_its_client_and_is_followed_live() {
    let step = say("one two three four five six")
        .pieces(Pieces::Each(1))
        .delay_ms(20);
    let served = Setup::of(ScriptedModel::new([step])).serve().await;
    let body = json!({"input": "go", "background": true, "stream": true});
    let mut raw = crate::raw::Raw::post(&served, &body).await;
    raw.head().await;
    let mut seen = Vec::new();
    while seen.len() < 8 {
        let chunk = raw.chunk().await.unwrap();
        let data = chunk.lines().nth(1).unwrap().trim_start_matches("data: ");
        seen.push(serde_json::from_str::<Value>(data).unwrap());
    }
    drop(raw);
    let id = seen[0]["response"]["id"].as_str().unwrap().to_owned();
    let rest = replay(&served, &id, "&starting_after=7").await;
    assert_eq!(last(&rest)["status"], "completed");
    seen.extend(rest);
    assert_legal(&seen);
    assert_eq!(replay(&served, &id, "").await, seen);
}

#[tokio::test]
async fn cancelling_stops_tools_and_ends_the_stream() {
    let (tool, seen) = endless(None);
    let model = ScriptedModel::new([say("wait").call("endless", json!({}))]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let body = json!({"input": "go", "background": true, "tools": [{"type": "haft:endless"}]});
    let mut streamed = body.clone();
    streamed["stream"] = true.into();
    let mut raw = crate::raw::Raw::post(&served, &streamed).await;
    raw.head().await;
    let created = raw.chunk().await.unwrap();
    let created = created.lines().nth(1).unwrap().trim_start_matches("data: ");
    let created: Value = serde_json::from_str(created).unwrap();
    let id = created["response"]["id"].as_str().unwrap();
    soon(&seen.started, Duration::from_secs(5)).await;
    let cancelled = served
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await
        .ok();
    soon(&seen.stopped, Duration::from_secs(1)).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["error"]["code"], "response_cancelled");
    // What was finished stays.
    assert_eq!(item_types(&cancelled)[0], "message");
    let all = replay(&served, id, "").await;
    assert_legal(&all);
    assert_eq!(kinds(&all).last(), Some(&"response.failed"));
    assert_eq!(last(&all), &cancelled);
}

#[tokio::test]
async fn only_background_responses_can_be_cancelled() {
    let (served, _) = serve([say("one"), say("two")]).await;
    let plain = served.create(json!({"input": "go"})).await;
    let id = plain["id"].as_str().unwrap();
    let answer = served
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await;
    assert_eq!(answer.error(), (400, "unsupported_parameter", Some("id")));
    let queued = served
        .create(json!({"input": "go", "background": true}))
        .await;
    let done = served.settled(&queued["id"]).await;
    let id = done["id"].as_str().unwrap();
    let request = served.request("POST", &format!("/responses/{id}/cancel"));
    assert_eq!(served.send(request).await.ok(), done);
}

#[tokio::test]
async fn input_items_come_in_pages() {
    let (served, _) = serve([say("one"), say("two")]).await;
    let input: Vec<_> = (0..5)
        .map(|at| json!({"role": "user", "content": format!("{at}")}))
        .collect();
    let first = served.create(json!({"input": input})).await;
    let second = served
        .create(json!({"input": "last", "previous_response_id": first["id"]}))
        .await;
    let id = second["id"].as_str().unwrap();
    for (order, expected) in [
        ("asc", ["0", "1", "2", "3", "4", "one", "last"]),
        ("desc", ["last", "one", "4", "3", "2", "1", "0"]),
    ] {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/responses/{id}/input_items?limit=3&order={order}{after}");
            let page = served.get(&path).await.ok();
            let data = page["data"].as_array().unwrap().clone();
            assert_eq!(page["object"], "list");
            assert_eq!(page["first_id"], data[0]["id"]);
            assert_eq!(page["last_id"], data.last().unwrap()["id"]);
            for item in &data {
                for key in ["id", "type", "status"] {
                    assert!(item[key].is_string(), "{item}");
                }
                seen.push(item["content"][0]["text"].as_str().unwrap().to_owned());
            }
            if page["has_more"] == false {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        assert_eq!(seen, expected);
    }
    // Newest first, twenty at most, unless something else is asked for.
    let page = served
        .get(&format!("/responses/{id}/input_items"))
        .await
        .ok();
    assert_eq!(page["data"][0]["content"][0]["text"], "last");
}

#[tokio::test]
async fn items_are_referred_to_by_their_ids() {
    let (served, model) = serve([say("one"), say("two"), say("three")]).await;
    let first = served.create(json!({"input": "a"})).await;
    let item = first["output"][0]["id"].clone();
    for reference in [
        json!({"type": "item_reference", "id": item}),
        json!({"id": item}),
    ] {
        let input =
            json!([{"role": "user", "content": "b"}, reference, {"role": "user", "content": "c"}]);
        served.create(json!({"input": input})).await;
    }
    assert_eq!(said(&model, 1), ["b", "one", "c"]);
    assert_eq!(said(&model, 2), ["b", "one", "c"]);
}

#[tokio::test]
async fn an_unfinished_response_cannot_be_continued() {
    let hang = Step::default().fault(Fault::Hang);
    let (served, _) = serve([hang]).await;
    let queued = served
        .create(json!({"input": "go", "background": true}))
        .await;
    let next = json!({"input": "more", "previous_response_id": queued["id"]});
    let answer = served.post("/responses", next).await;
    let expected = (
        409,
        "previous_response_in_progress",
        Some("previous_response_id"),
    );
    assert_eq!(answer.error(), expected);
}

#[tokio::test]
async fn a_response_that_runs_can_be_deleted() {
    let (tool, seen) = endless(None);
    let model = ScriptedModel::new([call("endless", json!({}))]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let body = json!({"input": "go", "background": true, "tools": [{"type": "haft:endless"}]});
    let queued = served.create(body).await;
    soon(&seen.started, Duration::from_secs(5)).await;
    let id = queued["id"].as_str().unwrap();
    served.delete(&format!("/responses/{id}")).await.ok();
    soon(&seen.stopped, Duration::from_secs(1)).await;
    assert_eq!(served.get(&format!("/responses/{id}")).await.status, 404);
}

fn no_space() -> StoreError {
    StoreError::Failed("no space is left on /secret/disk".into())
}

/// A store that takes no more responses, and cannot read `resp_broken`.
#[derive(Default)]
pub(crate) struct FullStore(MemoryStore);

impl Store for FullStore {
    fn put_response(
        &self,
        _: &Owner,
        _: StoredResponse,
        _: Alongside,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(std::future::ready(Err(no_space())))
    }

    fn put_checkpoint(
        &self,
        _: &Owner,
        _: &str,
        _: Box<RawValue>,
        _: Vec<StoredEvent>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(std::future::ready(Err(no_space())))
    }

    fn take_once(&self, _: &Owner, _: &str, _: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async { Err(no_space()) })
    }

    fn server_note(&self, key: &str) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        self.0.server_note(key)
    }

    fn put_server_note(&self, key: &str, note: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.put_server_note(key, note)
    }

    fn taken(
        &self,
        owner: &Owner,
        keys: Vec<String>,
    ) -> BoxFuture<'_, Result<ClaimedKeys, StoreError>> {
        self.0.taken(owner, keys)
    }

    fn checkpoint(
        &self,
        owner: &Owner,
        response_id: &str,
    ) -> BoxFuture<'_, Result<Option<Box<RawValue>>, StoreError>> {
        self.0.checkpoint(owner, response_id)
    }

    fn trace(
        &self,
        owner: &Owner,
        response_id: &str,
    ) -> BoxFuture<'_, Result<Option<Box<RawValue>>, StoreError>> {
        self.0.trace(owner, response_id)
    }

    fn responses(
        &self,
        owner: Option<&Owner>,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<ResponsePage, StoreError>> {
        self.0.responses(owner, query)
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Err(no_space())))
    }

    fn response(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredResponse>, StoreError>> {
        if id == "resp_broken" {
            return Box::pin(std::future::ready(Err(no_space())));
        }
        self.0.response(owner, id)
    }

    fn chain(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredResponse>>, StoreError>> {
        self.0.chain(owner, id)
    }

    fn delete_response(&self, owner: &Owner, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.delete_response(owner, id)
    }

    fn item(
        &self,
        owner: &Owner,
        item_id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredItem>, StoreError>> {
        self.0.item(owner, item_id)
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<(Owner, StoredResponse)>, StoreError>> {
        self.0.unfinished()
    }

    fn append_events(
        &self,
        owner: &Owner,
        response_id: &str,
        events: Vec<StoredEvent>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.append_events(owner, response_id, events)
    }

    fn events(
        &self,
        owner: &Owner,
        response_id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredEvent>, StoreError>> {
        self.0.events(owner, response_id, after, limit)
    }

    fn put_conversation(
        &self,
        owner: &Owner,
        conversation: StoredConversation,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.put_conversation(owner, conversation)
    }

    fn conversation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<Option<StoredConversation>, StoreError>> {
        self.0.conversation(owner, id)
    }

    fn delete_conversation(
        &self,
        owner: &Owner,
        id: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.delete_conversation(owner, id)
    }

    fn append_items(
        &self,
        owner: &Owner,
        conversation_id: &str,
        items: Vec<StoredItem>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.append_items(owner, conversation_id, items)
    }

    fn conversation_items(
        &self,
        owner: &Owner,
        conversation_id: &str,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredItem>>, StoreError>> {
        self.0.conversation_items(owner, conversation_id)
    }

    fn conversation_page(
        &self,
        owner: &Owner,
        conversation_id: &str,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Option<Page>, StoreError>> {
        self.0.conversation_page(owner, conversation_id, query)
    }

    fn delete_item(
        &self,
        owner: &Owner,
        conversation_id: &str,
        item_id: &str,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.delete_item(owner, conversation_id, item_id)
    }

    fn clean(
        &self,
        retention: Retention,
        now: i64,
        batch: usize,
    ) -> BoxFuture<'_, Result<Cleaned, StoreError>> {
        self.0.clean(retention, now, batch)
    }
}
