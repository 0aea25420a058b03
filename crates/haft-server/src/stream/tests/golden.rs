//! The orders of `open-responses.md` §3.4, each as a transcript in both dialects.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::{ContentPart, FinishReason, Item, Message, Role, ToolObject};
use haft_models::ScriptedModel;
use haft_models::testing::{Fault, ScriptedCall, Step, call, calls, say, sum_up, think};
use serde_json::{Map, Value, json};

use super::stage::{Played, Stage, asking, echo, function, sequential};
use crate::stream::Dialect;
use crate::stream::legal::assert_legal;

/// Runs a request against a script.
async fn play<const N: usize>(body: Value, script: [Step; N]) -> Played {
    let tools: Vec<Arc<dyn ToolObject>> = vec![echo("echo"), echo("other")];
    let model = ScriptedModel::new(script);
    let played = Stage::new(model.clone(), tools).play(body).await;
    model.assert_finished();
    played
}

/// The transcript: every event in the specification's dialect, and those that the other dialect
/// writes otherwise.
fn transcript(played: &Played) -> String {
    let ours = played.events(Dialect::OpenResponses);
    let theirs = played.events(Dialect::OpenAi);
    assert_legal(&ours);
    assert_legal(&theirs);
    let (ours, theirs) = (lines(ours), lines(theirs));
    let differ = ours.iter().zip(&theirs).filter(|(one, two)| one != two);
    let differ: Vec<_> = differ.map(|(_, two)| two.as_str()).collect();
    format!(
        "{}\n\nopenai instead:\n{}",
        ours.join("\n"),
        differ.join("\n")
    )
}

/// One line per event: its number, its type, and what is its own.
fn lines(events: Vec<Value>) -> Vec<String> {
    let mut names = Names::default();
    let lines = events.into_iter().map(|mut event| {
        names.normalise(&mut event);
        let members = event.as_object_mut().unwrap();
        let number = members.shift_remove("sequence_number").unwrap();
        let kind = members.shift_remove("type").unwrap();
        if let Some(response) = members.get_mut("response") {
            // The rest is the same in every event, and has tests of its own.
            let keep = ["status", "output", "error", "incomplete_details", "usage"];
            let told = response.as_object_mut().unwrap();
            told.retain(|key, value| keep.contains(&key.as_str()) && !value.is_null());
        }
        format!("{number} {} {event}", kind.as_str().unwrap())
    });
    lines.collect()
}

/// Short names for ids, in the order in which they appear.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    fn normalise(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match value {
                        Value::String(id) if key == "id" || key == "item_id" => {
                            *id = self.name(id);
                        }
                        Value::Number(number) if key == "duration_ms" => *number = 0.into(),
                        value => self.normalise(value),
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.normalise(value)),
            _ => {}
        }
    }

    fn name(&mut self, id: &str) -> String {
        let prefix = id.split('_').next().unwrap_or_default();
        let next = self.0.len();
        let name = self.0.entry(id.to_owned());
        name.or_insert_with(|| format!("{prefix}_{next}")).clone()
    }
}

fn ask() -> Value {
    json!({"input": "go"})
}

#[tokio::test(start_paused = true)]
async fn a_message() {
    let played = play(ask(), [say("Hello there.")]).await;
    insta::assert_snapshot!(transcript(&played));
}

#[tokio::test(start_paused = true)]
async fn a_message_with_annotations_and_phase() {
    let annotation = json!({
        "type": "url_citation", "url": "https://example.org", "title": "Example",
        "start_index": 0, "end_index": 5,
    });
    let mut extra = Map::new();
    extra.insert("phase".into(), "final_answer".into());
    let message = Message {
        id: Some("msg_backend".into()),
        status: None,
        role: Role::Assistant,
        content: vec![ContentPart::OutputText {
            text: "Hello.".into(),
            annotations: vec![annotation],
            extra: Map::new(),
        }],
        extra,
    };
    let step = Step::default().item(Item::Message(message));
    insta::assert_snapshot!(transcript(&play(ask(), [step]).await));
}

#[tokio::test(start_paused = true)]
async fn a_refusal() {
    let step = Step::default().refuse("I will not do that.");
    insta::assert_snapshot!(transcript(&play(ask(), [step]).await));
}

#[tokio::test(start_paused = true)]
async fn a_text_and_a_refusal_are_two_parts_of_one_message() {
    let step = say("It begins well.").refuse("But no.");
    insta::assert_snapshot!(transcript(&play(ask(), [step]).await));
}

#[tokio::test(start_paused = true)]
async fn nothing_at_all_is_one_message_with_an_empty_text() {
    insta::assert_snapshot!(transcript(&play(ask(), [Step::default()]).await));
}

#[tokio::test(start_paused = true)]
async fn raw_thoughts() {
    let step = think("Two and two.").say("Four.");
    insta::assert_snapshot!(transcript(&play(ask(), [step]).await));
}

#[tokio::test(start_paused = true)]
async fn a_summary_of_thoughts() {
    let step = sum_up("First this.").sum_up("Then that.").say("Done.");
    insta::assert_snapshot!(transcript(&play(ask(), [step]).await));
}

#[tokio::test(start_paused = true)]
async fn a_function_call() {
    let body = json!({"input": "go", "tools": [function("look")]});
    let script = [call("look", json!({"text": "sky"})).with_id("call_a")];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_function_call_without_arguments() {
    let body = json!({"input": "go", "tools": [function("look")]});
    let script = [call("look", "").with_id("call_a")];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_function_of_a_namespace() {
    let body = json!({"input": "go", "tools": [{
        "type": "namespace", "name": "sky", "description": "Above.", "tools": [function("look")],
    }]});
    let script = [call("sky__look", json!({"text": "up"})).with_id("call_a")];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn parallel_calls() {
    let body = json!({"input": "go", "tools": [function("look"), function("listen")]});
    let script = [call("look", json!({"text": "sky"}))
        .call("listen", json!({"text": "sea"}))
        .call("look", json!({"text": "sea"}))];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_custom_tool_call() {
    let body = json!({"input": "go", "tools": [{"type": "custom", "name": "patch"}]});
    let script = [call("patch", json!({"input": "*** Begin\n+\"x\""})).with_id("call_a")];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_hosted_call() {
    let body = json!({"input": "go", "tools": [{"type": "haft:echo"}]});
    let script = [
        call("echo", json!({"text": "hi"})).with_id("call_a"),
        say("It said hi."),
    ];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_hosted_call_that_fails() {
    let body = json!({"input": "go", "tools": [{"type": "haft:echo"}]});
    let script = [
        call("echo", json!({"fail": true})).with_id("call_a"),
        say("It did not work."),
    ];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_mixed_turn() {
    let body = json!({"input": "go", "tools": [function("pick_seat"), {"type": "haft:echo"}]});
    let script = [call("echo", json!({"text": "flights", "wait": 3}))
        .with_id("call_a")
        .call("pick_seat", json!({"text": "12A"}))
        .with_id("call_b")];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_client_search_for_tools() {
    let mut deferred = function("far_away");
    deferred["defer_loading"] = true.into();
    let body = json!({"input": "go", "tools": [
        deferred, {"type": "tool_search", "execution": "client"},
    ]});
    let script = [call("tool_search", json!({"query": "far"})).with_id("call_a")];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_search_of_the_server_for_tools() {
    let mut deferred = function("far_away");
    deferred["defer_loading"] = true.into();
    let body = json!({"input": "go", "tools": [deferred, {"type": "tool_search"}]});
    let script = [
        call("search_tools", json!({"query": "far away"})).with_id("call_a"),
        call("far_away", json!({"text": "x"})).with_id("call_b"),
    ];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_token_limit_in_a_text() {
    let script = [say("Once upon a ti").finish(FinishReason::Length)];
    insta::assert_snapshot!(transcript(&play(ask(), script).await));
}

#[tokio::test(start_paused = true)]
async fn a_token_limit_in_a_function_call() {
    let body = json!({"input": "go", "tools": [function("look")]});
    let script = [call("look", "{\"text\": \"sk").with_id("call_a")];
    let [step] = script;
    let script = [step.finish(FinishReason::Length)];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_cap_on_calls_still_gives_an_answer() {
    let body = json!({"input": "go", "max_tool_calls": 1, "tools": [{"type": "haft:echo"}]});
    let script = [
        calls([])
            .call("echo", json!({"text": "one"}))
            .with_id("call_a")
            .call("echo", json!({"text": "two"}))
            .with_id("call_b"),
        say("Only one."),
    ];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_failure_keeps_what_is_finished_and_leaves_out_what_is_open() {
    let body = json!({"input": "go", "tools": [{"type": "haft:echo"}]});
    let script = [
        call("echo", json!({"text": "hi"})).with_id("call_a"),
        say("It said").fault(Fault::error_event(4, "the provider broke")),
    ];
    insta::assert_snapshot!(transcript(&play(body, script).await));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run() {
    let script = [say("This goes on and on").fault(Fault::HangAfterEvents(4))];
    let mut stage = Stage::new(ScriptedModel::new(script), Vec::new());
    stage.cancel_after = Some(5);
    insta::assert_snapshot!(transcript(&stage.play(ask()).await));
}

#[tokio::test(start_paused = true)]
async fn a_server_is_listed_and_its_calls_are_told_step_by_step() {
    let tools = json!([{"type": "mcp", "server_label": "air", "allowed_tools": ["find"]}]);
    let both = [
        ScriptedCall::new("air__find", json!({"text": "a"})),
        ScriptedCall::new("air__find", json!({"fail": true, "wait": 1})),
    ];
    let played = play(
        json!({"input": "go", "tools": tools}),
        [calls(both), say("done")],
    )
    .await;
    insta::assert_snapshot!(transcript(&played));
}

#[tokio::test(start_paused = true)]
async fn a_question_about_a_call_ends_the_response() {
    let tools = json!([{"type": "mcp", "server_label": "air", "allowed_tools": ["find"],
        "require_approval": "always"}]);
    let played = play(
        json!({"input": "go", "tools": tools}),
        [call("air__find", json!({"text": "a"}))],
    )
    .await;
    insta::assert_snapshot!(transcript(&played));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_held_back_behind_a_question_has_not_run() {
    let both = ["ask", "next"].map(|name| ScriptedCall::new(name, json!({"text": "a"})));
    let tools = vec![asking("ask"), sequential("next")];
    let stage = Stage::new(ScriptedModel::new([calls(both)]), tools);
    let body = json!({"input": "go", "tools": [{"type": "haft:ask"}, {"type": "haft:next"}]});
    insta::assert_snapshot!(transcript(&stage.play(body).await));
}
