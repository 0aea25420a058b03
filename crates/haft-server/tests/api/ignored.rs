//! Parameters that have no effect: refused as `OpenAI` refuses them, or named in `haft-warning` and the log.

use haft_models::ScriptedModel;
use haft_models::testing::say;
use serde_json::{Value, json};

use crate::support::{Backend, Setup, backend, serve};
use crate::watch::Log;
use crate::websocket::connect;

#[tokio::test]
async fn parameters_of_chat_completions_are_refused_by_name() {
    let (served, model) = serve([say("never")]).await;
    for (name, value, code, advice) in [
        (
            "response_format",
            json!({"type": "json_object"}),
            "unsupported_parameter",
            "`text.format`",
        ),
        (
            "max_tokens",
            json!(5),
            "unsupported_parameter",
            "`max_output_tokens`",
        ),
        (
            "prompt",
            json!({"id": "pmpt_1"}),
            "unsupported_parameter",
            "`instructions`",
        ),
        (
            "stop",
            json!("END"),
            "unknown_parameter",
            "Unknown parameter: 'stop'.",
        ),
        (
            "seed",
            json!(1),
            "unknown_parameter",
            "Unknown parameter: 'seed'.",
        ),
        (
            "n",
            json!(2),
            "unknown_parameter",
            "Unknown parameter: 'n'.",
        ),
    ] {
        for path in ["/responses", "/responses/input_tokens"] {
            let mut body = json!({"input": "go"});
            body[name] = value.clone();
            let answer = served.post(path, body).await;
            assert_eq!(answer.error(), (400, code, Some(name)), "{path}");
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(advice), "{message}");
        }
    }
    assert!(model.received().is_empty());
}

#[tokio::test]
async fn unknown_members_are_named_in_a_header_and_the_log_without_their_values() {
    let log = Log::of("haft_server=info");
    let (served, _) = serve([say("hello").forever()]).await;
    let unknown =
        json!({"input": "go", "temprature": "secret-value", "text": {"tone": "secret-value"}});
    let expected = "ignored parameter text.tone, temprature";
    let answer = served.post("/responses", unknown.clone()).await;
    assert_eq!(answer.header("haft-warning"), Some(expected));
    log.line("ignoring request parameters parameters=\"text.tone, temprature\"")
        .await;
    answer.ok();
    let mut streamed = unknown.clone();
    streamed["stream"] = true.into();
    let response = served
        .posting("/responses", &streamed)
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["haft-warning"], expected);
    let counted = served
        .post("/responses/input_tokens", unknown.clone())
        .await;
    assert_eq!(counted.header("haft-warning"), Some(expected));
    let mut compacted = unknown.clone();
    compacted["model"] = "default".into();
    let compacted = served.post("/responses/compact", compacted).await;
    assert_eq!(compacted.header("haft-warning"), Some(expected));
    let conversation = served
        .post("/conversations", json!({"metdata": {"a": "secret-value"}}))
        .await;
    assert_eq!(
        conversation.header("haft-warning"),
        Some("ignored parameter metdata")
    );
    // One line for each request, and a WebSocket has no other place.
    let lines = log.text().matches("ignoring request parameters").count();
    assert_eq!(lines, 5);
    let mut socket = connect(&served).await;
    socket.response(unknown).await;
    let lines = log.text().matches("ignoring request parameters").count();
    assert_eq!(lines, 6);
    assert!(!log.text().contains("secret-value"), "{}", log.text());
    let quiet = served.post("/responses", json!({"input": "go"})).await;
    assert_eq!(quiet.header("haft-warning"), None);
}

#[tokio::test]
async fn options_that_a_backend_does_not_have_are_named() {
    let body = json!({
        "input": "go", "prompt_cache_key": "k", "safety_identifier": "s", "service_tier": "flex",
        "text": {"verbosity": "low"}, "presence_penalty": 1,
        "include": ["message.output_text.logprobs"],
    });
    for (kind, expected) in [
        (
            Backend::Chat,
            Some(
                "ignored parameter text.verbosity, service_tier, safety_identifier, prompt_cache_key",
            ),
        ),
        (
            Backend::Responses,
            Some("ignored parameter presence_penalty"),
        ),
        (
            Backend::Anthropic,
            Some(
                "ignored parameter presence_penalty, include[message.output_text.logprobs], \
                 text.verbosity, prompt_cache_key, service_tier",
            ),
        ),
    ] {
        let behind = backend([say("hello").forever()]).await;
        let served = kind.setup(&behind).serve().await;
        let answer = served.post("/responses", body.clone()).await;
        assert_eq!(answer.header("haft-warning"), expected, "{kind:?}");
        answer.ok();
        // What is the default anyway asks for nothing.
        let usual = json!({"input": "go", "service_tier": "auto", "top_logprobs": 0});
        let answer = served.post("/responses", usual).await;
        assert_eq!(answer.header("haft-warning"), None, "{kind:?}");
    }
}

#[tokio::test]
async fn chat_completions_name_what_a_translated_request_loses() {
    let model = ScriptedModel::new([say("hello").forever()]);
    let served = Setup::of(model).serve().await;
    for stream in [false, true] {
        let body = json!({"messages": [{"role": "user", "content": "go"}], "stream": stream,
            "seed": 1, "logit_bias": {"1": 2}, "store": true, "model": "default"});
        let request = served.posting("/chat/completions", &body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let mut names: Vec<_> = response.headers()["haft-warning"]
            .to_str()
            .unwrap()
            .strip_prefix("ignored parameter ")
            .unwrap()
            .split(", ")
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["logit_bias", "seed", "store"]);
    }
    let body: Value = json!({"messages": [{"role": "user", "content": "go"}]});
    let quiet = served.post("/chat/completions", body).await;
    assert_eq!(quiet.header("haft-warning"), None);
}
