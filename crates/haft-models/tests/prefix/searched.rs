//! Where the provider searches by itself: the list is the same from the first request to the last.

use std::sync::Arc;

use haft_core::{Item, Model};
use haft_models::CapabilityOverrides;
use haft_models::testing::{Protocol, ScriptedServer, Step, call, say};
use serde_json::{Value, json};

use crate::sent::{self, Sent};
use crate::world;

const NATIVE: CapabilityOverrides = CapabilityOverrides {
    native_deferred_loading: Some(true),
    dynamic_tools: None,
    parallel_calls: None,
    strict_schemas: None,
    forced_choice: None,
    none_choice: None,
    tool_references: None,
    image_input: None,
    file_input: None,
    video_input: None,
    structured_output: None,
    structured_output_with_tools: None,
    repeats_calls: None,
};

fn item(json: Value) -> Item {
    serde_json::from_value(json).unwrap()
}

/// A search of the provider and what it found, as each provider writes it.
fn search(protocol: Protocol, number: u32, name: &str) -> [Item; 2] {
    match protocol {
        Protocol::Responses => [
            item(
                json!({"type": "tool_search_call", "id": format!("tsc_{number}"),
                "execution": "server", "call_id": null, "status": "completed",
                "arguments": {"paths": [name]}}),
            ),
            item(
                json!({"type": "tool_search_output", "id": format!("tso_{number}"),
                "execution": "server", "call_id": null, "status": "completed",
                "tools": [{"type": "function", "name": name, "description": "Found.",
                    "defer_loading": true, "parameters": {"type": "object"}, "strict": false}]}),
            ),
        ],
        _ => [
            item(json!({"type": "anthropic:server_tool_use", "block": {
                "type": "server_tool_use", "id": format!("srvtoolu_{number}"),
                "name": "tool_search_tool_bm25", "input": {"query": name}}})),
            item(
                json!({"type": "anthropic:tool_search_tool_result", "block": {
                "type": "tool_search_tool_result", "tool_use_id": format!("srvtoolu_{number}"),
                "content": {"type": "tool_search_tool_search_result",
                    "tool_references": [{"type": "tool_reference", "tool_name": name}]}}}),
            ),
        ],
    }
}

/// Finds a tool and calls it in the same answer.
fn finds(protocol: Protocol, number: u32, name: &str) -> Step {
    let [asked, found] = search(protocol, number, name);
    let id = format!("found_{number}");
    say("I look for it.")
        .item(asked)
        .item(found)
        .item(Item::function_call(id, name, r#"{"text":"it"}"#))
}

fn script(protocol: Protocol) -> Vec<Step> {
    vec![
        call("ping", json!({"text": "first"})),
        finds(protocol, 1, "convert_currency"),
        finds(protocol, 2, "create_issue"),
        // Called without having been searched for: the provider has to know.
        call("send_mail", json!({"text": "it"})).call("convert_currency", json!({"text": "more"})),
        say("done"),
    ]
}

async fn play(protocol: Protocol) -> (ScriptedServer, world::Ran) {
    let server = ScriptedServer::start(script(protocol)).await.unwrap();
    let model = world::adapter(protocol, &server, NATIVE);
    let run = haft_engine::Run::new(model).tools(world::tools());
    let ran = world::drive(run.instructions("Be brief.").user("go")).await;
    server.assert_finished();
    (server, ran)
}

#[tokio::test]
async fn the_list_is_the_same_in_every_request() {
    for protocol in [Protocol::Responses, Protocol::Messages] {
        let (server, ran) = play(protocol).await;
        let requests: Vec<_> = sent::all(&server).into_iter().map(Sent::unmarked).collect();
        assert_eq!(requests.len(), 5);
        sent::assert_grows(&requests);
        for request in &requests {
            assert_eq!(request.tools, requests[0].tools, "{protocol:?}");
        }
        let calls = ran.calls();
        let names: Vec<_> = calls.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "ping",
                "convert_currency",
                "create_issue",
                "send_mail",
                "convert_currency"
            ]
        );
        assert!(calls.iter().all(|(_, succeeded)| *succeeded), "{calls:?}");
        assert!(ran.injected().is_empty(), "nothing came: it was there");
    }
}

#[tokio::test]
async fn what_is_held_back_is_marked_and_the_providers_search_stands_in_front() {
    for (protocol, search) in [
        (
            Protocol::Responses,
            r#"[{"type":"tool_search"},{"type":"function","name":"ping","#,
        ),
        (
            Protocol::Messages,
            r#"[{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"},{"name":"ping","#,
        ),
    ] {
        let (server, _) = play(protocol).await;
        let request = &sent::all(&server)[0];
        assert!(request.tools.starts_with(search), "{}", request.tools);
        assert!(!request.tools.contains("search_tools"));
        let tools: Vec<Value> = serde_json::from_str(&request.tools).unwrap();
        let deferred = tools.iter().filter(|tool| tool["defer_loading"] == true);
        assert_eq!(deferred.count(), 12);
        assert!(tools[0].get("defer_loading").is_none() && tools[1].get("defer_loading").is_none());
        if protocol == Protocol::Messages {
            // What is held back is no part of what is cached.
            assert_eq!(tools[1]["cache_control"], json!({"type": "ephemeral"}));
            assert_eq!(request.tools.matches("cache_control").count(), 1);
        }
    }
}

#[tokio::test]
async fn what_the_provider_searched_goes_back_as_it_came() {
    let (server, _) = play(Protocol::Responses).await;
    let last = sent::all(&server).pop().unwrap();
    for number in [1, 2] {
        let name = if number == 1 {
            "convert_currency"
        } else {
            "create_issue"
        };
        for item in search(Protocol::Responses, number, name) {
            let json = serde_json::to_string(&item).unwrap();
            assert!(
                last.conversation.contains(&json),
                "{json}\n{}",
                last.conversation
            );
        }
    }
    let (server, _) = play(Protocol::Messages).await;
    let last = sent::all(&server).pop().unwrap();
    for (number, name) in [(1, "convert_currency"), (2, "create_issue")] {
        let blocks = search(Protocol::Messages, number, name).map(|item| {
            let json = serde_json::to_value(&item).unwrap();
            json["block"].to_string()
        });
        let said = r#"{"role":"assistant","content":[{"type":"text","text":"I look for it."}"#;
        let call = format!(
            r#"{{"type":"tool_use","id":"found_{number}","name":"{name}","input":{{"text":"it"}}}}]}}"#
        );
        let turn = format!("{said},{},{},{call}", blocks[0], blocks[1]);
        assert!(
            last.conversation.contains(&turn),
            "{turn}\n{}",
            last.conversation
        );
    }
}

/// A conversation whose tools are gone, or that goes on with a provider that searches nothing.
#[tokio::test]
async fn a_search_is_forgotten_where_nothing_can_be_referred_to() {
    let (_, ran) = play(Protocol::Messages).await;
    let server = ScriptedServer::start([say("yes")]).await.unwrap();
    let model: Arc<dyn Model> =
        world::adapter(Protocol::Messages, &server, CapabilityOverrides::default());
    let run = haft_engine::Run::new(model).session(ran.outcome.session);
    world::drive(run.user("still there?")).await;
    server.assert_finished();
    let request = sent::all(&server).pop().unwrap();
    assert!(
        !request.conversation.contains("tool_search"),
        "{}",
        request.conversation
    );
    assert!(request.conversation.contains("found_1"));
}

/// The provider's search would find what nobody has read yet.
#[tokio::test]
async fn tools_of_a_section_come_at_the_end_when_it_is_read() {
    for protocol in [Protocol::Responses, Protocol::Messages] {
        let server = ScriptedServer::start([
            call("read_section", json!({"section_key": "ref"})),
            call("cite", json!({"text": "it"})),
            say("done"),
        ])
        .await
        .unwrap();
        let ran = world::drive(world::run(world::adapter(protocol, &server, NATIVE))).await;
        server.assert_finished();
        assert_eq!(ran.injected().len(), 1);
        let requests: Vec<_> = sent::all(&server).into_iter().map(Sent::unmarked).collect();
        sent::assert_grows(&requests);
        assert!(!requests[0].tools.contains("cite"), "{protocol:?}");
        assert!(
            sent::goes_on(&requests[1].tools, &requests[0].tools),
            "{protocol:?}"
        );
        assert!(requests[1].tools.contains("cite"), "{protocol:?}");
        assert_eq!(requests[2].tools, requests[1].tools, "{protocol:?}");
    }
}
