//! Content that no strict parser accepts, and large content: each value costs itself.

use serde_json::{Value, json};

use crate::http::serving;
use crate::kit::{LineClient, fake, folder, mcp};

#[test]
fn values_that_cannot_be_read_cost_themselves() {
    let folder = folder(&fake("odd", "modern", ""));
    let mut client = LineClient::of_haft(folder.path(), &["--mode", "passthrough"], json!({}));
    client.ask("tools/list", json!({}));
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    for (text, expected) in [
        (r#"{"content":[{"type":"text","text":"a\ud800b"}]}"#.to_owned(), json!("a\u{fffd}b")),
        (r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":NaN,"b":1e400,"c":-Infinity}}"#.to_owned(), json!("x")),
        (format!(r#"{{"content":[{{"type":"text","text":"x"}}],"structuredContent":{{"a":{deep}}}}}"#), json!("x")),
        // A byte that is not UTF-8.
        (r#"{"content":[{"type":"text","text":"a%FFb"}]}"#.to_owned(), json!("a\u{fffd}b")),
    ] {
        let call = json!({"name": "odd__verbatim", "arguments": {"result": text}});
        let answer = client.ask("tools/call", call);
        assert_eq!(answer["result"]["content"][0]["text"], expected, "{answer}");
    }
}

#[test]
fn one_unreadable_description_costs_itself() {
    let folder = folder(&fake("odd", "modern surrogate-list", ""));
    let (code, out, aside) = mcp(folder.path(), &["tools", "odd"]);
    assert_eq!(code, Some(0), "{out}{aside}");
    for name in ["odd__good", "odd__surrogate", "odd__endless"] {
        assert!(out.contains(name), "{out}{aside}");
    }
}

#[test]
fn images_of_ten_mebibytes_pass() {
    let folder = folder(&format!(
        "[gateway]\nmode = \"passthrough\"\n{}",
        fake("big", "modern", "")
    ));
    let bytes = 10 * 1024 * 1024 / 3 * 4;
    let mut client = LineClient::of_haft(folder.path(), &[], json!({}));
    client.ask("tools/list", json!({}));
    let call = json!({"name": "big__image", "arguments": {"bytes": bytes}});
    let answer = client.ask("tools/call", call);
    let data = answer["result"]["content"][0]["data"]
        .as_str()
        .map(str::len);
    assert_eq!(data, Some(bytes), "{}", &answer.to_string()[..200]);
    // Arguments of that size pass too.
    let echo = json!({"name": "big__echo", "arguments": {"image": "A".repeat(bytes)}});
    let answer = client.ask("tools/call", echo.clone());
    assert!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .len()
            > bytes
    );
    // Larger ones fail with the limit and the key that raises it.
    let answer = client.ask(
        "tools/call",
        json!({"name": "big__image", "arguments": {"bytes": 17 << 20}}),
    );
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("limit 16 MiB") && text.contains("max_message_bytes"),
        "{text}"
    );
    let (_running, address) = serving(folder.path(), &[]);
    let message: Value = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "big__echo", "arguments": {"image": "A".repeat(bytes)}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        },
    }});
    let headers = [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: big__echo",
    ];
    let (status, body) =
        crate::kit::post(&address, "/mcp", &headers, message.to_string().as_bytes());
    assert_eq!(
        status,
        200,
        "{}",
        body.chars().take(300).collect::<String>()
    );
    assert!(
        body.len() > bytes,
        "{}",
        body.chars().take(300).collect::<String>()
    );
}
