//! The whole way of a call: catalogue, binding, hydration, gate, execution. This is what a loop does
//! with each call that a model writes.
//!
//! `cargo run -p haft-examples --example whole_way`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use haft::{
    CallIds, Catalog, FinishReason, HydrationResult, Hydrator, LogSink, Namespace, ToolCall,
    ToolChoice, ToolContext, ToolError, TrustPolicy, Verdict, tools,
};

struct Shelf(Vec<&'static str>);

/// List the books on the shelf.
#[haft::tool(read_only)]
fn list_books(ctx: &ToolContext) -> Result<Vec<&'static str>, ToolError> {
    Ok(ctx.state::<Shelf>()?.0.clone())
}

/// Lend a book to somebody.
#[haft::tool]
fn lend_book(
    /// Title of the book
    title: String,
    /// How many days
    days: u8,
) -> String {
    format!("`{title}` is lent for {days} days")
}

/// Burn a book.
#[haft::tool(destructive)]
fn burn_book(title: String) -> String {
    format!("`{title}` is ash")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ToolError> {
    // Once: what exists.
    let catalog = Catalog::new();
    let library = Namespace::new("library")?;
    catalog
        .register_all_in(&library, tools![list_books, lend_book, burn_book])
        .into_result()?;
    let state = ToolContext::builder()
        .state(Shelf(vec!["Emma", "Faust"]))
        .build();
    let hydrator = Hydrator::new()
        .with_audited_repair()
        .with_sink(Arc::new(LogSink));
    let gate = TrustPolicy {
        approve_destructive: true,
        ..TrustPolicy::default()
    };

    // Per request: who sees what. All three are visible, two may be called.
    let binding = catalog
        .snapshot()
        .bind()
        .tool_choice(ToolChoice::allowed([
            "library__list_books",
            "library__lend_book",
        ]))
        .build()?;

    // Per answer: what the model wrote.
    let calls = [
        ToolCall::new("library__list_books", "").with_id("call_a"),
        ToolCall::new("library__lend_book", r#"{"title": "Emma", "days": 14}"#),
        ToolCall::new("library__lend_book", r#"{"title": "Emma", "days": "14",}"#),
        ToolCall::new("library__lend_book", r#"{"title": "Emma", "days": 400}"#),
        ToolCall::new("library__burn_book", r#"{"title": "Faust"}"#),
    ]
    .map(|call| call.finished(FinishReason::Normal));
    let mut ids = CallIds::default();
    for mut result in hydrator.hydrate_all(&calls, &binding, &mut ids) {
        println!("{}", result.provenance.provider_tool_id);
        println!("  {}", answer(&mut result, gate, &state).await);
    }
    Ok(())
}

/// What goes back to the model, or why the call waits.
async fn answer(result: &mut HydrationResult, gate: TrustPolicy, state: &ToolContext) -> String {
    let Some(tool) = result.tool.take() else {
        return result.text_for_model().unwrap_or_default();
    };
    match gate.check(result, tool.definition()) {
        Verdict::Allow(access) => {
            let call = &result.provenance;
            let context = state.for_call(&call.provider_tool_id, &call.call_id, access);
            match tool.run(&context).await {
                Ok(output) => output.text_for_model(),
                Err(error) => format!("failed: {error}"),
            }
        }
        Verdict::NeedApproval(reason) => format!("(a person is asked: {reason})"),
        Verdict::Deny(reason) => format!("(denied: {reason})"),
    }
}
