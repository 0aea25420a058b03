//! State (lines 9 to 17).

use std::sync::Arc;

use haft_core::{Item, Reasoning, Retention, Store};
use haft_models::ScriptedModel;
use haft_models::testing::{Step, call, say};
use haft_store::{MemoryStore, SqliteStore};
use serde_json::{Value, json};

use crate::support::{Served, Setup, function, item_types, last, serve};
use crate::tools::echo;

/// §11.9
#[tokio::test]
async fn a_streamed_response_is_stored_before_its_end_is_told() {
    let (served, model) = serve([say("one"), say("two")]).await;
    let events = served.stream(json!({"input": "first"})).await;
    let response = last(&events).clone();
    assert_eq!(served.stored(&response["id"]).await, response);
    let next = json!({"input": "second", "previous_response_id": response["id"]});
    served.create(next).await;
    let request = &model.received()[1];
    let said: Vec<_> = request.conversation.items().map(Item::text).collect();
    assert_eq!(said, ["first", "one", "second"]);
}

/// §11.10
#[tokio::test]
async fn a_response_that_looped_is_stored_and_can_be_continued() {
    for is_streamed in [false, true] {
        let (tool, runs) = echo("echo");
        let model = ScriptedModel::new([
            call("echo", json!({"text": "a"})).with_id("call_a"),
            call("echo", json!({"text": "b"})).with_id("call_b"),
            say("both done"),
            say("again"),
        ]);
        let served = Setup::of(model.clone()).tools([tool]).serve().await;
        let body = json!({"input": "go", "tools": [{"type": "haft:echo"}]});
        let response = if is_streamed {
            last(&served.stream(body).await).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(item_types(&response), ["haft:echo", "haft:echo", "message"]);
        assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 2);
        assert_eq!(served.stored(&response["id"]).await, response);
        let next = json!({"input": "more", "previous_response_id": response["id"]});
        served.create(next).await;
        let request = model.received()[3].clone();
        let kinds: Vec<_> = request.conversation.items().map(Item::kind).collect();
        let expected = [
            "message",
            "function_call",
            "function_call_output",
            "function_call",
            "function_call_output",
            "message",
            "message",
        ];
        assert_eq!(kinds, expected);
        let outputs: Vec<_> = request
            .conversation
            .items()
            .filter_map(|item| match item {
                Item::FunctionCallOutput(output) => Some(output.output.to_text()),
                _ => None,
            })
            .collect();
        assert_eq!(outputs, ["echo: a", "echo: b"]);
    }
}

/// §11.11
#[tokio::test]
async fn a_chain_keeps_calls_outputs_and_thoughts_in_order() {
    let thoughts = Item::Reasoning(Reasoning {
        id: Some("rs_backend".into()),
        encrypted_content: Some("sealed".into()),
        ..Reasoning::default()
    });
    let first = Step::default().item(thoughts).item(Item::function_call(
        "call_a",
        "look",
        r#"{"text":"x"}"#,
    ));
    let (served, model) = serve([first, say("seen"), say("bye")]).await;
    let tools = json!([function("look")]);
    let one = served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(item_types(&one), ["reasoning", "function_call"]);
    let output = json!([{"type": "function_call_output", "call_id": "call_a", "output": "y"}]);
    let two = served
        .create(json!({"previous_response_id": one["id"], "input": output, "tools": tools}))
        .await;
    served
        .create(json!({"previous_response_id": two["id"], "input": "thanks"}))
        .await;
    let request = model.received()[2].clone();
    let kinds: Vec<_> = request.conversation.items().map(Item::kind).collect();
    let expected = [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ];
    assert_eq!(kinds, expected);
    let sealed = request.conversation.items().find_map(|item| match item {
        Item::Reasoning(reasoning) => reasoning.encrypted_content.clone(),
        _ => None,
    });
    assert_eq!(sealed.as_deref(), Some("sealed"));
}

/// §11.12
#[tokio::test]
async fn an_unknown_previous_response_is_refused_everywhere() {
    let (served, model) = serve([]).await;
    for body in [
        json!({"input": "go", "previous_response_id": "resp_nobody"}),
        json!({"input": "go", "previous_response_id": "resp_nobody", "stream": true}),
        json!({"input": "go", "previous_response_id": "resp_nobody", "background": true}),
    ] {
        let answer = served.post("/responses", body).await;
        let expected = (
            400,
            "previous_response_not_found",
            Some("previous_response_id"),
        );
        assert_eq!(answer.error(), expected);
    }
    assert_eq!(model.received().len(), 0);
}

/// §11.13
#[tokio::test]
async fn what_is_not_to_be_stored_is_not() {
    let (served, _) = serve([say("one"), say("two")]).await;
    let plain = served.create(json!({"input": "go", "store": false})).await;
    let streamed = served.stream(json!({"input": "go", "store": false})).await;
    for response in [&plain, last(&streamed)] {
        assert_eq!(response["store"], false);
        let id = response["id"].as_str().unwrap();
        let answer = served.get(&format!("/responses/{id}")).await;
        assert_eq!(answer.error(), (404, "response_not_found", None));
        let next = json!({"input": "more", "previous_response_id": id});
        let answer = served.post("/responses", next).await;
        assert_eq!(answer.error().1, "previous_response_not_found");
    }
}

/// Makes a response, a loop and a conversation on a server with a file.
async fn fill(served: &Served) -> (Value, Value, Value) {
    let plain = served.create(json!({"input": "first"})).await;
    let looped = served
        .stream(json!({"input": "loop", "tools": [{"type": "haft:echo"}],
            "previous_response_id": plain["id"]}))
        .await;
    let conversation = served
        .post("/conversations", json!({"metadata": {"topic": "boats"}}))
        .await
        .ok();
    let body = json!({"input": "third", "conversation": conversation["id"]});
    served.create(body).await;
    (plain, last(&looped).clone(), conversation)
}

/// §11.9, §11.10, §11.14, §11.15
#[tokio::test]
async fn what_is_stored_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let first = ScriptedModel::new([
        say("one"),
        call("echo", json!({"text": "a"})).with_id("call_a"),
        say("two"),
        say("three"),
    ]);
    let (tool, _) = echo("echo");
    let setup = Setup::of(first).tools([Arc::clone(&tool)]);
    let served = setup.on_disk(directory.path()).serve().await;
    let (plain, looped, conversation) = fill(&served).await;
    served.stop().await;

    let second = ScriptedModel::new([say("four"), say("five")]);
    let setup = Setup::of(second.clone()).tools([tool]);
    let served = setup.on_disk(directory.path()).serve().await;
    assert_eq!(served.stored(&plain["id"]).await, plain);
    assert_eq!(served.stored(&looped["id"]).await, looped);
    served
        .create(json!({"input": "go on", "previous_response_id": looped["id"]}))
        .await;
    let said: Vec<_> = second.received()[0]
        .conversation
        .items()
        .map(|item| match item {
            Item::FunctionCall(call) => call.name.clone(),
            Item::FunctionCallOutput(output) => output.output.to_text(),
            item => item.text(),
        })
        .collect();
    let expected = ["first", "one", "loop", "echo", "echo: a", "two", "go on"];
    assert_eq!(said, expected);
    let id = conversation["id"].as_str().unwrap();
    let found = served.get(&format!("/conversations/{id}")).await.ok();
    assert_eq!(found, conversation);
    served
        .create(json!({"input": "more", "conversation": id}))
        .await;
    let said: Vec<_> = second.received()[1]
        .conversation
        .items()
        .map(Item::text)
        .collect();
    assert_eq!(said, ["third", "three", "more"]);
}

/// §11.14: what is kept is bounded.
#[tokio::test]
async fn what_is_too_much_goes() {
    let model = ScriptedModel::new([say("words, words, words").forever()]);
    let served = Setup::of(model).serve().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(served.create(json!({"input": "go"})).await["id"].clone());
    }
    let retention = Retention {
        max_bytes: Some(6000),
        ..Retention::default()
    };
    while served
        .store
        .clean(retention, i64::MAX / 2, 100)
        .await
        .unwrap()
        .has_more
    {}
    let status = |id: &Value| {
        let path = format!("/responses/{}", id.as_str().unwrap());
        let served = &served;
        async move { served.get(&path).await.status }
    };
    assert_eq!(status(&ids[0]).await, 404);
}

/// §11.15
#[tokio::test]
async fn a_conversation_is_the_context_and_grows() {
    let (served, model) = serve([say("one"), say("two")]).await;
    let items = json!([{"role": "user", "content": "zero"}]);
    let conversation = served.post("/conversations", json!({"items": items})).await;
    let id = conversation.ok()["id"].as_str().unwrap().to_owned();
    let first = served
        .create(json!({"input": "a", "conversation": {"id": id}}))
        .await;
    assert_eq!(first["conversation"], json!({"id": id}));
    served
        .create(json!({"input": "b", "conversation": id}))
        .await;
    let said: Vec<_> = model.received()[1]
        .conversation
        .items()
        .map(Item::text)
        .collect();
    assert_eq!(said, ["zero", "a", "one", "b"]);
    let page = served
        .get(&format!("/conversations/{id}/items?order=asc"))
        .await
        .ok();
    let said = page["data"].as_array().unwrap().iter();
    let said: Vec<_> = said
        .map(|item| item["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["zero", "a", "one", "b", "two"]);
}

/// §11.16
#[tokio::test]
async fn every_store_supports_every_endpoint() {
    let directory = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn Store>; 2] = [
        Arc::new(MemoryStore::new()),
        Arc::new(SqliteStore::open(directory.path().join("haft.db")).unwrap()),
    ];
    let mut told = Vec::new();
    for store in stores {
        let model = ScriptedModel::new([say("words").forever()]);
        let mut setup = Setup::of(model);
        setup.store = store;
        told.push(tour(&setup.serve().await).await);
    }
    assert_eq!(told[0], told[1]);
}

/// Calls everything once; gives what came back without what differs from run to run.
async fn tour(served: &Served) -> Vec<(String, u16, Value)> {
    let mut told = Vec::new();
    let mut note = |path: &str, answer: &crate::support::Answer| {
        let keys = answer.body.as_object();
        let keys: Vec<_> = keys
            .into_iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect();
        let count = answer.body["data"].as_array().map(Vec::len);
        told.push((path.to_owned(), answer.status, json!([keys, count])));
    };
    let response = served.post("/responses", json!({"input": "go"})).await;
    note("create", &response);
    let id = response.body["id"].as_str().unwrap().to_owned();
    for path in ["", "/input_items", "/input_items?limit=1&order=asc"] {
        note(path, &served.get(&format!("/responses/{id}{path}")).await);
    }
    let live = served
        .post("/responses", json!({"input": "go", "background": true}))
        .await;
    note("background", &live);
    served.settled(&live.body["id"]).await;
    let live = live.body["id"].as_str().unwrap().to_owned();
    note(
        "cancel",
        &served
            .post(&format!("/responses/{live}/cancel"), json!({}))
            .await,
    );
    note(
        "stream",
        &served.get(&format!("/responses/{live}?stream=true")).await,
    );
    note("delete", &served.delete(&format!("/responses/{id}")).await);
    note("gone", &served.get(&format!("/responses/{id}")).await);
    note(
        "count",
        &served
            .post("/responses/input_tokens", json!({"input": "go"}))
            .await,
    );
    let made = served.post("/conversations", json!({})).await;
    note("conversation", &made);
    let base = format!("/conversations/{}", made.body["id"].as_str().unwrap());
    note(
        "update",
        &served.post(&base, json!({"metadata": {"a": "b"}})).await,
    );
    let items =
        json!({"items": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]});
    let added = served.post(&format!("{base}/items"), items).await;
    note("add", &added);
    let item = added.body["data"][0]["id"].as_str().unwrap().to_owned();
    for path in ["/items", "/items?limit=1", "/items?order=asc&after="] {
        let path = path.replace("after=", &format!("after={item}"));
        let answer = served.get(&format!("{base}{path}")).await;
        note(path.split("after").next().unwrap(), &answer);
    }
    note("item", &served.get(&format!("{base}/items/{item}")).await);
    note(
        "less",
        &served.delete(&format!("{base}/items/{item}")).await,
    );
    note("read", &served.get(&base).await);
    note("end", &served.delete(&base).await);
    note("models", &served.get("/models").await);
    note("model", &served.get("/models/default").await);
    told
}

/// §11.17
#[tokio::test]
async fn stored_order_is_stream_order() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new([
        say("I will look.").call("echo", json!({"text": "a"})),
        say("And again.").call("echo", json!({"text": "b"})),
        say("Done."),
    ]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let events = served
        .stream(json!({"input": "go", "tools": [{"type": "haft:echo"}]}))
        .await;
    let added: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.added")
        .map(|event| event["item"]["id"].clone())
        .collect();
    let stored = served.stored(&last(&events)["id"]).await;
    let kept = stored["output"].as_array().unwrap().iter();
    let kept: Vec<_> = kept.map(|item| item["id"].clone()).collect();
    assert_eq!(added, kept);
    let expected = ["message", "haft:echo", "message", "haft:echo", "message"];
    assert_eq!(item_types(&stored), expected);
}
