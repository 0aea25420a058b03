//! Structured results and what their tools promise.

use std::sync::Arc;

use haft_hydrate::JsonSchemaFactory;
use haft_mcp::{CallOptions, ConnectOptions, Connection, ToolOutcome, ToolSettings};
use serde_json::{Value, json};

use crate::kit::{call, fake, object, open_with, text};

const MISFIT: &str = "the structured content does not fit the tool's `outputSchema`: `/count`: ";

async fn promising(change: impl FnOnce(&mut haft_mcp::ServerSettings)) -> Connection {
    let mut settings = fake(&["modern", "promises"]);
    change(&mut settings);
    let options = ConnectOptions {
        validator: Some(Arc::new(JsonSchemaFactory)),
        ..ConnectOptions::default()
    };
    open_with(settings, &options).await.unwrap()
}

async fn given(connection: &Connection, structured: Value) -> ToolOutcome {
    let mut result = json!({"content": [{"type": "text", "text": "seven"}]});
    if structured != "nothing" {
        result["structuredContent"] = structured;
    }
    call(connection, "raw", json!({ "result": result }))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_result_that_is_not_what_was_promised_is_kept_with_a_warning() {
    let connection = promising(|_| {}).await;
    // Nothing is known before the list.
    assert_eq!(
        given(&connection, json!({"count": "x"})).await.warnings,
        [""; 0]
    );
    connection.list_tools().await.unwrap();
    assert_eq!(
        given(&connection, json!({"count": 7})).await.warnings,
        [""; 0]
    );
    let outcome = given(&connection, json!({"count": "seven"})).await;
    assert!(
        outcome.warnings[0].starts_with(MISFIT),
        "{:?}",
        outcome.warnings
    );
    assert_eq!(text(&outcome), "seven");
    assert!(!outcome.is_error);
    assert_eq!(outcome.structured, Some(json!({"count": "seven"})));
    let outcome = given(&connection, json!("nothing")).await;
    assert_eq!(
        outcome.warnings,
        ["the result has no structured content, which the tool promises"]
    );
    // What failed promises nothing.
    let failed = json!({"isError": true, "content": []});
    let outcome = call(&connection, "raw", json!({ "result": failed }))
        .await
        .unwrap();
    assert_eq!(outcome.warnings, [""; 0]);
}

#[tokio::test]
async fn where_it_is_said_so_such_a_result_is_an_error() {
    let strict = promising(|settings| settings.strict_output = true).await;
    strict.list_tools().await.unwrap();
    let outcome = given(&strict, json!({"count": "seven"})).await;
    assert!(outcome.is_error);
    assert_eq!(outcome.structured, None);
    assert!(text(&outcome).contains("does not fit the tool's `outputSchema`"));
    assert_eq!(outcome.raw["structuredContent"]["count"], "seven");
    // One tool may differ.
    let lenient = promising(|settings| {
        settings.strict_output = true;
        let tool = ToolSettings {
            strict_output: Some(false),
            ..ToolSettings::default()
        };
        settings.tools.insert("raw".into(), tool);
    })
    .await;
    lenient.list_tools().await.unwrap();
    assert!(!given(&lenient, json!({"count": "seven"})).await.is_error);
}

#[tokio::test]
async fn a_caller_who_knows_the_promise_needs_no_list() {
    let connection = promising(|_| {}).await;
    let options = || CallOptions {
        output_schema: Some(Arc::new(json!({"type": "array"}))),
        ..CallOptions::default()
    };
    let arguments = || object(json!({"result": {"content": [], "structuredContent": {}}}));
    let outcome = connection
        .call_tool("raw", arguments(), options())
        .await
        .unwrap();
    assert_eq!(outcome.warnings.len(), 1, "{:?}", outcome.warnings);
    // A promise that cannot be read is not held against anybody.
    let options = CallOptions {
        output_schema: Some(Arc::new(json!({"type": "nonsense"}))),
        ..CallOptions::default()
    };
    let outcome = connection
        .call_tool("raw", arguments(), options)
        .await
        .unwrap();
    assert_eq!(outcome.warnings, [""; 0]);
}
