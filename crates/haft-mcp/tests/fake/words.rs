//! What the hostile server says.

use serde_json::{Value, json};

use super::brain::Sink;

pub fn first_line(command: &mut std::process::Command) -> String {
    use std::io::{BufRead, BufReader};
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    child.wait().unwrap();
    line.trim().to_owned()
}

pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name}."), "inputSchema": {"type": "object"}})
}

/// One of each of the known ways to be wrong, between two good ones.
pub fn malformed() -> Vec<Value> {
    let mut tools = vec![tool("good_one")];
    let mut with = |name: &str, key: &str, value: Value| {
        let mut tool = tool(name);
        tool[key] = value;
        tools.push(tool);
    };
    with("null_schema", "inputSchema", Value::Null);
    with("true_schema", "inputSchema", json!(true));
    with("text_hint", "annotations", json!({"readOnlyHint": "true"}));
    with("text_icons", "icons", json!("x"));
    with("number_description", "description", json!(7));
    with(
        "untyped_schema",
        "inputSchema",
        json!({"properties": {"a": {}}}),
    );
    with("", "title", json!("nameless"));
    tools.push(json!({"name": "no_schema"}));
    tools.push(json!("not a tool"));
    tools.push(tool("good_two"));
    tools
}

/// Tools whose arguments become headers, one of them wrongly.
pub fn mirrors() -> Vec<Value> {
    let mirrored = |name: &str, header: &str| {
        let region = json!({"type": "string", "x-mcp-header": header});
        json!({"name": name, "inputSchema": {"type": "object", "properties": {"region": region}}, "annotations": {"readOnlyHint": "x"}})
    };
    vec![
        mirrored("mirrored", "Region"),
        mirrored("wrong", "not a token"),
        tool("echo"),
    ]
}

pub fn say(sink: &Sink, message: &Value) {
    sink(message.to_string().into_bytes());
}

pub fn answer(sink: &Sink, id: &Value, result: &Value) {
    say(sink, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

pub fn text(sink: &Sink, id: &Value, text: &str) {
    answer(
        sink,
        id,
        &json!({"content": [{"type": "text", "text": text}]}),
    );
}

pub fn refuse(sink: &Sink, id: &Value, code: i64, message: &str) {
    say(
        sink,
        &json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
    );
}
