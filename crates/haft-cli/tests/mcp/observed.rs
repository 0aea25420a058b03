//! What an operator sees of calls through the gateway: log, metrics, status and the record.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::post;
use crate::kit::{LONG, LineClient, fake, folder, mcp, mcp_json};
use crate::support::{Running, haft, probe, request_with};

/// Calls a tool at `/mcp` in the modern era, without a session.
fn call(address: &str, key: &str, tool: &str, arguments: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta}});
    let headers = format!(
        "authorization: Bearer {key}\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: {tool}\r\n"
    );
    let (_, answer) = post(address, &headers, &body);
    let answer = answer.split_once("\r\n\r\n").unwrap().1;
    let json = answer.find("{\"").map_or("", |at| &answer[at..]);
    let json = json.lines().next().unwrap_or_default();
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

fn get(address: &str, key: &str, path: &str) -> String {
    let headers = format!("authorization: Bearer {key}\r\n");
    let (status, body) = request_with(address, "GET", path, &headers, "");
    assert_eq!(status, 200, "{path}: {body}");
    body
}

fn get_json(address: &str, key: &str, path: &str) -> Value {
    let body = get(address, key, path);
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// Makes a key of this tenant.
fn key(folder: &Path, tenant: &str) -> String {
    let (code, out, aside) = crate::support::told(
        haft(folder, &["keys", "add", tenant, "--tenant", tenant]),
        "",
    );
    assert_eq!(code, Some(0), "{aside}");
    out.trim().to_owned()
}

/// Each call has one line, without content.
fn check_log(log_path: &Path) {
    let log = std::fs::read_to_string(log_path).unwrap();
    let line = log
        .lines()
        .find(|it| it.contains("tool call") && it.contains("succeeded"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    for part in [
        "endpoint=/mcp",
        "tenant=\"acme\"",
        "server=\"zeta\"",
        "tool=\"echo\"",
        "ms=",
        "bytes_in=",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!log.contains("argument-marker"), "{log}");
    assert!(
        log.contains("outcome=\"rejected\" error=\"unknown_tool\""),
        "{log}"
    );
}

/// Calls are counted by server and tool, and names of clients become no labels.
fn check_metrics(address: &str) {
    let (_, metrics) = probe(address, "/metrics");
    let counted = "haft_mcp_calls_total{server=\"zeta\",tool=\"echo\",outcome=\"succeeded\",door=\"gateway\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    assert!(
        metrics.contains("server=\"other\",tool=\"other\",outcome=\"rejected\""),
        "{metrics}"
    );
    assert!(
        !metrics.contains("no_such_tool"),
        "a client's word is no label"
    );
    assert!(
        metrics.contains("haft_mcp_server_up{server=\"zeta\"} 1"),
        "{metrics}"
    );
    assert!(
        metrics.contains("haft_mcp_server_connections{server=\"zeta\"} 1"),
        "{metrics}"
    );
    assert!(
        metrics.contains("haft_mcp_call_duration_seconds_count{server=\"zeta\",tool=\"echo\"} 1")
    );
}

/// Servers are there with their state, and the broken one with its reason.
fn check_servers(address: &str, own: &str) {
    let servers = get_json(address, own, "/haft/mcp");
    let zeta = &servers["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "zeta")
        .unwrap();
    assert_eq!(
        (&zeta["state"], &zeta["calls"]),
        (&json!("connected"), &json!(1)),
        "{zeta}"
    );
    let deadline = Instant::now() + LONG;
    loop {
        let servers = get_json(address, own, "/haft/mcp");
        let broken = servers["data"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == "broken");
        let broken = broken.unwrap();
        if broken["state"] == "unavailable" {
            assert!(
                broken["reason"]
                    .as_str()
                    .unwrap()
                    .contains("cannot be started"),
                "{broken}"
            );
            assert!(!broken.to_string().contains("/nonexistent"), "{broken}");
            break;
        }
        assert!(Instant::now() < deadline, "{broken}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A tenant sees its own calls and no others.
fn check_record(address: &str, own: &str, foreign: &str) {
    let deadline = Instant::now() + LONG;
    let calls = loop {
        let calls = get_json(address, own, "/haft/mcp/calls");
        if calls["data"].as_array().unwrap().len() == 3 || Instant::now() > deadline {
            break calls;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let newest = &calls["data"][0];
    assert_eq!(
        (&newest["outcome"], &newest["error"]),
        (&json!("rejected"), &json!("unknown_tool"))
    );
    let first = &calls["data"][1];
    assert_eq!(
        (&first["server"], &first["tool"]),
        (&json!("zeta"), &json!("echo")),
        "{calls}"
    );
    assert!(first.get("arguments").is_none(), "{first}");
    assert_eq!(
        get_json(address, foreign, "/haft/mcp/calls")["data"],
        json!([])
    );
    let theirs = get_json(address, foreign, "/haft/mcp");
    assert!(
        theirs["data"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["calls"] == 0),
        "{theirs}"
    );
}

#[test]
fn gateway_calls_are_in_log_metrics_status_and_record_of_their_tenant() {
    let folder = folder(&format!(
        "[gateway]\nmode = \"passthrough\"\n{}\n[mcp.broken]\ncommand = \"/nonexistent/server\"\n",
        fake("zeta", "modern", "")
    ));
    let (own, foreign) = (key(folder.path(), "acme"), key(folder.path(), "other"));
    let log_path = folder.path().join("log");
    let command = haft(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let (running, lines) =
        Running::start_logging_to(Stdio::from(File::create(&log_path).unwrap()), command);
    let url = lines[0].strip_prefix("listening on ").unwrap().to_owned();
    let address = url.trim_start_matches("http://");

    // The server is started for its own tools only, so that its failure shows.
    call(address, &own, "broken__find", json!({}));
    let answer = call(
        address,
        &own,
        "zeta__echo",
        json!({"text": "argument-marker"}),
    );
    assert!(answer["result"]["content"].is_array(), "{answer}");
    call(address, &own, "zeta__no_such_tool", json!({}));

    check_log(&log_path);
    check_metrics(address);
    check_servers(address, &own);
    check_record(address, &own, &foreign);

    // The command line shows the same.
    let mut status = haft(folder.path(), &["mcp", "status", "--url", &url]);
    status.env("HAFT_API_KEY", &own);
    let (code, out, aside) = crate::support::told(status, "");
    assert_eq!(code, Some(0), "{aside}");
    let row = out.lines().find(|it| it.starts_with("zeta")).unwrap();
    assert!(row.contains("stdio") && row.contains("connected"), "{out}");
    assert!(out.contains("cannot be started"), "{out}");
    drop(running);

    // Without a server it is what the data folder knows.
    let servers = mcp_json(folder.path(), &["status"]);
    let zeta = servers
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "zeta")
        .unwrap();
    assert_eq!(
        (&zeta["state"], &zeta["calls"]),
        (&json!("saved_list"), &json!(1)),
        "{zeta}"
    );
}

#[test]
fn calls_over_standard_input_are_in_the_log_and_the_record() {
    let folder = folder(&format!(
        "[log]\ncalls = \"arguments\"\n{}",
        fake("zeta", "modern", "")
    ));
    let log_path = folder.path().join("log");
    let mut command = haft(folder.path(), &["mcp", "serve"]);
    command.stderr(File::create(&log_path).unwrap());
    let mut client = LineClient::greeting(command, json!({}));
    let answer = client.ask(
        "tools/call",
        json!({"name": "zeta__echo", "arguments": {"text": "hi"}}),
    );
    assert!(answer["result"]["content"].is_array(), "{answer}");
    let log = std::fs::read_to_string(&log_path).unwrap();
    assert!(log.contains("endpoint=stdio"), "{log}");
    assert!(
        log.contains("server=\"zeta\" tool=\"echo\" outcome=\"succeeded\""),
        "{log}"
    );

    let deadline = Instant::now() + LONG;
    let calls = loop {
        let calls = mcp_json(folder.path(), &["calls", "--server", "zeta"]);
        if calls != json!([]) || Instant::now() > deadline {
            break calls;
        }
    };
    assert_eq!(calls[0]["caller"], "local", "{calls}");
    assert_eq!(calls[0]["arguments"], json!({"text": "hi"}), "{calls}");
    let (code, out, _) = mcp(folder.path(), &["calls"]);
    assert_eq!(code, Some(0));
    assert!(
        out.contains("zeta/echo") && out.contains("succeeded"),
        "{out}"
    );
    let (_, out, _) = mcp(folder.path(), &["calls", "--errors"]);
    assert_eq!(out, "");
}
