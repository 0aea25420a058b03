//! Tools that are only declared, and who runs them: the code of a binding's own tool goes first, then
//! the run's executors in their order, and what nobody takes goes back to the caller.
//!
//! `cargo run -p haft-examples --example executors`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::sync::Arc;

use haft::testing::{ScriptedModel, call, say};
use haft::{
    BoxFuture, End, ExecutorCall, ToolContext, ToolDefinition, ToolExecutor, ToolKind, ToolResult,
    json,
};

/// Runs everything whose name begins with `mail_`, as a plug-in or a remote worker would.
struct Mail;

impl ToolExecutor for Mail {
    fn kind(&self) -> ToolKind {
        ToolKind::Function
    }

    fn can_execute(&self, definition: &ToolDefinition) -> bool {
        definition.name().as_str().starts_with("mail_")
    }

    fn execute<'a>(&'a self, call: ExecutorCall, _: &'a ToolContext) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            ToolResult {
                // Validated by the tool's schema, as for any other tool.
                output: format!("{} done: {}", call.name, call.arguments["text"]),
                call_id: call.call_id,
                is_error: false,
            }
        })
    }
}

/// Definitions as they might come from a file: no code.
fn declared(name: &str) -> Result<Arc<ToolDefinition>, haft::DefinitionError> {
    ToolDefinition::builder(name)
        .description(format!("Handle `{name}`"))
        .parameters(json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }))
        .build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let text = |words: &str| json!({"text": words});
    let model = ScriptedModel::new([
        call("mail_send", text("hello"))
            .call("shout", text("hello"))
            .call("mail_send", json!({"body": "hello"}))
            .call("show_dialog", text("hello")),
        say("done"),
    ]);
    let tools = [
        declared("mail_send")?,
        declared("shout")?,
        declared("show_dialog")?,
    ];

    let outcome = haft::run(model)
        .tools(tools)
        .executor(Mail)
        // The same for one tool and a closure.
        .with_executor("shout", |call, _context| async move {
            let text = call.arguments["text"].as_str().unwrap_or_default();
            Ok(text.to_uppercase())
        })
        .user("Go.")
        .await?;

    let results: Vec<_> = outcome
        .tool_calls
        .iter()
        .map(|call| call.result.as_ref().map(|result| result.output.as_str()))
        .collect();
    for (call, result) in outcome.tool_calls.iter().zip(&results) {
        println!(
            "{:<12} {}",
            call.tool_name,
            result.unwrap_or("(waits for the caller)")
        );
    }
    let refused = "Tool 'mail_send': invalid arguments: missing field 'text'";
    assert_eq!(results[0], Some("mail_send done: \"hello\""));
    assert_eq!(results[1], Some("HELLO"));
    assert_eq!(results[2], Some(refused));
    // Nobody took `show_dialog`: the run waits for the caller's output.
    assert!(matches!(&outcome.end, End::Waiting(waiting) if waiting.calls.len() == 1));
    Ok(())
}
