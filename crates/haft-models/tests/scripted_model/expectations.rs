//! What a step expects is checked, and what is not met is named.

use haft_core::{Conversation, FunctionCallOutput, Item, ModelRequest, ToolChoice};
use haft_models::testing::{
    Expect, ExpectedOutput, ScriptedModel, offers, output_contains, output_says, say,
    user_contains, user_says,
};
use serde_json::json;

use super::{answer, asking, refusal, tools};

/// A request that has something of everything.
fn rich_request() -> ModelRequest {
    ModelRequest {
        instructions: Some("Be brief.".into()),
        conversation: Conversation::from(vec![
            Item::user("What's the weather?"),
            Item::function_call("call_0", "old", "{}"),
            Item::function_call_output("call_0", "old news"),
            Item::function_call("call_1", "weather", "{}"),
            Item::function_call("call_2", "time", "{}"),
            Item::function_call_output("call_1", "rain all day"),
            Item::FunctionCallOutput(FunctionCallOutput::new("call_2", "no clock").as_error()),
        ]),
        tools: tools(&["weather", "time"]),
        tool_choice: Some(ToolChoice::Function("weather".into())),
        parallel_tool_calls: Some(false),
        ..ModelRequest::default()
    }
}

#[tokio::test]
async fn expectations_that_are_met_let_the_answer_through() {
    let model = ScriptedModel::new([
        say("ok").expect(
            user_says("What's the weather?")
                .instructions_contain("brief")
                .offers(["weather", "time"])
                .tool_choice(ToolChoice::Function("weather".into()))
                .parallel_tool_calls(false)
                .items(7)
                .output_says("rain all day")
                .output(ExpectedOutput::default().is_error())
                .output(ExpectedOutput::default().of("call_2").contains("clock"))
                .output(ExpectedOutput::default().of("call_0").says("old news")),
        ),
        say("ok").expect(user_contains("weather").offers_among(["time"])),
        say("ok").expect(Expect::default().withholds(["delete"])),
        say("ok").expect(output_contains("rain")),
    ]);
    for _ in 0..4 {
        answer(&model, rich_request()).await;
    }
    model.assert_finished();
}

#[tokio::test]
async fn every_expectation_that_is_not_met_is_named_with_what_came() {
    let cases: [(Expect, &str); 14] = [
        (
            user_says("hello"),
            "expected the last user text to be `hello`, received `What's the weather?`",
        ),
        (
            user_contains("time"),
            "expected the last user text to contain `time`, received `What's the weather?`",
        ),
        (
            Expect::default().instructions_contain("long"),
            "expected the instructions to contain `long`, received `Be brief.`",
        ),
        (
            offers(["time", "weather"]),
            "expected the tools to be exactly `time`, `weather`, received `weather`, `time`",
        ),
        (
            Expect::default().offers_among(["mail"]),
            "expected the tools to contain `mail`, received `weather`, `time`",
        ),
        (
            Expect::default().withholds(["time"]),
            "expected the tools to contain none of `time`, received `weather`, `time`",
        ),
        (
            Expect::default().tool_choice(ToolChoice::Required),
            "expected `tool_choice` to be `\"required\"`, received \
             `{\"type\":\"function\",\"name\":\"weather\"}`",
        ),
        (
            Expect::default().parallel_tool_calls(true),
            "expected `parallel_tool_calls` to be `true`, received `false`",
        ),
        (
            Expect::default().items(2),
            "expected the number of items to be `2`, received `7`",
        ),
        (
            output_says("sun"),
            "expected output 1 to be `sun`, received `rain all day`",
        ),
        (
            output_contains("rain")
                .output_contains("no")
                .output_contains("x"),
            "expected output 3, received outputs of `call_0`, `call_1`, `call_2`",
        ),
        (
            Expect::default().output(ExpectedOutput::default().of("call_9").says("x")),
            "expected the output of call `call_9`, received outputs of `call_0`, `call_1`, `call_2`",
        ),
        (
            Expect::default().output(ExpectedOutput::default().of("call_1").is_error()),
            "expected `is_error` of the output of call `call_1` to be `true`, received `false`",
        ),
        (
            Expect::default().body(json!({})),
            "expected a `body`, but the request came in this process: use the server",
        ),
    ];
    for (expect, words) in cases {
        let model = ScriptedModel::new([say("never").named("it").expect(expect)]);
        let error = refusal(&model, rich_request()).await;
        assert_eq!(error.message, format!("request 1, step 1 (`it`): {words}"));
        assert_eq!(model.verify().unwrap_err().problems, [error.message]);
    }
}

#[tokio::test]
async fn all_that_is_not_met_is_told_at_once() {
    let model = ScriptedModel::new([say("never").expect(user_says("a").items(9))]);
    let error = refusal(&model, asking("b")).await;
    assert_eq!(
        error.message,
        "request 1, step 1: expected the last user text to be `a`, received `b`; \
         expected the number of items to be `9`, received `1`"
    );
}

#[tokio::test]
async fn items_are_counted_over_the_whole_conversation() {
    let model = ScriptedModel::new([say("ok").expect(Expect::default().items(3))]);
    let items = vec![Item::developer("d"), Item::user("u"), Item::assistant("a")];
    let request = ModelRequest {
        conversation: Conversation::from(items),
        ..ModelRequest::default()
    };
    answer(&model, request).await;
    model.assert_finished();
}
