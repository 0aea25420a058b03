use super::*;
use haft_core::{
    AllowedMode, AllowedTools, ContentPart, Conversation, ForcedChoice, Item, Loading,
    ModelErrorKind, ModelOptions, OutputFormat, Reasoning, ToolChoice, ToolDefinition, ToolSpecs,
};

fn settings() -> Settings {
    Settings {
        model: "claude-x".into(),
        capabilities: Capabilities {
            forced_choice: ForcedChoice::Named,
            none_choice: true,
            ..Capabilities::default()
        },
        max_tokens: 1_000,
        caching: true,
        thinking: Thinking::Adaptive,
        extra: Map::new(),
    }
}

fn tools(names: &[&str]) -> ToolSpecs {
    let tool = |name: &&str| {
        ToolDefinition::builder(*name)
            .description(format!("Does {name}."))
            .parameters(json!({"type": "object", "properties": {"a": {"type": "string"}}}))
            .build()
            .unwrap()
    };
    names.iter().map(tool).collect()
}

fn request(choice: Option<ToolChoice>, names: &[&str]) -> ModelRequest {
    ModelRequest {
        conversation: Conversation::from("hi"),
        tools: tools(names),
        tool_choice: choice,
        ..ModelRequest::default()
    }
}

fn text(request: &ModelRequest, settings: &Settings) -> String {
    let body = lower(request, settings).unwrap().body;
    String::from_utf8(body.to_vec()).unwrap()
}

fn body(request: &ModelRequest) -> Value {
    serde_json::from_str(&text(request, &settings())).unwrap()
}

#[test]
fn the_smallest_request_says_only_what_it_must() {
    let plain = Settings {
        caching: false,
        ..settings()
    };
    let mut request = request(None, &[]);
    request.options.stream = Streaming::Whole;
    assert_eq!(
        text(&request, &plain),
        r#"{"model":"claude-x","max_tokens":1000,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#
    );
}

#[test]
fn every_choice_has_its_form() {
    let allowed = |mode, names: &[&str]| {
        ToolChoice::Allowed(AllowedTools {
            mode,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        })
    };
    for (choice, expected) in [
        (ToolChoice::Auto, json!({"type": "auto"})),
        (ToolChoice::Required, json!({"type": "any"})),
        (ToolChoice::None, json!({"type": "none"})),
        (
            ToolChoice::Function("a".into()),
            json!({"type": "tool", "name": "a"}),
        ),
        (allowed(AllowedMode::Auto, &["a"]), json!({"type": "auto"})),
        (allowed(AllowedMode::None, &["a"]), json!({"type": "none"})),
        (
            allowed(AllowedMode::Required, &["a", "b"]),
            json!({"type": "any"}),
        ),
    ] {
        let body = body(&request(Some(choice.clone()), &["a", "b"]));
        assert_eq!(body["tool_choice"], expected, "{choice:?}");
        assert_eq!(body["tools"].as_array().unwrap().len(), 2, "the tools stay");
    }
    assert_eq!(body(&request(None, &["a"])).get("tool_choice"), None);
    let without = body(&request(Some(ToolChoice::Required), &[]));
    assert_eq!(
        (without.get("tools"), without.get("tool_choice")),
        (None, None)
    );
}

#[test]
fn a_server_whose_none_does_not_hold_gets_no_tools() {
    let careful = Settings {
        capabilities: Capabilities::default(),
        ..settings()
    };
    let request = request(Some(ToolChoice::None), &["a"]);
    let text = text(&request, &careful);
    assert!(
        !text.contains("tools") && !text.contains("tool_choice"),
        "{text}"
    );
}

#[test]
fn one_call_at_a_time_is_part_of_the_choice() {
    let mut request = request(None, &["a"]);
    request.parallel_tool_calls = Some(false);
    assert_eq!(
        body(&request)["tool_choice"],
        json!({"type": "auto", "disable_parallel_tool_use": true})
    );
    request.tool_choice = Some(ToolChoice::None);
    assert_eq!(body(&request)["tool_choice"], json!({"type": "none"}));
    request.parallel_tool_calls = Some(true);
    request.tool_choice = None;
    assert_eq!(body(&request).get("tool_choice"), None);
}

#[test]
fn a_forced_tool_that_is_not_shown_is_an_error() {
    let request = request(Some(ToolChoice::Function("x".into())), &["a"]);
    let error = lower(&request, &settings()).err().unwrap();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
    assert!(error.message.contains("`x`"));
}

#[test]
fn thinking_and_form_share_one_member() {
    let mut request = request(None, &[]);
    request.options.reasoning_effort = Some("high".into());
    request.output_format = Some(OutputFormat {
        name: "answer".into(),
        schema: Arc::new(json!({"type": "object", "properties": {}})),
        strict: true,
    });
    let body = body(&request);
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(
        body["output_config"],
        json!({"effort": "high", "format": {"type": "json_schema",
            "schema": {"type": "object", "properties": {}, "additionalProperties": false}}})
    );
}

#[test]
fn the_callers_own_members_take_the_place_of_hafts() {
    let request = ModelRequest {
        options: ModelOptions {
            temperature: Some(0.5),
            extra: json!({"metadata": {"user_id": "u"}, "temperature": 1})
                .as_object()
                .unwrap()
                .clone(),
            ..ModelOptions::default()
        },
        ..request(None, &[])
    };
    let mut settings = settings();
    settings.extra = json!({"temperature": 2, "top_k": 3})
        .as_object()
        .unwrap()
        .clone();
    let text = text(&request, &settings);
    assert!(
        text.ends_with(r#","top_k":3,"metadata":{"user_id":"u"},"temperature":1}"#),
        "{text}"
    );
    assert_eq!(text.matches("temperature").count(), 1);
}

#[test]
fn marks_stand_at_the_end_of_tools_system_and_messages_and_change_nothing_before_them() {
    let mut request = request(None, &["a", "b"]);
    request.instructions = Some("be kind".into());
    let mut grown = Vec::new();
    for turn in 0..4 {
        let marked = text(&request, &settings());
        let mark = std::str::from_utf8(MARK).unwrap();
        assert_eq!(marked.matches(mark).count(), 3, "{marked}");
        let bare = text(
            &request,
            &Settings {
                caching: false,
                ..settings()
            },
        );
        assert_eq!(marked.replace(mark, "}"), bare);
        grown.push(bare);
        let id = format!("c{turn}");
        request.conversation.extend([
            Item::function_call(id.as_str(), "a", "{}"),
            Item::function_call_output(id.as_str(), "ok"),
        ]);
    }
    for pair in grown.windows(2) {
        let prefix = pair[0].strip_suffix("]}").unwrap();
        assert!(pair[1].starts_with(prefix), "{} / {}", pair[0], pair[1]);
    }
}

#[test]
fn no_mark_stands_on_a_thought() {
    let thought = Item::Reasoning(Reasoning {
        content: vec![ContentPart::ReasoningText { text: "hm".into() }],
        encrypted_content: Some("anthropic:sig".into()),
        ..Reasoning::default()
    });
    let request = ModelRequest {
        conversation: vec![Item::user("hi"), Item::assistant("so"), thought].into(),
        ..ModelRequest::default()
    };
    let content = body(&request)["messages"][1]["content"].clone();
    assert_eq!(content[0]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(content[1].get("cache_control"), None);
}

#[test]
fn what_cannot_be_sent_is_an_error_before_anything_is() {
    let video: Item = serde_json::from_value(json!({"type": "message", "role": "user",
        "content": [{"type": "input_video", "video_url": "https://example.com/v"}]}))
    .unwrap();
    let request = ModelRequest {
        conversation: vec![video].into(),
        ..ModelRequest::default()
    };
    let error = lower(&request, &settings()).err().unwrap();
    assert_eq!(error.code.as_deref(), Some("unsupported_content"));
}

/// R14
#[test]
fn each_item_and_each_tool_is_rendered_once() {
    let mut request = request(None, &["a", "b"]);
    request
        .conversation
        .push(Item::function_call("c", "a", "{}"));
    let first = lower(&request, &settings()).unwrap();
    for entry in request.conversation.entries() {
        entry.rendered().get(
            blocks::key(&settings().capabilities),
            || -> Result<blocks::Blocks, ModelError> { panic!("it was rendered already") },
        );
    }
    let second = lower(&request, &settings()).unwrap();
    assert!(Arc::ptr_eq(&first.tools, &second.tools));
    assert_eq!(first.body, second.body);
}

/// The tools of a request, each with how the model gets to see it.
fn loaded_by(tools: &[(&str, Loading)]) -> ToolSpecs {
    let tools = tools.iter().map(|(name, loading)| {
        let tool = ToolDefinition::builder(*name).parameters(json!({"type": "object"}));
        haft_core::ToolSpec::loaded_by(tool.build().unwrap(), *loading)
    });
    ToolSpecs::new(tools.collect())
}

#[test]
fn tools_that_are_held_back_are_marked_and_never_bear_the_cache_mark() {
    use Loading::{Listed, Referenced, Searched};
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let one = |name: &str, rest: &str| {
        format!(r#"{{"name":"{name}","input_schema":{{"type":"object","properties":{{}}}}{rest}}}"#)
    };
    let deferred = r#","defer_loading":true"#;
    let search = r#"{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}"#;
    let marked_search = format!("{}{mark}}}", search.trim_end_matches('}'));
    for (tools, expected) in [
        (
            vec![("a", Listed), ("b", Referenced)],
            vec![one("a", mark), one("b", deferred)],
        ),
        (
            vec![
                ("a", Referenced),
                ("b", Listed),
                ("c", Referenced),
                ("d", Referenced),
            ],
            vec![
                one("a", deferred),
                one("b", mark),
                one("c", deferred),
                one("d", deferred),
            ],
        ),
        (
            vec![("a", Searched), ("b", Listed)],
            vec![search.to_owned(), one("a", deferred), one("b", mark)],
        ),
        // The search itself is the only one that is shown.
        (
            vec![("a", Searched)],
            vec![marked_search, one("a", deferred)],
        ),
    ] {
        let mut request = request(None, &[]);
        request.tools = loaded_by(&tools);
        let text = text(&request, &settings());
        let list = format!(r#""tools":[{}]"#, expected.join(","));
        assert!(text.contains(&list), "{list}\n{text}");
        let plain = Settings {
            caching: false,
            ..settings()
        };
        let unmarked = self::text(&request, &plain);
        assert!(unmarked.contains(&list.replace(mark, "")), "{unmarked}");
    }
}

#[test]
fn a_tool_that_must_be_called_alone_brings_no_search() {
    let mut request = request(Some(ToolChoice::Function("b".into())), &[]);
    request.tools = loaded_by(&[("a", Loading::Searched), ("b", Loading::Listed)]);
    let only = Settings {
        capabilities: Capabilities {
            forced_choice: ForcedChoice::OnlyTool,
            ..Capabilities::default()
        },
        ..settings()
    };
    let body: Value = serde_json::from_str(&text(&request, &only)).unwrap();
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(body["tools"][0]["cache_control"]["type"], "ephemeral");
}
