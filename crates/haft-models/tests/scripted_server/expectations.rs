//! Expectations are read back from each provider's own form.

use haft_core::ToolChoice;
use haft_models::testing::{
    Expect, ExpectedOutput, Protocol, ScriptedServer, offers, say, user_contains, user_says,
};
use serde_json::{Value, json};

use super::{client, json_of, post, request};

/// The second turn of the same conversation in each protocol: instructions, a user, two calls and
/// their outputs, two tools, one of them forced, one call at a time.
fn second_turn(protocol: Protocol) -> Value {
    let schema = json!({"type": "object"});
    let nested =
        |name: &str| json!({"type": "function", "function": {"name": name, "parameters": schema}});
    let chat_call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    match protocol {
        Protocol::ChatCompletions => json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "What's the weather?"}]},
                {"role": "assistant", "content": null,
                    "tool_calls": [chat_call("call_1", "weather"), chat_call("call_2", "time")]},
                {"role": "tool", "tool_call_id": "call_1", "content": "rain all day"},
                {"role": "tool", "tool_call_id": "call_2", "content": "no clock"},
            ],
            "tools": [nested("weather"), nested("time")],
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
            "parallel_tool_calls": false,
        }),
        Protocol::Ollama => json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What's the weather?"},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"function": {"name": "weather", "arguments": {}}},
                    {"function": {"name": "time", "arguments": {}}}]},
                {"role": "tool", "tool_name": "weather", "content": "rain all day"},
                {"role": "tool", "tool_name": "time", "content": "no clock"},
            ],
            "tools": [nested("weather"), nested("time")],
        }),
        Protocol::Responses => json!({
            "model": "m",
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": "What's the weather?"},
                {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
                {"type": "function_call", "call_id": "call_2", "name": "time", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "rain all day"},
                {"type": "function_call_output", "call_id": "call_2", "is_error": true,
                    "output": [{"type": "input_text", "text": "no clock"}]},
            ],
            "tools": [
                {"type": "function", "name": "weather", "parameters": schema},
                {"type": "function", "name": "time", "parameters": schema},
            ],
            "tool_choice": {"type": "function", "name": "weather"},
            "parallel_tool_calls": false,
        }),
        Protocol::Messages => json!({
            "model": "m",
            "max_tokens": 100,
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": "What's the weather?"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}},
                    {"type": "tool_use", "id": "call_2", "name": "time", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "rain all day"},
                    {"type": "tool_result", "tool_use_id": "call_2", "is_error": true,
                        "content": [{"type": "text", "text": "no clock"}]}]},
            ],
            "tools": [
                {"name": "weather", "input_schema": schema},
                {"name": "time", "input_schema": schema},
            ],
            "tool_choice": {"type": "tool", "name": "weather", "disable_parallel_tool_use": true},
        }),
    }
}

fn common() -> Expect {
    user_says("What's the weather?")
        .instructions_contain("brief")
        .offers(["weather", "time"])
        .output_says("rain all day")
        .output_contains("clock")
        .items(5)
        .body(json!({"model": "m"}))
}

#[tokio::test]
async fn the_same_expectation_is_met_in_every_protocol() {
    for protocol in Protocol::ALL {
        let server = ScriptedServer::start([say("ok").expect(common())])
            .await
            .unwrap();
        let response = post(&server, protocol, &second_turn(protocol))
            .await
            .unwrap();
        assert_eq!(
            response.status(),
            200,
            "{protocol:?}: {:?}",
            server.verify()
        );
        server.assert_finished();
    }
}

#[tokio::test]
async fn choice_and_parallelism_are_read_where_the_protocol_has_them() {
    for protocol in [
        Protocol::ChatCompletions,
        Protocol::Responses,
        Protocol::Messages,
    ] {
        let expect = common()
            .tool_choice(ToolChoice::Function("weather".into()))
            .parallel_tool_calls(false)
            .output(ExpectedOutput::default().of("call_2").contains("clock"));
        let server = ScriptedServer::start([say("ok").expect(expect)])
            .await
            .unwrap();
        post(&server, protocol, &second_turn(protocol))
            .await
            .unwrap();
        server.assert_finished();
    }
}

#[tokio::test]
async fn failures_are_read_where_the_protocol_has_them() {
    let expect = || {
        let output = ExpectedOutput::default().of("call_2").is_error();
        let success = ExpectedOutput {
            is_error: Some(false),
            ..ExpectedOutput::default().of("call_1")
        };
        Expect::default().output(output).output(success)
    };
    for protocol in [Protocol::Responses, Protocol::Messages] {
        let server = ScriptedServer::start([say("ok").expect(expect())])
            .await
            .unwrap();
        post(&server, protocol, &second_turn(protocol))
            .await
            .unwrap();
        server.assert_finished();
    }
    let protocol = Protocol::ChatCompletions;
    let server = ScriptedServer::start([say("ok").expect(expect())])
        .await
        .unwrap();
    let response = post(&server, protocol, &second_turn(protocol))
        .await
        .unwrap();
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn every_form_of_a_choice_is_read() {
    let allowed = || ToolChoice::allowed(["a"]);
    let tools = json!([{"type": "function", "name": "a"}]);
    let nested = json!([{"type": "function", "function": {"name": "a"}}]);
    let cases = [
        (Protocol::ChatCompletions, json!("auto"), ToolChoice::Auto),
        (Protocol::ChatCompletions, json!("none"), ToolChoice::None),
        (
            Protocol::ChatCompletions,
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": nested}}),
            allowed(),
        ),
        (Protocol::Responses, json!("required"), ToolChoice::Required),
        (
            Protocol::Responses,
            json!({"type": "allowed_tools", "mode": "auto", "tools": tools}),
            allowed(),
        ),
        (
            Protocol::Messages,
            json!({"type": "auto"}),
            ToolChoice::Auto,
        ),
        (
            Protocol::Messages,
            json!({"type": "any"}),
            ToolChoice::Required,
        ),
        (
            Protocol::Messages,
            json!({"type": "none"}),
            ToolChoice::None,
        ),
    ];
    for (protocol, json, choice) in cases {
        let expect = Expect::default().tool_choice(choice);
        let server = ScriptedServer::start([say("ok").expect(expect)])
            .await
            .unwrap();
        let mut body = request(protocol, "hi");
        body["tool_choice"] = json;
        post(&server, protocol, &body).await.unwrap();
        server.assert_finished();
    }
}

#[tokio::test]
async fn an_expectation_that_is_not_met_is_an_error_for_the_client_and_is_remembered() {
    for protocol in Protocol::ALL {
        let expect = user_contains("cat").offers(["a"]);
        let server = ScriptedServer::start([say("never").expect(expect)])
            .await
            .unwrap();
        let response = post(&server, protocol, &request(protocol, "dog"))
            .await
            .unwrap();
        assert_eq!(response.status(), 400);
        let words = "request 1, step 1: expected the last user text to contain `cat`, \
                     received `dog`; expected the tools to be exactly `a`, received none";
        let body = json_of(response).await;
        let message = match protocol {
            Protocol::Ollama => &body["error"],
            _ => &body["error"]["message"],
        };
        assert_eq!(message, words, "{protocol:?}");
        assert_eq!(server.verify().unwrap_err().problems, [words]);
    }
}

#[tokio::test]
async fn a_request_after_the_last_step_is_an_error_too() {
    let server = ScriptedServer::start([]).await.unwrap();
    let protocol = Protocol::Responses;
    let response = post(&server, protocol, &request(protocol, "hi"))
        .await
        .unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(json_of(response).await["error"]["code"], "script_mismatch");
    assert!(server.verify().is_err());
}

#[tokio::test]
async fn a_part_of_the_body_is_looked_for_by_path() {
    let cases = [
        (json!({"messages": [{"role": "user"}]}), None),
        (
            json!({"temperature": 0.5}),
            Some("`/temperature` to be `0.5`, received none"),
        ),
        (
            json!({"model": "x"}),
            Some("`/model` to be `\"x\"`, received `\"m\"`"),
        ),
        (
            json!({"messages": [{"role": "system"}]}),
            Some("`/messages/0/role` to be `\"system\"`, received `\"user\"`"),
        ),
        (
            json!({"messages": []}),
            Some("`/messages` to be `[]`, received `[{"),
        ),
    ];
    for (part, words) in cases {
        let step = say("x").expect(Expect::default().body(part));
        let server = ScriptedServer::start([step]).await.unwrap();
        let protocol = Protocol::ChatCompletions;
        post(&server, protocol, &request(protocol, "hi"))
            .await
            .unwrap();
        match (words, server.verify()) {
            (None, result) => result.unwrap(),
            (Some(words), result) => {
                let failure = result.unwrap_err().to_string();
                assert!(failure.contains(words), "{failure}");
            }
        }
    }
}

#[tokio::test]
async fn a_body_that_a_provider_would_refuse_is_refused_without_taking_a_step() {
    let cases = [
        (
            Protocol::ChatCompletions,
            json!({"messages": []}),
            "no `model`",
        ),
        (
            Protocol::ChatCompletions,
            json!({"model": "m"}),
            "no `messages`",
        ),
        (Protocol::Responses, json!({"model": "m"}), "no `input`"),
        (
            Protocol::Responses,
            json!({"model": "m", "input": [{"call_id": "x"}]}),
            "`input[0]` is not an item",
        ),
        (
            Protocol::Messages,
            json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}),
            "no `max_tokens`",
        ),
        (
            Protocol::Messages,
            json!({"model": "m", "max_tokens": 1, "messages": [{"role": "tool"}]}),
            "neither of `user` nor of `assistant`",
        ),
        (Protocol::Ollama, json!([1]), "not a JSON object"),
        (
            Protocol::Ollama,
            json!({"model": "m", "messages": [{}]}),
            "`role`",
        ),
    ];
    for (protocol, body, words) in cases {
        let server = ScriptedServer::start([say("x")]).await.unwrap();
        let response = post(&server, protocol, &body).await.unwrap();
        assert_eq!(response.status(), 400);
        let problems = server.verify().unwrap_err().problems;
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains(words), "{problems:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused_and_kept() {
    let server = ScriptedServer::start([]).await.unwrap();
    let url = format!("{}/v1/responses", server.url());
    let response = client().post(url).body("{oops").send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(server.received()[0].raw, "{oops");
    assert_eq!(server.received()[0].body, Value::Null);
}

#[tokio::test]
async fn requests_are_kept_byte_for_byte_without_credentials() {
    let server = ScriptedServer::start([say("x")]).await.unwrap();
    let body = r#"{ "model":"m",  "input":"hi" }"#;
    let url = format!("{}/responses", server.base_url());
    let request = client()
        .post(url)
        .header("authorization", "Bearer sk-very-secret")
        .header("X-Api-Key", "sk-very-secret")
        .header("x-trace", "7");
    request.body(body).send().await.unwrap();
    let received = server.received().remove(0);
    assert_eq!(received.raw, body);
    assert_eq!(received.protocol, Protocol::Responses);
    assert_eq!(received.header("authorization"), Some("present"));
    assert_eq!(received.header("x-api-key"), Some("present"));
    assert_eq!(received.header("x-trace"), Some("7"));
    assert_eq!(received.header("cookie"), None);
    assert_eq!(received.view.model.as_deref(), Some("m"));
    assert!(!format!("{server:?}").contains("very-secret"));
}

#[tokio::test]
async fn requests_at_the_same_time_each_take_a_step() {
    let server = ScriptedServer::start([say("x").times(20)]).await.unwrap();
    let body = request(Protocol::Responses, "hi");
    let posts = (0..20).map(|_| post(&server, Protocol::Responses, &body));
    for response in futures_util::future::join_all(posts).await {
        assert_eq!(response.unwrap().status(), 200);
    }
    server.assert_finished();
}

#[tokio::test]
async fn an_item_that_a_protocol_cannot_say_is_an_error_of_the_script() {
    let item = || serde_json::from_value(json!({"type": "mcp_call", "id": "mcp_1"})).unwrap();
    for protocol in Protocol::ALL {
        let server = ScriptedServer::start([say("x").item(item())])
            .await
            .unwrap();
        let response = post(&server, protocol, &request(protocol, "hi"))
            .await
            .unwrap();
        if protocol == Protocol::Responses {
            let body = json_of(response).await;
            assert_eq!(body["output"][1]["type"], "mcp_call");
            server.assert_finished();
        } else {
            assert_eq!(response.status(), 400);
            let failure = server.verify().unwrap_err().to_string();
            assert!(failure.contains("`mcp_call` cannot be said"), "{failure}");
        }
    }
}

#[tokio::test]
async fn tools_are_named_in_order() {
    let server = ScriptedServer::start([say("x").expect(offers(["b", "a", "web_search"]))])
        .await
        .unwrap();
    let mut body = request(Protocol::Responses, "hi");
    body["tools"] = json!([{"type": "function", "name": "b"}, {"type": "function", "name": "a"},
        {"type": "web_search"}]);
    post(&server, Protocol::Responses, &body).await.unwrap();
    server.assert_finished();
}
