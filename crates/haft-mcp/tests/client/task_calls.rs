//! Calls that a server answers with a task.

use std::sync::Arc;
use std::time::Duration;

use haft_core::ToolProgress;
use haft_hydrate::JsonSchemaFactory;
use haft_mcp::{Answer, CallOptions, Cause, ConnectOptions, Connection, Question, Questions};
use serde_json::json;

use crate::kit::{LONG, call, call_text, fake, object, open, open_with, text};

async fn with_tasks() -> Connection {
    let mut settings = fake(&["modern"]);
    settings.tasks = true;
    open(settings).await.unwrap()
}

#[tokio::test]
async fn a_task_is_polled_to_its_result_and_its_messages_are_progress() {
    let connection = with_tasks().await;
    let mut messages = Vec::new();
    let mut on_progress = |progress: ToolProgress| messages.extend(progress.message);
    let options = CallOptions {
        on_progress: Some(&mut on_progress),
        ..CallOptions::default()
    };
    let called = connection.call_tool("task", object(json!({"polls": 2})), options);
    let outcome = tokio::time::timeout(LONG, called).await.unwrap().unwrap();
    assert_eq!(text(&outcome), "after 2 polls: null");
    assert_eq!(messages, ["poll 0", "poll 1", "poll 2"]);
    assert_eq!(
        call_text(&connection, "cancelled_tasks", json!({})).await,
        "[]"
    );
}

#[tokio::test]
async fn without_the_setting_a_task_is_not_offered_and_not_taken() {
    let connection = open(fake(&["modern"])).await.unwrap();
    assert_eq!(call_text(&connection, "task", json!({})).await, "at once");
    let error = call(&connection, "task", json!({"anyway": true})).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("tasks = true"), "{error}");
}

#[tokio::test]
async fn a_task_that_fails_or_is_cancelled_fails_its_call() {
    let connection = with_tasks().await;
    let failed = call(&connection, "task", json!({"ends": "failed"})).await;
    let expected = Cause::Protocol {
        code: -32000,
        message: "out of cheese".into(),
    };
    assert_eq!(*failed.unwrap_err().cause, expected);
    for ends in ["cancelled", "nonsense"] {
        let ended = call(&connection, "task", json!({ "ends": ends })).await;
        let cause = ended.unwrap_err().cause;
        assert!(matches!(*cause, Cause::Unexpected(_)), "{ends}: {cause}");
    }
}

#[tokio::test]
async fn a_task_past_the_limit_of_its_call_is_cancelled_at_the_server() {
    let connection = with_tasks().await;
    let options = CallOptions {
        call_timeout: Some(Duration::from_millis(300)),
        ..CallOptions::default()
    };
    let arguments = object(json!({"polls": 1_000_000}));
    let called = connection.call_tool("task", arguments, options).await;
    let cause = called.unwrap_err().cause;
    assert!(matches!(*cause, Cause::TimedOut { .. }), "{cause}");
    let cancelled = async {
        while call_text(&connection, "cancelled_tasks", json!({})).await != "[0]" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, cancelled).await.unwrap();
}

#[tokio::test]
async fn what_a_task_asks_is_answered_once() {
    let ann = |_: Question| Answer::Accept(object(json!({"name": "Ann"})));
    let options = ConnectOptions {
        questions: Questions::By(Arc::new(ann)),
        validator: Some(Arc::new(JsonSchemaFactory)),
        ..ConnectOptions::default()
    };
    let mut settings = fake(&["modern"]);
    settings.tasks = true;
    let connection = open_with(settings, &options).await.unwrap();
    let seen = call_text(&connection, "task", json!({"asks": true})).await;
    let (_, responses) = seen.split_once(": ").unwrap();
    let responses: serde_json::Value = serde_json::from_str(responses).unwrap();
    assert_eq!(responses["who"]["content"]["name"], "Ann");
}
