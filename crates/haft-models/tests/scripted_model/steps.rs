//! Which step is taken, and what it answers in which pieces.

use std::sync::Arc;

use haft_core::{
    Capabilities, FinishReason, Item, Model, ModelError, ModelErrorKind, ModelEvent, ModelOptions,
    ModelRequest, Streaming,
};
use haft_models::testing::{Pieces, ScriptedModel, call, refuse, say, think, user_contains};
use serde_json::json;

use super::{answer, asking, events, refusal};

#[tokio::test]
async fn steps_are_taken_in_order_and_every_request_is_kept() {
    let model = ScriptedModel::new([call("ping", json!({"a": 1})), say("pong").usage(7, 3)]);
    let first = answer(&model, asking("go")).await;
    assert_eq!(
        first.items,
        [Item::function_call("call_1", "ping", r#"{"a":1}"#)]
    );
    assert_eq!(first.response_id.as_deref(), Some("resp_script_1"));
    assert_eq!(first.finish, FinishReason::Normal);
    assert_eq!(first.usage.unwrap().total_tokens(), 15);
    assert!(model.verify().is_err());

    let second = answer(&model, asking("on")).await;
    assert_eq!(second.items, [Item::assistant("pong")]);
    assert_eq!(second.usage.unwrap().input_tokens, 7);
    let texts: Vec<_> = model
        .received()
        .iter()
        .map(|request| request.conversation.items().next().unwrap().text())
        .collect();
    assert_eq!(texts, ["go", "on"]);
    model.assert_finished();
}

#[tokio::test]
async fn a_request_after_the_last_step_is_an_error_and_is_remembered() {
    let model = ScriptedModel::new([say("once")]);
    answer(&model, asking("a")).await;
    let error = refusal(&model, asking("b")).await;
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
    assert_eq!(error.code.as_deref(), Some("script_mismatch"));
    assert_eq!(
        error.message,
        "request 2 came after the last of 1 steps, received the user text `b` and the tools none: \
         add a step, or let one repeat"
    );
    assert_eq!(model.verify().unwrap_err().problems, [error.message]);
}

#[tokio::test]
async fn a_step_that_was_not_taken_fails_the_test() {
    let model = ScriptedModel::new([say("a").named("greeting"), say("b").times(3)]);
    answer(&model, asking("x")).await;
    answer(&model, asking("x")).await;
    assert_eq!(
        model.verify().unwrap_err().to_string(),
        "the script was not kept: step 2 was taken 1 of 3 times"
    );
    let panic = std::panic::catch_unwind(|| model.assert_finished()).unwrap_err();
    let words = panic.downcast_ref::<String>().unwrap();
    assert!(words.contains("step 2 was taken 1 of 3 times"), "{words}");
}

#[tokio::test]
async fn a_step_with_when_waits_for_its_request() {
    let model = ScriptedModel::new([
        say("about cats").when(user_contains("cat")),
        say("about dogs").when(user_contains("dog")),
        say("whatever").forever(),
    ]);
    let mut said = Vec::new();
    for text in ["x", "a dog", "a cat", "a cat"] {
        said.push(answer(&model, asking(text)).await.items[0].text());
    }
    assert_eq!(said, ["whatever", "about dogs", "about cats", "whatever"]);
    model.assert_finished();
}

#[tokio::test]
async fn a_request_for_none_of_the_steps_left_says_what_they_wait_for() {
    let model = ScriptedModel::new([say("about cats").when(user_contains("cat"))]);
    let error = refusal(&model, asking("a dog")).await;
    assert_eq!(
        error.message,
        "request 1 is for none of the steps left, received the user text `a dog` and the tools \
         none; step 1: expected the last user text to contain `cat`, received `a dog`"
    );
    answer(&model, asking("a cat")).await;
}

#[tokio::test]
async fn an_answer_has_thoughts_text_refusal_and_calls_in_this_order() {
    let model = ScriptedModel::new([think("hm")
        .sum_up("short")
        .say("well")
        .refuse("no")
        .call("a", "{oops")
        .call("b", json!({}))
        .with_id("mine")
        .item(Item::function_call("raw", "c", ""))
        .finish(FinishReason::Length)
        .without_usage()]);
    let response = answer(&model, asking("x")).await;
    let json = serde_json::to_value(&response.items).unwrap();
    assert_eq!(
        json,
        json!([
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}],
                "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "well", "annotations": []},
                {"type": "refusal", "refusal": "no"}]},
            {"type": "function_call", "call_id": "call_1", "name": "a", "arguments": "{oops"},
            {"type": "function_call", "call_id": "mine", "name": "b", "arguments": "{}"},
            {"type": "function_call", "call_id": "raw", "name": "c", "arguments": ""},
        ])
    );
    assert_eq!(response.finish, FinishReason::Length);
    assert_eq!(response.usage, None);
}

#[tokio::test]
async fn parts_of_a_summary_are_told_apart_from_thoughts() {
    let raw = Item::Reasoning(haft_core::Reasoning {
        id: Some("rs_1".into()),
        ..haft_core::Reasoning::default()
    });
    let step = think("hm").sum_up("one").sum_up("two").item(raw);
    let model = ScriptedModel::new([step.pieces(Pieces::Each(2))]);
    let mut told = Vec::new();
    for event in events(&model, asking("x")).await {
        match event.unwrap() {
            ModelEvent::ItemStarted { id, .. } => told.push(format!("{id:?}")),
            ModelEvent::SummaryDelta { part, text, .. } => told.push(format!("{part} {text}")),
            ModelEvent::ReasoningDelta { text, .. } => told.push(text),
            _ => {}
        }
    }
    let expected = ["None", "0 on", "0 e", "1 tw", "1 o", "hm", "Some(\"rs_1\")"];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn deltas_have_the_sizes_that_the_step_says() {
    let step = || think("ab").say("héllo").call("t", "12345");
    let deltas = |events: Vec<Result<ModelEvent, ModelError>>| -> Vec<String> {
        let text = |event| match event {
            Ok(
                ModelEvent::TextDelta { text, .. }
                | ModelEvent::ReasoningDelta { text, .. }
                | ModelEvent::ArgumentsDelta { text, .. },
            ) => Some(text),
            _ => None,
        };
        events.into_iter().filter_map(text).collect()
    };
    let model = ScriptedModel::new([
        step(),
        step().pieces(Pieces::Each(2)),
        step().pieces(Pieces::Sizes(vec![1, 0, 2])),
        step().pieces(Pieces::Each(2)),
    ]);
    let mut streamed = Vec::new();
    for _ in 0..3 {
        streamed.push(deltas(events(&model, asking("x")).await));
    }
    assert_eq!(streamed[0], ["ab", "héllo", "12345"]);
    assert_eq!(streamed[1], ["ab", "hé", "ll", "o", "12", "34", "5"]);
    assert_eq!(
        streamed[2],
        ["a", "", "b", "h", "", "él", "lo", "1", "", "23", "45"]
    );
    let whole = ModelRequest {
        options: ModelOptions {
            stream: Streaming::Whole,
            ..ModelOptions::default()
        },
        ..asking("x")
    };
    assert_eq!(
        deltas(events(&model, whole).await),
        ["ab", "héllo", "12345"]
    );
}

#[tokio::test]
async fn a_refusal_streams_as_a_refusal() {
    let model = ScriptedModel::new([refuse("no")]);
    let events = events(&model, asking("x")).await;
    let refusal = ModelEvent::RefusalDelta {
        index: 0,
        text: "no".into(),
    };
    assert!(events.contains(&Ok(refusal)));
}

#[test]
fn a_scripted_model_can_everything_unless_told_otherwise() {
    let model = ScriptedModel::new([]);
    assert!(model.capabilities().supports_dynamic_tools);
    assert!(model.capabilities().parallel_calls);
    let careful = model
        .with_capabilities(Capabilities::default())
        .named("tiny");
    assert!(!careful.capabilities().supports_dynamic_tools);
    assert_eq!((careful.name(), careful.provider()), ("tiny", "scripted"));
    let _object: Arc<dyn Model> = Arc::new(careful);
}
