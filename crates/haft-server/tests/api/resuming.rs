//! Background responses whose process dies or stops: they go on, or say why they cannot.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_core::{Annotations, Item, Owner, ToolDefinition, ToolObject, dynamic_tool};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, Pieces, ScriptedCall, Step, call, calls, fault, say};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::legal::assert_legal;
use crate::raw::Raw;
use crate::state::replay;
use crate::support::{Served, Setup, function, item_types, kinds, last};
use crate::tools::{echo, soon};

/// What a killed process leaves of its data: the files as they are in this moment.
pub(crate) fn remains(directory: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["haft.db", "haft.db-wal", "sealing-keys"] {
        let from = directory.join(name);
        if from.exists() {
            std::fs::copy(from, copy.path().join(name)).unwrap();
        }
    }
    copy
}

/// A tool that hangs the first time it runs in a process, unless told otherwise.
pub(crate) struct Slow {
    hangs: bool,
    runs: AtomicUsize,
    started: Notify,
}

pub(crate) fn slow(annotations: Annotations, hangs: bool) -> (Arc<dyn ToolObject>, Arc<Slow>) {
    let slow = Arc::new(Slow {
        hangs,
        runs: AtomicUsize::new(0),
        started: Notify::new(),
    });
    let definition = ToolDefinition::builder("slow")
        .parameters(json!({"type": "object"}))
        .annotations(annotations)
        .build()
        .unwrap();
    let seen = Arc::clone(&slow);
    let tool = dynamic_tool(definition, move |_, _| {
        let slow = Arc::clone(&seen);
        async move {
            slow.runs.fetch_add(1, Ordering::SeqCst);
            slow.started.notify_one();
            if slow.hangs {
                std::future::pending::<()>().await;
            }
            Ok("slow but sure")
        }
    });
    (tool, slow)
}

/// Starts a background stream and reads it up to the first event of a kind.
pub(crate) async fn told_up_to(served: &Served, body: &Value, kind: &str) -> (String, Vec<Value>) {
    let mut raw = Raw::post(served, body).await;
    raw.head().await;
    let mut told = Vec::new();
    loop {
        let chunk = raw.chunk().await.unwrap();
        let data = chunk.lines().nth(1).unwrap().trim_start_matches("data: ");
        told.push(serde_json::from_str::<Value>(data).unwrap());
        if told.last().unwrap()["type"] == kind {
            break;
        }
    }
    let id = told[0]["response"]["id"].as_str().unwrap().to_owned();
    (id, told)
}

fn streamed(tools: &Value) -> Value {
    json!({"input": "go", "background": true, "stream": true, "tools": tools})
}

fn model(steps: impl IntoIterator<Item = Step>) -> ScriptedModel {
    ScriptedModel::new(steps.into_iter().collect::<Vec<_>>())
}

#[tokio::test]
async fn a_run_that_was_killed_in_the_middle_of_an_answer_goes_on_from_its_last_turn() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, runs) = echo("echo");
    let first = model([
        call("echo", json!({"text": "x"})),
        say("a first try")
            .pieces(Pieces::Each(3))
            .fault(Fault::HangAfterEvents(4)),
    ]);
    let setup = Setup::of(first).tools([tool]).on_disk(directory.path());
    let served = setup.serve().await;
    let body = streamed(&json!([{"type": "haft:echo"}]));
    let (id, told) = told_up_to(&served, &body, "response.output_text.delta").await;
    let copy = remains(directory.path());

    let (tool, runs_again) = echo("echo");
    let rest = model([say("the whole answer"), say("more")]);
    let second = Setup::of(rest.clone()).tools([tool]).on_disk(copy.path());
    let second = second.serve().await;
    let done = second.settled(&json!(id)).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(item_types(&done), ["haft:echo", "message", "message"]);
    assert_eq!(done["output"][2]["content"][0]["text"], "the whole answer");
    let cut = done["output"][1]["content"][0]["text"].as_str().unwrap();
    assert!("a first try".starts_with(cut) && !cut.is_empty(), "{cut}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(runs_again.load(Ordering::SeqCst), 0, "its result was there");
    let request = &rest.received()[0];
    let kinds: Vec<_> = request.conversation.items().map(Item::kind).collect();
    assert_eq!(kinds, ["message", "function_call", "function_call_output"]);
    assert_log(&second, &id, &told, &done).await;
    // It can be gone on from.
    let next = json!({"input": "once more", "previous_response_id": id});
    assert_eq!(second.create(next).await["status"], "completed");
}

/// The log begins with what was told before, has its end, and can be read on from every place.
async fn assert_log(served: &Served, id: &str, told: &[Value], done: &Value) {
    let log = replay(served, id, "").await;
    assert_legal(&log);
    assert_eq!(log[..told.len()], *told);
    assert_eq!(last(&log), done);
    let after = told.len() - 1;
    let rest = replay(served, id, &format!("&starting_after={after}")).await;
    assert_eq!(log[told.len()..], rest);
}

#[tokio::test]
async fn calls_that_were_under_way_are_repeated_only_where_that_does_no_harm() {
    let read_only = Annotations {
        read_only: true,
        ..Annotations::default()
    };
    let idempotent = Annotations {
        idempotent: true,
        ..Annotations::default()
    };
    for (annotations, is_repeated) in [
        (read_only, true),
        (idempotent, true),
        (Annotations::default(), false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (tool, seen) = slow(annotations.clone(), true);
        let first = model([call("slow", json!({}))]);
        let setup = Setup::of(first).tools([tool]).on_disk(directory.path());
        let served = setup.serve().await;
        let body = streamed(&json!([{"type": "haft:slow"}]));
        let (id, told) = told_up_to(&served, &body, "response.output_item.added").await;
        soon(&seen.started, Duration::from_secs(5)).await;
        let copy = remains(directory.path());

        let (tool, again) = slow(annotations, false);
        let rest = model([say("done")]);
        let second = Setup::of(rest.clone()).tools([tool]).on_disk(copy.path());
        let second = second.serve().await;
        let done = second.settled(&json!(id)).await;
        assert_eq!(done["status"], "completed");
        assert_eq!(again.runs.load(Ordering::SeqCst), usize::from(is_repeated));
        let request = &rest.received()[0];
        let Some(Item::FunctionCallOutput(output)) = request.conversation.items().next_back()
        else {
            panic!("no output at the end: {request:#?}");
        };
        let text = output.output.to_text();
        if is_repeated {
            assert_eq!(text, "slow but sure");
        } else {
            assert!(text.contains("Whether it took effect is unknown"), "{text}");
            assert_eq!(done["output"][0]["status"], "failed");
        }
        assert_eq!(item_types(&done), ["haft:slow", "message"]);
        assert_log(&second, &id, &told, &done).await;
    }
}

#[tokio::test]
async fn a_run_that_was_killed_before_its_first_answer_begins_again() {
    for has_stream in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let first = model([fault(Fault::Hang)]);
        let served = Setup::of(first).on_disk(directory.path()).serve().await;
        let body = json!({"input": "go", "background": true, "stream": has_stream,
            "instructions": "be brief", "metadata": {"a": "b"}, "temperature": 0.5});
        let (id, told) = if has_stream {
            told_up_to(&served, &body, "response.in_progress").await
        } else {
            let queued = served.create(body).await;
            (queued["id"].as_str().unwrap().to_owned(), Vec::new())
        };
        let copy = remains(directory.path());
        let rest = model([say("done")]);
        let second = Setup::of(rest.clone()).on_disk(copy.path()).serve().await;
        let done = second.settled(&json!(id)).await;
        assert_eq!(done["status"], "completed");
        assert_eq!(done["output"][0]["content"][0]["text"], "done");
        assert_eq!(done["metadata"], json!({"a": "b"}));
        let request = &rest.received()[0];
        assert_eq!(request.instructions.as_deref(), Some("be brief"));
        assert_eq!(request.options.temperature, Some(0.5));
        if has_stream {
            assert_log(&second, &id, &told, &done).await;
        }
    }
}

/// Waits until so many events of a kind are written down.
async fn until_told(served: &Served, id: &str, kind: &str, count: usize) {
    let told = async {
        loop {
            let events = served
                .store
                .events(&Owner::default(), id, None, 1_000)
                .await;
            let events = events.unwrap();
            let name = format!(r#"{{"type":"{kind}""#);
            let events = events.iter().map(|event| event.json.get());
            if events.filter(|event| event.starts_with(&name)).count() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_run_that_is_killed_again_and_again_within_one_answer_goes_on() {
    let begins = |text: &str| {
        let step = say(text).pieces(Pieces::Each(3));
        model([step.fault(Fault::HangAfterEvents(4))])
    };
    let directory = tempfile::tempdir().unwrap();
    let first = Setup::of(begins("a first try")).on_disk(directory.path());
    let first = first.serve().await;
    let delta = "response.output_text.delta";
    let (id, told) = told_up_to(&first, &streamed(&json!([])), delta).await;
    let mut copy = remains(directory.path());
    // Once while it says something else, once before it does.
    for (try_again, kind, count) in [
        (begins("a second try"), "response.output_item.added", 2),
        (model([fault(Fault::Hang)]), "response.output_item.done", 2),
        (begins("a third try"), "response.output_item.added", 3),
    ] {
        let served = Setup::of(try_again).on_disk(copy.path()).serve().await;
        until_told(&served, &id, kind, count).await;
        copy = remains(copy.path());
    }
    let last = model([say("the whole answer")]);
    let served = Setup::of(last.clone()).on_disk(copy.path()).serve().await;
    let done = served.settled(&json!(id)).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(item_types(&done), ["message"; 4]);
    for (item, whole) in ["a first try", "a second try", "a third try"]
        .iter()
        .enumerate()
    {
        let cut = done["output"][item]["content"][0]["text"].as_str().unwrap();
        assert!(whole.starts_with(cut), "{cut}");
    }
    assert_eq!(done["output"][3]["content"][0]["text"], "the whole answer");
    let request = &last.received()[0];
    assert_eq!(request.conversation.len(), 1, "only the question was asked");
    assert_log(&served, &id, &told, &done).await;
}

#[tokio::test]
async fn a_run_that_is_killed_within_a_call_and_behind_it_keeps_the_call() {
    for has_stream in [true, false] {
        let read_only = || Annotations {
            read_only: true,
            ..Annotations::default()
        };
        let directory = tempfile::tempdir().unwrap();
        let (tool, seen) = slow(read_only(), true);
        let first = Setup::of(model([call("slow", json!({}))])).tools([tool]);
        let first = first.on_disk(directory.path()).serve().await;
        let body = json!({"input": "go", "background": true, "stream": has_stream,
            "tools": [{"type": "haft:slow"}]});
        let (id, _) = if has_stream {
            told_up_to(&first, &body, "response.output_item.added").await
        } else {
            let queued = first.create(body).await;
            (queued["id"].as_str().unwrap().to_owned(), Vec::new())
        };
        soon(&seen.started, Duration::from_secs(5)).await;
        let copy = remains(directory.path());

        let (tool, _) = slow(read_only(), false);
        let hangs = model([fault(Fault::Hang)]);
        let second = Setup::of(hangs.clone()).tools([tool]).on_disk(copy.path());
        let second = second.serve().await;
        let asked = async {
            while hangs.received().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let patience = Duration::from_secs(10);
        tokio::time::timeout(patience, asked).await.unwrap();
        let copy = remains(copy.path());
        drop(second);

        let (tool, again) = slow(read_only(), false);
        let third = Setup::of(model([say("done")]))
            .tools([tool])
            .on_disk(copy.path());
        let third = third.serve().await;
        let done = third.settled(&json!(id)).await;
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!(item_types(&done), ["haft:slow", "message"]);
        assert_eq!(again.runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_run_goes_on_although_what_it_goes_on_from_was_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let first = model([say("one"), fault(Fault::Hang)]);
    let served = Setup::of(first).on_disk(directory.path()).serve().await;
    let before = served.create(json!({"input": "before"})).await;
    let body = json!({"input": "go", "background": true, "previous_response_id": before["id"]});
    let queued = served.create(body).await;
    let before = before["id"].as_str().unwrap();
    served.delete(&format!("/responses/{before}")).await.ok();
    let copy = remains(directory.path());
    let rest = model([say("done")]);
    let second = Setup::of(rest.clone()).on_disk(copy.path()).serve().await;
    let done = second.settled(&queued["id"]).await;
    assert_eq!(done["status"], "completed", "{done}");
    let request = &rest.received()[0];
    let said: Vec<_> = request.conversation.items().map(Item::text).collect();
    assert_eq!(said, ["before", "one", "go"]);
}

#[tokio::test]
async fn a_run_that_was_put_away_when_its_server_stopped_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let first = model([say("x").fault(Fault::HangAfterEvents(3))]);
    let setup = Setup::of(first).on_disk(directory.path());
    let setup = setup.options(|options| options.stop_wait = Duration::from_millis(100));
    let served = setup.serve().await;
    let (id, told) = told_up_to(&served, &streamed(&json!([])), "response.in_progress").await;
    served.stop().await;
    let second = Setup::of(model([say("done")])).on_disk(directory.path());
    let second = second.serve().await;
    let done = second.settled(&json!(id)).await;
    assert_eq!(done["status"], "completed");
    assert_log(&second, &id, &told, &done).await;
}

#[tokio::test]
async fn a_server_that_stops_asks_the_model_nothing_more_for_background_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, seen) = slow(Annotations::default(), false);
    // The call takes until the server is told to stop.
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    let definition = ToolDefinition::builder("gated")
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap();
    let gated = dynamic_tool(definition, move |_, _| {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            Ok("opened")
        }
    });
    let both = calls([
        ScriptedCall::new("gated", json!({})),
        ScriptedCall::new("slow", json!({})),
    ]);
    let first = model([both, say("never asked for")]);
    let setup = Setup::of(first.clone()).tools([tool, gated]);
    let served = setup.on_disk(directory.path()).serve().await;
    let body = streamed(&json!([{"type": "haft:gated"}, {"type": "haft:slow"}]));
    let (id, told) = told_up_to(&served, &body, "response.output_item.added").await;
    soon(&seen.started, Duration::from_secs(5)).await;
    let stopped = tokio::spawn(served.stop());
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.notify_one();
    stopped.await.unwrap();
    assert_eq!(first.received().len(), 1);

    let rest = model([say("done")]);
    let (tool, again) = slow(Annotations::default(), false);
    let second = Setup::of(rest.clone())
        .tools([tool])
        .on_disk(directory.path());
    let definition = ToolDefinition::builder("gated").parameters(json!({"type": "object"}));
    let gated = dynamic_tool(definition.build().unwrap(), |_, _| async { Ok("no") });
    let second = second.tools([gated]).serve().await;
    let done = second.settled(&json!(id)).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(again.runs.load(Ordering::SeqCst), 0);
    let outputs = rest.received()[0].conversation.clone();
    let outputs: Vec<_> = outputs
        .items()
        .filter_map(|item| match item {
            Item::FunctionCallOutput(output) => Some(output.output.to_text()),
            _ => None,
        })
        .collect();
    assert_eq!(outputs, ["opened", "slow but sure"]);
    assert_log(&second, &id, &told, &done).await;
}

#[tokio::test]
async fn calls_of_the_client_are_told_once_and_survive() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, seen) = slow(Annotations::default(), true);
    let first = model([calls([
        ScriptedCall::new("ask", json!({"q": 1})),
        ScriptedCall::new("slow", json!({})),
    ])]);
    let setup = Setup::of(first).tools([tool]).on_disk(directory.path());
    let served = setup.serve().await;
    let body = streamed(&json!([function("ask"), {"type": "haft:slow"}]));
    let (id, told) = told_up_to(&served, &body, "response.output_item.done").await;
    soon(&seen.started, Duration::from_secs(5)).await;
    let copy = remains(directory.path());
    let rest = model([]);
    let (tool, _) = slow(Annotations::default(), false);
    let second = Setup::of(rest.clone()).tools([tool]).on_disk(copy.path());
    let second = second.serve().await;
    let done = second.settled(&json!(id)).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(item_types(&done), ["function_call", "haft:slow"]);
    assert!(rest.received().is_empty(), "the client is to answer first");
    assert_log(&second, &id, &told, &done).await;
}

#[tokio::test]
async fn a_resumed_response_becomes_part_of_its_conversation_once() {
    let directory = tempfile::tempdir().unwrap();
    let first = model([say("x").fault(Fault::HangAfterEvents(3))]);
    let served = Setup::of(first).on_disk(directory.path()).serve().await;
    let conversation = served.post("/conversations", json!({})).await.ok()["id"].clone();
    let body = json!({"input": "go", "background": true, "stream": true,
        "conversation": conversation});
    let (id, _) = told_up_to(&served, &body, "response.in_progress").await;
    let copy = remains(directory.path());
    let slowly = say("done").pieces(Pieces::Each(1)).delay_ms(50);
    let second = Setup::of(model([slowly]))
        .on_disk(copy.path())
        .serve()
        .await;
    let other = json!({"input": "me too", "conversation": conversation});
    let refused = second.post("/responses", other).await;
    assert_eq!(
        refused.error(),
        (409, "conversation_locked", Some("conversation"))
    );
    second.settled(&json!(id)).await;
    let path = format!(
        "/conversations/{}/items?order=asc",
        conversation.as_str().unwrap()
    );
    let items = second.get(&path).await.ok();
    let texts: Vec<_> = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts.first(), Some(&"go"));
    assert_eq!(texts.last(), Some(&"done"));
    assert_eq!(texts.iter().filter(|text| **text == "go").count(), 1);
}

#[tokio::test]
async fn a_run_that_cannot_go_on_is_failed_with_the_true_reason() {
    let directory = tempfile::tempdir().unwrap();
    let (tool, _) = echo("echo");
    let setup = Setup::of(model([fault(Fault::Hang)])).tools([tool]);
    let served = setup.on_disk(directory.path()).serve().await;
    let body = streamed(&json!([{"type": "haft:echo"}]));
    let (id, told) = told_up_to(&served, &body, "response.in_progress").await;
    let copy = remains(directory.path());
    // This one has no such tool.
    let second = Setup::of(model([])).on_disk(copy.path()).serve().await;
    let left = second.settled(&json!(id)).await;
    assert_eq!(left["status"], "failed");
    let message = left["error"]["message"].as_str().unwrap();
    assert!(message.contains("haft:echo"), "{message}");
    let log = replay(&second, &id, "").await;
    assert_legal(&log);
    assert_eq!(log[..told.len()], told);
    assert_eq!(kinds(&log).last(), Some(&"response.failed"));
}

#[tokio::test]
async fn a_response_without_a_checkpoint_is_failed() {
    let directory = tempfile::tempdir().unwrap();
    let setup = Setup::of(model([fault(Fault::Hang)])).on_disk(directory.path());
    let store = Arc::clone(&setup.store);
    let served = setup.serve().await;
    let (id, _) = told_up_to(&served, &streamed(&json!([])), "response.in_progress").await;
    let broken = serde_json::value::to_raw_value(&json!({"version": 99})).unwrap();
    let put = store.put_checkpoint(&Owner::default(), &id, broken, Vec::new());
    assert!(put.await.unwrap());
    let copy = remains(directory.path());
    // This one has no such tool.
    let second = Setup::of(model([])).on_disk(copy.path()).serve().await;
    let left = second.settled(&json!(id)).await;
    assert_eq!(left["status"], "failed");
    let message = left["error"]["message"].as_str().unwrap();
    assert!(message.contains("stopped"), "{message}");
}

#[tokio::test]
async fn a_resumed_run_can_be_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let served = Setup::of(model([fault(Fault::Hang)])).on_disk(directory.path());
    let served = served.serve().await;
    let (id, _) = told_up_to(&served, &streamed(&json!([])), "response.in_progress").await;
    let copy = remains(directory.path());
    let second = Setup::of(model([fault(Fault::Hang)])).on_disk(copy.path());
    let second = second.serve().await;
    let path = format!("/responses/{id}/cancel");
    let cancelled = second.post(&path, json!({})).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    second.stop().await;
    let third = Setup::of(model([])).on_disk(copy.path()).serve().await;
    assert_eq!(third.stored(&json!(id)).await["status"], "cancelled");
}
