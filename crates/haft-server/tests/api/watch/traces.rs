//! How each run went: stored with its response, without a word of content.

use haft_engine::{Backoff, LoopOptions};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, ScriptedCall, call, calls, fail, fault, say};
use haft_server::RunTrace;
use serde_json::{Value, json};
use std::time::Duration;

use crate::support::{Served, Setup, function, serve};
use crate::tools::echo;

pub(crate) async fn trace_of(server: &Served, id: &Value) -> Value {
    let id = id.as_str().unwrap();
    server.get(&format!("/responses/{id}/trace")).await.ok()
}

/// The same without what differs from run to run.
pub(crate) fn settled(mut trace: Value) -> Value {
    fn settle(value: &mut Value, key: &str) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    settle(member, key);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| settle(item, key)),
            Value::Number(_) if key.ends_with("_ms") || key == "started_at" => {
                *value = "some".into();
            }
            Value::String(id) if key.ends_with("_id") => {
                let (prefix, _) = id.split_once('_').unwrap();
                *value = format!("{prefix}_…").into();
            }
            _ => {}
        }
    }
    settle(&mut trace, "");
    trace
}

#[tokio::test]
async fn a_run_with_calls_leaves_its_whole_story_and_no_content() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new(vec![
        calls([
            ScriptedCall::new("echo", json!({"text": "hunter2"})),
            ScriptedCall::new("echo", json!({"fail": true, "text": "hunter2"})),
            ScriptedCall::new("echo", json!({"text": 3, "fail": "hunter2"})),
            ScriptedCall::new("echo", r#"{"text": "hunter2","#),
            ScriptedCall::new("nothing", json!({"text": "hunter2"})),
        ])
        .usage(10, 20),
        call("mine", json!({"text": "hunter2"})).usage(30, 40),
    ]);
    let server = Setup::of(model).tools([tool]).serve().await;
    let tools = json!([{"type": "haft:echo"}, function("mine")]);
    let body = json!({"input": "hunter2", "instructions": "hunter2", "tools": tools});
    let response = server.create(body).await;
    let trace = trace_of(&server, &response["id"]).await;
    assert_eq!(trace["response_id"], response["id"]);
    assert!(!trace.to_string().contains("hunter2"), "{trace:#}");
    assert!(!trace.to_string().contains("broken today"), "{trace:#}");
    insta::assert_json_snapshot!(settled(trace.clone()));

    let read: RunTrace = serde_json::from_value(trace).unwrap();
    let mut last = 0.0;
    for turn in &read.turns {
        assert!(turn.start_ms >= last);
        assert!(turn.first_token_ms.unwrap() >= turn.start_ms);
        last = turn.end_ms.unwrap();
        assert!(last >= turn.first_token_ms.unwrap());
    }
    assert!(read.duration_ms.unwrap() >= last);
}

#[tokio::test]
async fn attempts_reasons_and_cuts_are_in_it() {
    let patient = LoopOptions {
        retry: Backoff {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(2),
            ..Backoff::default()
        },
        ..LoopOptions::default()
    };
    let too_long = json!({"error": {"message": "hunter2", "code": "context_length_exceeded"}});
    let model = ScriptedModel::new(vec![
        fail(503),
        fault(Fault::status(400).with_body(too_long)),
        say("short enough").usage(5, 2),
    ]);
    let server = Setup::of(model)
        .options(|options| options.loop_options = patient)
        .serve()
        .await;
    let turn = |text: &str| json!({"role": "user", "content": text});
    let answer = json!({"role": "assistant", "content": "well"});
    let long = json!({"input": [turn("one"), answer, turn("two")], "truncation": "auto"});
    let response = server.create(long).await;
    let trace = trace_of(&server, &response["id"]).await;
    insta::assert_json_snapshot!(settled(trace));
}

#[tokio::test]
async fn a_failed_response_has_its_reason_and_not_the_providers_words() {
    let cut = say("half of it").fault(Fault::error_event(4, "hunter2"));
    let (server, _) = serve([cut]).await;
    let events = server.stream(json!({"input": "hi"})).await;
    let response = crate::support::last(&events);
    assert_eq!(response["status"], "failed");
    let trace = trace_of(&server, &response["id"]).await;
    assert_eq!(trace["outcome"], "failed");
    assert_eq!(trace["reason"], "model_error");
    let error = &trace["turns"][0]["attempts"][0]["error"];
    assert_eq!(error, "server_error", "{trace:#}");
    assert!(!trace.to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_compaction_is_in_it() {
    let model = ScriptedModel::new(vec![say("summary").usage(9, 4), say("hi").usage(3, 1)]);
    let server = Setup::of(model).serve().await;
    let story = "a long story ".repeat(400);
    let turn = |text: &str| json!({"role": "user", "content": text});
    let answer = json!({"role": "assistant", "content": story});
    let body = json!({
        "input": [turn("one"), answer, turn("two")],
        "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    });
    let response = server.create(body).await;
    let trace = settled(trace_of(&server, &response["id"]).await);
    let note = &trace["notes"][0];
    assert_eq!(note["kind"], "compaction", "{trace:#}");
    assert_eq!(note["outcome"], "completed");
    assert_eq!(note["usage"]["input_tokens"], 9);
    assert_eq!(trace["usage"]["input_tokens"], 12);
    assert_eq!(trace["usage"]["requests"], 2);
}

#[tokio::test]
async fn a_live_run_shows_what_is_known_so_far() {
    let (tool, _) = echo("echo");
    let model = ScriptedModel::new(vec![
        call("echo", json!({"text": "a"})),
        say("slowly").fault(Fault::HangAfterEvents(3)),
    ]);
    let server = Setup::of(model).tools([tool]).serve().await;
    let tools = json!([{"type": "haft:echo"}]);
    let body = json!({"input": "go", "background": true, "tools": tools});
    let response = server.create(body).await;
    let mut trace = Value::Null;
    for _ in 0..200 {
        trace = trace_of(&server, &response["id"]).await;
        if trace["turns"][1]["first_token_ms"].is_number() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(trace["outcome"], Value::Null, "{trace:#}");
    assert_eq!(trace["turns"][0]["calls"][0]["outcome"], "succeeded");
    assert!(trace["turns"][1]["end_ms"].is_null());
    let id = response["id"].as_str().unwrap();
    server
        .post(&format!("/responses/{id}/cancel"), json!({}))
        .await
        .ok();
    let trace = trace_of(&server, &response["id"]).await;
    assert_eq!(trace["outcome"], "cancelled");
    assert_eq!(trace["turns"][1]["attempts"][0]["error"], "cancelled");
}

#[tokio::test]
async fn a_run_that_another_process_takes_up_keeps_its_story() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, _) = echo("echo");
    let first = ScriptedModel::new(vec![
        call("echo", json!({"text": "a"})).usage(10, 1),
        say("never whole").fault(Fault::HangAfterEvents(3)),
    ]);
    let tools = json!([{"type": "haft:echo"}]);
    let setup = Setup::of(first).tools([tool]).on_disk(directory.path());
    let server = setup
        .options(|options| options.stop_wait = Duration::from_millis(50))
        .serve()
        .await;
    let body = json!({"input": "go", "background": true, "tools": tools});
    let response = server.create(body).await;
    let known = r#"haft_turns_total{model="default"}"#;
    server.until(known, 1.0).await;
    server.stop().await;

    let (tool, _) = echo("echo");
    let rest = ScriptedModel::new(vec![say("done").usage(20, 2)]);
    let server = Setup::of(rest).tools([tool]).on_disk(directory.path());
    let server = server.serve().await;
    let done = server.settled(&response["id"]).await;
    assert_eq!(done["status"], "completed");
    let trace = trace_of(&server, &response["id"]).await;
    assert_eq!(trace["response_id"], response["id"]);
    assert_eq!(trace["notes"][0]["kind"], "resumed", "{trace:#}");
    assert_eq!(trace["turns"][0]["calls"][0]["name"], "echo");
    assert_eq!(
        trace["turns"][0]["calls"][0]["hydration"]["outcome"],
        "valid"
    );
    assert_eq!(trace["turns"].as_array().unwrap().len(), 2, "{trace:#}");
    assert_eq!(trace["usage"]["input_tokens"], 30);
    assert_eq!(trace["outcome"], "completed");
}

#[tokio::test]
async fn what_has_no_trace_is_told_clearly() {
    let (server, _) = serve([say("hi")]).await;
    let answer = server.get("/responses/resp_none/trace").await;
    assert_eq!(answer.error(), (404, "response_not_found", None));
    let unstored = server.create(json!({"input": "hi", "store": false})).await;
    let id = unstored["id"].as_str().unwrap();
    let answer = server.get(&format!("/responses/{id}/trace")).await;
    assert_eq!(answer.error(), (404, "response_not_found", None));

    let (server, _) = serve([say("hi")]).await;
    let response = server.create(json!({"input": "hi"})).await;
    let id = response["id"].as_str().unwrap();
    let owner = haft_core::Owner::default();
    let bare = server.store.response(&owner, id).await.unwrap().unwrap();
    let mut bare = haft_core::StoredResponse { ..bare };
    bare.id = "resp_bare".into();
    let put = server
        .store
        .put_response(&owner, bare, haft_core::Alongside::default());
    put.await.unwrap();
    let answer = server.get("/responses/resp_bare/trace").await;
    assert_eq!(answer.error(), (404, "response_not_found", None));
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("has no trace"), "{message}");
    server.delete(&format!("/responses/{id}")).await.ok();
    let answer = server.get(&format!("/responses/{id}/trace")).await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn a_backend_that_stood_in_is_in_it() {
    use haft_core::Model;
    use haft_models::Backend;
    use haft_models::pool::{BreakerSettings, Member, Pool};
    use haft_server::ModelEntry;
    use std::sync::Arc;
    let member = |name: &str, steps: Vec<haft_models::testing::Step>| {
        let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(steps));
        let breaker = BreakerSettings {
            failures: 1,
            ..BreakerSettings::default()
        };
        Arc::new(Member::new(name, Backend::from(model)).breaker(breaker))
    };
    let near = member("near", vec![fail(503)]);
    let pool = Pool::new(near, [member("far", vec![say("hello"), say("again")])]);
    let mut setup = Setup::of(ScriptedModel::new(vec![]));
    setup.models = vec![ModelEntry::from_pool("default", [], pool)];
    let server = setup.serve().await;
    // The first time it fails, then it is left alone.
    for error in ["server_error", "left_alone"] {
        let response = server.create(json!({"input": "hi"})).await;
        let trace = trace_of(&server, &response["id"]).await;
        let mut note = trace["notes"][0].clone();
        note.as_object_mut().unwrap().remove("at_ms");
        let expected = json!({"kind": "failover", "from": "near", "to": "far", "error": error});
        assert_eq!(note, expected, "{trace:#}");
        let sample = format!(
            r#"haft_backend_failovers_total{{model="default",backend="near",error="{error}",by="far"}}"#
        );
        server.scrape().await.assert(&sample, 1.0);
    }
    let scrape = server.scrape().await;
    scrape.assert(r#"haft_backend_available{backend="near"}"#, 0.0);
    scrape.assert(r#"haft_backend_available{backend="far"}"#, 1.0);
}
