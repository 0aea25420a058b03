//! Too many tools, and a request that says nothing about it: nobody but the model sees the search.

use haft_core::Defer;
use haft_engine::{Backoff, LoopOptions};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Step, call, offers, output_says, say};
use serde_json::{Value, json};

use super::{names, outputs, query};
use crate::resuming::remains;
use crate::support::{Setup, function, item_types, kinds, last};

/// Sixty functions; a few of them have names that nothing else has.
pub(super) fn sixty() -> Value {
    let mut tools: Vec<Value> = (0..57).map(|at| function(&format!("tool_{at}"))).collect();
    for (name, description) in [
        ("book_flight", "Books a flight to a city."),
        ("play_music", "Plays a song."),
        ("water_plants", "Waters the plants."),
    ] {
        let mut tool = function(name);
        tool["description"] = description.into();
        tools.push(tool);
    }
    Value::Array(tools)
}

/// A server that holds tools back when there are more than so many.
fn holding(model: &ScriptedModel, above: usize) -> Setup {
    Setup::of(model.clone()).options(|options| {
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
async fn sixty_functions_are_searched_without_a_word_on_the_wire() {
    for is_streamed in [false, true] {
        let model = script([
            call("search_tools", query("book a flight")).expect(offers(["search_tools"])),
            call("book_flight", json!({"text": "oslo"}))
                .expect(offers(["search_tools", "book_flight"])),
        ]);
        let served = holding(&model, 50).serve().await;
        let body = json!({"input": "go", "tools": sixty()});
        let response = if is_streamed {
            let events = served.stream(body).await;
            let told = serde_json::to_string(&events).unwrap();
            assert!(!told.contains("search") && !told.contains("haft"), "{told}");
            assert_eq!(kinds(&events)[2], "response.output_item.added");
            last(&events).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(item_types(&response), ["function_call"]);
        assert_eq!(response["tools"].as_array().unwrap().len(), 60);
        let stored = served.stored(&response["id"]).await;
        assert_eq!(stored, response);
        assert!(!stored.to_string().contains("haft_"));
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
        let served = Setup::of(model.clone()).serve().await;
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
    let done = json!([{"type": "function_call_output", "call_id": second["output"][0]["call_id"],
        "output": "done"}]);
    let body = json!({"input": done, "tools": sixty(), "previous_response_id": second["id"]});
    served.create(body).await;
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
        say("booked").expect(offers(["search_tools", "book_flight"])),
    ]);
    let served = holding(&model, 50).serve().await;
    let first = served
        .create(json!({"input": "go", "tools": sixty(), "store": false}))
        .await;
    let mut input = vec![json!({"role": "user", "content": "go"})];
    input.extend(first["output"].as_array().unwrap().iter().cloned());
    input.push(json!({"type": "function_call_output",
        "call_id": first["output"][0]["call_id"], "output": "done"}));
    served
        .create(json!({"input": input, "tools": sixty(), "store": false}))
        .await;
    model.assert_finished();
}

#[tokio::test]
async fn what_tool_choice_names_is_never_held_back() {
    let model = script([
        call("play_music", json!({})).expect(offers(["play_music", "search_tools"])),
        say("fine").expect(offers(["play_music", "water_plants", "search_tools"])),
    ]);
    let served = holding(&model, 50).serve().await;
    let forced = json!({"type": "function", "name": "play_music"});
    let body = json!({"input": "go", "tools": sixty(), "tool_choice": forced});
    let response = served.create(body).await;
    assert_eq!(response["output"][0]["name"], "play_music");
    let allowed = json!({"type": "allowed_tools", "tools": [
        {"type": "function", "name": "play_music"}, {"type": "function", "name": "water_plants"}]});
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
async fn a_call_of_what_is_not_loaded_is_told_to_the_model_only() {
    let model = script([
        call("play_music", json!({})),
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
    let model = script([call("book_flight", json!({"text": "oslo"}))]).with_capabilities(native());
    let served = holding(&model, 50).serve().await;
    let events = served
        .stream(json!({"input": "go", "tools": sixty()}))
        .await;
    assert_eq!(item_types(last(&events)), ["function_call"]);
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
