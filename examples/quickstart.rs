//! Two functions, a model, a question: the twenty lines of the README.
//!
//! `cargo run -p haft-examples --example quickstart`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use haft::models::OfflineModel;
use haft::{tool, tools};

/// The weather in a city.
#[tool(read_only)]
fn weather(city: String) -> String {
    format!("4 °C and snow in {city}")
}

/// Add two numbers.
#[tool(read_only)]
fn add(a: f64, b: f64) -> f64 {
    a + b
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A real one: `haft::models::OpenAiChat::from_env("gpt-5.2")?`, with `OPENAI_API_KEY` set.
    let model = OfflineModel::new();

    let outcome = haft::run(model)
        .tools(tools![weather, add])
        .user("What is the weather in Oslo? And add 2 and 40.")
        .await?;

    println!("{}", outcome.text);
    assert!(outcome.is_completed());
    assert!(outcome.text.contains("snow in Oslo") && outcome.text.contains("42"));
    Ok(())
}
