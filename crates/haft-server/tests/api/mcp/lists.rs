//! Which tools there are, and how the client hears of them.

use haft_mcp::Approve;
use haft_models::ScriptedModel;
use haft_models::testing::{call, fail, offers, say};
use serde_json::{Value, json};

use super::server::{Fake, configured, setup, tool};
use crate::support::{function, item_types, kinds, last};

#[tokio::test]
async fn a_list_comes_before_everything_that_the_model_says() {
    let air = Fake::with(&["find", "book"]).await;
    let model = ScriptedModel::new([say("hello").expect(offers(["air__find", "air__book"]))]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let events = served
        .stream(json!({"input": "go", "tools": [air.entry("air")]}))
        .await;
    model.assert_finished();
    assert_eq!(
        kinds(&events)[2..7],
        [
            "response.output_item.added",
            "response.mcp_list_tools.in_progress",
            "response.mcp_list_tools.completed",
            "response.output_item.done",
            "response.output_item.added",
        ]
    );
    let added = &events[2]["item"];
    let id = added["id"].as_str().unwrap();
    assert!(id.starts_with("mcpl_"));
    assert_eq!(
        *added,
        json!({"id": id, "type": "mcp_list_tools", "status": "in_progress",
            "server_label": "air", "tools": [], "error": null})
    );
    for event in &events[3..5] {
        assert_eq!(
            (&event["item_id"], &event["output_index"]),
            (&json!(id), &json!(0))
        );
    }
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    assert_eq!(
        events[5]["item"],
        json!({"id": id, "type": "mcp_list_tools", "status": "completed",
        "server_label": "air", "error": null, "tools": [
            {"name": "find", "description": "Does find.", "input_schema": schema,
             "annotations": null},
            {"name": "book", "description": "Does book.", "input_schema": schema,
             "annotations": null},
        ]})
    );
}

#[tokio::test]
async fn one_list_per_chain_unless_it_changed() {
    let air = Fake::with(&["find"]).await;
    let model = ScriptedModel::new([say("1"), say("2"), say("3"), say("4")]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let tools = json!([air.entry("air")]);
    let first = served.create(json!({"input": "a", "tools": tools})).await;
    assert_eq!(item_types(&first), ["mcp_list_tools", "message"]);
    let next = json!({"input": "b", "tools": tools, "previous_response_id": first["id"]});
    let second = served.create(next).await;
    assert_eq!(item_types(&second), ["message"]);
    // A client that keeps its items itself.
    let mut items = first["output"].as_array().unwrap().clone();
    items.push(json!({"role": "user", "content": "c"}));
    let third = json!({"input": items, "tools": tools, "store": false});
    assert_eq!(item_types(&served.create(third).await), ["message"]);
    // What is not the same to this request is listed again.
    let mut narrowed = air.entry("air");
    narrowed["allowed_tools"] = json!([]);
    let next = json!({"input": "d", "tools": [narrowed], "previous_response_id": first["id"]});
    let fourth = served.create(next).await;
    assert_eq!(item_types(&fourth), ["mcp_list_tools", "message"]);
    assert_eq!(fourth["output"][0]["tools"], json!([]));
    assert_eq!(
        fourth["output"][0]["error"],
        "`allowed_tools` admits none of the 1 tools of the server"
    );
    // The server was asked once for all of them.
    assert_eq!(air.lists(), 1);
}

#[tokio::test]
async fn a_server_that_is_down_costs_only_itself() {
    let air = Fake::with(&["find"]).await;
    let gone = Fake::with(&[]).await;
    let entry = gone.entry("gone");
    let model = ScriptedModel::new([
        call("air__find", json!({"q": "x"})).expect(offers(["air__find"])),
        say("done"),
    ]);
    let served = setup(model.clone(), &[&air, &gone]).serve().await;
    drop(gone);
    let body = json!({"input": "go", "tools": [entry, air.entry("air")]});
    let events = served.stream(body.clone()).await;
    let response = last(&events);
    let expected = ["mcp_list_tools", "mcp_list_tools", "mcp_call", "message"];
    assert_eq!(item_types(response), expected);
    let failed = &response["output"][0];
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["server_label"], "gone");
    assert_eq!(failed["tools"], json!([]));
    assert!(
        failed["error"]
            .as_str()
            .unwrap()
            .contains("cannot be reached"),
        "{failed}"
    );
    assert!(kinds(&events).contains(&"response.mcp_list_tools.failed"));
    assert_eq!(response["status"], "completed");

    let mut forced = body.clone();
    forced["tool_choice"] = json!({"type": "mcp", "server_label": "gone"});
    let answer = served.post("/responses", forced).await;
    assert_eq!(
        answer.error(),
        (424, "mcp_server_unavailable", Some("tool_choice"))
    );
    assert_eq!(answer.body["error"]["type"], "model_error");
}

#[tokio::test]
async fn the_same_name_on_several_servers_and_as_a_function_is_three_tools() {
    let (air, sea) = (Fake::with(&["find"]).await, Fake::with(&["find"]).await);
    let model = ScriptedModel::new([]);
    let served = setup(model.clone(), &[&air, &sea]).serve().await;
    let tools = json!([air.entry("air"), sea.entry("sea"), function("air__find")]);
    // What the model calls them, it tells by what it is offered.
    served
        .post("/responses", json!({"input": "go", "tools": tools}))
        .await;
    let offered = model.received()[0].tools.clone();
    let names: Vec<String> = offered
        .iter()
        .map(|tool| tool.definition().name().to_string())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0].starts_with("air__find_"), "{names:?}");
    assert_eq!(names[1..], ["sea__find", "air__find"]);

    let model = ScriptedModel::new([
        call(&names[0], json!({"q": "a"})),
        call("sea__find", json!({"q": "b"})),
        say("done"),
    ]);
    let served = setup(model, &[&air, &sea]).serve().await;
    let response = served.create(json!({"input": "go", "tools": tools})).await;
    let calls: Vec<_> = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "mcp_call")
        .map(|item| {
            (
                item["server_label"].clone(),
                item["name"].clone(),
                item["output"].clone(),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [
            (json!("air"), json!("find"), json!("find: a")),
            (json!("sea"), json!("find"), json!("find: b")),
        ]
    );
    assert_eq!(
        (air.called(), sea.called()),
        (vec!["find".into()], vec!["find".into()])
    );
}

#[tokio::test]
async fn allowed_tools_decide_what_is_shown_at_all() {
    let air = Fake::with(&[]).await;
    let mut safe = tool("look");
    safe["annotations"] = json!({"readOnlyHint": true});
    air.set_tools(vec![safe, tool("book"), tool("find")]);
    let offered = |entry: Value, is_trusted: bool| {
        let air = air.clone();
        async move {
            let model = ScriptedModel::new([say("ok")]);
            let mut settings = air.settings("air", Approve::Never);
            settings.trusted = is_trusted;
            let served = configured(model.clone(), vec![settings]).serve().await;
            let mut tool = json!({"type": "mcp", "server_label": "air"});
            tool["allowed_tools"] = entry;
            served.create(json!({"input": "go", "tools": [tool]})).await;
            let tools = model.received().remove(0).tools;
            tools
                .iter()
                .map(|tool| tool.definition().name().to_string())
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(
        offered(json!(["find", "nothing"]), false).await,
        ["air__find"]
    );
    assert_eq!(
        offered(json!({"tool_names": ["book"]}), false).await,
        ["air__book"]
    );
    assert_eq!(
        offered(json!({"read_only": true}), true).await,
        ["air__look"]
    );
    // What a stranger says about himself counts for nothing.
    assert_eq!(offered(json!({"read_only": true}), false).await, [""; 0]);
    assert_eq!(offered(Value::Null, false).await.len(), 3);
}

#[tokio::test]
async fn a_deferred_server_waits_for_the_clients_search() {
    let air = Fake::with(&["find"]).await;
    let mut entry = air.entry("air");
    entry["defer_loading"] = true.into();
    entry["server_description"] = "Flights of today.".into();
    let model = ScriptedModel::new([
        call("tool_search", json!({"query": "flights"})),
        call("air__find", json!({"q": "x"})).expect(offers(["tool_search", "air__find"])),
        say("done"),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let tools = json!([entry, {"type": "tool_search", "execution": "client"}]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(item_types(&first), ["tool_search_call"]);
    assert_eq!(air.lists(), 0);
    let search = model.received()[0].tools.clone();
    let described = search
        .iter()
        .next()
        .unwrap()
        .definition()
        .description()
        .unwrap()
        .to_owned();
    assert!(
        described.contains("- air: Flights of today."),
        "{described}"
    );

    let loaded = json!({"type": "tool_search_output", "status": "completed",
        "execution": "client", "call_id": first["output"][0]["call_id"],
        "tools": [air.entry("air")]});
    let second = served
        .create(json!({"input": [loaded], "tools": tools, "previous_response_id": first["id"]}))
        .await;
    assert_eq!(
        item_types(&second),
        ["mcp_list_tools", "mcp_call", "message"]
    );
    model.assert_finished();
}

#[tokio::test]
async fn tool_choice_names_servers_and_their_tools() {
    use haft_core::{AllowedMode, AllowedTools, ToolChoice};

    let air = Fake::with(&["find", "book"]).await;
    let model = ScriptedModel::new([
        call("air__find", json!({})),
        say("1"),
        call("air__book", json!({})),
        say("2"),
        say("3"),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let body = |choice: Value| json!({"input": "go", "tools": [air.entry("air"), function("f")], "tool_choice": choice});
    let find = json!({"type": "mcp", "server_label": "air", "name": "find"});
    let any = json!({"type": "mcp", "server_label": "air"});
    served.create(body(find.clone())).await;
    served.create(body(any.clone())).await;
    let allowed =
        json!({"type": "allowed_tools", "tools": [find, {"type": "function", "name": "f"}]});
    let response = served.create(body(allowed)).await;
    assert_eq!(response["tool_choice"]["tools"][0], find);
    let choices: Vec<_> = model
        .received()
        .into_iter()
        .map(|it| it.tool_choice.unwrap())
        .collect();
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    assert_eq!(choices[0], ToolChoice::Function("air__find".into()));
    assert_eq!(
        choices[2],
        ToolChoice::Allowed(AllowedTools {
            mode: AllowedMode::Required,
            names: names(["air__find", "air__book"]),
        })
    );
    // The rest of the tools is there again once one of the server's has run.
    assert_eq!(choices[3], ToolChoice::Auto);
    assert_eq!(
        choices[4],
        ToolChoice::Allowed(AllowedTools {
            mode: AllowedMode::Auto,
            names: names(["air__find", "f"]),
        })
    );
    let nothing = json!({"type": "mcp", "server_label": "air", "name": "nothing"});
    let answer = served.post("/responses", body(nothing)).await;
    assert_eq!(answer.error(), (400, "tool_not_found", Some("tool_choice")));
}

#[tokio::test]
async fn servers_are_asked_all_at_once() {
    let (air, sea) = (Fake::with(&["find"]).await, Fake::with(&["find"]).await);
    // Neither answers before both were asked.
    let both = std::sync::Arc::new(tokio::sync::Barrier::new(2));
    air.list_with(&both);
    sea.list_with(&both);
    let model = ScriptedModel::new([say("ok")]);
    let served = setup(model, &[&air, &sea]).serve().await;
    let body = json!({"input": "go", "tools": [air.entry("air"), sea.entry("sea")]});
    let response = served.create(body).await;
    let labels: Vec<_> = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["server_label"].clone())
        .collect();
    assert_eq!(labels[..2], ["air", "sea"]);
    assert_eq!(response["output"][1]["status"], "completed");
}

#[tokio::test]
async fn a_model_that_fails_behind_a_list_leaves_the_list() {
    let air = Fake::with(&["find"]).await;
    let model = ScriptedModel::new([fail(500), fail(500)]);
    let served = setup(model, &[&air]).serve().await;
    let body = json!({"input": "go", "tools": [air.entry("air")]});
    let response = served.create(body.clone()).await;
    assert_eq!(response["status"], "failed");
    assert_eq!(item_types(&response), ["mcp_list_tools"]);
    let events = served.stream(body).await;
    assert_eq!(item_types(last(&events)), ["mcp_list_tools"]);
    assert_eq!(events[events.len() - 2]["type"], "error");
}

#[tokio::test]
async fn an_empty_or_shortened_list_has_its_reason_and_is_listed_once() {
    let empty = Fake::with(&[]).await;
    let short = Fake::with(&["find"]).await;
    let mut broken = tool("broken");
    broken["inputSchema"] = json!(7);
    short.set_tools(vec![tool("find"), broken]);
    let model = ScriptedModel::new([say("1").expect(offers(["short__find"])), say("2")]);
    let served = setup(model.clone(), &[&empty, &short]).serve().await;
    let tools = json!([empty.entry("empty"), short.entry("short")]);
    let first = served.create(json!({"input": "a", "tools": tools})).await;
    let expected = ["mcp_list_tools", "mcp_list_tools", "message"];
    assert_eq!(item_types(&first), expected);
    let (none, one) = (&first["output"][0], &first["output"][1]);
    assert_eq!(none["error"], "the server lists no tools");
    assert_eq!(one["tools"].as_array().unwrap().len(), 1);
    let error = one["error"].as_str().unwrap();
    assert!(error.starts_with("tool `broken` is left out: "), "{error}");
    for item in [none, one] {
        assert_eq!(item["status"], "completed");
    }
    // The same list with the same reason is not repeated.
    let next = json!({"input": "b", "tools": tools, "previous_response_id": first["id"]});
    assert_eq!(item_types(&served.create(next).await), ["message"]);
    model.assert_finished();
}
