//! Where outputs refer to tools: haft searches, sections are read, and the list never changes.

use haft_core::{Model, ToolName};
use haft_engine::{EventKind, Run};
use haft_models::CapabilityOverrides;
use haft_models::testing::{Protocol, ScriptedServer, call, output_contains, say};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::sent::{self, Sent};
use crate::world;

fn model(server: &ScriptedServer) -> Arc<dyn Model> {
    let overrides = CapabilityOverrides {
        tool_references: Some(true),
        ..CapabilityOverrides::default()
    };
    world::adapter(Protocol::Messages, server, overrides)
}

/// The names that the conversation refers to, in order.
fn references(request: &Sent) -> Vec<String> {
    let messages: Vec<Value> = serde_json::from_str(&request.conversation).unwrap();
    let blocks = messages
        .iter()
        .flat_map(|it| it["content"].as_array().unwrap());
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let inside = results.filter_map(|block| block["content"].as_array());
    let names = inside
        .flatten()
        .filter_map(|block| block["tool_name"].as_str());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn sections_are_read_and_tools_found_without_a_change_of_the_list() {
    let server = ScriptedServer::start(world::searching()).await.unwrap();
    let ran = world::drive(world::run(model(&server))).await;
    server.assert_finished();
    assert!(
        ran.calls().iter().all(|(_, succeeded)| *succeeded),
        "{:?}",
        ran.calls()
    );

    let requests: Vec<_> = sent::all(&server).into_iter().map(Sent::unmarked).collect();
    assert_eq!(requests.len(), 7);
    sent::assert_grows(&requests);
    for request in &requests {
        assert_eq!(request.tools, requests[0].tools);
    }
    // Whoever watches is told the same as where the list grows.
    let rendered = ran.events.iter().find_map(|event| match &event.kind {
        EventKind::PromptRendered { tool_names, .. } => Some(tool_names),
        _ => None,
    });
    let rendered: Vec<_> = rendered.unwrap().iter().map(ToolName::as_str).collect();
    assert_eq!(rendered, ["ping", "read_section", "search_tools"]);
    let injected = ran.injected();
    assert_eq!(
        injected[0],
        ("ref".to_owned(), vec!["look_up".into(), "cite".into()])
    );
    assert_eq!(
        (injected.len(), injected[1].0.as_str()),
        (3, "search_tools")
    );
    let told = injected.into_iter().flat_map(|(_, names)| names);
    assert_eq!(references(&requests[6]), told.collect::<Vec<_>>());
}

#[tokio::test]
async fn the_words_of_an_output_stand_behind_its_references() {
    let server = ScriptedServer::start([
        call("read_section", json!({"section_key": "ref"})),
        say("done").expect(output_contains("All notes.")),
    ])
    .await
    .unwrap();
    world::drive(world::run(model(&server))).await;
    server.assert_finished();
    let request = sent::all(&server).pop().unwrap();
    let result = r#"{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"tool_reference","tool_name":"look_up"},{"type":"tool_reference","tool_name":"cite"}]},{"type":"text","text":"<tool_output tool_use_id=\"call_1\">\nContent of section 'ref':"#;
    assert!(
        request.conversation.contains(result),
        "{}",
        request.conversation
    );
}

#[tokio::test]
async fn the_cache_mark_stands_on_the_last_tool_that_is_shown() {
    let server = ScriptedServer::start(world::searching()).await.unwrap();
    world::drive(world::run(model(&server))).await;
    for request in sent::all(&server) {
        let tools: Vec<Value> = serde_json::from_str(&request.tools).unwrap();
        let marked: Vec<_> = tools
            .iter()
            .filter(|it| it.get("cache_control").is_some())
            .collect();
        let shown = tools
            .iter()
            .rfind(|it| it.get("defer_loading").is_none())
            .unwrap();
        assert_eq!(marked, [shown]);
        assert_eq!(shown["name"], "search_tools");
        assert!(tools.last().unwrap()["defer_loading"] == true);
    }
}

#[tokio::test]
async fn what_nothing_has_referred_to_cannot_be_called() {
    let server = ScriptedServer::start([
        // Valid arguments would load the tool.
        call("convert_currency", json!({"text": 1})).call("cite", json!({"text": "it"})),
        say("done").expect(
            output_contains(
                "Tool 'convert_currency' is not loaded. Find it with search_tools first.",
            )
            .output_contains(
                "Unknown tool 'cite'. Available tools: ping, read_section, search_tools.",
            ),
        ),
    ])
    .await
    .unwrap();
    let ran = world::drive(world::run(model(&server))).await;
    server.assert_finished();
    assert!(ran.calls().iter().all(|(_, succeeded)| !succeeded));
}

#[tokio::test]
async fn the_next_run_goes_on_with_the_same_list() {
    let found = json!({"query": "convert money currency", "limit": 1});
    let server = ScriptedServer::start([
        call("search_tools", found.clone()),
        say("found"),
        call("convert_currency", json!({"text": "1 EUR"})),
        call("search_tools", found),
        say("done").expect(output_contains("convert_currency")),
    ])
    .await
    .unwrap();
    let run = || Run::new(model(&server)).tools(world::tools());
    let first = world::drive(run().user("go")).await;
    let stored = serde_json::to_string(&first.outcome.session).unwrap();
    let session: haft_engine::Session = serde_json::from_str(&stored).unwrap();
    world::drive(run().session(session).user("and now")).await;
    server.assert_finished();
    let requests: Vec<_> = sent::all(&server).into_iter().map(Sent::unmarked).collect();
    sent::assert_grows(&requests);
    for request in &requests {
        assert_eq!(request.tools, requests[0].tools);
    }
    // A tool is shown once, where it was found first.
    assert_eq!(references(&requests[4]), ["convert_currency"]);
}

/// As a server does that keeps what was loaded and not the search itself.
#[tokio::test]
async fn what_was_loaded_and_is_not_in_the_conversation_is_listed_for_all_to_see() {
    let server = ScriptedServer::start([
        call("convert_currency", json!({"text": "1 EUR"})),
        say("done"),
    ])
    .await
    .unwrap();
    let run = Run::new(model(&server)).tools(world::tools());
    let loaded = ToolName::new("convert_currency").unwrap();
    let ran = world::drive(run.loaded([loaded]).user("go")).await;
    server.assert_finished();
    assert_eq!(ran.calls(), [("convert_currency".to_owned(), true)]);
    let tools: Vec<Value> = serde_json::from_str(&sent::all(&server)[0].tools).unwrap();
    let listed = tools
        .iter()
        .find(|tool| tool["name"] == "convert_currency")
        .unwrap();
    assert!(listed.get("defer_loading").is_none());
}

/// A conversation that goes on where nothing is held back says in words what it referred to.
#[tokio::test]
async fn references_become_words_where_the_list_holds_nothing_back() {
    let server = ScriptedServer::start([
        call(
            "search_tools",
            json!({"query": "convert money currency", "limit": 1}),
        ),
        say("found"),
        say("yes").expect(output_contains("convert_currency: Converts")),
    ])
    .await
    .unwrap();
    let first = world::drive(Run::new(model(&server)).tools(world::tools()).user("go")).await;
    let run = Run::new(model(&server)).session(first.outcome.session);
    world::drive(run.user("still there?")).await;
    server.assert_finished();
    let last = sent::all(&server).pop().unwrap();
    assert!(
        !last.conversation.contains("tool_reference"),
        "{}",
        last.conversation
    );
}

/// Another process goes on with the run, with nothing but its session.
#[tokio::test]
async fn a_run_that_is_taken_up_again_goes_on_with_the_same_list() {
    let server = ScriptedServer::start([
        call("read_section", json!({"section_key": "ref"})),
        call(
            "search_tools",
            json!({"query": "convert money currency", "limit": 1}),
        ),
        call("ask_caller", json!({"text": "which?"})),
        call("convert_currency", json!({"text": "1 EUR"})).call("cite", json!({"text": "it"})),
        say("done"),
    ])
    .await
    .unwrap();
    let run = || {
        let asks = world::definition("ask_caller", "Asks the caller.", haft_core::Defer::Never);
        let tools = Run::new(model(&server))
            .prompt(&world::prompt())
            .tools(world::tools());
        tools.tools([haft_core::function_tool(asks)])
    };
    let waiting = run().user("go").await.unwrap();
    assert!(!waiting.is_completed());
    let stored = serde_json::to_string(&waiting.session).unwrap();
    let session: haft_engine::Session = serde_json::from_str(&stored).unwrap();
    let call_id = waiting.tool_calls.last().unwrap().call_id.clone();
    let ran = world::drive(run().session(session).output(call_id, "that one")).await;
    server.assert_finished();
    assert!(
        ran.calls().iter().all(|(_, succeeded)| *succeeded),
        "{:?}",
        ran.calls()
    );
    let requests: Vec<_> = sent::all(&server).into_iter().map(Sent::unmarked).collect();
    assert_eq!(requests.len(), 5);
    sent::assert_grows(&requests);
    for request in &requests {
        assert_eq!(request.tools, requests[0].tools);
    }
    assert_eq!(
        references(&requests[4]),
        ["look_up", "cite", "convert_currency"]
    );
}
