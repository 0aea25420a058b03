//! Repeated calls whose results a small model has: not executed, and not on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_core::{Annotations, Capabilities, ToolDefinition, ToolObject, dynamic_tool};
use haft_models::ScriptedModel;
use haft_models::testing::{Step, call, say};
use serde_json::{Value, json};

use crate::support::{Setup, function, item_types, kinds, last};

const NUDGE: &str =
    "You have the result above. Do not call a tool again. Answer the question in plain words.";

fn weak(steps: impl IntoIterator<Item = Step>) -> ScriptedModel {
    let steps: Vec<_> = steps.into_iter().collect();
    ScriptedModel::new(steps).with_capabilities(Capabilities {
        supports_dynamic_tools: true,
        repeats_calls: true,
        ..Capabilities::default()
    })
}

/// Reads without changing anything, and counts how often.
fn reading() -> (Arc<dyn ToolObject>, Arc<AtomicUsize>) {
    let definition = ToolDefinition::builder("read")
        .parameters(json!({"type": "object"}))
        .annotations(Annotations {
            read_only: true,
            ..Annotations::default()
        })
        .build()
        .unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let tool = dynamic_tool(definition, move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok("apples") }
    });
    (tool, runs)
}

fn path() -> Value {
    json!({"path": "a"})
}

#[tokio::test]
async fn a_repeated_call_is_not_executed_and_no_client_sees_it() {
    for stream in [false, true] {
        let (tool, runs) = reading();
        let model = weak([call("read", path()), call("read", path()), say("Apples.")]);
        let served = Setup::of(model.clone()).tools([tool]).serve().await;
        let body = json!({"input": "What is in a?", "tools": [{"type": "haft:read"}]});
        let response = if stream {
            let events = served.stream_with(body, &[("haft-events", "1")]).await;
            let told = kinds(&events);
            let suppressed = "haft:repeated_call_suppressed";
            let count = told.iter().filter(|kind| **kind == suppressed).count();
            assert_eq!(count, 1, "{told:?}");
            let added = "response.output_item.added";
            assert_eq!(told.iter().filter(|kind| **kind == added).count(), 2);
            last(&events).clone()
        } else {
            served.create(body).await
        };
        assert_eq!(item_types(&response), ["haft:read", "message"]);
        assert_eq!(response["status"], "completed");
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        let sent = &model.received()[2].conversation;
        assert_eq!(sent.items().last().unwrap().text(), NUDGE);
        let scrape = served.scrape().await;
        scrape.assert("haft_calls_suppressed_total", 1.0);
        let path = format!("/responses/{}/trace", response["id"].as_str().unwrap());
        let trace = served.get(&path).await.ok();
        let call = &trace["turns"][1]["calls"][0];
        assert_eq!(call["outcome"], "suppressed", "{trace:#}");
        model.assert_finished();
    }
}

#[tokio::test]
async fn a_function_is_returned_again_until_its_results_show_a_loop() {
    let model = weak([
        call("press", json!({})),
        call("press", json!({})),
        say("Pressed."),
    ]);
    let served = Setup::of(model.clone()).serve().await;
    let mut input = vec![json!({"role": "user", "content": "go"})];
    for number in 1..=3 {
        let id = format!("call_{number}");
        input.push(
            json!({"type": "function_call", "call_id": id, "name": "press", "arguments": "{}"}),
        );
        input.push(json!({"type": "function_call_output", "call_id": id, "output": "ok"}));
        if number < 2 {
            continue;
        }
        let body = json!({"input": input, "tools": [function("press")], "store": false});
        let response = last(&served.stream(body).await).clone();
        let expected = if number == 2 {
            "function_call"
        } else {
            "message"
        };
        assert_eq!(item_types(&response), [expected]);
    }
    model.assert_finished();
}

#[tokio::test]
async fn a_run_that_ends_in_a_loop_has_an_answer() {
    let (tool, _) = reading();
    let repeated = (0..4).map(|_| call("read", path()));
    let model = weak(repeated.chain([say("Apples.")]));
    let served = Setup::of(model.clone()).tools([tool]).serve().await;
    let body = json!({"input": "What is in a?", "tools": [{"type": "haft:read"}]});
    let response = served.create(body).await;
    assert_eq!(response["incomplete_details"]["reason"], "loop_detected");
    assert_eq!(item_types(&response), ["haft:read", "message"]);
    assert_eq!(response["output"][1]["content"][0]["text"], "Apples.");
    assert!(model.received()[4].tools.is_empty());
    model.assert_finished();
}
