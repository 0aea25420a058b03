//! State of a conversation that calls change in transactions: a call that fails leaves no trace of
//! itself, whatever ran beside it. And a policy that remembers in the same state which tools have run.
//!
//! `cargo run -p haft-examples --example session_state`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use haft::testing::{ScriptedModel, call, say};
use haft::{SequentialDependency, SessionState, Slice, ToolContext, ToolError, json, tool, tools};

/// What a conversation is about to buy.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
struct Basket {
    items: Vec<String>,
}

impl Slice for Basket {
    const NAME: &'static str = "basket";
}

/// Put something into the basket.
#[tool]
fn put(item: String, ctx: &ToolContext) -> Result<String, ToolError> {
    let name = item.clone();
    // A change is an operation on the value, so that two calls at once both count.
    ctx.update::<Basket>(move |basket| basket.items.push(name.clone()))?;
    if item == "cement" {
        return Err(ToolError::new("that is too heavy"));
    }
    Ok(format!("{item} is in the basket"))
}

/// Check the address.
#[tool(read_only)]
fn check_address() -> &'static str {
    "deliverable"
}

/// Order what is in the basket.
#[tool(destructive)]
fn order(ctx: &ToolContext) -> Result<String, ToolError> {
    let ordered = ctx.slice::<Basket>()?.items.join(", ");
    ctx.update::<Basket>(|basket| basket.items.clear())?;
    Ok(format!("ordered {ordered}"))
}

fn run(model: &ScriptedModel, state: &SessionState) -> haft::RunBuilder {
    haft::run(model.clone())
        .tools(tools![put, check_address, order])
        .policy(SequentialDependency::new().after("order", ["check_address"]))
        .state(state.clone())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        call("put", json!({"item": "pears"}))
            .call("put", json!({"item": "cement"}))
            .call("put", json!({"item": "rye bread"}))
            .call("order", json!({})),
        say("Which address?"),
        call("check_address", json!({})).call("order", json!({})),
        say("It is on its way."),
    ]);

    let state = SessionState::builder().slice::<Basket>().build()?;
    let first = run(&model, &state).user("Order all of it.").await?;
    for call in &first.tool_calls {
        let result = call.result.as_ref().map_or("", |result| &result.output);
        println!("{:<14} {result}", call.tool_name);
    }
    // Only the call that failed was undone; the policy held `order` back.
    assert_eq!(state.get::<Basket>()?.items, ["pears", "rye bread"]);
    let denied = first.tool_calls[3]
        .result
        .as_ref()
        .map(|result| result.output.as_str());
    assert_eq!(denied, Some("Tool 'order' must run after: check_address."));

    // State travels with the session, here into another process that registers the same slices.
    let stored = serde_json::to_string(&first.session)?;
    let state = SessionState::builder().slice::<Basket>().build()?;
    let second = run(&model, &state)
        .session(serde_json::from_str::<haft::Session>(&stored)?)
        .user("The same as always.")
        .await?;
    for call in &second.tool_calls {
        let result = call.result.as_ref().map_or("", |result| &result.output);
        println!("{:<14} {result}", call.tool_name);
    }
    let ordered = second.tool_calls[1]
        .result
        .as_ref()
        .map(|result| result.output.as_str());
    assert_eq!(ordered, Some("ordered pears, rye bread"));
    assert!(state.get::<Basket>()?.items.is_empty());
    Ok(())
}
