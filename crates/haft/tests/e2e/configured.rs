//! Models from the environment and from files work like those made by hand; and the offline one.

use std::sync::Arc;

use haft::models::http::Http;
use haft::models::offline::NOTICE;
use haft::models::{
    Anthropic, ModelConfig, OfflineModel, Ollama, OpenAiChat, OpenAiResponses, from_config,
    from_config_with,
};
use haft::testing::{ScriptedServer, call, offers, say};
use haft::{CallStatus, Model, Outcome, ToolRef, json};

use crate::world::{Case, KEY, Provider, cases, each, get_weather, note, tools};

async fn works(case: Case, server: &ScriptedServer, model: impl Model) {
    let outcome = case.run_of(model).tools(tools()).user("go").await.unwrap();
    assert_eq!(outcome.text, "done", "{:?}", outcome.end);
    server.assert_finished();
    let request = &server.received()[0];
    let header = match case.provider {
        Provider::Anthropic => Some("x-api-key"),
        Provider::Ollama => None,
        _ => Some("authorization"),
    };
    if let Some(header) = header {
        assert_eq!(request.header(header), Some("present"));
    }
}

fn script() -> [haft::testing::Step; 2] {
    let shown = ["get_weather", "note"];
    [
        call("note", json!({"text": "x"})).expect(offers(shown)),
        say("done"),
    ]
}

#[tokio::test]
async fn models_from_the_environment_work() {
    each(cases(), |case| async move {
        let server = case.server(script()).await;
        let variables = |name: &str| match name {
            "OPENAI_API_KEY" | "ANTHROPIC_API_KEY" => Some(KEY.to_owned()),
            "OPENAI_BASE_URL" => Some(server.base_url()),
            "ANTHROPIC_BASE_URL" => Some(server.url()),
            "OLLAMA_HOST" => Some(server.address().to_string()),
            _ => None,
        };
        match case.provider {
            Provider::Chat | Provider::OtherChat => {
                works(
                    case,
                    &server,
                    OpenAiChat::from_env_with("m", &variables).unwrap(),
                )
                .await;
            }
            Provider::Responses => {
                works(
                    case,
                    &server,
                    OpenAiResponses::from_env_with("m", &variables).unwrap(),
                )
                .await;
            }
            Provider::Anthropic => {
                works(
                    case,
                    &server,
                    Anthropic::from_env_with("m", &variables).unwrap(),
                )
                .await;
            }
            Provider::Ollama => {
                works(
                    case,
                    &server,
                    Ollama::from_env_with("m", &variables).unwrap(),
                )
                .await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn models_from_a_file_work() {
    each(cases(), |case| async move {
        let server = case.server(script()).await;
        let (adapter, base_url) = match case.provider {
            Provider::Chat | Provider::OtherChat => ("openai-chat", server.base_url()),
            Provider::Responses => ("openai-responses", server.base_url()),
            // With or without the version.
            Provider::Anthropic => ("anthropic", server.base_url()),
            Provider::Ollama => ("ollama", server.url()),
        };
        let config: ModelConfig = serde_json::from_value(json!({
            "name": "main", "adapter": adapter, "model": "m", "base_url": base_url,
            "api_key_env": "E2E_KEY", "headers": {"x-team": "blue"}, "context_tokens": 8192,
            "extra": {"metadata": {"from": "file"}}
        }))
        .unwrap();
        let variables = |name: &str| (name == "E2E_KEY").then(|| KEY.to_owned());
        let model = from_config_with(&config, &variables, &Http::default()).unwrap();
        assert_eq!(model.capabilities().context_tokens, Some(8192));
        works(case, &server, model).await;
        let request = &server.received()[0];
        assert_eq!(request.header("x-team"), Some("blue"));
        assert_eq!(request.body["metadata"], json!({"from": "file"}));
        assert_eq!(request.body["model"], "m");
        if case.provider == Provider::Ollama {
            assert_eq!(request.body["options"]["num_ctx"], 8192);
            assert_eq!(request.header("authorization"), Some("present"));
        }
    })
    .await;
}

#[tokio::test]
async fn several_models_share_their_connections() {
    let http = Http::default();
    each(cases(), move |case| {
        let http = http.clone();
        async move {
            let server = case.server(script()).await;
            match case.provider {
                Provider::Chat | Provider::OtherChat => {
                    works(case, &server, crate::world::chat(&server).http(http)).await;
                }
                Provider::Responses => {
                    works(case, &server, crate::world::responses(&server).http(http)).await;
                }
                Provider::Anthropic => {
                    works(case, &server, crate::world::anthropic(&server).http(http)).await;
                }
                Provider::Ollama => {
                    works(case, &server, crate::world::ollama(&server).http(http)).await;
                }
            }
        }
    })
    .await;
}

/// Add two numbers.
#[haft::tool(read_only)]
fn add(a: f64, b: f64) -> f64 {
    a + b
}

/// The current time.
#[haft::tool(read_only)]
fn clock() -> &'static str {
    "half past ten"
}

/// Translate a text into a language.
#[haft::tool(read_only)]
fn translate(text: String, language: String) -> String {
    format!("{text} in {language}")
}

async fn offline(words: &str) -> Outcome {
    let five: [ToolRef; 5] = [
        get_weather.into(),
        note.into(),
        add.into(),
        clock.into(),
        translate.into(),
    ];
    let outcome = haft::run(OfflineModel::new())
        .tools(five)
        .user(words)
        .await
        .unwrap();
    assert!(outcome.is_completed(), "{:?}", outcome.end);
    assert!(outcome.text.ends_with(NOTICE), "{}", outcome.text);
    outcome
}

fn called(outcome: &Outcome) -> Vec<(&str, CallStatus)> {
    let calls = outcome.tool_calls.iter();
    calls
        .map(|call| (call.tool_name.as_str(), call.status))
        .collect()
}

#[tokio::test]
async fn the_offline_model_picks_the_right_tool_of_five() {
    let outcome = offline("What is the weather in Oslo?").await;
    assert_eq!(called(&outcome), [("get_weather", CallStatus::Succeeded)]);
    assert!(outcome.text.contains("rain in Oslo"), "{}", outcome.text);
    assert_eq!(outcome.rounds, 1);
    let outcome = offline("What time is it?").await;
    assert_eq!(called(&outcome), [("clock", CallStatus::Succeeded)]);
}

#[tokio::test]
async fn the_offline_model_makes_two_calls_in_one_turn() {
    let outcome = offline("What is the weather in Oslo, and add 2 and 3.5").await;
    let expected = [
        ("get_weather", CallStatus::Succeeded),
        ("add", CallStatus::Succeeded),
    ];
    assert_eq!(called(&outcome), expected);
    assert_eq!((outcome.rounds, outcome.usage.requests), (1, 2));
    assert!(outcome.text.contains("rain in Oslo"), "{}", outcome.text);
    assert!(outcome.text.contains("5.5"), "{}", outcome.text);
}

#[tokio::test]
async fn the_offline_model_says_what_it_is_and_what_failed() {
    let outcome = offline("Hello there").await;
    assert_eq!(called(&outcome), []);
    let outcome = offline("What is the weather in Atlantis?").await;
    assert_eq!(called(&outcome), [("get_weather", CallStatus::Failed)]);
    assert!(outcome.text.contains("no such city"), "{}", outcome.text);
}

#[tokio::test]
async fn the_offline_and_the_scripted_model_come_from_files_too() {
    let offline: ModelConfig =
        serde_json::from_value(json!({"name": "o", "adapter": "offline"})).unwrap();
    let model: Arc<dyn Model> = from_config(&offline).unwrap();
    let outcome = haft::run(model)
        .tools([clock])
        .user("What time is it?")
        .await
        .unwrap();
    assert!(outcome.text.contains("half past ten"), "{}", outcome.text);
}
