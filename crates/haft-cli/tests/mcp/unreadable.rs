//! Messages to the gateway that cannot be read are answered, over standard input and over HTTP.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::http::serving;
use crate::kit::{folder, post};
use crate::support::haft;

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;

/// Messages, and the `id` and code of their answers.
fn messages() -> Vec<(Vec<u8>, Value, i64)> {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"clock","arguments":{{"a":{}{}}}}}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    let call = |id: u32, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{MODERN},"name":"clock","arguments":{arguments}}}}}"#
        )
    };
    vec![
        (deep.into_bytes(), json!(1), -32700),
        (call(2, "[]").into_bytes(), json!(2), -32602),
        (call(3, "\"{}\"").into_bytes(), json!(3), -32602),
        (
            br#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":7}"#.to_vec(),
            json!(4),
            -32602,
        ),
        (
            br#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#.to_vec(),
            json!(5),
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":6,"method":"ping""#.to_vec(),
            json!(6),
            -32700,
        ),
        (b"[1]".to_vec(), Value::Null, -32600),
        (b"hello".to_vec(), Value::Null, -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"p\xff\"}".to_vec(),
            json!(7),
            -32700,
        ),
    ]
}

#[test]
fn every_line_is_answered() {
    for is_modern in [false, true] {
        let folder = folder("");
        let mut command = haft(folder.path(), &["mcp", "serve"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut ask = |line: &[u8]| -> Value {
            input.write_all(line).unwrap();
            input.write_all(b"\n").unwrap();
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        };
        let first = if is_modern {
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{{{MODERN}}}}}"#)
        } else {
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
            }})
            .to_string()
        };
        // Also before anything else.
        assert_eq!(ask(b"hello")["error"]["code"], -32700);
        assert_eq!(ask(first.as_bytes())["id"], 0);
        for (message, id, code) in messages() {
            let answer = ask(&message);
            let shown = String::from_utf8_lossy(&message[..message.len().min(100)]).into_owned();
            let found = answer.get("id").cloned().unwrap_or_default();
            assert_eq!(
                (found, &answer["error"]["code"]),
                (id, &json!(code)),
                "{shown}: {answer}"
            );
        }
        let mut long =
            br#"{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":""#.to_vec();
        long.resize(17 * 1024 * 1024, b'x');
        long.extend(br#""}}"#);
        let answer = ask(&long);
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("long"), &json!(-32600))
        );
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(text.contains("limit 16 MiB"), "{text}");
        let list = if is_modern {
            first
        } else {
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#.into()
        };
        assert!(ask(list.as_bytes())["result"]["tools"].is_array());
        drop(input);
        child.wait().unwrap();
    }
}

#[test]
fn every_request_of_http_is_answered() {
    let folder = folder("[gateway]\n");
    let (_running, address) = serving(folder.path(), &[]);
    for headers in [
        &[][..],
        &[
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: tools/call",
            "mcp-name: clock",
        ],
    ] {
        for (message, id, code) in messages() {
            let (status, body) = post(&address, "/mcp", headers, &message);
            assert_eq!(status, 400, "{body}");
            let answer: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&id, &json!(code)),
                "{body}"
            );
        }
    }
    let (status, body) = post(&address, "/mcp", &[], &vec![b' '; 17 * 1024 * 1024]);
    assert_eq!(status, 413, "{body}");
    assert!(body.contains("limit 16 MiB"), "{body}");
}
