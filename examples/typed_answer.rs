//! An answer of a type of yours: tools run first, then the model must answer in the type's form. What
//! does not fit goes back to it with what is wrong, three validations in all.
//!
//! `cargo run -p haft-examples --example typed_answer`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use haft::testing::{ScriptedModel, call, say, user_contains};
use haft::{json, tool, tools};

/// How a trip will be.
#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Advice {
    /// What to wear
    wear: Vec<String>,
    /// How cold it gets, in degrees Celsius
    coldest: i32,
}

/// The weather in a city.
#[tool(read_only)]
fn weather(city: String) -> String {
    format!("snow in {city}, -4 to 2 °C")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // A real one: `haft::models::OpenAiResponses::from_env("gpt-5.2")?`. This one errs once.
    let model = ScriptedModel::new([
        call("weather", json!({"city": "Oslo"})),
        say(r#"{"wear": "wool", "coldest": "cold"}"#),
        say(r#"{"wear": ["wool", "boots"], "coldest": -4}"#)
            .expect(user_contains("does not match the required JSON schema")),
    ]);

    let outcome = haft::run(model.clone())
        .tools(tools![weather])
        .answer_as::<Advice>()
        .user("What shall I wear in Oslo?")
        .await?;

    let advice: Option<Advice> = outcome.output_as();
    println!("{advice:?}, after {} requests", outcome.usage.requests);
    let expected = Advice {
        wear: vec!["wool".into(), "boots".into()],
        coldest: -4,
    };
    assert_eq!(advice, Some(expected));
    model.assert_finished();

    // A model that cannot do it fails the run, and says so; there is no half answer.
    let model = ScriptedModel::new([say("Something warm.").forever()]);
    let run = haft::run(model).answer_as::<Advice>();
    let outcome = run.user("What shall I wear in Oslo?").await?;
    println!("{:?}", outcome.end.summary());
    assert!(outcome.output.is_none());
    assert_eq!(
        outcome.end.summary().reason.as_deref(),
        Some("output_invalid")
    );
    Ok(())
}
