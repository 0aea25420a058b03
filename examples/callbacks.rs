//! Where a whole stream of events is too much: closures on the builder hear what they care about,
//! in the order of the events. And a checkpoint between two turns puts the session away.
//!
//! `cargo run -p haft-examples --example callbacks`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::mpsc;

use haft::testing::{ScriptedModel, call, think};
use haft::{json, tool, tools};

/// Roll a die, always fairly.
#[tool(read_only)]
fn roll(sides: u32) -> u32 {
    sides.div_ceil(2)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), haft::RunError> {
    let model = ScriptedModel::new([
        call("roll", json!({"sides": 6})).call("roll", json!({"sides": 20})),
        think("Three and ten make thirteen.").say("You have 13."),
    ]);

    let (heard, log) = mpsc::channel();
    let tell = |prefix: &'static str| {
        let heard = heard.clone();
        move |words: &str| {
            println!("{prefix}: {words}");
            // The receiver outlives the run.
            let _ = heard.send(prefix);
        }
    };
    let (content, thoughts) = (tell("content"), tell("reasoning"));
    let (calls, results, kept) = (tell("calls"), tell("results"), tell("checkpoint"));

    let outcome = haft::run(model)
        .tools(tools![roll])
        .user("Roll a d6 and a d20.")
        .on_content(content)
        .on_reasoning(thoughts)
        // Once per answer, before anything of it runs.
        .on_tool_calls(move |batch| {
            let names: Vec<_> = batch.iter().map(|call| call.name.as_str()).collect();
            calls(&names.join(", "));
        })
        // Once per round, before the next request.
        .on_tool_results(move |batch| {
            let outputs: Vec<_> = batch.iter().map(|result| result.output.as_str()).collect();
            results(&outputs.join(", "));
        })
        // At every turn boundary; what is stored here can be gone on with after a crash.
        .on_checkpoint(move |session| kept(&format!("{} items", session.items().len())))
        .await?;

    drop(heard);
    let mut order: Vec<_> = log.iter().collect();
    order.dedup();
    let one_after_the_other = [
        "checkpoint",
        "calls",
        "results",
        "checkpoint",
        "reasoning",
        "content",
        "checkpoint",
    ];
    assert_eq!(order, one_after_the_other);
    assert_eq!(outcome.text, "You have 13.");
    Ok(())
}
