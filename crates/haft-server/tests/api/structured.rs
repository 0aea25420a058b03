//! Answers in a strict schema: asked for natively, asked for again, and refused for good.

use haft_models::testing::{ScriptedServer, call, say};
use haft_models::{CapabilityOverrides, OpenAiChat};
use serde_json::{Value, json};

use crate::support::{Answer, Served, Setup, backend, function, item_types, kinds, last};
use crate::tools::echo;

const GOOD: &str = r#"{"n":4}"#;

fn format() -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false});
    json!({"format": {"type": "json_schema", "name": "number", "schema": schema, "strict": true}})
}

/// A request with tools and a strict schema.
fn request() -> Value {
    json!({"input": "How many?", "tools": [function("look")], "text": format()})
}

/// A server of which nothing is known but that it speaks Chat Completions.
async fn serve(behind: &ScriptedServer, capabilities: CapabilityOverrides) -> Served {
    let model = OpenAiChat::new("m").base_url(&behind.base_url());
    Setup::of(model.with_capabilities(capabilities))
        .serve()
        .await
}

/// The text of a response's last item.
fn text(response: &Value) -> &str {
    let item = response["output"].as_array().unwrap().last().unwrap();
    item["content"][0]["text"].as_str().unwrap()
}

/// The response, streamed or not; a stream has sent nothing but its text.
async fn answered(served: &Served, is_streamed: bool) -> Value {
    if !is_streamed {
        return served.create(request()).await;
    }
    let events = served.stream(request()).await;
    let deltas = events
        .iter()
        .filter(|event| event["type"] == "response.output_text.delta");
    let sent: String = deltas
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(sent, text(last(&events)), "{events:#?}");
    last(&events).clone()
}

#[tokio::test]
async fn miss_beside_tools_is_asked_for_again_without_tools_in_the_native_format() {
    for is_streamed in [false, true] {
        let behind = backend([say("About four."), say(GOOD)]).await;
        let served = serve(&behind, CapabilityOverrides::default()).await;
        assert_eq!(text(&answered(&served, is_streamed).await), GOOD);
        let received = behind.received();
        let [first, second] = received.as_slice() else {
            panic!("{} requests", received.len());
        };
        assert!(first.body["tools"].is_array() && first.body["response_format"].is_null());
        assert!(second.body["tools"].is_null(), "{:#}", second.body);
        assert_eq!(second.body["response_format"]["type"], "json_schema");
        let system = &first.body["messages"][0];
        assert!(system["content"].as_str().unwrap().contains("JSON schema"));
        assert_eq!(
            second.body["messages"][0], *system,
            "the prompt begins as before"
        );
    }
}

#[tokio::test]
async fn server_that_takes_both_gets_the_schema_beside_the_tools_at_once() {
    for is_streamed in [false, true] {
        let behind = backend([say("About four."), say(GOOD)]).await;
        let capabilities = CapabilityOverrides {
            structured_output_with_tools: Some(true),
            none_choice: Some(true),
            ..CapabilityOverrides::default()
        };
        let served = serve(&behind, capabilities).await;
        assert_eq!(text(&answered(&served, is_streamed).await), GOOD);
        let received = behind.received();
        assert_eq!(received.len(), 2);
        for (request, choice) in received.iter().zip(["auto", "none"]) {
            assert_eq!(request.body["tool_choice"], choice);
            assert!(request.body["tools"].is_array());
            assert_eq!(request.body["response_format"]["type"], "json_schema");
            assert_ne!(request.body["messages"][0]["role"], "system");
        }
    }
}

#[tokio::test]
async fn calls_before_the_answer_are_made_and_calls_in_its_place_are_a_miss() {
    let script = [
        call("look", json!({})),
        say("About four."),
        call("look", json!({})),
        say(GOOD),
    ];
    let behind = backend(script).await;
    let served = serve(&behind, CapabilityOverrides::default()).await;
    let called = served.create(request()).await;
    let call_id = &called["output"][0]["call_id"];
    let mut next = request();
    next["previous_response_id"] = called["id"].clone();
    next["input"] = json!([{"type": "function_call_output", "call_id": call_id, "output": "4"}]);
    let answer = served.create(next).await;
    assert_eq!(text(&answer), GOOD, "{answer:#}");
    assert_eq!(behind.received().len(), 4);
}

#[tokio::test]
async fn text_beside_calls_is_no_answer_and_is_not_shown() {
    for is_streamed in [false, true] {
        let script = [
            say("Let me see.").call("look", json!({})),
            say("One more.").call("echo", json!({"text": "a"})),
            say(GOOD),
        ];
        let behind = backend(script).await;
        let model = OpenAiChat::new("m").base_url(&behind.base_url());
        let served = Setup::of(model).tools([echo("echo").0]).serve().await;
        let mut body = request();
        body["tools"] = json!([function("look"), {"type": "haft:echo"}]);
        let respond = async |body: Value| {
            if !is_streamed {
                return served.create(body).await;
            }
            let events = served.stream(body).await;
            let is_message = |event: &&Value| event["item"]["type"] == "message";
            let messages = events.iter().filter(is_message).count();
            let expected = item_types(last(&events))
                .iter()
                .filter(|kind| **kind == "message")
                .count();
            assert_eq!(messages, 2 * expected, "{events:#?}");
            last(&events).clone()
        };
        let called = respond(body.clone()).await;
        assert_eq!(item_types(&called), ["function_call"], "{called:#}");
        let call_id = &called["output"][0]["call_id"];
        body["previous_response_id"] = called["id"].clone();
        body["input"] =
            json!([{"type": "function_call_output", "call_id": call_id, "output": "4"}]);
        let answer = respond(body).await;
        assert_eq!(item_types(&answer), ["haft:echo", "message"], "{answer:#}");
        assert_eq!(text(&answer), GOOD);
        // The model itself remembers what it said in this response.
        let last = behind.received()[2].body["messages"].to_string();
        assert!(last.contains("One more."), "{last}");
    }
}

#[tokio::test]
async fn text_beside_calls_is_shown_where_the_format_is_loose() {
    let behind = backend([say("Let me see.").call("look", json!({}))]).await;
    let served = serve(&behind, CapabilityOverrides::default()).await;
    let mut body = request();
    body["text"]["format"]["strict"] = false.into();
    let answer = served.create(body).await;
    assert_eq!(item_types(&answer), ["message", "function_call"]);
}

#[tokio::test]
async fn markdown_fence_around_the_json_is_removed() {
    for is_streamed in [false, true] {
        let fenced = format!("```json\n{GOOD}\n```");
        let behind = backend([say(fenced), say("{}")]).await;
        let served = serve(&behind, CapabilityOverrides::default()).await;
        let answer = answered(&served, is_streamed).await;
        assert_eq!(text(&answer), GOOD);
        assert_eq!(behind.received().len(), 1);
        let stored = served.stored(&answer["id"]).await;
        assert_eq!(text(&stored), GOOD);
        let next = json!({"input": "And now?", "previous_response_id": answer["id"]});
        served.create(next).await;
        let history = behind.received()[1].body["messages"].to_string();
        assert!(!history.contains("```"), "{history}");
    }
}

fn assert_final(answer: &Answer) {
    assert_eq!(answer.error(), (422, "output_invalid", Some("text.format")));
    assert_eq!(answer.body["error"]["type"], "model_error");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
}

#[tokio::test]
async fn answer_that_never_matches_is_a_final_error_after_three_requests() {
    let behind = backend([say("About four.").forever()]).await;
    let served = serve(&behind, CapabilityOverrides::default()).await;
    assert_final(&served.post("/responses", request()).await);
    assert_eq!(behind.received().len(), 3);

    let events = served.stream(request()).await;
    assert_eq!(
        kinds(&events),
        [
            "response.created",
            "response.in_progress",
            "error",
            "response.failed"
        ]
    );
    assert_eq!(last(&events)["error"]["code"], "output_invalid");
    assert_eq!(behind.received().len(), 6);

    let mut body = request();
    body["background"] = true.into();
    let queued = served.create(body).await;
    let ended = served.settled(&queued["id"]).await;
    assert_eq!(ended["status"], "failed");
    assert_eq!(ended["error"]["code"], "output_invalid");
    assert_eq!(behind.received().len(), 9);
}

#[tokio::test]
async fn loose_format_is_streamed_as_it_comes() {
    let fenced = format!("```json\n{GOOD}\n```");
    let behind = backend([say(&fenced)]).await;
    let served = serve(&behind, CapabilityOverrides::default()).await;
    let mut body = request();
    body["text"]["format"]["strict"] = false.into();
    let events = served.stream(body).await;
    assert_eq!(text(last(&events)), fenced);
    assert_eq!(behind.received().len(), 1);
}

#[tokio::test]
async fn answer_in_the_form_of_a_call_is_the_answer() {
    let text_of_call = r#"{"name":"look","arguments":{}}"#;
    let schema = json!({"type": "object", "required": ["name", "arguments"]});
    for format in [
        json!({"type": "json_object"}),
        json!({"type": "json_schema", "name": "call", "schema": schema}),
        json!({"type": "json_schema", "name": "call", "schema": schema, "strict": true}),
    ] {
        let behind = backend([say(text_of_call)]).await;
        let served = serve(&behind, CapabilityOverrides::default()).await;
        let request = json!({"input": "How?", "tools": [function("look")],
            "text": {"format": format}});
        assert_eq!(
            text(&served.create(request).await),
            text_of_call,
            "{format}"
        );
    }
}
