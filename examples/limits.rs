//! What bounds a run, and how it ends there: each end names its true reason, and the history stays
//! whole, so that every run can be gone on with.
//!
//! `cargo run -p haft-examples --example limits`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use haft::testing::{Expect, ScriptedModel, call, say};
use haft::{Cancel, Outcome, ToolChoice, json, tool, tools};

/// Look up a page.
#[tool(read_only)]
fn look_up(page: u32) -> String {
    format!("page {page}: see the next one")
}

/// Sleep for an hour.
#[tool(read_only)]
async fn sleep_long() -> &'static str {
    tokio::time::sleep(Duration::from_hours(1)).await;
    "rested"
}

/// A model that calls and calls, and answers only where it may not call any more.
fn restless() -> haft::RunBuilder {
    let tools_withdrawn = Expect::default().tool_choice(ToolChoice::None);
    let answer = say("as far as I got").when(tools_withdrawn).forever();
    let pages = (1..=20).map(|page| call("look_up", json!({"page": page})).usage(100, 20));
    let model = ScriptedModel::new([answer].into_iter().chain(pages));
    haft::run(model).tools(tools![look_up]).user("Find out.")
}

fn sleeper() -> haft::RunBuilder {
    let model = ScriptedModel::new([call("sleep_long", json!({})), say("good morning")]);
    haft::run(model).tools(tools![sleep_long]).user("Sleep.")
}

fn show(what: &str, outcome: &Outcome) {
    let history = outcome.session.conversation().verify();
    assert!(history.is_ok(), "every call has its output: {history:?}");
    let end = outcome.end.summary();
    let (reason, message) = (
        end.reason.unwrap_or_default(),
        end.message.unwrap_or_default(),
    );
    println!("{what:<18} {} {reason}  {message}", end.end);
    let last = outcome
        .tool_calls
        .last()
        .and_then(|call| call.result.as_ref());
    println!(
        "{:<18} last call: {}",
        "",
        last.map_or("none", |it| &it.output)
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), haft::RunError> {
    // At the round and call limits the model gets one last request, without tools.
    let outcome = restless().max_rounds(3).await?;
    show("three rounds", &outcome);
    assert_eq!(outcome.end.summary().reason.as_deref(), Some("max_turns"));
    assert_eq!(outcome.text, "as far as I got");

    let outcome = restless().max_tool_calls(2).await?;
    show("two calls", &outcome);
    assert_eq!(
        outcome.end.summary().reason.as_deref(),
        Some("max_tool_calls")
    );

    // A budget of tokens is summed over all requests and grants nothing more.
    let outcome = restless().max_total_tokens(300).await?;
    show("300 tokens", &outcome);
    assert_eq!(outcome.end.summary().reason.as_deref(), Some("budget"));

    // Repeating oneself is noticed: two warnings, then the end.
    let same = call("look_up", json!({"page": 1})).forever();
    let run = haft::run(ScriptedModel::new([same])).tools(tools![look_up]);
    let outcome = run.user("Find out.").await?;
    show("the same again", &outcome);
    assert_eq!(
        outcome.end.summary().reason.as_deref(),
        Some("loop_detected")
    );

    // Time is up while a tool runs: it is stopped, and the model would read that.
    let outcome = sleeper().time_limit(Duration::from_secs(1)).await?;
    show("one second", &outcome);
    assert_eq!(outcome.end.summary().reason.as_deref(), Some("time_limit"));

    // A call that takes too long is given up; the model reads why and the run goes on.
    let outcome = sleeper().tool_timeout(Duration::from_millis(50)).await?;
    show("50 ms per call", &outcome);
    assert!(outcome.is_completed());

    // Anybody with the signal can stop the run, from any task.
    let cancel = Cancel::new();
    let signal = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        signal.cancel();
    });
    let outcome = sleeper().cancel(cancel).await?;
    show("cancelled", &outcome);
    assert_eq!(outcome.end.name(), "cancelled");
    Ok(())
}
