//! A tool that no Rust type knows: its definition arrives as JSON at run time, a closure does the
//! work and brings its own state.
//!
//! `cargo run -p haft-examples --example runtime_tool_from_json`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::{
    CallIds, Catalog, Hydrator, ToolCall, ToolContext, ToolDefinition, ToolError, dynamic_tool,
    json,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ToolError> {
    // From a file, a database, a plugin.
    let definition = ToolDefinition::from_json(json!({
        "type": "function",
        "name": "roll_dice",
        "description": "Roll dice and add them up.",
        "parameters": {
            "type": "object",
            "properties": {
                "dice": {"type": "integer", "minimum": 1, "maximum": 10},
                "sides": {"type": "integer", "minimum": 2, "default": 6}
            },
            "required": ["dice"],
            "additionalProperties": false
        },
        "annotations": {"tags": ["games"], "x-owner": "team-chance"}
    }))?;

    // The closure shares a counter with us. Dice that everybody can check: no randomness.
    let rolled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&rolled);
    let roll_dice = dynamic_tool(definition, move |arguments, _context| {
        let counter = Arc::clone(&counter);
        async move {
            let dice = arguments["dice"].as_u64().unwrap_or(1);
            let sides = arguments["sides"].as_u64().unwrap_or(6);
            let before = counter.fetch_add(1, Ordering::Relaxed) as u64;
            let faces: Vec<u64> = (0..dice)
                .map(|n| (before * 5 + n * 7) % sides + 1)
                .collect();
            Ok(json!({"faces": faces, "sum": faces.iter().sum::<u64>()}))
        }
    });

    let definition = roll_dice.definition();
    println!("{}: {}", definition.name(), definition.brief());
    println!("owner:       {}", definition.annotations().extra["x-owner"]);
    println!("fingerprint: {}\n", definition.fingerprint());

    let catalog = Catalog::new();
    catalog.register(Arc::clone(&roll_dice))?;
    let binding = catalog.snapshot().bind().build()?;
    let mut ids = CallIds::default();
    for written in [
        r#"{"dice": 2}"#,
        r#"{"dice": 3, "sides": 20}"#,
        r#"{"dice": 1000000}"#,
    ] {
        let call = ToolCall::new("roll_dice", written);
        let mut result = Hydrator::new().hydrate(&call, &binding, &mut ids);
        match result.tool.take() {
            Some(hydrated) => {
                let output = hydrated.run(&ToolContext::default()).await?;
                println!("{written} → {}", output.text_for_model());
            }
            None => println!(
                "{written} ✗ {}",
                result.text_for_model().unwrap_or_default()
            ),
        }
    }
    println!("\nrolled {} times", rolled.load(Ordering::Relaxed));

    // Fail closed: without a schema, or an opt-out by name, there is no tool.
    if let Err(refusal) = ToolDefinition::from_json(json!({"name": "anything_goes"})) {
        println!("\nrefused: {refusal}");
    }
    Ok(())
}
