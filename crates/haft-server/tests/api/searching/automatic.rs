//! Automatic deferral: too many tools that this server runs, and a request that does not mention it.

use std::sync::Arc;

use haft_core::{Defer, ToolObject};
use haft_engine::{Backoff, LoopOptions};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, call, offers, output_says, say};
use serde_json::{Value, json};

use super::{names, outputs, query};
use crate::resuming::remains;
use crate::support::{Setup, function, item_types, kinds, last};
use crate::tools::described;
use crate::watch::Log;

/// The names and descriptions of sixty tools; a few of them have names that nothing else has.
fn sixty_names() -> impl Iterator<Item = (String, &'static str)> {
    let numbered = (0..57).map(|at| (format!("tool_{at}"), "A tool of the server."));
    let named = [
        ("book_flight", "Books a flight to a city."),
        ("play_music", "Plays a song."),
        ("water_plants", "Waters the plants."),
    ];
    numbered.chain(named.map(|(name, description)| (name.to_owned(), description)))
}

/// Sixty tools of the server.
pub(super) fn sixty_tools() -> Vec<Arc<dyn ToolObject>> {
    let tools = sixty_names().map(|(name, description)| described(&name, description));
    tools.collect()
}

/// A request's entries for them.
pub(super) fn sixty() -> Value {
    let entries = sixty_names().map(|(name, _)| json!({"type": format!("haft:{name}")}));
    entries.collect()
}

/// As many functions of the client, with the same names and descriptions.
fn sixty_functions() -> Value {
    let functions = sixty_names().map(|(name, description)| {
        let mut tool = function(&name);
        tool["description"] = description.into();
        tool
    });
    functions.collect()
}

/// A server that holds tools back when there are more than so many.
fn holding(model: &ScriptedModel, above: usize) -> Setup {
    let setup = Setup::of(model.clone()).tools(sixty_tools());
    setup.options(|options| {
        options.loop_options = LoopOptions {
            retry: Backoff::none(),
            defer_above: Some(above),
            ..LoopOptions::default()
        };
    })
}

fn script(steps: impl IntoIterator<Item = Step>) -> ScriptedModel {
    ScriptedModel::new(steps.into_iter().collect::<Vec<_>>())
}

#[tokio::test]
async fn sixty_tools_are_searched_without_a_search_on_the_wire() {
    for is_streamed in [false, true] {
        let model = script([
            call("search_tools", query("book a flight")).expect(offers(["search_tools"])),
            call("book_flight", json!({"text": "oslo"}))
                .expect(offers(["search_tools", "book_flight"])),
            say("booked"),
        ]);
        let served = holding(&model, 50).serve().await;
        let body = json!({"input": "go", "tools": sixty()});
        let response = if is_streamed {
            let events = served.stream(body).await;
            let told = serde_json::to_string(&events).unwrap();
            assert!(
                !told.contains("search") && !told.contains("haft_deferral"),
                "{told}"
            );
            assert_eq!(kinds(&events)[2], "response.output_item.added");
            last(&events).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(item_types(&response), ["haft:book_flight", "message"]);
        assert_eq!(response["tools"].as_array().unwrap().len(), 60);
        let stored = served.stored(&response["id"]).await;
        assert_eq!(stored, response);
        assert!(!stored.to_string().contains("haft_deferral"));
        model.assert_finished();
    }
}

#[tokio::test]
async fn few_tools_or_a_word_against_it_hold_nothing_back() {
    for (count, defer) in [(50, Defer::Auto), (60, Defer::Never)] {
        let model = script([say("ok")]);
        let setup = holding(&model, 50).options(|options| options.loop_options.defer = defer);
        let served = setup.serve().await;
        let tools = &sixty().as_array().unwrap()[..count].to_vec();
        served.create(json!({"input": "go", "tools": tools})).await;
        assert_eq!(names(&model.received()[0]).len(), count);
    }
}

#[tokio::test]
async fn what_a_models_context_leaves_decides_too() {
    let capabilities = |tokens| haft_core::Capabilities {
        supports_dynamic_tools: true,
        context_tokens: Some(tokens),
        ..haft_core::Capabilities::default()
    };
    for (tokens, shown) in [(1_000_000, 60), (16_000, 1)] {
        let model = script([say("ok")]).with_capabilities(capabilities(tokens));
        let served = Setup::of(model.clone()).tools(sixty_tools()).serve().await;
        served
            .create(json!({"input": "go", "tools": sixty()}))
            .await;
        assert_eq!(names(&model.received()[0]).len(), shown, "{tokens}");
    }
}

#[tokio::test]
async fn what_was_loaded_is_remembered_with_the_stored_response() {
    let list = ["search_tools", "book_flight"];
    let model = script([
        call("search_tools", query("book a flight")),
        say("found it"),
        call("book_flight", json!({})).expect(offers(list)),
        say("booked").expect(offers(list)),
    ]);
    let served = holding(&model, 50).serve().await;
    let first = served
        .create(json!({"input": "go", "tools": sixty()}))
        .await;
    let body = json!({"input": "do it", "tools": sixty(), "previous_response_id": first["id"]});
    let second = served.create(body).await;
    // It is nobody else's to read.
    let read = serde_json::to_string(&model.received()[3].conversation).unwrap();
    assert!(!read.contains("haft_"), "{read}");
    let path = format!("/responses/{}/input_items", second["id"].as_str().unwrap());
    let listed = served.get(&path).await.ok().to_string();
    assert!(!listed.contains("haft_"), "{listed}");
    model.assert_finished();
}

#[tokio::test]
async fn a_conversation_that_began_so_goes_on_so() {
    let model = script([
        call("search_tools", query("book a flight")),
        say("found it"),
        say("fine").expect(offers(["search_tools", "book_flight"])),
    ]);
    let served = holding(&model, 50).serve().await;
    let first = served
        .create(json!({"input": "go", "tools": sixty()}))
        .await;
    // Fewer tools than would be held back at the beginning.
    let few = &sixty().as_array().unwrap()[50..].to_vec();
    let body = json!({"input": "on", "tools": few, "previous_response_id": first["id"]});
    served.create(body).await;
    model.assert_finished();
}

#[tokio::test]
async fn it_is_remembered_over_a_compaction() {
    let model = script([
        call("search_tools", query("book a flight")),
        say("found it"),
        say("A summary."),
        say("fine").expect(offers(["search_tools", "book_flight"])),
    ]);
    let served = holding(&model, 50).serve().await;
    let first = served
        .create(json!({"input": "go", "tools": sixty()}))
        .await;
    let trigger = json!([{"type": "compaction_trigger"}]);
    let body = json!({"input": trigger, "tools": sixty(), "previous_response_id": first["id"]});
    let second = served.create(body).await;
    // The window alone, as a client sends it that keeps everything.
    let mut input = second["output"].as_array().unwrap().clone();
    input.push(json!({"role": "user", "content": "on"}));
    served
        .create(json!({"input": input, "tools": sixty()}))
        .await;
    model.assert_finished();
}

#[tokio::test]
async fn a_tool_that_was_called_is_known_to_be_loaded_where_the_client_keeps_everything() {
    let model = script([
        call("search_tools", query("book a flight")),
        call("book_flight", json!({})),
        say("booked"),
        say("fine").expect(offers(["search_tools", "book_flight"])),
    ]);
    let served = holding(&model, 50).serve().await;
    let first = served
        .create(json!({"input": "go", "tools": sixty(), "store": false}))
        .await;
    let mut input = vec![json!({"role": "user", "content": "go"})];
    input.extend(first["output"].as_array().unwrap().iter().cloned());
    input.push(json!({"role": "user", "content": "on"}));
    served
        .create(json!({"input": input, "tools": sixty(), "store": false}))
        .await;
    model.assert_finished();
}

#[tokio::test]
async fn what_tool_choice_names_is_never_held_back() {
    let model = script([
        call("play_music", json!({})).expect(offers(["play_music", "search_tools"])),
        say("played"),
        say("fine").expect(offers(["play_music", "water_plants", "search_tools"])),
    ]);
    let served = holding(&model, 50).serve().await;
    let forced = json!({"type": "haft:play_music"});
    let body = json!({"input": "go", "tools": sixty(), "tool_choice": forced});
    let response = served.create(body).await;
    assert_eq!(response["output"][0]["type"], "haft:play_music");
    let allowed = json!({"type": "allowed_tools", "tools": [
        {"type": "haft:play_music"}, {"type": "haft:water_plants"}]});
    served
        .create(json!({"input": "go", "tools": sixty(), "tool_choice": allowed}))
        .await;
    model.assert_finished();
}

#[tokio::test]
async fn whoever_brings_a_search_along_says_what_it_is_for() {
    let model = script([say("ok")]);
    let served = holding(&model, 50).serve().await;
    let mut tools = sixty();
    tools
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "tool_search"}));
    served.create(json!({"input": "go", "tools": tools})).await;
    assert_eq!(names(&model.received()[0]).len(), 60);
}

#[tokio::test]
async fn a_call_with_invalid_arguments_loads_nothing_and_is_refused_unseen() {
    let model = script([
        call("play_music", json!({"text": 1})),
        say("I will search").expect(output_says(
            "Tool 'play_music' is not loaded. Find it with search_tools first.",
        )),
    ]);
    let served = holding(&model, 50).serve().await;
    let response = served
        .create(json!({"input": "go", "tools": sixty()}))
        .await;
    assert_eq!(item_types(&response), ["message"]);
    model.assert_finished();
}

#[tokio::test]
async fn it_survives_the_death_of_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let model = script([
        call("search_tools", query("book a flight")),
        Step::default().fault(Fault::Hang),
    ]);
    let served = holding(&model, 50).on_disk(directory.path()).serve().await;
    let body = json!({"input": "go", "tools": sixty(), "background": true});
    let first = served.create(body).await;
    for _ in 0..400 {
        if model.received().len() == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(outputs(&model.received()[1]).len(), 1);
    let left = remains(directory.path());
    let list = ["search_tools", "book_flight"];
    let model = script([
        say("found it").expect(offers(list)),
        say("fine").expect(offers(list)),
    ]);
    let again = holding(&model, 50).on_disk(left.path()).serve().await;
    let response = again.settled(&first["id"]).await;
    assert_eq!(item_types(&response), ["message"], "{response:#}");
    // What was found before the death is remembered with the response that ended after it.
    let body = json!({"input": "on", "tools": sixty(), "previous_response_id": first["id"]});
    again.create(body).await;
    model.assert_finished();
}

#[tokio::test]
async fn what_is_found_is_counted() {
    let model = script([
        call("search_tools", query("book a flight")),
        say("found it"),
    ]);
    let served = holding(&model, 50).serve().await;
    served
        .create(json!({"input": "go", "tools": sixty()}))
        .await;
    let scrape = served.scrape().await;
    scrape.assert("haft_tools_injected_total", 1.0);
    scrape.assert("haft_disclosure_dynamic_total", 0.0);
    scrape.assert("haft_disclosure_restarts_total", 0.0);
    scrape.assert("haft_tools_picked_total", 0.0);
    scrape.assert(
        r#"haft_tool_calls_total{kind="tool_search",outcome="succeeded"}"#,
        1.0,
    );
}

#[tokio::test]
async fn a_model_that_cannot_take_new_tools_is_started_anew_and_nobody_sees_it() {
    let capabilities = haft_core::Capabilities {
        supports_dynamic_tools: false,
        ..haft_core::Capabilities::default()
    };
    let model = script([
        call("search_tools", query("book a flight")),
        say("found it").expect(offers(["search_tools", "book_flight"])),
        say("fine").expect(offers(["search_tools", "book_flight"])),
    ])
    .with_capabilities(capabilities);
    let served = holding(&model, 50).serve().await;
    let first = served
        .create(json!({"input": "go", "tools": sixty()}))
        .await;
    assert_eq!(item_types(&first), ["message"]);
    served
        .scrape()
        .await
        .assert("haft_disclosure_restarts_total", 1.0);
    let body = json!({"input": "on", "tools": sixty(), "previous_response_id": first["id"]});
    served.create(body).await;
    model.assert_finished();
}

fn native() -> haft_core::Capabilities {
    haft_core::Capabilities {
        supports_dynamic_tools: true,
        native_deferred_loading: true,
        ..haft_core::Capabilities::default()
    }
}

#[tokio::test]
async fn a_provider_with_a_search_of_its_own_gets_all_tools_and_its_calls_are_shown() {
    let steps = [call("book_flight", json!({"text": "oslo"})), say("booked")];
    let model = script(steps).with_capabilities(native());
    let served = holding(&model, 50).serve().await;
    let body = json!({"input": "go", "tools": sixty()});
    let answer = served.post("/responses", body.clone()).await;
    let header = answer.header("haft-deferred-tools").map(str::to_owned);
    assert_eq!(header.as_deref(), Some("60 of 60; provider"));
    assert_eq!(item_types(&answer.ok()), ["haft:book_flight", "message"]);
    let tools = model.received()[0].tools.clone();
    assert_eq!(tools.len(), 60);
    assert!(tools.iter().all(|tool| tool.loading().is_deferred()));
}

#[tokio::test]
async fn a_search_that_the_client_asks_for_is_carried_out_here_whatever_the_provider_can() {
    let model = script([
        call("search_tools", query("book a flight")).expect(offers(["near", "search_tools"])),
        say("found it").expect(offers(["near", "search_tools", "book_flight"])),
    ])
    .with_capabilities(native());
    let served = Setup::of(model.clone()).serve().await;
    let body = json!({"input": "go", "tools": super::tools()});
    let response = served.create(body).await;
    assert_eq!(
        item_types(&response),
        ["tool_search_call", "tool_search_output", "message"]
    );
    model.assert_finished();
}

#[tokio::test]
async fn functions_of_the_client_are_never_deferred_automatically() {
    for defer in [Defer::Auto, Defer::Always] {
        let model = script([say("ok"), say("ok")]).with_capabilities(haft_core::Capabilities {
            supports_dynamic_tools: true,
            context_tokens: Some(16_000),
            ..haft_core::Capabilities::default()
        });
        let setup = holding(&model, 50).options(|options| options.loop_options.defer = defer);
        let served = setup.serve().await;
        let body = json!({"input": "go", "tools": sixty_functions()});
        let answer = served.post("/responses", body).await;
        assert_eq!(answer.header("haft-deferred-tools"), None);
        assert_eq!(names(&model.received()[0]).len(), 60);
        // Nor do they count: a dozen tools of the server are no more because of them.
        if defer == Defer::Auto {
            let mut tools = sixty_functions().as_array().unwrap()[..45].to_vec();
            tools.extend(sixty().as_array().unwrap()[48..].iter().cloned());
            served.create(json!({"input": "go", "tools": tools})).await;
            let shown = names(&model.received()[1]);
            assert!(!shown.contains(&"search_tools".to_owned()), "{shown:?}");
        }
    }
}

#[tokio::test]
async fn automatic_deferral_is_reported_in_a_header() {
    let model = script([say("ok"), say("ok"), say("ok")]);
    let served = holding(&model, 50).serve().await;
    let mut tools = sixty();
    let own = [function("exec_command"), function("apply_patch")];
    tools.as_array_mut().unwrap().extend(own);
    for stream in [false, true] {
        let body = json!({"input": "go", "tools": tools, "stream": stream});
        let answer = served.posting("/responses", &body).send().await.unwrap();
        let header = answer.headers().get("haft-deferred-tools").unwrap();
        assert_eq!(header, "60 of 62; search_tools");
        answer.bytes().await.unwrap();
    }
    let shown = names(&model.received()[0]);
    assert_eq!(shown, ["exec_command", "apply_patch", "search_tools"]);
    let answer = served
        .post(
            "/responses",
            json!({"input": "go", "tools": [function("near")]}),
        )
        .await;
    assert_eq!(answer.header("haft-deferred-tools"), None);
}

#[tokio::test]
async fn automatic_deferral_is_one_log_line_per_request() {
    let log = Log::of("info");
    let model = script([say("ok"), say("ok"), say("ok"), say("ok")]);
    let served = holding(&model, 50).serve().await;
    let mut tools = sixty();
    tools.as_array_mut().unwrap().push(function("near"));
    let deferring = json!({"input": "go", "tools": tools});
    let mut streamed = deferring.clone();
    streamed["stream"] = true.into();
    let mut in_background = deferring.clone();
    in_background["background"] = true.into();
    for (at, body) in [deferring, streamed, in_background].iter().enumerate() {
        let id = format!("deferring-{at}");
        let request = served.posting("/responses", body);
        let answer = served.send(request.header("x-request-id", &id)).await;
        if at == 2 {
            served.settled(&answer.ok()["id"]).await;
        }
        let lines = deferral_lines(&log);
        assert_eq!(lines.len(), at + 1, "{lines:#?}");
        let line = &lines[at];
        assert!(line.trim_start().starts_with("INFO "), "{line}");
        assert!(line.contains("60 of 61; search_tools"), "{line}");
        assert!(line.contains(&format!("request_id=\"{id}\"")), "{line}");
        // Names of tools are content of the request.
        assert!(!line.contains("book_flight"), "{line}");
    }
    let quiet = json!({"input": "go", "tools": [{"type": "haft:book_flight"}, function("near")]});
    served.create(quiet).await;
    assert_eq!(deferral_lines(&log).len(), 3, "{}", log.text());
}

/// The log lines about deferred tools.
fn deferral_lines(log: &Log) -> Vec<String> {
    let text = log.text();
    let lines = text.lines().filter(|line| line.contains("deferred tools"));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_call_by_name_runs_a_deferred_tool_and_the_chain_keeps_it() {
    for stream in [false, true] {
        let list = ["search_tools", "play_music"];
        let model = script([
            call("play_music", json!({"text": "la"})).expect(offers(["search_tools"])),
            say("played").expect(offers(list)).expect(output_says("la")),
            say("fine").expect(offers(list)),
            say("fine").expect(offers(list)),
        ]);
        let served = holding(&model, 50).serve().await;
        let body = json!({"input": "go", "tools": sixty()});
        let first = if stream {
            last(&served.stream(body).await).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(item_types(&first), ["haft:play_music", "message"]);
        assert!(
            !first["output"].to_string().contains("haft_deferral"),
            "{first:#}"
        );
        let body = json!({"input": "on", "tools": sixty(), "previous_response_id": first["id"]});
        served.create(body).await;
        let mut input = vec![json!({"role": "user", "content": "go"})];
        input.extend(first["output"].as_array().unwrap().iter().cloned());
        input.push(json!({"role": "user", "content": "on"}));
        served
            .create(json!({"input": input, "tools": sixty()}))
            .await;
        let path = format!("/responses/{}/trace", first["id"].as_str().unwrap());
        let trace = served.get(&path).await.ok();
        assert_eq!(
            trace["turns"][0]["calls"][0]["loaded_by_call"], true,
            "{trace:#}"
        );
        model.assert_finished();
    }
}

#[tokio::test]
async fn a_function_that_the_request_defers_is_returned_to_the_client_when_it_is_called_by_name() {
    for stream in [false, true] {
        let list = ["near", "search_tools", "book_flight"];
        let model = script([
            call("book_flight", json!({"text": "oslo"})).expect(offers(["near", "search_tools"])),
            say("booked").expect(offers(list)),
            say("booked").expect(offers(list)),
        ]);
        let served = Setup::of(model.clone()).serve().await;
        let body = json!({"input": "go", "tools": super::tools()});
        let first = if stream {
            last(&served.stream(body).await).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(item_types(&first), ["function_call"]);
        assert_eq!(first["output"][0]["name"], "book_flight");
        let done = json!({"type": "function_call_output", "output": "done",
            "call_id": first["output"][0]["call_id"]});
        let body = json!({"input": [done], "tools": super::tools(),
            "previous_response_id": first["id"]});
        served.create(body).await;
        let input = json!([{"role": "user", "content": "go"}, first["output"][0], done]);
        served
            .create(json!({"input": input, "tools": super::tools()}))
            .await;
        model.assert_finished();
    }
}
