//! Without the loop: offer tools to a model once and decide about its calls yourself
//! (`haft::tool_call`), or run one call that came from elsewhere (`haft::execute`).
//!
//! `cargo run -p haft-examples --example one_shot`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use haft::models::OfflineModel;
use haft::{Catalog, ToolCall, ToolContext, ToolError, tool, tools};

/// Convert an amount of euros to Norwegian kroner.
#[tool(read_only)]
fn euros_to_kroner(amount: f64) -> f64 {
    amount * 11.5
}

/// Pay an amount of euros to somebody.
#[tool(destructive)]
fn pay_euros(amount: f64, receiver: String) -> String {
    format!("paid {amount} € to {receiver}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ToolError> {
    let catalog = Catalog::new();
    catalog
        .register_all(tools![euros_to_kroner, pay_euros])
        .into_result()?;
    let binding = catalog.snapshot().bind().build()?;

    // A real one: `haft::models::Ollama::from_env("qwen3:8b")?`.
    // One request. The calls come back checked, and nothing has run.
    let question = "Convert the amount of 20 euros to kroner. Then pay 7 euros to \"Ada\".";
    let reply = haft::tool_call(&OfflineModel::new(), question, &binding).await?;
    let mut ran = Vec::new();
    for mut result in reply.calls {
        let name = result.provenance.provider_tool_id.clone();
        let Some(call) = result.tool.take() else {
            println!("{name}: {}", result.text_for_model().unwrap_or_default());
            continue;
        };
        // No policy was asked either: this is where yours goes.
        if call.definition().annotations().destructive {
            println!("{name}: not without a second pair of eyes");
            continue;
        }
        let output = call.run(&ToolContext::default()).await?.text_for_model();
        println!("{name}: {output}");
        ran.push(output);
    }
    assert_eq!(ran, ["230.0"]);

    // One call, the whole way: hydrated, gated, with timeout and limits, as in a run.
    let call = ToolCall::new("euros_to_kroner", r#"{"amount": 3}"#);
    let result = haft::execute(&catalog, call, ToolContext::default()).await;
    println!("{result:?}");
    assert!(result.is_some_and(|result| result.output == "34.5"));

    let call = ToolCall::new("euros_to_kroner", r#"{"amount": "three"}"#);
    let result = haft::execute(&catalog, call, ToolContext::default()).await;
    println!("{result:?}");
    assert!(result.is_some_and(|result| result.is_error));

    let call = ToolCall::new("euros_to_pesos", r#"{"amount": 3}"#);
    let result = haft::execute(&catalog, call, ToolContext::default()).await;
    assert!(result.is_none(), "the catalogue holds no such tool");
    Ok(())
}
