//! Calls of MCP tools: what the client sees, what the model reads.

use haft_core::{Capabilities, Item};
use haft_mcp::{Label, ServerConfig};
use haft_models::ScriptedModel;
use haft_models::testing::{Pieces, ScriptedCall, call, calls, output_says, say};
use serde_json::{Value, json};

use super::server::{Fake, PIXEL, configured, setup, tool};
use crate::support::{BACKENDS, backend, function, item_types, kinds, last};
use crate::websocket::connect_with;

/// The first call of a response.
fn first_call(response: &Value) -> Value {
    let items = response["output"].as_array().unwrap();
    let call = items.iter().find(|item| item["type"] == "mcp_call");
    call.unwrap_or_else(|| panic!("no call in {response:#}"))
        .clone()
}

#[tokio::test]
async fn a_call_is_told_step_by_step_and_its_result_comes_last() {
    let air = Fake::with(&["find"]).await;
    let model = ScriptedModel::new([
        call("air__find", r#"{"q":"oslo"}"#).pieces(Pieces::Sizes(vec![6])),
        say("done").expect(output_says("find: oslo")),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let events = served
        .stream(json!({"input": "go", "tools": [air.entry("air")]}))
        .await;
    model.assert_finished();
    assert_eq!(
        kinds(&events)[6..13],
        [
            "response.output_item.added",
            "response.mcp_call.in_progress",
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done",
            "response.mcp_call.completed",
            "response.output_item.done",
        ]
    );
    let added = &events[6]["item"];
    let id = added["id"].as_str().unwrap();
    assert!(id.starts_with("mcp_"), "{id}");
    assert_eq!(
        *added,
        json!({"id": id, "type": "mcp_call", "status": "in_progress", "server_label": "air",
            "name": "find", "arguments": "", "output": null, "error": null,
            "approval_request_id": null})
    );
    assert_eq!(events[8]["delta"], r#"{"q":""#);
    assert_eq!(events[10]["arguments"], r#"{"q":"oslo"}"#);
    let mut done = added.clone();
    done["status"] = "completed".into();
    done["arguments"] = r#"{"q":"oslo"}"#.into();
    done["output"] = "find: oslo".into();
    assert_eq!(events[12]["item"], done);
    let stored = served.stored(&last(&events)["id"]).await;
    assert_eq!(stored["output"][1], done);
    let [sent] = &air.calls()[..] else {
        panic!("one call")
    };
    assert_eq!(sent.arguments, json!({"q": "oslo"}));
}

#[tokio::test]
async fn a_mixed_turn_runs_the_servers_call_and_leaves_the_clients_open() {
    let air = Fake::with(&["wait"]).await;
    let model = ScriptedModel::new([
        calls([
            ScriptedCall::new("air__wait", json!({})),
            ScriptedCall::new("pick_seat", json!({"text": "window"})),
        ]),
        say("done"),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let going = air.clone();
    tokio::spawn(async move {
        going.waits().await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        going.go_on();
    });
    let tools = json!([function("pick_seat"), air.entry("air")]);
    let events = served.stream(json!({"input": "go", "tools": tools})).await;
    // The client's call opens and closes while the server's runs (§3.5).
    let about = |index: u64| {
        let events = events.iter().enumerate();
        let own = events.filter(|(_, event)| event["output_index"] == index);
        own.map(|(at, _)| at).collect::<Vec<_>>()
    };
    let (theirs, own) = (about(1), about(2));
    assert!(
        theirs[2] < own[0] && own.last() < theirs.last(),
        "{theirs:?} {own:?}"
    );
    let response = last(&events);
    assert_eq!(
        item_types(response),
        ["mcp_list_tools", "mcp_call", "function_call"]
    );
    assert_eq!(response["status"], "completed");

    let output = json!({"type": "function_call_output", "output": "12A",
        "call_id": response["output"][2]["call_id"]});
    let next = json!({"input": [output], "tools": tools, "previous_response_id": response["id"]});
    served.create(next).await;
    let sent = model.received().remove(1).conversation;
    let shapes: Vec<_> = sent
        .items()
        .map(|item| match item {
            Item::FunctionCall(call) => format!("call {}", call.name),
            Item::FunctionCallOutput(output) => format!("output {}", output.output.to_text()),
            other => other.text(),
        })
        .collect();
    assert_eq!(
        shapes,
        [
            "go",
            "call air__wait",
            "call pick_seat",
            "output wait: nothing",
            "output 12A"
        ]
    );
}

#[tokio::test]
async fn what_goes_wrong_is_told_in_its_own_form_and_the_model_reads_it() {
    let names = ["fail", "break", "teapot"];
    let air = Fake::with(&names).await;
    for (tool, error, read) in [
        (
            "fail",
            json!({"type": "mcp_tool_execution_error",
                "content": [{"type": "text", "text": "no such flight"}]}),
            "no such flight",
        ),
        (
            "break",
            json!({"type": "mcp_protocol_error", "code": -32050, "message": "out of order"}),
            "out of order",
        ),
        (
            "teapot",
            json!({"type": "http_error", "code": 418, "message": "HTTP status 418: no coffee"}),
            "HTTP status 418",
        ),
    ] {
        let model = ScriptedModel::new([
            call(format!("air__{tool}"), json!({})),
            say("sorry"),
            say("again"),
        ]);
        let served = setup(model.clone(), &[&air]).serve().await;
        let tools = json!([air.entry("air")]);
        let events = served.stream(json!({"input": "go", "tools": tools})).await;
        let response = last(&events);
        let item = first_call(response);
        assert_eq!(
            (&item["status"], &item["output"]),
            (&json!("failed"), &Value::Null)
        );
        assert_eq!(item["error"], error);
        assert!(kinds(&events).contains(&"response.mcp_call.failed"));
        assert_eq!(response["status"], "completed");
        // Now, and whenever the history is read again.
        let next = json!({"input": "and?", "tools": tools, "previous_response_id": response["id"]});
        served.create(next).await;
        for request in &model.received()[1..] {
            let output = request.conversation.items().find_map(|item| match item {
                Item::FunctionCallOutput(output) => Some(output),
                _ => None,
            });
            let output = output.unwrap();
            assert!(output.is_error);
            assert!(output.output.to_text().contains(read), "{output:?}");
        }
    }
}

#[tokio::test]
async fn wrong_arguments_are_never_sent() {
    let air = Fake::with(&["find"]).await;
    let model = ScriptedModel::new([call("air__find", json!({"q": 7})), say("sorry")]);
    let served = setup(model, &[&air]).serve().await;
    let events = served
        .stream(json!({"input": "go", "tools": [air.entry("air")]}))
        .await;
    let item = first_call(last(&events));
    assert_eq!(item["status"], "failed");
    assert_eq!(item["error"]["type"], "mcp_protocol_error");
    assert_eq!(item["error"]["code"], -32602);
    assert!(air.calls().is_empty());
}

#[tokio::test]
async fn nothing_of_a_result_is_lost() {
    let air = Fake::with(&["count", "picture", "both"]).await;
    let model = ScriptedModel::new([
        calls(
            ["count", "picture", "both"]
                .map(|it| ScriptedCall::new(format!("air__{it}"), json!({}))),
        ),
        say("done"),
        say("again"),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let tools = json!([air.entry("air")]);
    let response = served.create(json!({"input": "go", "tools": tools})).await;
    let [_, count, picture, both, _] = &response["output"].as_array().unwrap()[..] else {
        panic!("{response:#}")
    };
    assert_eq!(count["output"], r#"{"count":3}"#);
    assert_eq!(picture["output"], "a picture");
    assert_eq!(picture["content"][1]["data"], PIXEL);
    assert_eq!(both["output"], "one\n\ntwo");
    assert_eq!(both["structured_content"], json!({"n": 2}));
    assert!(both.get("content").is_none());
    // The history is what the model read the first time.
    let next = json!({"input": "and?", "tools": tools, "previous_response_id": response["id"]});
    served.create(next).await;
    let outputs = |at: usize| {
        let conversation = model.received().remove(at).conversation;
        let outputs = conversation.items().filter_map(|item| match item {
            Item::FunctionCallOutput(output) => Some(output.output.clone()),
            _ => None,
        });
        outputs.collect::<Vec<_>>()
    };
    assert_eq!(outputs(1), outputs(2));
    assert_eq!(outputs(1).len(), 3);
}

#[tokio::test]
async fn history_is_history_also_when_the_server_is_gone() {
    for kind in BACKENDS {
        let air = Fake::with(&["find"]).await;
        let behind = backend([
            call("air__find", json!({"q": "x"})),
            say("done"),
            say("again"),
        ])
        .await;
        let origin = air.origin().to_owned();
        let served = kind
            .setup(&behind)
            .options(|options| options.mcp_hosts = vec![origin])
            .serve()
            .await;
        let first = served
            .create(json!({"input": "go", "tools": [air.entry("air")]}))
            .await;
        drop(air);
        let second = served
            .create(json!({"input": "and?", "previous_response_id": first["id"]}))
            .await;
        assert_eq!(item_types(&second), ["message"]);
        // Where a provider is to cache up to is no part of what the model reads.
        let uncached = |body: Value| -> Value {
            let mark = r#","cache_control":{"type":"ephemeral"}"#;
            serde_json::from_str(&body.to_string().replace(mark, "")).unwrap()
        };
        let bodies = behind.received().into_iter();
        let bodies: Vec<_> = bodies.map(|it| uncached(it.body)).collect();
        let body = bodies[2].to_string();
        assert!(
            body.contains("air__find") && body.contains("find: x"),
            "{body}"
        );
        assert!(!body.contains("mcp_"), "{body}");
        // It is what the model was sent the first time, byte for byte.
        let key = if body.contains("\"input\":[") {
            "input"
        } else {
            "messages"
        };
        let (then, now) = (&bodies[1][key], &bodies[2][key]);
        let then = then.as_array().unwrap();
        assert_eq!(then[..], now.as_array().unwrap()[..then.len()], "{kind:?}");
        // The tool is never sent as it was declared.
        assert!(!bodies[0].to_string().contains("server_label"));
    }
}

#[tokio::test]
async fn progress_is_told_to_whoever_asks_for_it() {
    let air = Fake::with(&["report"]).await;
    let model = ScriptedModel::new([
        call("air__report", json!({})),
        say("1"),
        call("air__report", json!({})),
        say("2"),
    ]);
    let served = setup(model, &[&air]).serve().await;
    let body = json!({"input": "go", "tools": [air.entry("air")]});
    let events = served
        .stream_with(body.clone(), &[("Haft-Events", "1")])
        .await;
    let mut told = events
        .iter()
        .filter(|it| it["type"] == "haft:tool_progress");
    let told = told.next().expect("progress is told");
    assert_eq!(told["item_id"], first_call(last(&events))["id"]);
    assert_eq!(told["progress"]["message"], "half");
    let events = served.stream(body).await;
    assert!(!kinds(&events).contains(&"haft:tool_progress"));
}

#[tokio::test]
async fn max_tool_calls_counts_calls_of_servers() {
    let air = Fake::with(&["find"]).await;
    let two = [1, 2].map(|n| ScriptedCall::new("air__find", json!({"q": n.to_string()})));
    let model = ScriptedModel::new([calls(two), say("done")]);
    let served = setup(model, &[&air]).serve().await;
    let body = json!({"input": "go", "tools": [air.entry("air")], "max_tool_calls": 1});
    let response = last(&served.stream(body).await).clone();
    assert_eq!(response["status"], "incomplete");
    assert_eq!(response["incomplete_details"]["reason"], "max_tool_calls");
    assert_eq!(air.called().len(), 1);
    let statuses: Vec<_> = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["type"] == "mcp_call")
        .map(|it| it["status"].clone())
        .collect();
    assert_eq!(statuses, ["completed", "failed"]);
}

#[tokio::test]
async fn a_socket_hears_the_same_and_goes_on_without_a_store() {
    let air = Fake::with(&["find"]).await;
    let model = ScriptedModel::new([
        call("air__find", json!({"q": "x"})),
        say("done"),
        say("again").expect(output_says("find: x")),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let mut socket = connect_with(&served, &[]).await.unwrap();
    let body = json!({"input": "go", "tools": [air.entry("air")], "store": false});
    socket.create(body).await;
    let events = socket.turn().await;
    crate::legal::assert_legal(&events);
    let response = last(&events);
    assert_eq!(
        item_types(response),
        ["mcp_list_tools", "mcp_call", "message"]
    );
    let next = json!({"input": "and?", "previous_response_id": response["id"], "store": false,
        "tools": [air.entry("air")]});
    socket.create(next).await;
    assert_eq!(item_types(last(&socket.turn().await)), ["message"]);
    model.assert_finished();
}

#[tokio::test]
async fn calls_are_counted_by_their_kind() {
    let air = Fake::with(&["find", "fail"]).await;
    let both = ["air__find", "air__fail"].map(|name| ScriptedCall::new(name, json!({})));
    let model = ScriptedModel::new([calls(both), say("done")]);
    let served = setup(model, &[&air]).serve().await;
    served
        .create(json!({"input": "go", "tools": [air.entry("air")]}))
        .await;
    let base = served.base.trim_end_matches("/v1");
    let text = crate::support::client()
        .get(format!("{base}/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    for sample in [
        r#"haft_tool_calls_total{kind="mcp",outcome="succeeded"} 1"#,
        r#"haft_tool_calls_total{kind="mcp",outcome="failed"} 1"#,
    ] {
        assert!(text.contains(sample), "{text}");
    }
}

#[tokio::test]
async fn tool_that_the_operator_calls_polling_runs_as_often_as_it_is_called() {
    for (polling, runs) in [(false, 1), (true, 3)] {
        let air = Fake::with(&[]).await;
        let mut status = tool("status");
        status["annotations"] = json!({"readOnlyHint": true});
        air.set_tools(vec![status]);
        let config = json!({"url": air.url(), "transport": "streamable",
            "tools": {"status": {"polling": polling}}});
        let config: ServerConfig = serde_json::from_value(config).unwrap();
        let settings = config.resolve(Label::new("air").unwrap(), &|_| None);
        let ask = || call("air__status", json!({"q": "job"}));
        let model = ScriptedModel::new([ask(), ask(), ask(), say("done")]);
        let model = model.with_capabilities(Capabilities {
            supports_dynamic_tools: true,
            repeats_calls: true,
            ..Capabilities::default()
        });
        let served = configured(model, vec![settings.unwrap()]).serve().await;
        let tools = json!([{"type": "mcp", "server_label": "air"}]);
        let request = json!({"input": "wait for the job", "tools": tools});
        served.create(request).await;
        assert_eq!(air.called().len(), runs, "polling = {polling}");
    }
}
