//! MCP servers whose tools are held back until somebody searches for them.

use haft_mcp::{Approve, Defer};
use haft_models::ScriptedModel;
use haft_models::testing::{call, offers, say};
use serde_json::{Value, json};

use super::server::{Fake, configured, setup};
use crate::support::item_types;

fn search(words: &str) -> Value {
    json!({"query": words, "limit": 1})
}

#[tokio::test]
async fn tools_of_a_deferred_server_are_found_here() {
    let air = Fake::with(&["find", "book"]).await;
    let mut entry = air.entry("air");
    entry["defer_loading"] = true.into();
    entry["server_description"] = "Flights of today.".into();
    entry["headers"] = json!({"X-Org": "secret-7"});
    let tools = json!([entry, {"type": "tool_search"}]);
    let model = ScriptedModel::new([
        call("search_tools", search("book")).expect(offers(["search_tools"])),
        call("air__book", json!({"q": "oslo"})).expect(offers(["search_tools", "air__book"])),
        say("booked"),
        call("air__book", json!({"q": "rome"})).expect(offers(["search_tools", "air__book"])),
        say("again"),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(
        item_types(&first),
        [
            "mcp_list_tools",
            "tool_search_call",
            "tool_search_output",
            "mcp_call",
            "message"
        ]
    );
    let found = &first["output"][2]["tools"];
    assert_eq!(found[0]["type"], "mcp");
    assert_eq!(found[0]["server_label"], "air");
    assert_eq!(found[0]["allowed_tools"], json!(["book"]));
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert!(!first.to_string().contains("secret-7"));
    let described = model.received()[0].tools.clone();
    let described = described.iter().next().unwrap().definition().clone();
    let told = described.description().unwrap();
    assert!(
        told.ends_with("It finds:\n- air: Flights of today."),
        "{told}"
    );
    // The request says where the server is, and with what; the item says what was found.
    let body = json!({"input": "again", "tools": tools, "previous_response_id": first["id"]});
    let second = served.create(body).await;
    assert_eq!(item_types(&second), ["mcp_call", "message"]);
    let calls = air.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].arguments["q"], "rome");
    assert_eq!(calls[1].headers["x-org"], "secret-7");
    model.assert_finished();
}

#[tokio::test]
async fn a_deferred_server_cannot_be_demanded_before_it_is_loaded() {
    let air = Fake::with(&["find", "book"]).await;
    let mut entry = air.entry("air");
    entry["defer_loading"] = true.into();
    let model = ScriptedModel::new([]);
    let served = setup(model, &[&air]).serve().await;
    for choice in [
        json!({"type": "mcp", "server_label": "air"}),
        json!({"type": "mcp", "server_label": "air", "name": "book"}),
    ] {
        let body = json!({"input": "go", "tools": [entry, {"type": "tool_search"}],
            "tool_choice": choice});
        let answer = served.post("/responses", body).await;
        assert_eq!(answer.error(), (400, "tool_not_found", Some("tool_choice")));
    }
}

#[tokio::test]
async fn what_needs_approval_needs_it_when_it_is_loaded_too() {
    let air = Fake::with(&["book"]).await;
    let mut entry = air.entry("air");
    entry["defer_loading"] = true.into();
    entry["require_approval"] = "always".into();
    let tools = json!([entry, {"type": "tool_search"}]);
    let model = ScriptedModel::new([
        call("search_tools", search("book")),
        call("air__book", json!({"q": "oslo"})),
        say("booked"),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(
        item_types(&first)[1..],
        [
            "tool_search_call",
            "tool_search_output",
            "mcp_approval_request"
        ]
    );
    assert_eq!(air.calls().len(), 0);
    let yes = json!([{"type": "mcp_approval_response", "approve": true,
        "approval_request_id": first["output"][3]["id"]}]);
    let body = json!({"input": yes, "tools": tools, "previous_response_id": first["id"]});
    let second = served.create(body).await;
    assert_eq!(item_types(&second), ["mcp_call", "message"], "{second:#}");
    assert_eq!(air.called(), ["book"]);
    model.assert_finished();
}

#[tokio::test]
async fn an_operators_word_holds_back_without_a_word_on_the_wire() {
    let air = Fake::with(&["find", "book"]).await;
    let mut settings = air.settings("air", Approve::Never);
    settings.defer = Defer::Always;
    settings.description = Some("Flights.".to_owned());
    let model = ScriptedModel::new([
        call("search_tools", search("find")).expect(offers(["search_tools"])),
        call("air__find", json!({"q": "oslo"})).expect(offers(["search_tools", "air__find"])),
        say("found"),
        say("fine").expect(offers(["search_tools", "air__find"])),
        call("air__book", json!({})).expect(offers(["air__book", "search_tools"])),
        say("booked"),
    ]);
    let served = configured(model.clone(), vec![settings]).serve().await;
    let tools = json!([{"type": "mcp", "server_label": "air"}]);
    let first = served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(
        item_types(&first),
        ["mcp_list_tools", "mcp_call", "message"]
    );
    let body = json!({"input": "on", "tools": tools, "previous_response_id": first["id"]});
    served.create(body).await;
    // Whoever names a tool gets it, as the request defers nothing.
    let choice = json!({"type": "mcp", "server_label": "air", "name": "book"});
    let body = json!({"input": "go", "tools": tools, "tool_choice": choice});
    let third = served.create(body).await;
    assert_eq!(item_types(&third)[1], "mcp_call");
    model.assert_finished();
}

#[tokio::test]
async fn a_server_that_is_always_there_is_not_held_back_among_many() {
    let air = Fake::with(&["find"]).await;
    let mut settings = air.settings("air", Approve::Never);
    settings.defer = Defer::Never;
    let model = ScriptedModel::new([say("ok").expect(offers(["air__find", "search_tools"]))]);
    let names: Vec<_> = (0..30).map(|at| format!("tool_{at}")).collect();
    let served = configured(model.clone(), vec![settings])
        .tools(names.iter().map(|name| crate::tools::echo(name).0))
        .options(|options| options.loop_options.defer_above = Some(20))
        .serve()
        .await;
    let tools = names
        .iter()
        .map(|name| json!({"type": format!("haft:{name}")}));
    let mut tools: Vec<Value> = tools.collect();
    tools.push(json!({"type": "mcp", "server_label": "air"}));
    served.create(json!({"input": "go", "tools": tools})).await;
    model.assert_finished();
}

#[tokio::test]
async fn what_a_request_says_about_a_server_holds_against_what_was_loaded_before() {
    let air = Fake::with(&["find", "book"]).await;
    let mut loose = air.entry("air");
    loose["require_approval"] = "never".into();
    let brought = json!([{"type": "additional_tools", "role": "developer", "tools": [loose]},
        {"role": "user", "content": "go"}]);
    let model = ScriptedModel::new([
        say("loaded"),
        call("air__book", json!({"q": "oslo"})),
        call("air__book", json!({"q": "rome"})).expect(offers(["air__find"])),
        say("no"),
        call("air__find", json!({"q": "bern"})),
        say("found"),
    ]);
    let served = setup(model.clone(), &[&air]).serve().await;
    let first = served.create(json!({"input": brought})).await;
    let next = |entry: Value| json!({"input": "go on", "tools": [entry], "previous_response_id": first["id"]});
    let mut strict = air.entry("air");
    strict["require_approval"] = "always".into();
    let asked = served.create(next(strict)).await;
    assert_eq!(item_types(&asked), ["mcp_approval_request"]);
    let mut narrow = air.entry("air");
    narrow["require_approval"] = "never".into();
    narrow["allowed_tools"] = json!(["find"]);
    served.create(next(narrow)).await;
    assert!(air.calls().is_empty());
    let mut known = air.entry("air");
    known["require_approval"] = "never".into();
    known["headers"] = json!({"X-Org": "second"});
    served.create(next(known)).await;
    assert_eq!(air.calls()[0].headers["x-org"], "second");
    model.assert_finished();
}

#[tokio::test]
async fn a_call_by_name_runs_a_deferred_tool_of_a_server_and_approval_still_holds() {
    for approve in [Approve::Never, Approve::Always] {
        let air = Fake::with(&["find", "book"]).await;
        let mut settings = air.settings("air", approve);
        settings.defer = Defer::Always;
        let model = ScriptedModel::new([
            call("air__find", json!({"q": "oslo"})).expect(offers(["search_tools"])),
            say("found").expect(offers(["search_tools", "air__find"])),
        ]);
        let served = configured(model.clone(), vec![settings]).serve().await;
        let tools = json!([{"type": "mcp", "server_label": "air"}]);
        let first = served.create(json!({"input": "go", "tools": tools})).await;
        if approve == Approve::Never {
            assert_eq!(
                item_types(&first),
                ["mcp_list_tools", "mcp_call", "message"]
            );
        } else {
            assert_eq!(
                item_types(&first),
                ["mcp_list_tools", "mcp_approval_request"]
            );
            assert_eq!(air.calls().len(), 0);
            let yes = json!([{"type": "mcp_approval_response", "approve": true,
                "approval_request_id": first["output"][1]["id"]}]);
            let body = json!({"input": yes, "tools": tools, "previous_response_id": first["id"]});
            let second = served.create(body).await;
            assert_eq!(item_types(&second), ["mcp_call", "message"], "{second:#}");
        }
        assert_eq!(air.called(), ["find"]);
        model.assert_finished();
    }
}
