//! A model of one's own: whatever takes a conversation and gives an answer can drive the loop. This
//! one calls a tool as long as its rule says so, and then answers.
//!
//! `cargo run -p haft-examples --example custom_model`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use haft::{
    BoxFuture, Capabilities, Item, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse,
    ModelStream, tool, tools,
};

/// Halves a number, again and again, until it is odd.
struct Halver;

impl Model for Halver {
    fn name(&self) -> &'static str {
        "halver-1"
    }

    fn provider(&self) -> &'static str {
        "in-house"
    }

    fn capabilities(&self) -> Capabilities {
        // Careful by default; say what yours can do, and the loop goes by it.
        Capabilities::default()
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(async move {
            let last = request.conversation.items().last();
            let said = match last {
                Some(Item::FunctionCallOutput(output)) => output.output.to_text(),
                Some(item) => item.text(),
                None => String::new(),
            };
            let number: u64 = said.trim().parse().map_err(|_| {
                let words = format!("`{said}` is not a number: ask with a number");
                ModelError::new(ModelErrorKind::InvalidRequest, words)
            })?;
            let response = if number.is_multiple_of(2) && number > 0 {
                let arguments = format!(r#"{{"number": {number}}}"#);
                // Without an id of its own the call gets one from the loop.
                ModelResponse::of([Item::function_call("", "halve", arguments)])
            } else {
                ModelResponse::text(format!("{number} is as far as it goes."))
            };
            // In one piece. To stream, send the `ModelEvent`s as they come.
            Ok(response.with_usage(said.len() as u64, 1).into_stream())
        })
    }
}

/// Halve a number.
#[tool(read_only)]
fn halve(number: u64) -> u64 {
    number / 2
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), haft::RunError> {
    let outcome = haft::run(Halver).tools(tools![halve]).user("40").await?;
    for call in &outcome.tool_calls {
        let result = call.result.as_ref().map_or("", |result| &result.output);
        println!("{} {} → {result}", call.call_id, call.tool_name);
    }
    println!("{}", outcome.text);
    assert!(outcome.is_completed());
    assert_eq!(
        (outcome.rounds, &*outcome.text),
        (3, "5 is as far as it goes.")
    );

    // Its errors end a run with their words; those that may pass are tried again first.
    let failed = haft::run(Halver).user("forty").await?;
    println!("{:?}", failed.end.summary());
    assert_eq!(failed.end.name(), "failed");
    Ok(())
}
