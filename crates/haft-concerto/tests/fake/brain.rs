//! A small MCP server of the older era: what it answers to a message.

use serde_json::{Value, json};

/// The answer to a message; none to a notification.
pub fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let params = &message["params"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"].as_str().unwrap_or("2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        }),
        "ping" => json!({}),
        "tools/list" => tools(),
        "tools/call" => call(
            params["name"].as_str().unwrap_or_default(),
            &params["arguments"],
        ),
        other => {
            let error = json!({"code": -32601, "message": format!("there is no `{other}`")});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Not in the order of the alphabet: the order is the server's.
fn tools() -> Value {
    let words = json!({"type": "object", "properties": {"words": {"type": "string"},
        "count": {"type": "integer"}}, "required": ["words"]});
    let nothing = json!({"type": "object", "properties": {}});
    json!({"tools": [
        {"name": "search", "description": "Search the web", "inputSchema": words},
        {"name": "fail", "description": "Never works", "inputSchema": nothing},
        {"name": "counted", "description": "Gives a value", "inputSchema": nothing},
        {"name": "secret", "description": "Shows a variable", "inputSchema": nothing},
    ]})
}

fn call(name: &str, arguments: &Value) -> Value {
    let text = |text: String, is_error: bool| json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    match name {
        "search" => text(
            format!("found {} {}", arguments["words"], arguments["count"]),
            false,
        ),
        "counted" => json!({"content": [], "structuredContent": {"count": 3}}),
        "secret" => text(std::env::var("SECRET").unwrap_or_default(), false),
        _ => text("it never works".to_owned(), true),
    }
}
