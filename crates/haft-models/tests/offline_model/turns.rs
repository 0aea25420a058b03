//! Which tools are called, and what is said when.

use haft_core::{
    AllowedMode, AllowedTools, Conversation, FinishReason, FunctionCallOutput, Item, ItemStatus,
    ModelEvent, ModelOptions, ModelRequest, Streaming, ToolChoice,
};
use haft_models::offline::NOTICE;
use serde_json::json;

use super::{
    Tool, add, all, call, calls, calls_of, clock, events, request, respond, text_of, tool, weather,
};

#[tokio::test]
async fn the_tool_whose_words_occur_is_called() {
    let oslo = vec![call("get_weather", json!({"city": "Oslo"}))];
    assert_eq!(calls(all(), "What's the weather in Oslo?").await, oslo);
    let sum = vec![call("add", json!({"a": 2, "b": 3.5}))];
    assert_eq!(calls(all(), "add 2 and 3.5").await, sum);
    let time = vec![call("clock", json!({}))];
    assert_eq!(calls(all(), "what time is it").await, time);
}

#[tokio::test]
async fn each_part_of_a_message_makes_at_most_one_call() {
    assert_eq!(
        calls(
            all(),
            "What's the weather in Oslo and add 2 and 3, then tell me the time."
        )
        .await,
        [
            call("get_weather", json!({"city": "Oslo"})),
            call("add", json!({"a": 2, "b": 3})),
            call("clock", json!({})),
        ]
    );
    assert_eq!(
        calls(
            all(),
            "Weather in Oslo? Weather in Bergen? Weather in Oslo?"
        )
        .await,
        [
            call("get_weather", json!({"city": "Oslo"})),
            call("get_weather", json!({"city": "Bergen"})),
        ]
    );
}

#[tokio::test]
async fn the_same_is_asked_again_for_another_name() {
    assert_eq!(
        calls(all(), "How is the weather in Oslo and New York?").await,
        [
            call("get_weather", json!({"city": "Oslo"})),
            call("get_weather", json!({"city": "New York"})),
        ]
    );
}

#[tokio::test]
async fn several_calls_are_made_in_one_turn_unless_that_is_forbidden() {
    let two = "weather in Oslo, then weather in Rome";
    assert_eq!(calls(all(), two).await.len(), 2);
    let one = ModelRequest {
        parallel_tool_calls: Some(false),
        ..request(all(), two)
    };
    let oslo = [call("get_weather", json!({"city": "Oslo"}))];
    assert_eq!(calls_of(&respond(one).await), oslo);
}

#[tokio::test]
async fn there_is_a_limit_to_the_calls_of_one_turn() {
    let parts: Vec<_> = (0..100).map(|n| format!("Weather in City{n}.")).collect();
    let text = parts.join(" ");
    assert_eq!(calls(all(), &text).await.len(), 16);
}

#[tokio::test]
async fn of_tools_that_fit_equally_the_one_that_can_be_called_is() {
    let by_id = tool(
        "user_by_id",
        "Find a user",
        json!({"id": {"type": "integer"}}),
    );
    let by_mail = tool(
        "user_by_mail",
        "Find a user",
        json!({"email": {"type": "string"}}),
    );
    assert_eq!(
        calls(vec![by_id, by_mail], "find user bob@example.org").await,
        [call("user_by_mail", json!({"email": "bob@example.org"}))]
    );
}

#[tokio::test]
async fn a_message_that_fits_no_tool_is_answered_in_words() {
    let response = respond(request(all(), "Good morning!")).await;
    assert_eq!(
        text_of(&response),
        format!("None of the tools fits the message: `get_weather`, `add`, `clock`.\n{NOTICE}")
    );
    let response = respond(request(Vec::new(), "weather in Oslo")).await;
    assert!(text_of(&response).starts_with("No tools are offered"));
}

/// The second turn of a conversation, after these outputs.
fn answered(outputs: Vec<FunctionCallOutput>) -> ModelRequest {
    let mut items = vec![
        Item::user("weather in Oslo, and the time"),
        Item::function_call("c1", "get_weather", "{}"),
        Item::function_call("c2", "clock", "{}"),
    ];
    items.extend(outputs.into_iter().map(Item::FunctionCallOutput));
    ModelRequest {
        conversation: Conversation::from(items),
        ..request(all(), "")
    }
}

#[tokio::test]
async fn outputs_are_quoted_call_by_call_and_failures_are_told() {
    let request = answered(vec![
        FunctionCallOutput::new("c2", "the clock is broken").as_error(),
        FunctionCallOutput::new("c1", " rain all day\n"),
    ]);
    assert_eq!(
        text_of(&respond(request).await),
        format!("`get_weather`: rain all day\n`clock` failed: the clock is broken\n{NOTICE}")
    );
    let text = text_of(&respond(answered(vec![FunctionCallOutput::new("c1", "")])).await);
    assert_eq!(
        text,
        format!("`get_weather`: (nothing)\n`clock` has not answered.\n{NOTICE}")
    );
}

#[tokio::test]
async fn there_is_one_round_of_calls_per_message_whatever_is_demanded() {
    let again = ModelRequest {
        tool_choice: Some(ToolChoice::Required),
        ..answered(vec![
            FunctionCallOutput::new("c1", "try again: weather in Rome").as_error(),
            FunctionCallOutput::new("c2", "noon"),
        ])
    };
    assert_eq!(calls_of(&respond(again.clone()).await), []);
    // The next message is a new beginning.
    let mut conversation = again.conversation;
    conversation.push(Item::assistant("noon"));
    conversation.push(Item::user("weather in Rome"));
    let next = ModelRequest {
        conversation,
        ..request(all(), "")
    };
    let response = respond(next).await;
    assert_eq!(
        calls_of(&response),
        [call("get_weather", json!({"city": "Rome"}))]
    );
    let Item::FunctionCall(first) = &response.items[0] else {
        unreachable!("a call was expected")
    };
    assert_eq!(first.call_id, "call_offline_7_0");
}

#[tokio::test]
async fn a_tool_choice_is_respected() {
    let choosing = |choice: ToolChoice, text: &str| ModelRequest {
        tool_choice: Some(choice),
        ..request(all(), text)
    };
    let text = "weather in Oslo";
    let none = respond(choosing(ToolChoice::None, text)).await;
    assert_eq!(calls_of(&none), []);
    assert!(text_of(&none).starts_with("No tool may be called"));

    let forced = choosing(ToolChoice::Function("clock".into()), text);
    assert_eq!(calls_of(&respond(forced).await), [call("clock", json!({}))]);
    let unable = respond(choosing(ToolChoice::Function("add".into()), text)).await;
    assert!(text_of(&unable).starts_with("`add` needs `a`, `b`"));
    let unknown = respond(choosing(ToolChoice::Function("nope".into()), text)).await;
    assert!(text_of(&unknown).starts_with("The tool `nope` is demanded but not offered."));

    // Nothing fits, but something must be called: what can be.
    let required = choosing(ToolChoice::Required, "hello");
    assert_eq!(
        calls_of(&respond(required).await),
        [call("clock", json!({}))]
    );

    let allowed = choosing(
        ToolChoice::allowed(["clock", "add"]),
        "weather in Oslo and the time",
    );
    assert_eq!(
        calls_of(&respond(allowed).await),
        [call("clock", json!({}))]
    );
    let forbidden = ToolChoice::Allowed(AllowedTools {
        mode: AllowedMode::None,
        names: vec!["clock".into()],
    });
    assert_eq!(calls_of(&respond(choosing(forbidden, "time")).await), []);
}

#[tokio::test]
async fn answers_stream_word_by_word_and_say_what_answers() {
    let pieces = |events: &[ModelEvent]| -> Vec<String> {
        let texts = events.iter().filter_map(|event| match event {
            ModelEvent::TextDelta { text, .. } => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    };
    let streamed = pieces(&events(request(Vec::new(), "hi")).await);
    assert_eq!(streamed[..3], ["No ", "tools ", "are "]);
    assert!(streamed.concat().ends_with(NOTICE));
    let whole = ModelRequest {
        options: ModelOptions {
            stream: Streaming::Whole,
            ..ModelOptions::default()
        },
        ..request(Vec::new(), "hi")
    };
    assert_eq!(pieces(&events(whole).await), [streamed.concat()]);
}

#[tokio::test]
async fn usage_grows_with_what_is_sent() {
    let small = respond(request(all(), "weather in Oslo"))
        .await
        .usage
        .unwrap();
    let text = format!("weather in Oslo {}", "please ".repeat(1000));
    let large = respond(request(all(), &text)).await.usage.unwrap();
    assert_eq!(small.requests, 1);
    assert!(small.output_tokens > 0);
    assert!(large.input_tokens > small.input_tokens + 1000);
}

#[tokio::test]
async fn an_answer_breaks_off_at_the_token_limit() {
    let limited = |tools, text, tokens| {
        let mut request = request(tools, text);
        request.options.max_output_tokens = Some(tokens);
        request
    };
    let story = "Write a very long story of at least 2000 words.";
    let whole = text_of(&respond(request(Vec::new(), story)).await);
    let cut = respond(limited(Vec::new(), story, 16)).await;
    assert_eq!(cut.finish, FinishReason::Length);
    assert_eq!(text_of(&cut), whole[..64]);
    assert_eq!(cut.usage.unwrap().output_tokens, 16);
    let Item::Message(message) = &cut.items[0] else {
        panic!("{:?}", cut.items);
    };
    assert_eq!(message.status, Some(ItemStatus::Incomplete));

    let enough = respond(limited(Vec::new(), story, 1000)).await;
    assert_eq!(
        (enough.finish, text_of(&enough)),
        (FinishReason::Normal, whole)
    );

    let call = respond(limited(all(), "the weather in Oslo", 4)).await;
    assert_eq!(call.finish, FinishReason::Length);
    let Item::FunctionCall(call) = &call.items[0] else {
        panic!("{:?}", call.items);
    };
    assert_eq!(call.arguments, "{\"cit");
    assert_eq!(call.status, Some(ItemStatus::Incomplete));
}

/// A tool that searches, as the loop offers it.
fn search() -> Tool {
    let query = json!({"query": {"type": "string"}});
    tool("search_tools", "Find tools by what they should do.", query)
}

#[tokio::test]
async fn where_nothing_fits_it_searches_and_calls_what_it_finds() {
    let question = "What's the weather in Oslo?";
    let query = [call("search_tools", json!({"query": question}))];
    assert_eq!(calls(vec![search()], question).await, query);
    // A tool that fits is called at once, and one that lacks something is no reason to search.
    let oslo = [call("get_weather", json!({"city": "Oslo"}))];
    let both = vec![weather(), search()];
    assert_eq!(calls(both.clone(), question).await, oslo);
    assert_eq!(calls(both.clone(), "How is the weather?").await, []);
    let others = vec![add(), clock(), search()];
    assert_eq!(calls(others, question).await, query);

    let searched = |found: &str| {
        Conversation::from_iter([
            Item::user(question),
            Item::function_call("s", "search_tools", r#"{"query":"weather"}"#),
            Item::function_call_output("s", found),
        ])
    };
    let next = ModelRequest {
        conversation: searched("get_weather: The weather in a city"),
        tools: both.into_iter().collect(),
        ..ModelRequest::default()
    };
    assert_eq!(calls_of(&respond(next).await), oslo);
    let nothing = ModelRequest {
        conversation: searched("No tool found."),
        tools: [search()].into_iter().collect(),
        ..ModelRequest::default()
    };
    let answer = respond(nothing).await;
    assert_eq!(
        text_of(&answer),
        format!("No tool was found that fits the message.\n{NOTICE}")
    );
}
