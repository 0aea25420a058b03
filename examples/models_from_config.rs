//! Models by name: from the environment, or from the `[[model]]` entries of a file. What is missing
//! or misspelt is an error that names it, before any request.
//!
//! `cargo run -p haft-examples --example models_from_config`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::sync::Arc;

use haft::Model;
use haft::models::{Anthropic, ModelConfig, Ollama, OpenAiChat, OpenAiResponses, from_config};

/// As it stands in `haft.toml`. A file never holds a key: it names the variable or file that does.
const MODELS: &str = r#"
[[model]]
name = "fast"
adapter = "openai-chat"          # any server that speaks Chat Completions
model = "qwen3-8b"
base_url = "http://127.0.0.1:8080/v1"
idle_timeout = 300

[[model]]
name = "home"
adapter = "ollama"
model = "qwen3:8b"

[[model]]
name = "best"
adapter = "anthropic"
model = "claude-sonnet-5"
api_key_env = "EXAMPLE_KEY_THAT_NOBODY_HAS"
"#;

#[derive(serde::Deserialize)]
struct File {
    model: Vec<ModelConfig>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // From the environment: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `OLLAMA_HOST`, and the addresses
    // in `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL` where they are set.
    println!("from the environment:");
    show(OpenAiResponses::from_env("gpt-5.2"));
    show(OpenAiChat::from_env("gpt-5.2"));
    show(Anthropic::from_env("claude-sonnet-5"));
    show(Ollama::from_env("qwen3:8b"));
    // The same with variables from elsewhere, here from nowhere.
    let error = OpenAiChat::from_env_with("gpt-5.2", &|_| None).err();
    let words = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(words.contains("`OPENAI_API_KEY` is not set"), "{words}");

    println!("from a file:");
    let file: File = toml::from_str(MODELS)?;
    let mut models: Vec<Arc<dyn Model>> = Vec::new();
    for entry in &file.model {
        match from_config(entry) {
            Ok(model) => {
                println!("  {}: {} of {}", entry.name, model.name(), model.provider());
                models.push(model);
            }
            Err(error) => println!("  {}: {error}", entry.name),
        }
    }
    assert_eq!(models.len(), 2, "`best` has no key");
    assert_eq!(models[1].name(), "qwen3:8b");

    // What is misspelt is not passed over.
    let misspelt = MODELS.replace("idle_timeout", "idle_timout");
    let error = toml::from_str::<File>(&misspelt).err();
    let words = error.map(|error| error.to_string()).unwrap_or_default();
    println!("misspelt:\n{words}");
    assert!(words.contains("`idle_timout`"));

    // Any of them goes into a run: `haft::run(Arc::clone(&models[0]))`.
    Ok(())
}

fn show<M: Model>(model: Result<M, haft::models::ConfigError>) {
    match model {
        Ok(model) => println!("  {} of {} is ready", model.name(), model.provider()),
        Err(error) => println!("  {error}"),
    }
}
