use super::*;
use crate::http::Http;
use serde_json::json;

fn config(json: Value) -> ModelConfig {
    serde_json::from_value(json).unwrap()
}

fn made(json: Value, variables: Lookup<'_>) -> Result<String, ConfigError> {
    from_config_with(&config(json), variables, &Http::default())
        .map(|model| format!("{}/{}", model.provider(), model.name()))
}

fn no_variables(_: &str) -> Option<String> {
    None
}

#[test]
fn every_adapter_of_its_own_is_made() {
    let chat = json!({"name": "a", "adapter": "openai-chat", "base_url": "http://h/v1"});
    assert_eq!(made(chat, &no_variables), Ok("openai/a".into()));
    let ollama = json!({"name": "a", "adapter": "ollama", "model": "qwen3:8b"});
    assert_eq!(made(ollama, &no_variables), Ok("ollama/qwen3:8b".into()));
}

#[test]
fn unknown_keys_are_errors() {
    for json in [
        json!({"name": "a", "adapter": "openai-chat", "api_key": "sk-hunter2"}),
        json!({"name": "a", "adapter": "openai-chat", "capabilities": {"magic": true}}),
        json!({"name": "a", "adapter": "openai-chat", "chat": {"magic": true}}),
        json!({"name": "a", "adapter": "carrier-pigeon"}),
        json!({"adapter": "ollama"}),
    ] {
        assert!(
            serde_json::from_value::<ModelConfig>(json.clone()).is_err(),
            "{json}"
        );
    }
}

#[test]
fn a_missing_key_is_told_before_any_request_and_names_the_variable() {
    let usual = json!({"name": "a", "adapter": "openai-chat"});
    let named = json!({"name": "a", "adapter": "openai-chat", "api_key_env": "MY_KEY"});
    for (json, variable) in [(usual, "OPENAI_API_KEY"), (named, "MY_KEY")] {
        let error = made(json.clone(), &no_variables).unwrap_err();
        assert_eq!(
            error,
            ConfigError::MissingVariable {
                variable: variable.into()
            }
        );
        let blank = |_: &str| Some(String::from(" \n"));
        assert_eq!(made(json.clone(), &blank), Err(error));
        let given = |name: &str| (name == variable).then(|| String::from("sk-hunter2"));
        assert!(made(json, &given).is_ok());
    }
}

#[test]
fn a_key_is_read_from_a_file_without_its_line_break() {
    let folder = std::env::temp_dir().join(format!("haft-models-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("key");
    let json = json!({"name": "a", "adapter": "openai-chat", "api_key_file": file});
    assert!(
        made(json.clone(), &no_variables)
            .unwrap_err()
            .to_string()
            .contains("api_key_file")
    );
    std::fs::write(&file, "sk-hunter2\n").unwrap();
    assert!(
        made(json.clone(), &no_variables).is_ok(),
        "a line break would be no header"
    );
    std::fs::write(&file, "\n").unwrap();
    assert!(
        made(json, &no_variables)
            .unwrap_err()
            .to_string()
            .contains("is empty")
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn waits_are_seconds_or_durations() {
    let config: ModelConfig = serde_json::from_value(json!({"name": "a", "adapter": "ollama",
        "connect_timeout": 2.5, "header_timeout": "1m 30s", "idle_timeout": null}))
    .unwrap();
    let timeouts = config.timeouts().unwrap();
    assert_eq!(timeouts.connect, std::time::Duration::from_millis(2500));
    assert_eq!(timeouts.header, std::time::Duration::from_secs(90));
    assert_eq!(timeouts.idle, crate::http::Timeouts::default().idle);
    for wrong in [json!("30"), json!("soon"), json!(true)] {
        let json = json!({"name": "a", "adapter": "ollama", "header_timeout": wrong});
        let error = serde_json::from_value::<ModelConfig>(json).unwrap_err();
        assert!(error.to_string().contains("duration"), "{error}");
    }
}

#[test]
fn mistakes_name_the_entry_and_the_key() {
    for (json, words) in [
        (
            json!({"name": "a", "adapter": "ollama", "idle_timeout": 0}),
            "model `a`: `idle_timeout`",
        ),
        (
            json!({"name": "a", "adapter": "ollama", "idle_timeout": -1}),
            "`idle_timeout`",
        ),
        (
            json!({"name": "a", "adapter": "ollama", "idle_timeout": 1e300}),
            "`idle_timeout`",
        ),
        (
            json!({"name": "a", "adapter": "openai-chat", "base_url": "http://h/v1/chat/completions"}),
            "model `a`: `base_url`: it must not end in `/chat/completions`: write `http://h/v1`",
        ),
        (
            json!({"name": "a", "adapter": "openai-chat", "base_url": "http://h/v1", "capabilities":
                {"structured_output": false, "structured_output_with_tools": true}}),
            "model `a`: `capabilities`: `structured_output_with_tools`",
        ),
        (
            json!({"name": "a", "adapter": "ollama", "base_url": "nowhere"}),
            "`base_url`",
        ),
        (
            json!({"name": "a", "adapter": "ollama", "headers": {"a b": "c"}}),
            "`a b`",
        ),
        (
            json!({"name": "a", "adapter": "ollama", "model": " "}),
            "`model`",
        ),
        (
            json!({"name": "a", "adapter": "ollama", "chat": {}}),
            "`chat`",
        ),
        (
            json!({"name": "a", "adapter": "openai-chat", "api_key_env": "A", "api_key_file": "b"}),
            "keep one",
        ),
        (
            json!({"name": "a", "adapter": "ollama", "headers": {"x": {"env": "GONE"}}}),
            "`GONE`",
        ),
    ] {
        let error = made(json, &no_variables).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn capabilities_are_overridden() {
    let config = config(
        json!({"name": "a", "adapter": "openai-chat", "base_url": "http://h",
        "context_tokens": 4096,
        "capabilities": {"forced_choice": "only-tool", "none_choice": false, "image_input": false}}),
    );
    let capabilities = from_config(&config).unwrap().capabilities();
    assert_eq!(
        capabilities.forced_choice,
        haft_core::ForcedChoice::OnlyTool
    );
    assert!(!capabilities.none_choice && !capabilities.image_input);
    assert_eq!(capabilities.context_tokens, Some(4096));
}

#[test]
fn debug_output_shows_no_header() {
    let config = config(json!({"name": "a", "adapter": "ollama", "headers": {"x-key": "hunter2"}}));
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn a_scripted_model_needs_a_script_that_can_be_read() {
    let mut config = ModelConfig::new("play", Adapter::Scripted);
    let missing = from_config(&config).map(|_| ()).unwrap_err().to_string();
    assert!(
        missing.starts_with("model `play`: `script`: it is missing"),
        "{missing}"
    );
    config.script = Some("no/such/file.jsonl".into());
    let unreadable = from_config(&config).map(|_| ()).unwrap_err().to_string();
    assert!(unreadable.contains("`no/such/file.jsonl`"), "{unreadable}");
    let path = std::env::temp_dir().join(format!("haft-script-{}.jsonl", std::process::id()));
    std::fs::write(&path, "{\"text\": \"hi\"}\n").unwrap();
    config.script = Some(path.clone());
    let model = from_config(&config);
    std::fs::remove_file(path).unwrap();
    assert_eq!(model.unwrap().name(), "play");
}

#[test]
fn the_offline_model_needs_nothing() {
    let model = from_config(&ModelConfig::new("demo", Adapter::Offline)).unwrap();
    assert!(!model.capabilities().native_deferred_loading);
}

#[test]
fn only_adapters_with_a_form_for_it_take_tools_that_the_provider_holds_back() {
    let entry = |adapter: &str, capability: &str| {
        let mut entry = json!({"name": "a", "adapter": adapter, "base_url": "http://h"});
        entry["capabilities"] = json!({capability: true});
        from_config(&config(entry)).map(|model| model.capabilities())
    };
    let native = "native_deferred_loading";
    assert!(
        entry("openai-responses", native)
            .unwrap()
            .native_deferred_loading
    );
    assert!(entry("anthropic", native).unwrap().native_deferred_loading);
    assert!(
        entry("anthropic", "tool_references")
            .unwrap()
            .tool_references
    );
    for (adapter, capability) in [
        ("openai-chat", native),
        ("ollama", native),
        ("openai-responses", "tool_references"),
        ("ollama", "tool_references"),
    ] {
        let error = entry(adapter, capability).unwrap_err().to_string();
        let words =
            format!("`capabilities`: `{capability}`: `adapter = \"{adapter}\"` has no form");
        assert!(error.contains(&words), "{error}");
    }
}
