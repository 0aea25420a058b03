//! The model reads again what it has read: the bytes of a request of the next response begin with those of the
//! last request of the one before.

use std::collections::BTreeSet;

use haft_engine::{Backoff, LoopOptions};
use haft_models::testing::{ScriptedCall, ScriptedServer, Step, call, calls, say};
use haft_models::{Anthropic, CapabilityOverrides};
use serde_json::{Value, json};

use super::automatic::{sixty, sixty_tools};
use super::{query, tools};
use crate::support::{BACKENDS, Served, Setup, backend, item_types, last};
use crate::tools::echo;

fn made(call_id: &str, name: &str, arguments: Value) -> ScriptedCall {
    ScriptedCall {
        id: Some(call_id.to_owned()),
        ..ScriptedCall::new(name, arguments)
    }
}

/// How the second response is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Chain,
    Replay,
}

/// The messages of a request to a backend, or its items.
fn said(body: &Value) -> &Vec<Value> {
    let said = body.get("messages").or_else(|| body.get("input"));
    said.and_then(Value::as_array).unwrap()
}

/// What marks a place for a cache moves with the end.
fn unmarked(mut message: Value) -> Value {
    let parts = message.get_mut("content").and_then(Value::as_array_mut);
    for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
        part.shift_remove("cache_control");
    }
    message
}

#[track_caller]
fn assert_begins_with(before: &Value, after: &Value, what: &str) {
    let bytes = |body: &Value| -> Vec<String> {
        let said = said(body).iter().cloned().map(unmarked);
        said.map(|message| message.to_string()).collect()
    };
    let (earlier, later) = (bytes(before), bytes(after));
    assert_eq!(
        earlier[..],
        later[..earlier.len().min(later.len())],
        "{what}"
    );
    assert_eq!(
        before["tools"].to_string(),
        after["tools"].to_string(),
        "{what}"
    );
    assert_eq!(before["system"], after["system"], "{what}");
}

/// The names of the tools that were called, in the order in which the backend reads of them.
fn called(body: &Value, turn: &[ScriptedCall]) -> Vec<String> {
    let text = Value::Array(said(body).clone()).to_string();
    let names: BTreeSet<_> = turn.iter().map(|call| &call.name).collect();
    let mut places = Vec::new();
    for name in names {
        let written = format!("\"name\":\"{name}\"");
        places.extend(
            text.match_indices(&written)
                .map(|(at, _)| (at, name.clone())),
        );
    }
    places.sort_unstable();
    places.into_iter().map(|(_, name)| name).collect()
}

async fn first(served: &Served, tools: &Value, is_streamed: bool) -> Value {
    let body = json!({"input": [{"role": "user", "content": "go"}], "tools": tools});
    if is_streamed {
        last(&served.stream(body).await).clone()
    } else {
        served.create(body).await
    }
}

async fn second(served: &Served, tools: &Value, first: &Value, way: Way, more: Value) {
    let more = more.as_array().unwrap().clone();
    let body = match way {
        Way::Chain => json!({"input": more, "tools": tools, "previous_response_id": first["id"]}),
        Way::Replay => {
            let mut input = vec![json!({"role": "user", "content": "go"})];
            input.extend(first["output"].as_array().unwrap().iter().cloned());
            input.extend(more);
            json!({"input": input, "tools": tools})
        }
    };
    served.create(body).await;
}

fn user() -> Value {
    json!([{"role": "user", "content": "on"}])
}

#[tokio::test]
async fn a_search_stays_where_the_model_made_it() {
    let turns = [
        vec![
            made("c1", "search_tools", query("book a flight")),
            made("c2", "echo", json!({"text": "x"})),
        ],
        vec![
            made("c1", "echo", json!({"text": "x"})),
            made("c2", "search_tools", query("book a flight")),
            made("c3", "search_tools", query("play a song")),
            made("c4", "echo", json!({"text": "y"})),
        ],
    ];
    for (backend_kind, turn) in BACKENDS
        .into_iter()
        .flat_map(|kind| turns.clone().map(|turn| (kind, turn)))
    {
        for (is_streamed, way) in [
            (false, Way::Chain),
            (true, Way::Chain),
            (false, Way::Replay),
        ] {
            let server = backend([calls(turn.clone()), say("one"), say("two")]).await;
            let setup = backend_kind.setup(&server).tools([echo("echo").0]);
            let front = setup.serve().await;
            let mut tools = tools();
            tools[0] = json!({"type": "haft:echo"});
            let told = first(&front, &tools, is_streamed).await;
            let kinds = item_types(&told);
            let wanted: Vec<_> = turn
                .iter()
                .flat_map(|call| match call.name.as_str() {
                    "echo" => vec!["haft:echo"],
                    _ => vec!["tool_search_call", "tool_search_output"],
                })
                .chain(["message"])
                .collect();
            assert_eq!(kinds, wanted, "{backend_kind:?}");
            second(&front, &tools, &told, way, user()).await;
            let received = server.received();
            let what = format!("{backend_kind:?} {is_streamed} {way:?}");
            let [before, after] = [1, 2].map(|at| called(&received[at].body, &turn));
            assert_eq!(before, after, "{what}");
            // Who keeps everything himself has no ids of searches to send back.
            if way == Way::Chain {
                assert_begins_with(&received[1].body, &received[2].body, &what);
            }
        }
    }
}

/// A model whose provider takes references to tools.
fn referring(server: &ScriptedServer) -> Setup {
    let overrides = CapabilityOverrides {
        tool_references: Some(true),
        ..CapabilityOverrides::default()
    };
    let model = Anthropic::new("backend-model").base_url(&server.url());
    Setup::of(model.api_key("secret-key").with_capabilities(overrides))
}

/// The same chain at every backend; the last also where tools are referred to.
async fn assert_chain_begins_with_itself(tools: &Value, steps: &[Step]) {
    let last = steps.len();
    for which in 0..=BACKENDS.len() {
        let script = steps.iter().cloned().chain([say("two")]);
        let server = backend(script).await;
        let setup = match BACKENDS.get(which) {
            Some(kind) => kind.setup(&server),
            None => referring(&server),
        };
        let setup = setup.tools([echo("echo").0]).tools(sixty_tools());
        let setup = setup.options(|options| {
            options.loop_options = LoopOptions {
                retry: Backoff::none(),
                defer_above: Some(50),
                ..LoopOptions::default()
            };
        });
        let front = setup.serve().await;
        let told = first(&front, tools, false).await;
        let text = front.stored(&told["id"]).await.to_string();
        assert!(
            !text.contains("\"haft_unseen") && !text.contains("\"haft_deferral"),
            "{text}"
        );
        second(&front, tools, &told, Way::Chain, user()).await;
        let received = server.received();
        let what = format!("{which}");
        assert_begins_with(&received[last - 1].body, &received[last].body, &what);
        if which == BACKENDS.len() {
            let tools = received[last].body["tools"].to_string();
            assert!(tools.contains("defer_loading"), "{tools}");
        }
    }
}

#[tokio::test]
async fn what_was_found_with_a_word_is_read_again_as_it_was() {
    let steps = [call("search_tools", query("book a flight")), say("one")];
    assert_chain_begins_with_itself(&tools(), &steps).await;
}

#[tokio::test]
async fn what_was_found_without_a_word_is_read_again_as_it_was() {
    let mut tools = sixty();
    tools
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "haft:echo"}));
    let echoing = json!({"text": "x"});
    let found = [
        call("search_tools", query("book a flight")),
        calls([
            made("a", "search_tools", query("select:echo")),
            made("b", "search_tools", query("play a song")),
        ]),
        calls([
            made("c", "echo", echoing.clone()),
            made("d", "search_tools", query("waters plants")),
            made("e", "echo", echoing),
        ]),
        say("one"),
    ];
    assert_chain_begins_with_itself(&tools, &found).await;
}

#[tokio::test]
async fn calls_that_came_to_nothing_are_read_again_as_they_were() {
    let steps = [
        // It says not what for.
        call("search_tools", json!({})),
        // It is not there, and this one was not found.
        calls([
            made("a", "nobody", json!({})),
            made("b", "play_music", json!({"text": 1})),
        ]),
        say("one"),
    ];
    assert_chain_begins_with_itself(&tools(), &steps).await;
    assert_chain_begins_with_itself(&sixty(), &steps).await;
}

#[tokio::test]
async fn what_a_call_by_name_loaded_is_read_again_as_it_was() {
    let steps = [call("play_music", json!({"text": "la"})), say("one")];
    assert_chain_begins_with_itself(&sixty(), &steps).await;
}
