//! The scripted model as a test kit: it answers from a script, checks what it was asked, and fails
//! the test where your code asked for something else. In a real project the functions below would be
//! `#[tokio::test]`s; the feature `testing` of `haft` belongs to the dev-dependencies.
//!
//! `cargo run -p haft-examples --example testing_an_agent`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use haft::models::OpenAiChat;
use haft::testing::{
    Expect, ScriptedModel, ScriptedServer, call, fail, offers, output_contains, output_says, say,
};
use haft::{Model, Outcome, RunError, json, tool, tools};

/// The stock of an article.
#[tool(read_only)]
fn stock(article: String) -> Result<u32, String> {
    match article.as_str() {
        "lamp" => Ok(3),
        other => Err(format!("there is no article `{other}`")),
    }
}

/// The agent under test. It takes any model.
async fn shop_agent(model: impl Model, question: &str) -> Result<Outcome, RunError> {
    haft::run(model)
        .instructions("You work in a shop for lamps.")
        .tools(tools![stock])
        .max_rounds(4)
        .user(question)
        .await
}

/// It offers its tools, and the model reads what the tool gave.
async fn the_stock_reaches_the_model() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        call("stock", json!({"article": "lamp"}))
            .expect(offers(["stock"]).instructions_contain("shop for lamps")),
        say("Three.").expect(output_says("3")),
    ]);
    let outcome = shop_agent(model.clone(), "How many lamps are there?").await?;
    assert_eq!(outcome.text, "Three.");
    // Every step was taken, and every request was as expected.
    model.assert_finished();
    Ok(())
}

/// It survives bad calls and an overloaded provider.
async fn a_bad_call_and_a_bad_moment_do_not_end_the_run() -> Result<(), Box<dyn Error>> {
    let failure = |words: &str| output_contains(words);
    let model = ScriptedModel::new([
        call("stock", r#"{"article": "lam"#),
        call("stock", json!({"article": "sofa"})).expect(failure("arguments")),
        fail(503),
        say("I cannot say.").expect(failure("there is no article `sofa`")),
    ]);
    let outcome = shop_agent(model.clone(), "How many sofas?").await?;
    assert!(outcome.is_completed());
    assert_eq!(model.received().len(), 4);
    model.assert_finished();
    Ok(())
}

/// The same over HTTP, so that a real adapter is tested too.
async fn the_same_over_http() -> Result<(), Box<dyn Error>> {
    let server = ScriptedServer::start([
        call("stock", json!({"article": "lamp"}))
            .expect(Expect::default().body(json!({"model": "gpt-5.2", "stream": true}))),
        say("Three.").expect(output_says("3")),
    ])
    .await?;
    let model = OpenAiChat::new("gpt-5.2")
        .base_url(&server.base_url())
        .api_key("not a real key");
    let outcome = shop_agent(model, "How many lamps are there?").await?;
    assert_eq!(outcome.text, "Three.");
    server.assert_finished();
    Ok(())
}

/// A script that the agent does not follow fails, in words that say where.
async fn a_surprise_is_reported() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([say("hm").expect(offers(["stock", "order"]))]);
    shop_agent(model.clone(), "How many lamps are there?").await?;
    let words = model.verify().err().map(|failure| failure.to_string());
    println!("{}\n", words.as_deref().unwrap_or("(nothing)"));
    assert!(words.is_some_and(|words| words.contains("`order`")));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    the_stock_reaches_the_model().await?;
    a_bad_call_and_a_bad_moment_do_not_end_the_run().await?;
    the_same_over_http().await?;
    a_surprise_is_reported().await?;
    println!("four tests passed");
    Ok(())
}
