use super::*;
use haft_core::{Conversation, Item, ModelErrorKind, OutputFormat, ToolDefinition, ToolSpecs};

fn settings() -> Settings {
    Settings {
        model: "gpt-x".into(),
        capabilities: Capabilities {
            strict_schemas: true,
            forced_choice: ForcedChoice::Named,
            none_choice: true,
            ..Capabilities::default()
        },
        store: false,
        sealed_thoughts: false,
        thoughts_back: ThoughtsBack::Sealed,
        extra: Map::new(),
    }
}

fn request(choice: Option<ToolChoice>) -> ModelRequest {
    let tool = |name: &str, strict: Option<bool>| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let mut builder = ToolDefinition::builder(name).parameters(schema);
        if let Some(strict) = strict {
            builder = builder.strict(strict);
        }
        builder.build().unwrap()
    };
    let tools: ToolSpecs = [tool("a", None), tool("b", Some(true))]
        .into_iter()
        .collect();
    ModelRequest {
        conversation: Conversation::from("hi"),
        tools,
        tool_choice: choice,
        ..ModelRequest::default()
    }
}

fn text(request: &ModelRequest, settings: &Settings) -> String {
    let body = lower(request, settings).unwrap().body;
    String::from_utf8(body.to_vec()).unwrap()
}

fn body(request: &ModelRequest, settings: &Settings) -> Value {
    serde_json::from_str(&text(request, settings)).unwrap()
}

fn names(body: &Value) -> Vec<&str> {
    let tools = body.get("tools").and_then(Value::as_array);
    let tools = tools.into_iter().flatten();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn the_smallest_request_says_only_what_it_must() {
    let mut request = request(None);
    request.tools = ToolSpecs::default();
    request.tool_choice = Some(ToolChoice::Auto);
    request.parallel_tool_calls = Some(true);
    request.options.stream = Streaming::Whole;
    assert_eq!(
        text(&request, &settings()),
        r#"{"model":"gpt-x","store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}"#
    );
}

#[test]
fn strict_is_always_said() {
    let body = body(&request(None), &settings());
    assert_eq!(
        (&body["tools"][0]["strict"], &body["tools"][1]["strict"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        body["tools"][1]["parameters"]["additionalProperties"],
        json!(false)
    );
    let lenient = Settings {
        capabilities: Capabilities::default(),
        ..settings()
    };
    let body = self::body(&request(None), &lenient);
    assert_eq!(body["tools"][1]["strict"], json!(false));
}

#[test]
fn every_choice_has_its_form() {
    for (choice, expected) in [
        (json!("auto"), json!("auto")),
        (json!("required"), json!("required")),
        (json!("none"), json!("none")),
        (
            json!({"type": "function", "name": "a"}),
            json!({"type": "function", "name": "a"}),
        ),
        (
            json!({"type": "allowed_tools", "mode": "required", "tools": [
                {"type": "function", "name": "a"}, {"type": "function", "name": "left_out"}]}),
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "a"}]}),
        ),
        (
            json!({"type": "allowed_tools", "mode": "none", "tools": [{"type": "function", "name": "a"}]}),
            json!("none"),
        ),
    ] {
        let choice = serde_json::from_value(choice).unwrap();
        let body = body(&request(Some(choice)), &settings());
        assert_eq!(body["tool_choice"], expected);
        assert_eq!(names(&body), ["a", "b"], "the tools stay");
    }
    assert_eq!(body(&request(None), &settings()).get("tool_choice"), None);
}

#[test]
fn servers_that_know_fewer_choices_get_what_they_know() {
    let careful = Settings {
        capabilities: Capabilities::default(),
        ..settings()
    };
    let forced = request(Some(ToolChoice::Function("b".into())));
    let body = self::body(&forced, &careful);
    assert_eq!(
        (names(&body), &body["tool_choice"]),
        (vec!["b"], &json!("required"))
    );
    let none = self::body(&request(Some(ToolChoice::None)), &careful);
    assert_eq!((names(&none), none.get("tool_choice")), (vec![], None));
    let allowed = self::body(&request(Some(ToolChoice::allowed(["a"]))), &careful);
    assert_eq!(
        (names(&allowed), &allowed["tool_choice"]),
        (vec!["a", "b"], &json!("auto"))
    );
    let mute = Settings {
        capabilities: Capabilities {
            forced_choice: ForcedChoice::Unsupported,
            ..Capabilities::default()
        },
        ..settings()
    };
    let body = self::body(&request(Some(ToolChoice::Required)), &mute);
    assert_eq!(
        (names(&body), body.get("tool_choice")),
        (vec!["a", "b"], None)
    );
}

#[test]
fn a_forced_tool_that_is_not_shown_is_an_error() {
    let request = request(Some(ToolChoice::Function("x".into())));
    let error = lower(&request, &settings()).err().unwrap();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
    assert!(error.message.contains("`x`"));
}

#[test]
fn sealed_thoughts_are_asked_for_when_the_model_thinks_and_nothing_is_stored() {
    let include = |effort: Option<&str>, store: bool, sealed_thoughts: bool| {
        let mut request = request(None);
        request.options.reasoning_effort = effort.map(Into::into);
        let settings = Settings {
            store,
            sealed_thoughts,
            ..settings()
        };
        body(&request, &settings).get("include").is_some()
    };
    assert!(include(Some("low"), false, false));
    assert!(include(None, false, true));
    assert!(!include(None, false, false));
    assert!(!include(Some("none"), false, false));
    assert!(!include(Some("low"), true, true));
}

#[test]
fn wishes_are_passed_on() {
    let mut request = request(None);
    request.instructions = Some("be kind".into());
    request.parallel_tool_calls = Some(false);
    request.options.max_output_tokens = Some(99);
    request.options.reasoning_effort = Some("high".into());
    request.output_format = Some(OutputFormat {
        name: "answer".into(),
        schema: Arc::new(json!({"type": "object", "properties": {"a": {"type": "string"}}})),
        strict: true,
    });
    request.options.extra = json!({"prompt_cache_key": "k"})
        .as_object()
        .unwrap()
        .clone();
    let mut body = body(&request, &settings());
    for key in ["tools", "input"] {
        body.as_object_mut().unwrap().shift_remove(key);
    }
    assert_eq!(
        body,
        json!({
            "model": "gpt-x", "stream": true, "store": false,
            "include": ["reasoning.encrypted_content"], "max_output_tokens": 99,
            "reasoning": {"effort": "high"},
            "text": {"format": {"type": "json_schema", "name": "answer",
                "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
                "strict": false}},
            "instructions": "be kind", "parallel_tool_calls": false, "prompt_cache_key": "k"
        })
    );
}

#[test]
fn a_longer_conversation_repeats_the_shorter_one() {
    let mut request = request(None);
    let mut before = text(&request, &settings());
    for turn in 0..4 {
        let id = format!("c{turn}");
        request.conversation.extend([
            Item::function_call(id.as_str(), "a", "{}"),
            Item::function_call_output(id.as_str(), "ok"),
        ]);
        let after = text(&request, &settings());
        assert!(after.starts_with(before.strip_suffix("]}").unwrap()));
        before = after;
    }
}

/// R14
#[test]
fn each_item_and_each_tool_is_rendered_once() {
    let request = request(None);
    let first = lower(&request, &settings()).unwrap();
    for entry in request.conversation.entries() {
        let key = ThoughtsBack::Sealed.key(&settings().capabilities);
        entry.rendered().get(key, || -> items::Rendered {
            panic!("it was rendered already")
        });
    }
    let second = lower(&request, &settings()).unwrap();
    assert!(Arc::ptr_eq(&first.tools, &second.tools));
    assert_eq!(first.body, second.body);
}

#[test]
fn tools_that_the_provider_searches_are_marked_and_its_search_stands_in_front() {
    let tool = |name: &str, loading: Loading| {
        let tool = ToolDefinition::builder(name).parameters(json!({"type": "object"}));
        haft_core::ToolSpec::loaded_by(tool.build().unwrap(), loading)
    };
    let mut request = request(Some(ToolChoice::Auto));
    request.tools = ToolSpecs::new(vec![
        tool("a", Loading::Listed),
        tool("b", Loading::Searched),
    ]);
    let sent = text(&request, &settings());
    assert!(
        sent.contains(
            r#""tools":[{"type":"tool_search"},{"type":"function","name":"a","parameters":{"type":"object","properties":{}},"strict":false},{"type":"function","name":"b","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}],"tool_choice":"auto""#
        ),
        "{sent}"
    );
    // Every other way is none of this API's.
    request.tools = ToolSpecs::new(vec![tool("a", Loading::Referenced)]);
    let sent = text(&request, &settings());
    assert!(
        !sent.contains("defer_loading") && !sent.contains("tool_search"),
        "{sent}"
    );
}

#[test]
fn what_the_provider_searched_goes_back_untouched_and_notes_of_references_stay() {
    let found = json!({"type": "tool_search_output", "id": "tso_1", "execution": "server",
        "call_id": null, "status": "completed", "tools": [{"type": "function", "name": "b"}]});
    let mut request = request(None);
    request.conversation = Conversation::from(vec![
        serde_json::from_value(found.clone()).unwrap(),
        Item::FunctionCallOutput(haft_core::FunctionCallOutput::new("c", "o").referring_to(["b"])),
    ]);
    let sent = text(&request, &settings());
    assert!(sent.contains(&found.to_string()), "{sent}");
    assert!(!sent.contains("tool_references"), "{sent}");
}
