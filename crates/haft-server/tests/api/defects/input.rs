//! Input reaches the model (lines 1 to 8).

use haft_core::{ForcedChoice, Item, Role};
use haft_models::testing::{call, say};
use haft_models::{CapabilityOverrides, OpenAiChat};
use serde_json::{Value, json};

use crate::support::{BACKENDS, Backend, Setup, backend, function, serve};

/// What the backend was told, as plain text.
fn told(body: &Value) -> String {
    let mut told = body.clone();
    // Not what was said.
    for key in ["tools", "model"] {
        if let Some(members) = told.as_object_mut() {
            members.shift_remove(key);
        }
    }
    told.to_string()
}

/// §11.1
#[tokio::test]
async fn strings_reach_every_backend_word_for_word() {
    const TEXT: &str = "  Say \"höla\" \\ now\n\tplease 🙂 ";
    for kind in BACKENDS {
        let behind = backend([say("one"), say("two")]).await;
        let served = kind.setup(&behind).serve().await;
        served.create(json!({"input": TEXT})).await;
        let input = json!([{"role": "user", "content": TEXT}]);
        served.create(json!({"input": input})).await;
        let received = behind.received();
        for request in &received {
            assert_eq!(request.view.user.as_deref(), Some(TEXT), "{kind:?}");
        }
        assert_eq!(received.len(), 2);
    }
}

/// §11.2
#[tokio::test]
async fn items_without_type_are_messages() {
    let (served, model) = serve([say("ok")]).await;
    let input = json!([
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "second"},
        {"type": null, "role": "user", "content": [{"type": "input_text", "text": "third"}]},
    ]);
    served.create(json!({"input": input})).await;
    let items: Vec<_> = model.received()[0].conversation.items().cloned().collect();
    let said: Vec<_> = items.iter().map(Item::text).collect();
    assert_eq!(said, ["first", "second", "third"]);
}

/// §11.3
#[tokio::test]
async fn messages_of_the_host_reach_the_backend_in_their_place() {
    let input = json!([
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
        {"role": "developer", "content": "be short"},
        {"role": "user", "content": "go on"},
    ]);
    for kind in BACKENDS {
        let behind = backend([say("ok")]).await;
        let served = kind.setup(&behind).serve().await;
        served.create(json!({"input": input})).await;
        let told = told(&behind.received()[0].body);
        let places: Vec<_> = ["hello", "be short", "go on"]
            .map(|words| {
                told.find(words)
                    .unwrap_or_else(|| panic!("{kind:?}: {told}"))
            })
            .into();
        assert!(told.contains("be kind"), "{kind:?}: {told}");
        assert!(places.is_sorted(), "{kind:?}: {told}");
    }
}

const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// §11.4
#[tokio::test]
async fn images_and_files_reach_the_backend_or_are_refused_by_name() {
    let parts = [
        json!({"type": "input_image", "image_url": PIXEL}),
        json!({"type": "input_file", "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0xLjQ="}),
        json!({"type": "input_video", "video_url": "https://example.org/a.mp4"}),
    ];
    for kind in BACKENDS {
        for part in &parts {
            let behind = backend([say("ok")]).await;
            let served = kind.setup(&behind).serve().await;
            let input = json!([{"role": "user", "content": [
                {"type": "input_text", "text": "look"}, part,
            ]}]);
            let answer = served.post("/responses", json!({"input": input})).await;
            let payload = ["image_url", "file_data", "video_url"];
            let payload = payload.iter().find_map(|key| part[*key].as_str()).unwrap();
            let payload = payload.rsplit(',').next().unwrap();
            if answer.status == 200 {
                let told = behind.received()[0].body.to_string();
                assert!(told.contains(payload), "{kind:?} {part}: {told}");
                continue;
            }
            let (status, code, param) = answer.error();
            assert_eq!((status, code), (400, "unsupported_content"), "{kind:?}");
            let place = param.unwrap_or_default();
            assert!(place.starts_with("input[0].content[1]"), "{place}");
            let kind = part["type"].as_str().unwrap();
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(kind), "{message}");
            assert_eq!(behind.received().len(), 0);
        }
    }
}

/// §11.4
#[tokio::test]
async fn images_in_the_output_of_a_tool_reach_the_backend_or_are_refused_by_name() {
    let input = json!([
        {"role": "user", "content": "look"},
        {"type": "function_call", "call_id": "c1", "name": "photo", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [
            {"type": "input_text", "text": "here"},
            {"type": "input_image", "image_url": PIXEL},
        ]},
    ]);
    for kind in BACKENDS {
        let behind = backend([say("ok")]).await;
        let served = kind.setup(&behind).serve().await;
        let body = json!({"input": input, "tools": [function("photo")]});
        let answer = served.post("/responses", body).await;
        if answer.status == 200 {
            let told = behind.received()[0].body.to_string();
            let payload = PIXEL.rsplit(',').next().unwrap();
            assert!(told.contains(payload), "{kind:?}: {told}");
            assert!(told.contains("here"), "{kind:?}: {told}");
        } else {
            let (status, code, param) = answer.error();
            assert_eq!((status, code), (400, "unsupported_content"), "{kind:?}");
            assert_eq!(param, Some("input[2].output[1]"), "{kind:?}");
        }
    }
}

/// §11.5
#[tokio::test]
async fn settings_are_forwarded_in_the_words_of_the_backend() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false});
    let body = json!({
        "input": "go", "tools": [function("look"), function("listen")],
        "tool_choice": {"type": "function", "name": "look"},
        "temperature": 0, "top_p": 0.5, "presence_penalty": 1, "frequency_penalty": -1,
        "max_output_tokens": 99, "parallel_tool_calls": false,
        "reasoning": {"effort": "low"}, "safety_identifier": "user-7", "prompt_cache_key": "key-7",
        "text": {"format": {"type": "json_schema", "name": "number", "schema": schema, "strict": true}},
    });
    let behind = backend([call("look", json!({}))]).await;
    // A server that nobody knows is forced by showing it nothing else; this one takes a name.
    let model = OpenAiChat::new("m")
        .base_url(&behind.base_url())
        .api_key("k")
        .with_capabilities(CapabilityOverrides {
            forced_choice: Some(ForcedChoice::Named),
            structured_output: Some(true),
            structured_output_with_tools: Some(true),
            parallel_calls: Some(true),
            ..CapabilityOverrides::default()
        });
    let served = Setup::of(model).serve().await;
    served.create(body.clone()).await;
    let told = behind.received()[0].body.clone();
    assert_eq!(
        told["tool_choice"],
        json!({"type": "function", "function": {"name": "look"}})
    );
    assert_eq!(told["tools"][0]["function"]["name"], "look");
    let sent = [
        &told["temperature"],
        &told["top_p"],
        &told["presence_penalty"],
    ];
    let sent: Vec<_> = sent.iter().map(|number| number.as_f64().unwrap()).collect();
    assert_eq!(sent, [0.0, 0.5, 1.0]);
    assert_eq!(told["frequency_penalty"].as_f64(), Some(-1.0));
    assert_eq!(told["reasoning_effort"], "low");
    assert_eq!(told["parallel_tool_calls"], false);
    assert_eq!(told["response_format"]["type"], "json_schema");
    assert_eq!(
        told["response_format"]["json_schema"]["schema"]["required"],
        json!(["n"])
    );
    let limit = told
        .get("max_completion_tokens")
        .or_else(|| told.get("max_tokens"));
    assert_eq!(limit, Some(&json!(99)));

    let behind = backend([call("look", json!({}))]).await;
    let served = Backend::Responses.setup(&behind).serve().await;
    served.create(body.clone()).await;
    let told = behind.received()[0].body.clone();
    assert_eq!(
        told["tool_choice"],
        json!({"type": "function", "name": "look"})
    );
    assert_eq!(told["reasoning"]["effort"], "low");
    assert_eq!(told["text"]["format"]["name"], "number");
    assert_eq!(told["max_output_tokens"], 99);
    assert_eq!(told["temperature"].as_f64(), Some(0.0));
    assert_eq!(told["prompt_cache_key"], "key-7");
    assert_eq!(told["safety_identifier"], "user-7");

    let behind = backend([call("look", json!({}))]).await;
    let served = Backend::Anthropic.setup(&behind).serve().await;
    let mut body = body;
    for key in ["reasoning", "presence_penalty", "frequency_penalty", "text"] {
        body.as_object_mut().unwrap().shift_remove(key);
    }
    served.create(body).await;
    let told = behind.received()[0].body.clone();
    assert_eq!(told["tool_choice"]["type"], "tool");
    assert_eq!(told["tool_choice"]["name"], "look");
    assert_eq!(told["max_tokens"], 99);
    assert_eq!(told["temperature"].as_f64(), Some(0.0));
}

/// §11.5: what was not given is not sent.
#[tokio::test]
async fn sampling_settings_are_sent_only_if_they_are_given() {
    for kind in BACKENDS {
        let behind = backend([say("ok")]).await;
        let served = kind.setup(&behind).serve().await;
        served.create(json!({"input": "go"})).await;
        let told = behind.received()[0].body.clone();
        for key in [
            "temperature",
            "top_p",
            "presence_penalty",
            "frequency_penalty",
            "tools",
        ] {
            assert!(told.get(key).is_none(), "{kind:?} {key}: {told}");
        }
    }
}

/// §11.6
#[tokio::test]
async fn values_out_of_range_and_unknown_tools_are_refused() {
    let (served, model) = serve([]).await;
    let cases = [
        (
            json!({"temperature": 9}),
            "decimal_above_max_value",
            "temperature",
        ),
        (json!({"top_p": 1.1}), "decimal_above_max_value", "top_p"),
        (
            json!({"max_output_tokens": 1}),
            "integer_below_min_value",
            "max_output_tokens",
        ),
        (
            json!({"truncation": "maybe"}),
            "invalid_value",
            "truncation",
        ),
        (
            json!({"tools": [function("a")], "tool_choice": {"type": "function", "name": "b"}}),
            "tool_not_found",
            "tool_choice",
        ),
        (
            json!({"tools": [{"type": "telepathy"}]}),
            "unsupported_tool",
            "tools[0].type",
        ),
        (
            json!({"include": ["everything"]}),
            "invalid_value",
            "include[0]",
        ),
    ];
    for (mut body, code, param) in cases {
        body["input"] = "go".into();
        let answer = served.post("/responses", body.clone()).await;
        assert_eq!(answer.error(), (400, code, Some(param)), "{body}");
    }
    assert_eq!(model.received().len(), 0);
}

/// §11.7
#[tokio::test]
async fn an_output_without_its_call_is_refused() {
    let (served, model) = serve([]).await;
    let input = json!([
        {"role": "user", "content": "go"},
        {"type": "function_call_output", "call_id": "call_nobody", "output": "x"},
    ]);
    for stream in [false, true] {
        let body = json!({"input": input, "stream": stream});
        let answer = served.post("/responses", body).await;
        let expected = (400, "tool_call_not_found", Some("input[1].call_id"));
        assert_eq!(answer.error(), expected);
    }
    assert_eq!(model.received().len(), 0);
}

/// §11.8
#[tokio::test]
async fn parallel_calls_go_back_to_a_chat_backend_as_one_message() {
    let first = call("look", json!({"text": "a"}))
        .with_id("call_a")
        .call("look", json!({"text": "b"}))
        .with_id("call_b");
    let behind = backend([first, say("done")]).await;
    let served = Backend::Chat.setup(&behind).serve().await;
    let tools = json!([function("look")]);
    let asked = served.create(json!({"input": "go", "tools": tools})).await;
    // In another order than the calls: that is free.
    let outputs = json!([
        {"type": "function_call_output", "call_id": "call_b", "output": "B"},
        {"type": "function_call_output", "call_id": "call_a", "output": "A"},
    ]);
    served
        .create(json!({"previous_response_id": asked["id"], "input": outputs, "tools": tools}))
        .await;
    let told = behind.received()[1].body.clone();
    let messages = told["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool"]);
    let calls = messages[1]["tool_calls"].as_array().unwrap();
    let ids: Vec<_> = calls.iter().map(|call| &call["id"]).collect();
    assert_eq!(ids, ["call_a", "call_b"]);
    let mut answered: Vec<_> = messages[2..]
        .iter()
        .map(|message| {
            (
                message["tool_call_id"].as_str().unwrap(),
                message["content"].clone(),
            )
        })
        .collect();
    answered.sort_by_key(|(id, _)| *id);
    assert_eq!(answered, [("call_a", json!("A")), ("call_b", json!("B"))]);
}

/// §11.3, in this process: the roles themselves.
#[tokio::test]
async fn roles_stay_as_they_are() {
    let (served, model) = serve([say("ok")]).await;
    let input = json!([
        {"role": "developer", "content": "d"}, {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
    ]);
    served.create(json!({"input": input})).await;
    let request = &model.received()[0];
    let roles = request.conversation.items().map(|item| match item {
        Item::Message(message) => message.role,
        _ => panic!("{item:?}"),
    });
    assert!(roles.eq([Role::Developer, Role::System, Role::User]));
}
