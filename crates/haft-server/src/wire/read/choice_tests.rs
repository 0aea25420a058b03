//! `tool_choice`: every form, its echo, and which tools it may name.

use serde_json::{Value, json};

use super::choice::{Standing, standing_in, validate_choice};
use super::refusals::{check_refused, rows};
use super::*;
use crate::error::ErrorCode;
use crate::wire::request::{CreateRequest, WireChoice, WireChoiceMode, WireToolName};

fn tools() -> Value {
    json!([
        {"type": "function", "name": "ping"},
        {"type": "function", "name": "later", "defer_loading": true},
        {"type": "custom", "name": "sh"},
        {"type": "namespace", "name": "ns", "tools": [
            {"type": "function", "name": "inner"}, {"type": "custom", "name": "deep"}]},
        {"type": "namespace", "name": "lazy", "defer_loading": true, "tools": [
            {"type": "function", "name": "inner"}]},
        {"type": "mcp", "server_label": "air"},
        {"type": "openai:web_search"},
        {"type": "haft:clock"},
        {"type": "tool_search"},
    ])
}

fn read_with(choice: &Value, more: &Value) -> Read<CreateRequest> {
    let mut body = json!({"input": "x", "tools": tools(), "tool_choice": choice});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    CreateRequest::read(body, Door::Http, &Vocabulary::default())
}

fn read(choice: &Value) -> Read<CreateRequest> {
    read_with(choice, &json!({}))
}

fn function(name: &str) -> WireToolName {
    WireToolName::Function {
        name: name.into(),
        namespace: None,
    }
}

#[test]
fn every_form_is_read_and_echoed() {
    let hosted = |tool_type: &str| {
        WireChoice::Tool(WireToolName::Hosted {
            tool_type: tool_type.into(),
        })
    };
    for (given, choice) in [
        (json!("auto"), WireChoice::Auto),
        (json!("none"), WireChoice::None),
        (json!("required"), WireChoice::Required),
        (
            json!({"type": "function", "name": "ping"}),
            WireChoice::Tool(function("ping")),
        ),
        (
            json!({"type": "function", "name": "inner", "namespace": "ns"}),
            WireChoice::Tool(WireToolName::Function {
                name: "inner".into(),
                namespace: Some("ns".into()),
            }),
        ),
        (
            json!({"type": "custom", "name": "sh"}),
            WireChoice::Tool(WireToolName::Custom { name: "sh".into() }),
        ),
        (
            json!({"type": "mcp", "server_label": "air"}),
            WireChoice::Tool(WireToolName::Mcp {
                server_label: "air".into(),
                name: None,
            }),
        ),
        (
            json!({"type": "mcp", "server_label": "air", "name": "find.all"}),
            WireChoice::Tool(WireToolName::Mcp {
                server_label: "air".into(),
                name: Some("find.all".into()),
            }),
        ),
        (json!({"type": "web_search"}), hosted("web_search")),
        (json!({"type": "openai:web_search"}), hosted("web_search")),
        (json!({"type": "haft:clock"}), hosted("haft:clock")),
        (
            json!({"type": "allowed_tools", "mode": "required", "tools": [
                {"type": "function", "name": "ping"}, {"type": "haft:clock"}]}),
            WireChoice::Allowed {
                mode: WireChoiceMode::Required,
                tools: vec![
                    function("ping"),
                    WireToolName::Hosted {
                        tool_type: "haft:clock".into(),
                    },
                ],
            },
        ),
    ] {
        let request = read(&given).unwrap_or_else(|error| panic!("{given}: {error:?}"));
        assert_eq!(request.tool_choice, choice, "{given}");
        assert_eq!(request.echo.tool_choice, given);
    }
}

#[test]
fn the_mode_of_a_list_is_auto_unless_it_says_another() {
    for (mode, expected) in [
        (Value::Null, WireChoiceMode::Auto),
        (json!("none"), WireChoiceMode::None),
    ] {
        let given = json!({"type": "allowed_tools", "mode": mode, "tools": [
            {"type": "function", "name": "ping"}]});
        let request = read(&given).unwrap();
        assert!(
            matches!(request.tool_choice, WireChoice::Allowed { mode, .. } if mode == expected)
        );
        let echoed = mode.as_str().unwrap_or("auto");
        assert_eq!(request.echo.tool_choice["mode"], echoed);
    }
}

#[test]
fn choices_are_refused_with_the_path_to_what_is_wrong() {
    for (choice, code, param) in rows(include_str!("refusals/choice.txt")) {
        check_refused(read(&choice), &choice, code, param);
    }
}

#[test]
fn a_list_names_at_most_128_tools() {
    let allowed = |count: usize| {
        let ping = json!({"type": "function", "name": "ping"});
        json!({"type": "allowed_tools", "tools": vec![ping; count]})
    };
    read(&allowed(128)).unwrap();
    let choice = allowed(129);
    check_refused(read(&choice), &choice, "invalid_value", "tool_choice.tools");
}

#[test]
fn what_is_deferred_may_be_permitted_before_it_is_loaded() {
    let choice = json!({"type": "allowed_tools", "tools": [{"type": "function", "name": "later"},
        {"type": "custom", "name": "deep"}]});
    read(&choice).unwrap();
}

#[test]
fn a_tool_that_the_history_may_have_loaded_is_let_through() {
    let choice = json!({"type": "function", "name": "loaded"});
    for more in [
        json!({"previous_response_id": "resp_1"}),
        json!({"conversation": "conv_1"}),
        json!({"input": [{"type": "item_reference", "id": "tso_1"}]}),
        json!({"input": [{"type": "compaction", "encrypted_content": "z"}]}),
        json!({"input": [{"type": "additional_tools", "tools": [
            {"type": "function", "name": "loaded"}]}]}),
    ] {
        read_with(&choice, &more).unwrap();
    }
}

#[test]
fn whoever_knows_the_history_checks_the_choice() {
    let choice = WireChoice::Tool(function("loaded"));
    validate_choice(&choice, |name| *name == function("loaded")).unwrap();
    let error = validate_choice(&choice, |_| false).unwrap_err();
    assert_eq!(error.code, ErrorCode::ToolNotFound);
    assert_eq!(error.param.as_deref(), Some("tool_choice"));
    validate_choice(&WireChoice::Required, |_| false).unwrap();
}

#[test]
fn a_tool_stands_as_it_was_declared() {
    let tools = read(&json!("auto")).unwrap().tools;
    let standing = |name: &WireToolName| standing_in(&tools, name);
    assert_eq!(standing(&function("ping")), Some(Standing::Callable));
    assert_eq!(standing(&function("later")), Some(Standing::Deferred));
    assert_eq!(standing(&function("nobody")), None);
    let inner = |namespace: &str| WireToolName::Function {
        name: "inner".into(),
        namespace: Some(namespace.into()),
    };
    assert_eq!(standing(&inner("ns")), Some(Standing::Callable));
    assert_eq!(standing(&inner("lazy")), Some(Standing::Deferred));
}
