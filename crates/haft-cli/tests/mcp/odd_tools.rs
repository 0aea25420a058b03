//! Servers with tools whose schemas no validator accepts: each costs itself, at every front door.

use serde_json::{Value, json};

use crate::http::serving;
use crate::kit::{LineClient, fake, folder, mcp, mcp_json, post};

/// Tools between two good ones: those that are repaired, and those that cannot be.
fn tools() -> (Vec<Value>, usize) {
    let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let repaired = [
        json!({"type": ["object", "null"]}),
        json!({"type": "object", "properties": []}),
        json!({"type": "object", "properties": null}),
        json!({"type": "object", "required": true}),
        json!({"type": "object", "description": null}),
        json!({"type": "object", "additionalProperties": "no"}),
        json!({"type": "object", "$schema": "https://example.com/unknown"}),
        json!({"type": "object", "$schema": 4}),
        json!({"type": "object", "allOf": []}),
        json!({"type": "object", "patternProperties": {"(": {}}}),
        property(json!(true)),
        property(json!(null)),
        property(json!("string")),
        property(json!({"type": "int"})),
        property(json!({"type": "any"})),
        property(json!({"type": []})),
        property(json!({"required": true})),
        property(json!({"enum": "a"})),
        property(json!({"items": [{}]})),
        property(json!({"items": null})),
        property(json!({"format": 7})),
        property(json!({"minimum": 1, "exclusiveMinimum": true})),
        property(json!({"minLength": "3"})),
        property(json!({"maxLength": -1})),
        property(json!({"multipleOf": 0})),
        property(json!({"$ref": "#/$defs/missing"})),
        property(json!({"$ref": "#/properties/a"})),
        property(json!({"$ref": 1})),
        property(json!({"pattern": "[^]"})),
        property(json!({"pattern": "(?<q>a)\\k<q>"})),
        property(json!({"pattern": "("})),
        property(json!({"pattern": "a{99999999}"})),
        property(json!({"enum": ["می\u{200c}خواهم", "👩\u{200d}💻", "x\u{202e}"]})),
    ];
    let unusable = [
        json!({"type": "string"}),
        json!("nothing"),
        property(json!({"$ref": "https://example.com/a.json"})),
    ];
    let tool = |name: String, schema: &Value| json!({"name": name, "inputSchema": schema});
    let mut tools = vec![tool("first".into(), &json!({"type": "object"}))];
    let odd = repaired.iter().enumerate();
    tools.extend(odd.map(|(index, schema)| tool(format!("odd_{index}"), schema)));
    let bad = unusable.iter().enumerate();
    tools.extend(bad.map(|(index, schema)| tool(format!("bad_{index}"), schema)));
    let mut results = tool("results".into(), &json!({"type": "object"}));
    results["outputSchema"] = json!({"type": ["object", "null"]});
    results["annotations"] = json!({"readOnlyHint": "yes", "title": 3});
    results["_meta"] = json!("none");
    results["icons"] = json!("x");
    results["title"] = json!([]);
    tools.push(results);
    tools.push(tool("echo".into(), &json!({"type": "object"})));
    let usable = tools.len() - unusable.len();
    (tools, usable)
}

/// A folder whose server `odd` lists them.
fn configured() -> (tempfile::TempDir, usize) {
    let (tools, usable) = tools();
    let folder = folder("");
    let file = folder.path().join("tools.json");
    std::fs::write(&file, Value::from(tools).to_string()).unwrap();
    let server = fake("odd", &format!("modern tools-in={}", file.display()), "");
    crate::kit::configure(folder.path(), &server);
    (folder, usable)
}

/// What the official Python and TypeScript clients demand of a tool, or they lose the whole list.
fn assert_legal(tool: &Value) {
    assert!(tool["name"].is_string(), "{tool}");
    for key in ["title", "description"] {
        assert!(tool.get(key).is_none_or(Value::is_string), "{tool}");
    }
    for key in ["inputSchema", "outputSchema"] {
        let Some(schema) = tool.get(key) else {
            assert_eq!(key, "outputSchema", "{tool}");
            continue;
        };
        assert_eq!(schema["type"], "object", "{tool}");
        let properties = schema.get("properties");
        let are_objects = |it: &Value| {
            it.as_object()
                .is_some_and(|it| it.values().all(Value::is_object))
        };
        assert!(properties.is_none_or(are_objects), "{tool}");
        let required = schema.get("required");
        let are_names = |it: &Value| {
            it.as_array()
                .is_some_and(|it| it.iter().all(Value::is_string))
        };
        assert!(required.is_none_or(are_names), "{tool}");
    }
    let annotations = tool
        .get("annotations")
        .cloned()
        .unwrap_or_else(|| json!({}));
    for (key, value) in annotations.as_object().unwrap() {
        assert!(
            if key == "title" {
                value.is_string()
            } else {
                value.is_boolean()
            },
            "{tool}"
        );
    }
    assert!(tool.get("_meta").is_none_or(Value::is_object), "{tool}");
    assert!(tool.get("icons").is_none_or(Value::is_array), "{tool}");
}

#[test]
fn the_gateway_lists_legal_schemas_only() {
    let (folder, usable) = configured();
    let mut client = LineClient::of_haft(
        folder.path(),
        &["--mode", "passthrough", "--only", "odd"],
        json!({}),
    );
    let mut tools = Vec::new();
    for _ in 0..100 {
        let listed = client.ask("tools/list", json!({}))["result"]["tools"].clone();
        tools = listed.as_array().unwrap().clone();
        // A server that is late arrives by a notice.
        if tools.len() >= usable {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    tools.iter().for_each(assert_legal);
    let names: Vec<&str> = tools.iter().filter_map(|it| it["name"].as_str()).collect();
    let of_server = names.iter().filter(|it| it.starts_with("odd__")).count();
    assert_eq!(of_server, usable, "{names:?}");
    let answer = client.ask(
        "tools/call",
        json!({"name": "odd__echo", "arguments": {"x": 1}}),
    );
    assert_eq!(answer["result"]["content"][0]["text"], "{\"x\":1}");
}

#[test]
fn the_commands_name_what_is_left_out_and_what_was_repaired() {
    let (folder, usable) = configured();
    let listed = mcp_json(folder.path(), &["tools", "odd"]);
    assert_eq!(
        listed.to_string().matches("\"odd__").count(),
        usable,
        "{listed}"
    );
    let (code, out, aside) = mcp(folder.path(), &["tools", "odd"]);
    assert_eq!(code, Some(0), "{out}{aside}");
    let all = format!("{out}{aside}");
    assert!(
        all.contains(
            "tool `bad_0` is left out: `inputSchema` is not of type `object` but `string`"
        ),
        "{all}"
    );
    assert!(
        all.contains("tool `odd_13`: `type` at `/properties/a` is `int`, read as `integer`"),
        "{all}"
    );
}

#[test]
fn a_response_lists_the_others_and_names_what_is_left_out() {
    let (folder, usable) = configured();
    let (_running, address) = serving(folder.path(), &[]);
    let request = json!({
        "model": "offline", "input": "hello",
        "tools": [{"type": "mcp", "server_label": "odd"}],
    });
    let (status, body) = post(
        &address,
        "/v1/responses",
        &[],
        request.to_string().as_bytes(),
    );
    assert_eq!(status, 200, "{body}");
    let response: Value = serde_json::from_str(&body).unwrap();
    let item = &response["output"][0];
    assert_eq!(item["type"], "mcp_list_tools", "{response}");
    assert_eq!(item["tools"].as_array().unwrap().len(), usable);
    let error = item["error"].as_str().unwrap();
    for name in ["bad_0", "bad_1", "bad_2"] {
        assert!(error.contains(name), "{error}");
    }
    assert!(!error.contains("odd_"), "{error}");
}
