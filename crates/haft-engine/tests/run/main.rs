//! What a run promises, one file per promise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub
)]

mod approvals;
mod choice;
mod cutting;
mod detection;
mod errors;
mod events;
mod executors;
mod finding;
mod hostile;
mod journal;
mod later;
mod limits;
mod once;
mod one_shot;
mod parallel;
mod picking;
mod repeating;
mod retries;
mod rounds;
mod same_conversation;
mod script;
mod searching;
mod sections;
mod state;
mod tools;
mod typed_answers;
mod waiting;

use haft_core::Item;
use haft_engine::{Outcome, ToolResult};

/// What the model read as results, in order.
fn results(outcome: &Outcome) -> Vec<ToolResult> {
    let results = outcome.tool_calls.iter();
    results.filter_map(|call| call.result.clone()).collect()
}

/// The texts of the results.
fn texts(outcome: &Outcome) -> Vec<String> {
    results(outcome)
        .into_iter()
        .map(|result| result.output)
        .collect()
}

/// The outputs in a conversation, `(call id, text)`.
fn outputs<'a>(items: impl IntoIterator<Item = &'a Item>) -> Vec<(String, String)> {
    items
        .into_iter()
        .filter_map(|item| match item {
            Item::FunctionCallOutput(output) => {
                Some((output.call_id.clone(), output.output.to_text()))
            }
            _ => None,
        })
        .collect()
}
