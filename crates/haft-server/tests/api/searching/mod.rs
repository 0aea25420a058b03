//! Tools that are held back until somebody searches for them (`open-responses.md` §5.5).

mod automatic;
mod chains;
mod choices;
mod costs;
mod explicit;
mod forged;
mod order;
mod words;

use haft_core::{Item, ModelRequest};
use serde_json::{Value, json};

use crate::support::function;

/// A function of the client that waits to be found.
fn deferred(name: &str, description: &str) -> Value {
    let mut tool = function(name);
    tool["description"] = description.into();
    tool["strict"] = false.into();
    tool["defer_loading"] = true.into();
    tool
}

/// Two deferred functions, one that is not, and the search of this server.
fn tools() -> Value {
    json!([
        function("near"),
        deferred("book_flight", "Books a flight to a city."),
        deferred("play_music", "Plays a song."),
        {"type": "tool_search"},
    ])
}

fn query(words: &str) -> Value {
    json!({"query": words, "limit": 1})
}

/// The tools that a model was shown.
fn names(request: &ModelRequest) -> Vec<String> {
    let tools = request.tools.iter();
    tools
        .map(|tool| tool.definition().name().to_string())
        .collect()
}

/// What a model reads about a tool.
fn described(request: &ModelRequest, name: &str) -> String {
    let mut tools = request.tools.iter().map(|tool| tool.definition());
    let tool = tools.find(|tool| tool.name().as_str() == name).unwrap();
    tool.description().unwrap_or_default().to_owned()
}

/// What a model reads of the calls that were answered, in order.
fn outputs(request: &ModelRequest) -> Vec<String> {
    let items = request.conversation.items();
    let outputs = items.filter_map(|item| match item {
        Item::FunctionCallOutput(output) => Some(output.output.to_text()),
        _ => None,
    });
    outputs.collect()
}
