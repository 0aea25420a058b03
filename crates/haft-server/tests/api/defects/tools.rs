//! Tools (lines 30 to 42).

use std::sync::atomic::Ordering;
use std::time::Duration;

use haft_core::Item;
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, call, say};
use serde_json::{Value, json};

use crate::support::{BACKENDS, Backend, Setup, backend, function, item_types, last, serve};
use crate::tools::{echo, endless, flood};

fn outputs(model: &ScriptedModel, request: usize) -> Vec<(String, bool)> {
    let request = model.received()[request].clone();
    let items = request.conversation.items();
    items
        .filter_map(|item| match item {
            Item::FunctionCallOutput(output) => Some((output.output.to_text(), output.is_error)),
            _ => None,
        })
        .collect()
}

/// §11.30
#[tokio::test]
async fn a_call_outside_of_the_allowed_tools_never_runs_and_never_appears() {
    for is_streamed in [false, true] {
        let (allowed, allowed_runs) = echo("echo");
        let (forbidden, forbidden_runs) = echo("other");
        let model = ScriptedModel::new([
            call("other", json!({"text": "no"})).call("echo", json!({"text": "yes"})),
            say("done"),
        ]);
        let served = Setup::of(model.clone())
            .tools([allowed, forbidden])
            .serve()
            .await;
        let choice = json!({"type": "allowed_tools", "mode": "auto",
            "tools": [{"type": "haft:echo"}]});
        let body = json!({"input": "go", "tool_choice": choice,
            "tools": [{"type": "haft:other"}, {"type": "haft:echo"}]});
        let response = if is_streamed {
            last(&served.stream(body).await).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(forbidden_runs.load(Ordering::SeqCst), 0);
        assert_eq!(allowed_runs.load(Ordering::SeqCst), 1);
        assert_eq!(item_types(&response), ["haft:echo", "message"]);
        // The model is told, and sees all tools as before.
        let told = outputs(&model, 1);
        assert!(told[0].1 && told[0].0.contains("echo"), "{told:?}");
        assert_eq!(told[1], ("echo: yes".to_owned(), false));
        for request in model.received() {
            let names: Vec<_> = request.tools.iter().collect();
            assert_eq!(names.len(), 2);
        }
    }
}

/// §11.30, for functions of the client.
#[tokio::test]
async fn a_function_that_is_not_allowed_is_not_handed_to_the_client() {
    let (served, _) = serve([call("b", json!({})).call("a", json!({}))]).await;
    let choice = json!({"type": "allowed_tools", "tools": [{"type": "function", "name": "a"}]});
    let body =
        json!({"input": "go", "tools": [function("a"), function("b")], "tool_choice": choice});
    let events = served.stream(body).await;
    let response = last(&events);
    let names = response["output"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a"]);
    let echo = json!({"type": "allowed_tools", "mode": "auto",
        "tools": [{"type": "function", "name": "a"}]});
    assert_eq!(response["tool_choice"], echo);
    assert_eq!(response["tools"].as_array().unwrap().len(), 2);
}

/// §11.31
#[tokio::test]
async fn a_choice_is_followed_or_fails_loudly() {
    let choices = [
        json!("required"),
        json!({"type": "function", "name": "look"}),
    ];
    for choice in choices {
        let ask = json!({"input": "go", "tools": [function("look")], "tool_choice": choice});
        // Reminded once, it follows; the text of the first try is never seen.
        let (served, model) = serve([say("no"), call("look", json!({}))]).await;
        let response = last(&served.stream(ask.clone()).await).clone();
        assert_eq!(item_types(&response), ["function_call"]);
        assert_eq!(model.received().len(), 2);
        // Not even then.
        let (served, _) = serve([say("no"), say("never"), say("no"), say("never")]).await;
        let answer = served.post("/responses", ask.clone()).await;
        let expected = (500, "tool_choice_not_followed", Some("tool_choice"));
        assert_eq!(answer.error(), expected);
        assert_eq!(answer.body["error"]["type"], "model_error");
        // In a stream, by its status or by its last events: nothing was shown before.
        let mut streamed = ask;
        streamed["stream"] = true.into();
        let answer = served.post("/responses", streamed).await;
        let told = answer.body.to_string();
        assert!(told.contains("tool_choice_not_followed"), "{told}");
        assert!(!told.contains("response.completed"), "{told}");
        assert!(!told.contains("output_item"), "{told}");
    }
}

/// §11.31
#[tokio::test]
async fn none_means_that_nothing_is_called() {
    let (served, model) = serve([call("look", json!({})), say("words")]).await;
    let body = json!({"input": "go", "tools": [function("look")], "tool_choice": "none"});
    let response = last(&served.stream(body).await).clone();
    assert_eq!(item_types(&response), ["message"]);
    assert_eq!(model.received().len(), 2);
}

/// §11.32
#[tokio::test]
async fn a_mixed_turn_runs_ours_and_hands_out_theirs() {
    let (tool, runs) = echo("echo");
    let model = ScriptedModel::new([
        call("echo", json!({"text": "a"}))
            .with_id("call_a")
            .call("look", json!({"text": "b"}))
            .with_id("call_b"),
        say("done"),
    ]);
    let served = Setup::of(model.clone()).tools([tool]).serve().await;
    let tools = json!([function("look"), {"type": "haft:echo"}]);
    let asked = last(&served.stream(json!({"input": "go", "tools": tools})).await).clone();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(item_types(&asked), ["haft:echo", "function_call"]);
    assert_eq!(asked["output"][0]["output"], "echo: a");
    assert_eq!(asked["status"], "completed");
    let output = json!([{"type": "function_call_output", "call_id": "call_b", "output": "seen"}]);
    served
        .create(json!({"previous_response_id": asked["id"], "input": output, "tools": tools}))
        .await;
    let request = model.received()[1].clone();
    let kinds: Vec<_> = request.conversation.items().map(Item::kind).collect();
    let expected = [
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ];
    assert_eq!(kinds, expected);
    let mut told = outputs(&model, 1);
    told.sort();
    assert_eq!(
        told,
        [("echo: a".to_owned(), false), ("seen".to_owned(), false)]
    );
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// §11.33
#[tokio::test]
async fn the_cap_counts_calls_and_leaves_room_for_an_answer() {
    let (tool, runs) = echo("echo");
    let model = ScriptedModel::new([
        call("echo", json!({"text": "1"})).call("echo", json!({"text": "2"})),
        call("echo", json!({"text": "3"})).call("echo", json!({"text": "4"})),
        say("three will do"),
    ]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let body = json!({"input": "go", "max_tool_calls": 3, "tools": [{"type": "haft:echo"}]});
    let response = served.create(body).await;
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    assert_eq!(response["status"], "incomplete");
    assert_eq!(
        response["incomplete_details"],
        json!({"reason": "max_tool_calls"})
    );
    let output = response["output"].as_array().unwrap();
    assert_eq!(output[3]["status"], "failed");
    assert_eq!(output[4]["content"][0]["text"], "three will do");
    assert_eq!(response["usage"]["input_tokens"], 30);
}

/// §11.33: calls of the client do not count.
#[tokio::test]
async fn calls_of_the_client_are_not_counted() {
    let (served, _) = serve([call("a", json!({})).call("b", json!({}))]).await;
    let body = json!({"input": "go", "max_tool_calls": 1, "tools": [function("a"), function("b")]});
    let response = served.create(body).await;
    assert_eq!(response["status"], "completed");
    assert_eq!(item_types(&response), ["function_call", "function_call"]);
}

/// §11.34
#[tokio::test]
async fn the_same_request_gives_the_same_bytes() {
    let names = ["zeta", "alpha", "mid", "omega", "beta"];
    let tools: Vec<Value> = names.iter().map(|name| function(name)).collect();
    let mut tools = tools;
    tools.push(json!({"type": "haft:echo"}));
    tools.push(json!({"type": "namespace", "name": "sky", "tools": [function("zeta")]}));
    let body = json!({"input": "go", "tools": tools, "store": false, "metadata": {"a": "b"}});
    for kind in BACKENDS {
        let behind = backend([say("ok").forever()]).await;
        let served = kind
            .setup(&behind)
            .tools([echo("echo").0, echo("other").0])
            .serve()
            .await;
        for _ in 0..4 {
            served.create(body.clone()).await;
        }
        let received = behind.received();
        assert!(
            received
                .iter()
                .all(|request| request.raw == received[0].raw),
            "{kind:?}"
        );
        let offered = &received[0].view.tools;
        let expected = ["zeta", "alpha", "mid", "omega", "beta", "echo", "sky__zeta"];
        assert_eq!(offered, &expected, "{kind:?}");
    }
}

/// §11.35
#[tokio::test]
async fn tools_of_one_name_in_two_places_are_both_callable() {
    let (tool, runs) = echo("look");
    let tools = json!([
        function("look"),
        {"type": "namespace", "name": "sky", "tools": [function("look")]},
        {"type": "namespace", "name": "sea", "tools": [function("look")]},
        {"type": "haft:look"},
    ]);
    let model = ScriptedModel::new([say("ok")]);
    let served = Setup::of(model.clone()).tools([tool.clone()]).serve().await;
    served.create(json!({"input": "go", "tools": tools})).await;
    let names: Vec<String> = model.received()[0]
        .tools
        .iter()
        .map(|tool| tool.definition().name().as_str().to_owned())
        .collect();
    assert_eq!(names.len(), 4);
    let unique: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(unique.len(), 4, "{names:?}");

    let mut step = Step::default();
    for (at, name) in names.iter().enumerate() {
        step = step.call(name.as_str(), json!({"text": format!("{at}")}));
    }
    let served = Setup::of(ScriptedModel::new([step]))
        .tools([tool])
        .serve()
        .await;
    let response = served.create(json!({"input": "go", "tools": tools})).await;
    let output = response["output"].as_array().unwrap();
    let shown: Vec<_> = output
        .iter()
        .map(|item| (item["type"].as_str().unwrap(), item["namespace"].as_str()))
        .collect();
    let expected = [
        ("function_call", None),
        ("function_call", Some("sky")),
        ("function_call", Some("sea")),
        ("haft:look", None),
    ];
    assert_eq!(shown, expected);
    assert!(output[..3].iter().all(|item| item["name"] == "look"));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(output[3]["output"], "look: 3");
}

/// §11.36
#[tokio::test]
async fn a_failed_tool_is_marked_in_the_item_and_for_the_model() {
    let (tool, _) = echo("echo");
    let behind = backend([
        call("echo", json!({"fail": true})).with_id("toolu_a"),
        say("sorry"),
        say("still sorry"),
    ])
    .await;
    let served = Backend::Anthropic
        .setup(&behind)
        .tools([tool])
        .serve()
        .await;
    let tools = json!([{"type": "haft:echo"}]);
    let response = served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(response["status"], "completed");
    let item = &response["output"][0];
    assert_eq!(item["status"], "failed");
    assert_eq!(item["output"], Value::Null);
    let message = item["error"]["message"].as_str().unwrap();
    assert!(message.contains("broken today"), "{message}");
    // In the same response, and again when it is continued.
    let next = json!({"input": "why?", "previous_response_id": response["id"], "tools": tools});
    served.create(next).await;
    for request in &behind.received()[1..] {
        let told = request.body["messages"].to_string();
        assert!(told.contains(r#""is_error":true"#), "{told}");
        assert!(told.contains("broken today"), "{told}");
    }
}

/// §5.8: an error that the client marks stays one.
#[tokio::test]
async fn an_output_that_the_client_marks_as_error_is_one_for_the_model() {
    let behind = backend([say("ok")]).await;
    let served = Backend::Anthropic.setup(&behind).serve().await;
    let input = json!([
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "blind", "is_error": true},
    ]);
    let response = served
        .create(json!({"input": input, "tools": [function("look")]}))
        .await;
    let told = behind.received()[0].body["messages"].to_string();
    assert!(told.contains(r#""is_error":true"#), "{told}");
    let id = response["id"].as_str().unwrap();
    let items = served
        .get(&format!("/responses/{id}/input_items?order=asc"))
        .await
        .ok();
    assert_eq!(items["data"][2]["is_error"], true);
}

/// §11.37
#[tokio::test]
async fn a_call_has_a_time_limit_and_the_run_goes_on() {
    let (tool, seen) = endless(Some(Duration::from_millis(80)));
    let model = ScriptedModel::new([call("endless", json!({})), say("it took too long")]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let body = json!({"input": "go", "tools": [{"type": "haft:endless"}]});
    let response = served.create(body).await;
    assert_eq!(response["status"], "completed");
    assert_eq!(response["output"][0]["status"], "failed");
    assert_eq!(response["output"][0]["error"]["type"], "timed_out");
    crate::tools::soon(&seen.stopped, Duration::from_secs(1)).await;
}

/// §11.37
#[tokio::test]
async fn no_more_calls_run_at_a_time_than_the_operator_allows() {
    let (tool, seen) = endless(Some(Duration::from_millis(60)));
    let mut step = call("endless", json!({}));
    for at in 0..7 {
        step = step.call("endless", json!({"text": format!("{at}")}));
    }
    let setup = Setup::of(ScriptedModel::new([step, say("done")])).tools([tool]);
    let setup = setup.options(|options| options.loop_options.max_parallel = 2);
    let served = setup.serve().await;
    let body = json!({"input": "go", "tools": [{"type": "haft:endless"}]});
    let response = served.create(body).await;
    assert_eq!(item_types(&response).len(), 9);
    assert_eq!(seen.most(), 2);
}

/// §11.37
#[tokio::test]
async fn a_result_has_a_size_limit() {
    let model = ScriptedModel::new([call("flood", json!({})), say("much")]);
    let setup = Setup::of(model.clone()).tools([flood(200_000)]);
    let setup = setup.options(|options| options.loop_options.max_result_bytes = Some(1000));
    let served = setup.serve().await;
    let body = json!({"input": "go", "tools": [{"type": "haft:flood"}]});
    let response = served.create(body).await;
    assert_eq!(response["status"], "completed");
    let told = outputs(&model, 1);
    assert!(told[0].0.len() < 2000, "{}", told[0].0.len());
    assert!(response.to_string().len() < 10_000);
}

/// §11.38
#[tokio::test]
async fn tools_of_coding_agents_are_taken_and_callable() {
    let tools = json!([
        {"type": "namespace", "name": "shell", "description": "Commands.", "tools": [function("run")]},
        {"type": "custom", "name": "apply_patch", "description": "Patches.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
        {"type": "tool_search", "execution": "client"},
        {"type": "web_search"},
    ]);
    for kind in BACKENDS {
        let step = call("shell__run", json!({"text": "ls"}))
            .call("apply_patch", json!({"input": "*** Begin Patch"}))
            .call("tool_search", json!({"query": "boats"}));
        let behind = backend([step]).await;
        let served = kind.setup(&behind).serve().await;
        let answer = served
            .post("/responses", json!({"input": "go", "tools": tools}))
            .await;
        assert_eq!(
            answer.header("haft-warning"),
            Some("ignored tool type web_search")
        );
        let response = answer.ok();
        let types = item_types(&response);
        assert_eq!(
            types,
            ["function_call", "custom_tool_call", "tool_search_call"],
            "{kind:?}"
        );
        assert_eq!(response["output"][0]["namespace"], "shell");
        assert_eq!(response["output"][1]["input"], "*** Begin Patch");
        assert_eq!(
            response["output"][2]["arguments"],
            json!({"query": "boats"})
        );
        assert_eq!(response["tools"], tools_as_echoed(&tools));
        // All of them are answered, and what was found can be called.
        let outputs = json!([
            {"type": "function_call_output", "call_id": response["output"][0]["call_id"], "output": "a"},
            {"type": "custom_tool_call_output", "call_id": response["output"][1]["call_id"], "output": "b"},
            {"type": "tool_search_output", "call_id": response["output"][2]["call_id"],
                "execution": "client", "status": "completed", "tools": [function("row")]},
        ]);
        let behind = backend([call("row", json!({"text": "fast"}))]).await;
        let mut next = kind.setup(&behind);
        next.store = std::sync::Arc::clone(&served.store);
        let served = next.serve().await;
        let response = served
            .create(
                json!({"input": outputs, "previous_response_id": response["id"], "tools": tools}),
            )
            .await;
        assert_eq!(response["output"][0]["name"], "row", "{kind:?}");
        assert!(behind.received()[0].view.tools.contains(&"row".to_owned()));
    }
}

/// Functions inside of a namespace are echoed as they were sent.
fn tools_as_echoed(tools: &Value) -> Value {
    tools.clone()
}

/// §11.38: deferred tools wait for their search and are callable afterwards.
#[tokio::test]
async fn deferred_tools_are_held_back_until_the_client_finds_them() {
    let mut deferred = function("far");
    deferred["defer_loading"] = true.into();
    let tools = json!([deferred, {"type": "tool_search", "execution": "client"}]);
    let (served, model) = serve([call("tool_search", json!({"query": "far"}))]).await;
    let response = served.create(json!({"input": "go", "tools": tools})).await;
    let request = &model.received()[0];
    let names: Vec<_> = request.tools.iter().collect();
    assert_eq!(names.len(), 1);
    let shown = names[0].definition().description().unwrap_or_default();
    assert!(shown.contains("far"), "{shown}");
    assert_eq!(item_types(&response), ["tool_search_call"]);
    assert_eq!(response["status"], "completed");
}

/// §11.39
#[tokio::test]
async fn a_hosted_call_is_never_shown_as_a_function_call() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new([call("echo", json!({"text": "a"})), say("done")]);
    let served = Setup::of(model).tools([tool]).serve().await;
    let events = served
        .stream(json!({"input": "go", "tools": [{"type": "haft:echo"}]}))
        .await;
    let text = serde_json::to_string(&events).unwrap();
    assert!(!text.contains("function_call"), "{text}");
}

/// §11.40
#[tokio::test]
async fn a_tool_that_nobody_provides_is_refused_and_never_forwarded() {
    for kind in BACKENDS {
        let behind = backend([]).await;
        let served = kind.setup(&behind).serve().await;
        for tool in [
            json!({"type": "code_interpreter", "container": {"type": "auto"}}),
            json!({"type": "haft:nobody"}),
            json!({"type": "other:thing"}),
            json!({"type": "telepathy"}),
        ] {
            let body = json!({"input": "go", "tools": [function("look"), tool]});
            let answer = served.post("/responses", body).await;
            let expected = (400, "unsupported_tool", Some("tools[1].type"));
            assert_eq!(answer.error(), expected, "{tool}");
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(
                message.contains(tool["type"].as_str().unwrap()),
                "{message}"
            );
        }
        let nobody = json!({"type": "mcp", "server_label": "nobody"});
        let body = json!({"input": "go", "tools": [function("look"), nobody]});
        let answer = served.post("/responses", body).await;
        let expected = (400, "mcp_server_not_allowed", Some("tools[1].server_label"));
        assert_eq!(answer.error(), expected);
        assert_eq!(behind.received().len(), 0);
    }
}

/// §11.41
#[tokio::test]
async fn a_failure_in_the_middle_keeps_what_is_finished() {
    for is_streamed in [false, true] {
        let (tool, _) = echo("echo");
        let behind = backend([
            call("echo", json!({"text": "a"})),
            Step::default().fault(Fault::status(500)),
        ])
        .await;
        let served = Backend::Chat.setup(&behind).tools([tool]).serve().await;
        let body = json!({"input": "go", "tools": [{"type": "haft:echo"}]});
        let response = if is_streamed {
            last(&served.stream(body).await).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(response["status"], "failed");
        assert_eq!(response["error"]["code"], "model_error");
        assert_eq!(item_types(&response), ["haft:echo"]);
        assert_eq!(response["output"][0]["output"], "echo: a");
        assert_eq!(served.stored(&response["id"]).await, response);
    }
}

/// §11.42
#[tokio::test]
async fn a_plain_request_stays_plain_whatever_is_configured() {
    let (tool, _) = echo("echo");
    let behind = backend([say("one"), say("two")]).await;
    let setup = Backend::Chat.setup(&behind).tools([tool, echo("other").0]);
    let served = setup.serve().await;
    let response = served.create(json!({"input": "go"})).await;
    assert_eq!(response["tools"], json!([]));
    assert_eq!(response["status"], "completed");
    assert_eq!(item_types(&response), ["message"]);
    assert!(behind.received()[0].body.get("tools").is_none());
    // Every other route is there as well.
    assert_eq!(served.get("/models").await.status, 200);
    let body = json!({"input": "go"});
    assert_eq!(
        served.post("/responses/input_tokens", body).await.status,
        200
    );
}
