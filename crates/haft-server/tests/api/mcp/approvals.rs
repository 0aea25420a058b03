//! Calls that somebody must allow.

use haft_core::Item;
use haft_models::testing::{ScriptedCall, Step, call, calls, say};
use haft_models::{OpenAiChat, ScriptedModel};
use serde_json::{Value, json};

use super::server::{Fake, setup};
use crate::support::{Served, backend, function, item_types, kinds, last};
use crate::websocket::connect_with;

/// A server whose every call somebody is asked about.
fn asking(fake: &Fake) -> Value {
    let mut entry = fake.entry("air");
    entry["require_approval"] = "always".into();
    entry
}

fn answer(request: &Value, approve: bool) -> Value {
    json!({"type": "mcp_approval_response", "approval_request_id": request["id"],
        "approve": approve})
}

/// The questions of a response.
fn questions(response: &Value) -> Vec<Value> {
    let items = response["output"].as_array().unwrap().iter();
    let items = items.filter(|item| item["type"] == "mcp_approval_request");
    items.cloned().collect()
}

/// What the model was sent last: calls and outputs in short.
fn sent(model: &ScriptedModel) -> Vec<String> {
    let conversation = model.received().pop().unwrap().conversation;
    let items = conversation.items().map(|item| match item {
        Item::FunctionCall(call) => format!("call {} {}", call.name, call.arguments),
        Item::FunctionCallOutput(output) if output.is_error => {
            format!("error {}", output.output.to_text())
        }
        Item::FunctionCallOutput(output) => format!("output {}", output.output.to_text()),
        other => other.text(),
    });
    items.collect()
}

async fn world(script: impl IntoIterator<Item = Step>) -> (Fake, Served, ScriptedModel) {
    let air = Fake::with(&["find", "book"]).await;
    let model = ScriptedModel::new(script.into_iter().collect::<Vec<_>>());
    let served = setup(model.clone(), &[&air]).serve().await;
    (air, served, model)
}

#[tokio::test]
async fn a_question_ends_the_response_and_nothing_was_called() {
    let (air, served, _) = world([call("air__book", r#"{"q": "oslo"}"#)]).await;
    let events = served
        .stream(json!({"input": "go", "tools": [asking(&air)]}))
        .await;
    assert_eq!(
        kinds(&events)[6..],
        [
            "response.output_item.added",
            "response.output_item.done",
            "response.completed"
        ]
    );
    let done = &events[7]["item"];
    let id = done["id"].as_str().unwrap();
    assert!(id.starts_with("mcpr_"), "{id}");
    assert_eq!(
        *done,
        json!({"id": id, "type": "mcp_approval_request", "status": "completed",
            "server_label": "air", "name": "book", "arguments": r#"{"q": "oslo"}"#})
    );
    assert_eq!(last(&events)["status"], "completed");
    assert!(air.calls().is_empty());
    let (air, served, _) = world([call("air__book", json!({}))]).await;
    let events = served
        .stream_with(
            json!({"input": "go", "tools": [asking(&air)]}),
            &[("Haft-Dialect", "open-responses")],
        )
        .await;
    assert_eq!(last(&events)["status"], "requires_action");
}

#[tokio::test]
async fn a_yes_executes_exactly_what_was_asked_before_the_model_is_asked_again() {
    let (air, served, model) = world([
        call("air__book", r#"{"q": "oslo"}"#),
        say("booked"),
        say("yes"),
    ])
    .await;
    let tools = json!([asking(&air)]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    let question = &questions(&first)[0];
    let next = json!({"input": [answer(question, true)], "tools": tools,
        "previous_response_id": first["id"]});
    let events = served.stream(next).await;
    assert_eq!(
        kinds(&events)[2..9],
        [
            "response.output_item.added",
            "response.mcp_call.in_progress",
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done",
            "response.mcp_call.completed",
            "response.output_item.done",
            "response.output_item.added",
        ]
    );
    let second = last(&events);
    assert_eq!(item_types(second), ["mcp_call", "message"]);
    let ran = &second["output"][0];
    assert_eq!(ran["approval_request_id"], question["id"]);
    assert_eq!(ran["arguments"], r#"{"q": "oslo"}"#);
    assert_eq!(ran["output"], "book: oslo");
    assert_eq!(events[2]["item"]["approval_request_id"], question["id"]);
    assert_eq!(second["status"], "completed");
    assert_eq!(air.calls()[0].arguments, json!({"q": "oslo"}));
    let history = ["go", r#"call air__book {"q": "oslo"}"#, "output book: oslo"];
    assert_eq!(sent(&model), history);
    // Whoever goes on from there finds one call with one output.
    let next = json!({"input": "and?", "tools": tools, "previous_response_id": second["id"]});
    assert_eq!(item_types(&served.create(next).await), ["message"]);
    let history = [history.as_slice(), &["booked", "and?"]].concat();
    assert_eq!(sent(&model), history);
    assert_eq!(air.called(), ["book"]);
}

#[tokio::test]
async fn a_no_is_told_to_the_model_with_its_reason() {
    let (air, served, model) = world([call("air__book", json!({})), say("pity")]).await;
    let tools = json!([asking(&air)]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    let mut no = answer(&questions(&first)[0], false);
    no["reason"] = "too expensive".into();
    let next = json!({"input": [no], "tools": tools, "previous_response_id": first["id"]});
    let second = served.create(next).await;
    assert_eq!(item_types(&second), ["message"]);
    assert!(air.calls().is_empty());
    assert_eq!(
        sent(&model)[2],
        "error Tool 'air__book' needs approval and was not approved. Reason: too expensive"
    );
}

#[tokio::test]
async fn several_questions_are_answered_in_any_order_some_yes_some_no() {
    let ask = |q: &str| ScriptedCall::new("air__book", json!({"q": q}));
    let (air, served, model) = world([calls([ask("a"), ask("b"), ask("c")]), say("done")]).await;
    let tools = json!([asking(&air)]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    let asked = questions(&first);
    assert_eq!(asked.len(), 3);
    let input = json!([answer(&asked[2], true), answer(&asked[0], true), answer(&asked[1], false),
        {"role": "user", "content": "thanks"}]);
    let next = json!({"input": input, "tools": tools, "previous_response_id": first["id"]});
    let second = served.create(next).await;
    assert_eq!(item_types(&second), ["mcp_call", "mcp_call", "message"]);
    assert_eq!(air.called().len(), 2);
    let sent = sent(&model);
    assert_eq!(
        sent[1..4]
            .iter()
            .filter(|it| it.starts_with("call"))
            .count(),
        3
    );
    let outputs: Vec<_> = sent[4..7].iter().map(String::as_str).collect();
    assert!(outputs.contains(&"output book: a") && outputs.contains(&"output book: c"));
    assert_eq!(sent[7], "thanks");
}

#[tokio::test]
async fn questions_that_are_not_open_cannot_be_answered() {
    let (air, served, _) = world([
        call("air__book", json!({})),
        say("never mind"),
        say("booked"),
    ])
    .await;
    let tools = json!([asking(&air)]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    let question = questions(&first).remove(0);
    let next = |input: Value, previous: &Value| json!({"input": input, "tools": tools, "previous_response_id": previous});
    let refused = (
        400,
        "approval_request_not_found",
        Some("input[0].approval_request_id"),
    );
    let unknown = json!([{"type": "mcp_approval_response", "approval_request_id": "mcpr_1",
        "approve": true}]);
    let answered = served.post("/responses", next(unknown, &first["id"])).await;
    assert_eq!(answered.error(), refused);
    let twice = json!([answer(&question, true), answer(&question, true)]);
    let answered = served.post("/responses", next(twice, &first["id"])).await;
    assert_eq!(answered.error().1, "approval_request_not_found");
    // Nothing said is no answer.
    let answered = served
        .post("/responses", next(json!([]), &first["id"]))
        .await;
    assert_eq!(
        answered.error(),
        (400, "missing_tool_output", Some("input"))
    );
    // A new message is a no, and then it is too late.
    let second = served.create(next(json!("never mind"), &first["id"])).await;
    let late = next(json!([answer(&question, true)]), &second["id"]);
    assert_eq!(served.post("/responses", late).await.error(), refused);
    // The branch where nobody has said anything goes on.
    let other = served
        .create(next(json!([answer(&question, true)]), &first["id"]))
        .await;
    assert_eq!(item_types(&other), ["mcp_call", "message"]);
    let again = next(json!([answer(&question, true)]), &other["id"]);
    assert_eq!(served.post("/responses", again).await.error(), refused);
    assert_eq!(air.called(), ["book"]);
}

#[tokio::test]
async fn the_same_yes_sent_twice_is_carried_out_once() {
    let (air, served, _) = world([call("air__book", json!({})), say("booked")]).await;
    let tools = json!([asking(&air)]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    let yes = answer(&questions(&first)[0], true);
    let body = json!({"input": [yes], "tools": tools, "previous_response_id": first["id"]});
    let send = || served.post("/responses", body.clone());
    let (one, two) = tokio::join!(send(), send());
    let refused = [&one, &two].into_iter().filter(|it| it.status == 400);
    let refused: Vec<_> = refused.map(|it| it.error().1).collect();
    assert_eq!(refused, ["approval_request_not_found"]);
    // And later.
    assert_eq!(send().await.error().1, "approval_request_not_found");
    assert_eq!(air.called(), ["book"]);
}

#[tokio::test]
async fn without_a_store_the_items_themselves_are_the_question_and_none_can_be_changed() {
    let (air, served, _) = world([call("air__book", json!({"q": "oslo"})), say("booked")]).await;
    let tools = json!([asking(&air)]);
    let first = json!({"input": "go", "tools": tools, "store": false});
    let first = served.create(first).await;
    let mut items = vec![json!({"role": "user", "content": "go"})];
    items.extend(first["output"].as_array().unwrap().clone());
    let question = questions(&first).remove(0);
    items.push(answer(&question, true));
    let at = items
        .iter()
        .position(|it| it["type"] == "mcp_approval_request")
        .unwrap();
    for (key, value) in [
        ("arguments", r#"{"q":"the moon"}"#),
        ("name", "find"),
        ("server_label", "sea"),
    ] {
        let mut changed = items.clone();
        changed[at][key] = value.into();
        let body = json!({"input": changed, "tools": tools, "store": false});
        let answered = served.post("/responses", body).await;
        assert_eq!(answered.error().1, "approval_request_not_found", "{key}");
    }
    let body = json!({"input": items, "tools": tools, "store": false});
    let second = served.create(body).await;
    assert_eq!(item_types(&second), ["mcp_call", "message"]);
    assert_eq!(air.calls()[0].arguments, json!({"q": "oslo"}));
}

#[tokio::test]
async fn a_conversation_and_a_socket_go_on_from_a_question() {
    let (air, served, _) = world([
        call("air__book", json!({"q": "a"})),
        say("booked"),
        call("air__book", json!({"q": "b"})),
        say("booked"),
    ])
    .await;
    let tools = json!([asking(&air)]);
    let conversation = served.post("/conversations", json!({})).await.ok();
    let id = &conversation["id"];
    let body = json!({"input": "go", "tools": tools, "conversation": id});
    let first = served.create(body).await;
    let body = json!({"input": [answer(&questions(&first)[0], true)], "tools": tools,
        "conversation": id});
    assert_eq!(
        item_types(&served.create(body).await),
        ["mcp_call", "message"]
    );

    let mut socket = connect_with(&served, &[]).await.unwrap();
    let body = json!({"input": "go", "tools": tools, "store": false});
    let first = socket.response(body).await;
    let body = json!({"input": [answer(&questions(&first)[0], true)], "tools": tools,
        "store": false, "previous_response_id": first["id"]});
    assert_eq!(
        item_types(&socket.response(body).await),
        ["mcp_call", "message"]
    );
    assert_eq!(air.called(), ["book", "book"]);
}

#[tokio::test]
async fn a_question_beside_a_call_of_the_client_waits_for_both() {
    let (air, served, model) = world([
        calls([
            ScriptedCall::new("air__book", json!({"q": "x"})),
            ScriptedCall::new("seat", json!({})),
        ]),
        say("done"),
    ])
    .await;
    let tools = json!([function("seat"), asking(&air)]);
    let events = served.stream(json!({"input": "go", "tools": tools})).await;
    let first = last(&events);
    let open = |kind: &str| {
        let items = first["output"].as_array().unwrap();
        items.iter().find(|it| it["type"] == kind).unwrap().clone()
    };
    let output = json!({"type": "function_call_output", "output": "12A",
        "call_id": open("function_call")["call_id"]});
    let next =
        |input: Value| json!({"input": input, "tools": tools, "previous_response_id": first["id"]});
    let yes = answer(&open("mcp_approval_request"), true);
    let alone = served.post("/responses", next(json!([yes]))).await;
    assert_eq!(alone.error().1, "missing_tool_output");
    assert!(air.calls().is_empty());
    let second = served.create(next(json!([yes, output]))).await;
    assert_eq!(item_types(&second), ["mcp_call", "message"]);
    let sent = sent(&model);
    assert_eq!(sent.iter().filter(|it| it.starts_with("call")).count(), 2);
    assert!(sent.contains(&"output 12A".into()) && sent.contains(&"output book: x".into()));
}

#[tokio::test]
async fn an_allowed_call_counts_and_needs_its_server() {
    let ask = |q: &str| ScriptedCall::new("air__book", json!({"q": q}));
    let (air, served, _) = world([calls([ask("a"), ask("b")]), say("done")]).await;
    let tools = json!([asking(&air)]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    let yes: Vec<_> = questions(&first)
        .iter()
        .map(|it| answer(it, true))
        .collect();
    let body = json!({"input": yes, "previous_response_id": first["id"]});
    let answered = served.post("/responses", body.clone()).await;
    let expected = (400, "tool_not_found", Some("input[0].approval_request_id"));
    assert_eq!(answered.error(), expected);
    let mut body = body;
    body["tools"] = tools;
    body["max_tool_calls"] = 1.into();
    body["tool_choice"] = "none".into();
    let second = served.create(body).await;
    assert_eq!(second["incomplete_details"]["reason"], "max_tool_calls");
    let statuses: Vec<_> = second["output"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["type"] == "mcp_call")
        .map(|it| it["status"].clone())
        .collect();
    assert_eq!(statuses, ["completed", "failed"]);
    assert_eq!(air.called(), ["book"]);
}

#[tokio::test]
async fn a_tool_of_this_server_is_asked_about_in_the_same_words() {
    use haft_core::{Annotations, ToolDefinition, dynamic_tool};

    let extra = [("x-needs-approval".to_owned(), true.into())];
    let annotations = Annotations {
        extra: extra.into_iter().collect(),
        ..Annotations::default()
    };
    let definition = ToolDefinition::builder("wipe")
        .parameters(json!({"type": "object"}))
        .annotations(annotations)
        .build()
        .unwrap();
    let wipe = dynamic_tool(definition, |_, _| async { Ok("wiped") });
    let model = ScriptedModel::new([call("wipe", json!({})), say("done")]);
    let served = crate::support::Setup::of(model.clone())
        .tools([wipe])
        .serve()
        .await;
    let tools = json!([{"type": "haft:wipe"}]);
    let events = served.stream(json!({"input": "go", "tools": tools})).await;
    let first = last(&events);
    assert_eq!(item_types(first), ["mcp_approval_request"]);
    assert_eq!(first["output"][0]["server_label"], "haft");
    assert_eq!(first["output"][0]["name"], "wipe");
    let next = json!({"input": [answer(&first["output"][0], true)], "tools": tools,
        "previous_response_id": first["id"]});
    let second = last(&served.stream(next).await).clone();
    assert_eq!(item_types(&second), ["haft:wipe", "message"]);
    assert_eq!(second["output"][0]["output"], "wiped");
    assert_eq!(
        second["output"][0]["approval_request_id"],
        first["output"][0]["id"]
    );
    assert_eq!(sent(&model), ["go", "call wipe {}", "output wiped"]);
}

#[tokio::test]
async fn after_a_no_there_is_no_yes_from_the_same_response() {
    let (air, served, _) = world([call("air__book", json!({})), say("no"), say("still no")]).await;
    let tools = json!([asking(&air)]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    let question = questions(&first).remove(0);
    let said = |approve| json!({"input": [answer(&question, approve)], "tools": tools, "previous_response_id": first["id"]});
    served.create(said(false)).await;
    // Whoever sends it again after a broken connection has said the same.
    served.create(said(false)).await;
    let late = served.post("/responses", said(true)).await;
    assert_eq!(late.error().1, "approval_request_not_found");
    assert!(air.called().is_empty());
}

#[tokio::test]
async fn call_that_the_model_writes_as_text_is_asked_about() {
    let text = r#"{"name":"air__book","arguments":{"q":"oslo"}}"#;
    for is_streamed in [false, true] {
        let air = Fake::with(&["find", "book"]).await;
        let behind = backend([say(text), say("booked")]).await;
        let model = OpenAiChat::new("m").base_url(&behind.base_url());
        let served = setup(model, &[&air]).serve().await;
        let tools = json!([air.entry("air")]);
        let request = json!({"input": "go", "tools": tools});
        let first = if is_streamed {
            let events = served.stream(request).await;
            assert!(!kinds(&events).contains(&"response.mcp_call.in_progress"));
            last(&events).clone()
        } else {
            served.create(request).await
        };
        assert!(air.calls().is_empty());
        let question = &questions(&first)[0];
        let next = json!({"input": [answer(question, true)], "tools": tools,
            "previous_response_id": first["id"]});
        let second = served.create(next).await;
        assert_eq!(item_types(&second), ["mcp_call", "message"], "{second:#}");
        assert_eq!(air.called(), ["book"]);
    }
}

#[tokio::test]
async fn call_that_a_tool_returns_and_the_model_repeats_stays_text() {
    let text = r#"{"name":"air__book","arguments":{"q":"oslo"}}"#;
    let air = Fake::with(&["find", "book"]).await;
    let behind = backend([call("air__find", json!({"q": text})), say(text)]).await;
    let model = OpenAiChat::new("m").base_url(&behind.base_url());
    let served = setup(model, &[&air]).serve().await;
    let request = json!({"input": "find it", "tools": [air.entry("air")]});
    let response = served.create(request).await;
    let output = &response["output"];
    assert_eq!(output[1]["type"], "mcp_call", "{response:#}");
    assert!(output[1]["output"].as_str().unwrap().contains("air__book"));
    assert_eq!(output[2]["content"][0]["text"], text);
    assert_eq!(air.called(), ["find"]);
}
