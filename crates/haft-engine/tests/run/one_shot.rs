//! Outside the loop: offer tools once and run nothing, or run one call.

use haft_catalog::Catalog;
use haft_core::{ToolCall, ToolContext};
use haft_engine::{execute, tool_call};

use crate::script::{Reply, Script, calling};
use crate::tools::{echo, function, tool};

#[tokio::test]
async fn tool_call_hydrates_and_runs_nothing() {
    let explosive = tool("explosive", |_| panic!("it must not run"));
    let catalog = Catalog::new();
    catalog
        .register_all([explosive, echo()])
        .into_result()
        .unwrap();
    let binding = catalog.snapshot().bind().build().unwrap();
    let answer = calling([
        ("a", "explosive", r#"{"text":"x"}"#),
        ("b", "echo", r#"{"text":1}"#),
        ("c", "nothing", "{}"),
    ]);
    let model = Script::new([Reply::Answer(answer.with_usage(3, 4))]);
    let reply = tool_call(&model, "go", &binding).await.unwrap();
    let verdicts: Vec<_> = reply
        .calls
        .iter()
        .map(haft_core::HydrationResult::success)
        .collect();
    assert_eq!(verdicts, [true, false, false]);
    assert_eq!(reply.usage.total_tokens(), 7);
    assert_eq!(
        reply.calls[0].provenance.source.as_ref().unwrap().provider,
        "test"
    );
    assert_eq!(model.received()[0].tools.len(), 2);
}

#[tokio::test]
async fn execute_runs_one_call_like_a_run_would() {
    let catalog = Catalog::new();
    let panics = tool("panics", |_| panic!("boom"));
    catalog
        .register_all([echo(), panics, function("ask")])
        .into_result()
        .unwrap();
    let run = async |name: &str, arguments: &str| {
        let call = ToolCall::new(name, arguments).with_id("call_7");
        execute(&catalog, call, ToolContext::default()).await
    };
    let good = run("echo", r#"{"text":"hi"}"#).await.unwrap();
    assert_eq!(
        (good.call_id.as_str(), good.output.as_str()),
        ("call_7", "hi")
    );
    let bad = run("echo", r#"{"text":5}"#).await.unwrap();
    assert!(bad.is_error && bad.output.contains("must be string"));
    let boom = run("panics", "{}").await.unwrap();
    assert_eq!(boom.output, "Tool 'panics' panicked: boom");
    assert!(run("ask", "{}").await.unwrap().is_error);
    assert_eq!(run("nothing", "{}").await, None);
}
