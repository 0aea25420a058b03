//! The scripted model in this process: steps, expectations, pieces and faults.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use haft_core::{
    Assembly, Capabilities, Conversation, FinishReason, FunctionCallOutput, Item, Model,
    ModelError, ModelErrorKind, ModelEvent, ModelOptions, ModelRequest, ModelResponse, Streaming,
    ToolChoice, ToolDefinition, ToolSpecs,
};
use haft_models::testing::{
    Expect, ExpectedOutput, Fault, Pieces, Script, ScriptedCall, ScriptedModel, Step, call, calls,
    fail, fault, offers, output_contains, output_says, refuse, say, think, user_contains,
    user_says,
};
use serde_json::{Value, json};

fn asking(text: &str) -> ModelRequest {
    ModelRequest {
        conversation: text.into(),
        ..ModelRequest::default()
    }
}

fn going_on(items: Vec<Item>) -> ModelRequest {
    ModelRequest {
        conversation: Conversation::from(items),
        ..ModelRequest::default()
    }
}

fn tools(names: &[&str]) -> ToolSpecs {
    let definition = |name: &&str| {
        let builder = ToolDefinition::builder(*name).parameters(json!({"type": "object"}));
        builder.build().unwrap()
    };
    names.iter().map(definition).collect()
}

async fn events(
    model: &ScriptedModel,
    request: ModelRequest,
) -> Vec<Result<ModelEvent, ModelError>> {
    model.send(request).await.unwrap().collect().await
}

async fn answer(model: &ScriptedModel, request: ModelRequest) -> ModelResponse {
    let mut assembly = Assembly::default();
    for event in events(model, request).await {
        assembly.add(event.unwrap());
    }
    assembly.finish().unwrap()
}

async fn refusal(model: &ScriptedModel, request: ModelRequest) -> ModelError {
    model.send(request).await.err().unwrap()
}

#[tokio::test]
async fn steps_are_taken_in_order_and_every_request_is_kept() {
    let model = ScriptedModel::new([call("ping", json!({"a": 1})), say("pong").usage(7, 3)]);
    let first = answer(&model, asking("go")).await;
    assert_eq!(
        first.items,
        [Item::function_call("call_1", "ping", r#"{"a":1}"#)]
    );
    assert_eq!(first.response_id.as_deref(), Some("resp_script_1"));
    assert_eq!(first.finish, FinishReason::Normal);
    assert_eq!(first.usage.unwrap().total_tokens(), 15);
    assert!(model.verify().is_err());

    let second = answer(&model, asking("on")).await;
    assert_eq!(second.items, [Item::assistant("pong")]);
    assert_eq!(second.usage.unwrap().input_tokens, 7);
    let texts: Vec<_> = model
        .received()
        .iter()
        .map(|request| request.conversation.items().next().unwrap().text())
        .collect();
    assert_eq!(texts, ["go", "on"]);
    model.assert_finished();
}

#[tokio::test]
async fn a_request_after_the_last_step_is_an_error_and_is_remembered() {
    let model = ScriptedModel::new([say("once")]);
    answer(&model, asking("a")).await;
    let error = refusal(&model, asking("b")).await;
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
    assert_eq!(error.code.as_deref(), Some("script_mismatch"));
    assert_eq!(
        error.message,
        "request 2 came after the last of 1 steps, received the user text `b` and the tools none: \
         add a step, or let one repeat"
    );
    assert_eq!(model.verify().unwrap_err().problems, [error.message]);
}

#[tokio::test]
async fn a_step_that_was_not_taken_fails_the_test() {
    let model = ScriptedModel::new([say("a").named("greeting"), say("b").times(3)]);
    answer(&model, asking("x")).await;
    answer(&model, asking("x")).await;
    assert_eq!(
        model.verify().unwrap_err().to_string(),
        "the script was not kept: step 2 was taken 1 of 3 times"
    );
    let panic = std::panic::catch_unwind(|| model.assert_finished()).unwrap_err();
    let words = panic.downcast_ref::<String>().unwrap();
    assert!(words.contains("step 2 was taken 1 of 3 times"), "{words}");
}

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
async fn a_step_with_when_waits_for_its_request() {
    let model = ScriptedModel::new([
        say("about cats").when(user_contains("cat")),
        say("about dogs").when(user_contains("dog")),
        say("whatever").forever(),
    ]);
    let mut said = Vec::new();
    for text in ["x", "a dog", "a cat", "a cat"] {
        said.push(answer(&model, asking(text)).await.items[0].text());
    }
    assert_eq!(said, ["whatever", "about dogs", "about cats", "whatever"]);
    model.assert_finished();
}

#[tokio::test]
async fn a_request_for_none_of_the_steps_left_says_what_they_wait_for() {
    let model = ScriptedModel::new([say("about cats").when(user_contains("cat"))]);
    let error = refusal(&model, asking("a dog")).await;
    assert_eq!(
        error.message,
        "request 1 is for none of the steps left, received the user text `a dog` and the tools \
         none; step 1: expected the last user text to contain `cat`, received `a dog`"
    );
    answer(&model, asking("a cat")).await;
}

#[tokio::test]
async fn an_answer_has_thoughts_text_refusal_and_calls_in_this_order() {
    let model = ScriptedModel::new([think("hm")
        .say("well")
        .refuse("no")
        .call("a", "{oops")
        .call("b", json!({}))
        .with_id("mine")
        .item(Item::function_call("raw", "c", ""))
        .finish(FinishReason::Length)
        .without_usage()]);
    let response = answer(&model, asking("x")).await;
    let json = serde_json::to_value(&response.items).unwrap();
    assert_eq!(
        json,
        json!([
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "well", "annotations": []},
                {"type": "refusal", "refusal": "no"}]},
            {"type": "function_call", "call_id": "call_1", "name": "a", "arguments": "{oops"},
            {"type": "function_call", "call_id": "mine", "name": "b", "arguments": "{}"},
            {"type": "function_call", "call_id": "raw", "name": "c", "arguments": ""},
        ])
    );
    assert_eq!(response.finish, FinishReason::Length);
    assert_eq!(response.usage, None);
}

#[tokio::test]
async fn deltas_have_the_sizes_that_the_step_says() {
    let step = || think("ab").say("héllo").call("t", "12345");
    let deltas = |events: Vec<Result<ModelEvent, ModelError>>| -> Vec<String> {
        let text = |event| match event {
            Ok(
                ModelEvent::TextDelta { text, .. }
                | ModelEvent::ReasoningDelta { text, .. }
                | ModelEvent::ArgumentsDelta { text, .. },
            ) => Some(text),
            _ => None,
        };
        events.into_iter().filter_map(text).collect()
    };
    let model = ScriptedModel::new([
        step(),
        step().pieces(Pieces::Each(2)),
        step().pieces(Pieces::Sizes(vec![1, 0, 2])),
        step().pieces(Pieces::Each(2)),
    ]);
    let mut streamed = Vec::new();
    for _ in 0..3 {
        streamed.push(deltas(events(&model, asking("x")).await));
    }
    assert_eq!(streamed[0], ["ab", "héllo", "12345"]);
    assert_eq!(streamed[1], ["ab", "hé", "ll", "o", "12", "34", "5"]);
    assert_eq!(
        streamed[2],
        ["a", "", "b", "h", "", "él", "lo", "1", "", "23", "45"]
    );
    let whole = ModelRequest {
        options: ModelOptions {
            stream: Streaming::Whole,
            ..ModelOptions::default()
        },
        ..asking("x")
    };
    assert_eq!(
        deltas(events(&model, whole).await),
        ["ab", "héllo", "12345"]
    );
}

#[tokio::test]
async fn a_refusal_streams_as_a_refusal() {
    let model = ScriptedModel::new([refuse("no")]);
    let events = events(&model, asking("x")).await;
    let refusal = ModelEvent::RefusalDelta {
        index: 0,
        text: "no".into(),
    };
    assert!(events.contains(&Ok(refusal)));
}

#[tokio::test]
async fn http_errors_come_before_the_stream() {
    let quota = json!({"error": {"message": "pay", "code": "insufficient_quota"}});
    let limited = Fault::status(429)
        .with_body(json!({"error": {"message": "slow down", "type": "rate_limit_error"}}))
        .with_header("Retry-After", "2");
    let model = ScriptedModel::new([
        fault(limited),
        fault(Fault::status(429).with_body(quota)),
        fail(500),
        fail(401),
        fail(404),
        fail(422),
        fault(Fault::Html(502)),
        fault(Fault::Closed),
        fault(Fault::status(503).with_header("retry-after-ms", "250")),
    ]);
    let mut errors = Vec::new();
    for _ in 0..9 {
        errors.push(refusal(&model, asking("x")).await);
    }
    let kinds: Vec<_> = errors
        .iter()
        .map(|error| (error.kind, error.status))
        .collect();
    assert_eq!(
        kinds,
        [
            (ModelErrorKind::RateLimit, Some(429)),
            (ModelErrorKind::QuotaExhausted, Some(429)),
            (ModelErrorKind::ServerError, Some(500)),
            (ModelErrorKind::Unauthorized, Some(401)),
            (ModelErrorKind::NotFound, Some(404)),
            (ModelErrorKind::InvalidRequest, Some(422)),
            (ModelErrorKind::ServerError, Some(502)),
            (ModelErrorKind::Unreachable, None),
            (ModelErrorKind::ServerError, Some(503)),
        ]
    );
    assert_eq!(errors[0].message, "slow down");
    assert_eq!(errors[0].retry_after, Some(Duration::from_secs(2)));
    assert_eq!(errors[8].retry_after, Some(Duration::from_millis(250)));
    model.assert_finished();
}

#[tokio::test]
async fn a_stream_breaks_where_the_fault_says() {
    let step = |fault| say("hello world").pieces(Pieces::Each(6)).fault(fault);
    let model = ScriptedModel::new([
        step(Fault::CutAfterEvents(3)),
        step(Fault::CutAfterBytes(7)),
        step(Fault::CutAfterBytes(1000)),
        step(Fault::ErrorEvent {
            after_events: 2,
            code: Some("overloaded".into()),
            message: "too much".into(),
        }),
        step(Fault::garbage(1)),
        step(Fault::EndAfterEvents(4)),
    ]);
    let mut ends = Vec::new();
    for _ in 0..6 {
        let events = events(&model, asking("x")).await;
        let error = events.last().unwrap().as_ref().err().cloned();
        ends.push((events.len(), error.map(|error| (error.kind, error.code))));
    }
    let unreachable = Some((ModelErrorKind::Unreachable, None));
    assert_eq!(
        ends,
        [
            (4, unreachable.clone()),
            (4, unreachable.clone()),
            (6, unreachable),
            (
                3,
                Some((ModelErrorKind::ServerError, Some("overloaded".into())))
            ),
            (2, Some((ModelErrorKind::Protocol, None))),
            (4, None),
        ]
    );
}

#[tokio::test]
async fn a_model_that_hangs_does_so_until_it_is_dropped() {
    let model = ScriptedModel::new([
        fault(Fault::Hang),
        say("hello").fault(Fault::HangAfterEvents(2)),
    ]);
    assert!(model.send(asking("x")).now_or_never().is_none());
    let mut stream = model.send(asking("x")).await.unwrap();
    for _ in 0..2 {
        assert!(stream.next().now_or_never().is_some());
    }
    assert!(stream.next().now_or_never().is_none());
    drop(stream);
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn a_delay_comes_before_each_event() {
    let model = ScriptedModel::new([say("hello").delay_ms(1000)]);
    let mut stream = model.send(asking("x")).await.unwrap();
    assert!(stream.next().now_or_never().is_none());
    let before = tokio::time::Instant::now();
    assert_eq!(stream.count().await, 5);
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn calls_may_lack_ids_or_share_one() {
    let two = || calls([ScriptedCall::new("a", "{}"), ScriptedCall::new("b", "{}")]);
    let model = ScriptedModel::new([
        two(),
        two(),
        two().fault(Fault::MissingCallIds),
        two().fault(Fault::RepeatedCallIds),
    ]);
    let mut ids = Vec::new();
    for _ in 0..4 {
        for item in answer(&model, asking("x")).await.items {
            let Item::FunctionCall(call) = item else {
                unreachable!("only calls are scripted")
            };
            ids.push(call.call_id);
        }
    }
    assert_eq!(
        ids,
        [
            "call_1", "call_2", "call_3", "call_4", "", "", "call_1", "call_1"
        ]
    );
}

#[test]
fn a_scripted_model_can_everything_unless_told_otherwise() {
    let model = ScriptedModel::new([]);
    assert!(model.capabilities().supports_dynamic_tools);
    assert!(model.capabilities().parallel_calls);
    let careful = model
        .with_capabilities(Capabilities::default())
        .named("tiny");
    assert!(!careful.capabilities().supports_dynamic_tools);
    assert_eq!((careful.name(), careful.provider()), ("tiny", "scripted"));
    let _object: Arc<dyn Model> = Arc::new(careful);
}

/// A step that uses every member.
fn full_step() -> Step {
    think("hm")
        .named("full")
        .say("text")
        .refuse("no")
        .call("a", json!({"x": [1, "ü"]}))
        .call("b", "{broken")
        .with_id("mine")
        .item(Item::Other(
            json!({"type": "mcp_call", "id": "mcp_1"})
                .as_object()
                .unwrap()
                .clone(),
        ))
        .when(offers(["a"]))
        .expect(
            user_contains("w")
                .instructions_contain("i")
                .tool_choice(ToolChoice::allowed(["a"]))
                .parallel_tool_calls(true)
                .output(ExpectedOutput::default().of("call_1").says("t").is_error())
                .items(3)
                .body(json!({"model": "m"})),
        )
        .finish(FinishReason::Length)
        .usage(3, 4)
        .pieces(Pieces::Sizes(vec![1, 2]))
        .chunks(haft_models::testing::Chunks::Each(5))
        .delay_ms(9)
        .fault(Fault::CutAfterBytes(100))
        .times(2)
}

#[test]
fn a_script_survives_json_lines() {
    let faults = [
        Fault::status(429)
            .with_body("plain")
            .with_header("retry-after", "1"),
        Fault::Html(502),
        Fault::Closed,
        Fault::CutAfterEvents(1),
        Fault::CutAfterBytes(2),
        Fault::EndAfterEvents(3),
        Fault::Hang,
        Fault::HangAfterEvents(4),
        Fault::error_event(5, "m"),
        Fault::garbage(6),
        Fault::NoDone,
        Fault::MissingCallIds,
        Fault::RepeatedCallIds,
        Fault::ObjectArguments,
    ];
    let steps = [
        full_step(),
        Step::default(),
        say("x").without_usage().forever(),
    ];
    let script = Script::from(steps.into_iter().chain(faults.into_iter().map(fault)));
    let lines = script.to_json_lines();
    assert_eq!(lines.lines().count(), 17);
    assert_eq!(Script::from_json_lines(&lines).unwrap(), script);
    let crlf = lines.replace('\n', "\r\n\r\n");
    assert_eq!(Script::from_json_lines(&crlf).unwrap(), script);
}

#[test]
fn the_json_form_is_as_documented() {
    let line = full_step();
    let json: Value = serde_json::to_value(line).unwrap();
    assert_eq!(
        json,
        json!({
            "name": "full",
            "when": {"tools": {"exactly": ["a"]}},
            "expect": {
                "user": {"contains": "w"},
                "instructions": {"contains": "i"},
                "tool_choice": {"type": "allowed_tools", "mode": "auto",
                    "tools": [{"type": "function", "name": "a"}]},
                "parallel_tool_calls": true,
                "outputs": [{"call_id": "call_1", "text": {"equals": "t"}, "is_error": true}],
                "items": 3,
                "body": {"model": "m"},
            },
            "reasoning": "hm",
            "text": "text",
            "refusal": "no",
            "calls": [
                {"name": "a", "arguments": {"x": [1, "ü"]}},
                {"id": "mine", "name": "b", "arguments": "{broken"},
            ],
            "items": [{"type": "mcp_call", "id": "mcp_1"}],
            "finish": "length",
            "usage": {"input_tokens": 3, "output_tokens": 4, "cached_input_tokens": 0,
                "reasoning_tokens": 0},
            "pieces": [1, 2],
            "chunks": 5,
            "delay_ms": 9,
            "fault": {"cut_after_bytes": 100},
            "repeat": 2,
        })
    );
}

#[test]
fn a_line_that_is_no_step_is_refused_with_its_number() {
    for (line, word) in [
        (r#"{"txt":"b"}"#, "`txt`"),
        (r#"{"expect":{"users":1}}"#, "`users`"),
        (r#"{"expect":{"user":{"starts":"b"}}}"#, "`starts`"),
        (r#"{"expect":{"outputs":[{"id":"b"}]}}"#, "`id`"),
        (r#"{"calls":[{"name":"b","arguments":{},"x":1}]}"#, "`x`"),
        (r#"{"calls":[{"name":"b"}]}"#, "`arguments`"),
        (r#"{"fault":"explode"}"#, "`explode`"),
        (r#"{"fault":{"status":{"code":429,"boddy":1}}}"#, "`boddy`"),
        (r#"{"usage":{"tokens":3}}"#, "`tokens`"),
        (r#"{"usage":"some"}"#, "`none`"),
        (r#"{"pieces":0}"#, "`whole`"),
        (r#"{"chunks":"whole"}"#, "`events`"),
        (r#"{"repeat":0}"#, "`forever`"),
        (r#"{"text":"b""#, "EOF"),
        ("[]", "expected an object"),
    ] {
        let text = format!("{{\"text\":\"a\"}}\n\n{line}\n");
        let error = Script::from_json_lines(&text).unwrap_err();
        assert_eq!(error.line, 3, "{line}");
        assert!(error.to_string().contains(word), "{line}: {error}");
    }
}

#[tokio::test]
async fn the_items_of_going_on_are_those_of_the_conversation() {
    let model = ScriptedModel::new([say("ok").expect(Expect::default().items(3))]);
    let items = vec![Item::developer("d"), Item::user("u"), Item::assistant("a")];
    answer(&model, going_on(items)).await;
    model.assert_finished();
}
