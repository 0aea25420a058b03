//! Functions that only the caller can execute: the run hands their calls back and waits. The session
//! goes through JSON as if another process took the run up again, and the outputs go in with it.
//!
//! `cargo run -p haft-examples --example client_functions`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::sync::Arc;

use haft::models::OfflineModel;
use haft::{End, Session, ToolDefinition, ToolRef, json, tool};

/// The time in a city.
#[tool(read_only)]
fn city_time(city: String) -> String {
    format!("12:30 in {city}")
}

/// A definition alone is a function of the caller: haft validates its calls and runs nothing.
fn ask_user() -> Result<Arc<ToolDefinition>, haft::DefinitionError> {
    ToolDefinition::builder("ask_user")
        .description("Ask the user a question and wait for the answer.")
        .parameters(json!({
            "type": "object",
            "properties": {"question": {"type": "string", "description": "What to ask"}},
            "required": ["question"],
        }))
        .build()
}

/// Both processes build the run from the same parts; only the session travels.
fn run() -> Result<haft::RunBuilder, Box<dyn Error>> {
    // A real one: `haft::models::OpenAiChat::from_env("gpt-5.2")?`.
    let tools = [ToolRef::from(city_time), ToolRef::from(ask_user()?)];
    Ok(haft::run(OfflineModel::new()).tools(tools))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = "What is the city time in Oslo? Then ask the user \"window or aisle?\"";
    let first = run()?.user(question).await?;
    println!("first process:  {}", first.end.name());

    // `city_time` ran here; `ask_user` waits, its arguments checked.
    let End::Waiting(waiting) = &first.end else {
        return Err(format!("expected a waiting run, got {:?}", first.end).into());
    };
    let [call] = &waiting.calls[..] else {
        return Err(format!("expected one open call, got {:?}", waiting.calls).into());
    };
    println!("                {} {}", call.name, call.arguments);
    let asked = call.hydration.provenance.validated.as_ref();
    assert_eq!(asked, Some(&json!({"question": "window or aisle?"})));
    let call_id = call.call_id.clone();
    let stored = serde_json::to_string(&first.session)?;
    println!("                {} bytes put away", stored.len());

    // Elsewhere, later. What to answer is in the session too.
    let session: Session = serde_json::from_str(&stored)?;
    assert_eq!(session.pending_calls().collect::<Vec<_>>(), [&call_id]);
    let second = run()?.session(session).output(call_id, "aisle").await?;
    println!("second process: {}\n\n{}", second.end.name(), second.text);
    assert!(second.is_completed());
    assert!(second.text.contains("12:30 in Oslo") && second.text.contains("aisle"));

    // Exactly one output per open call: anything else is refused before a request is made.
    let session: Session = serde_json::from_str(&stored)?;
    let error = run()?
        .session(session)
        .await
        .err()
        .map(|error| error.to_string());
    println!(
        "\nwithout the output: {}",
        error.as_deref().unwrap_or("no error")
    );
    assert!(error.is_some());
    Ok(())
}
