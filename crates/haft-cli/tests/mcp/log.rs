//! No filter makes haft log content or secrets: each front door runs a tool call at the most verbose level.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kit::{LineClient, fake, folder};
use crate::support::{Running, haft, request_with, scripted, told};

/// Filters that ask for everything, for everything of the MCP library, and for everything of the others.
const FILTERS: [&str; 4] = [
    "trace",
    "debug",
    "rmcp=trace",
    "haft=trace,rmcp::transport=trace,rmcp::service=trace,hyper=trace,hyper_util=trace,reqwest=trace,\
     rustls=trace,h2=trace,tungstenite=trace,axum=trace,tower=trace",
];

/// What must not be in a log: keys, the prompt, the answer, arguments and results. The last is what the
/// test server writes into errors and onto its standard error.
const MARKERS: [&str; 7] = [
    "sk-gateway-4242",
    "prompt-marker",
    "answer-marker",
    "argument-marker",
    "31415926535",
    "62831853070",
    "hunter2-token",
];

fn assert_content_free(log: &str, filter: &str) {
    for marker in MARKERS {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(marker)).collect();
        assert!(lines.is_empty(), "`{filter}` logs `{marker}`:\n{lines:#?}");
    }
}

/// A process whose standard error goes to the file `log` of its folder.
fn logging(mut command: Command, folder: &Path, filter: &str) -> Command {
    command
        .env("HAFT_LOG", filter)
        .stderr(File::create(folder.join("log")).unwrap());
    command
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap()
}

/// Starts `haft serve`; its address without the scheme.
fn serve(
    folder: &Path,
    filter: &str,
    more: &[&str],
    variables: &[(&str, &str)],
) -> (Running, String) {
    let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
    all.extend(more);
    let mut command = logging(haft(folder, &all), folder, filter);
    command.envs(variables.iter().copied());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let running = Running(child);
    out.read_line(&mut first).unwrap();
    std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    // With a log in JSON this line is JSON as well.
    let line: Option<Value> = serde_json::from_str(&first).ok();
    let line = line.as_ref().and_then(|line| line["address"].as_str());
    let address = line.or_else(|| first.trim().strip_prefix("listening on "));
    let address = address.and_then(|address| address.strip_prefix("http://"));
    let address = address.unwrap_or_else(|| panic!("{first}{}", log(folder)));
    (running, address.to_owned())
}

fn stop(mut running: Running) {
    running.signal("TERM");
    running.0.wait().unwrap();
}

#[test]
fn server_and_gateway_log_no_content_at_any_level() {
    for filter in FILTERS {
        // One server is the MCP gateway of the other, over HTTP with a bearer token.
        let gateway = folder("[server]\napi_key_env = \"GATE_KEY\"\n");
        let key = ("GATE_KEY", MARKERS[0]);
        let (gate, gate_address) = serve(gateway.path(), filter, &["--mcp"], &[key]);
        let front = tempfile::tempdir().unwrap();
        let remote =
            format!("[mcp.gate]\nurl = \"http://{gate_address}/mcp\"\nbearer_env = \"GATE_KEY\"\n");
        let local = fake("local", "legacy", "");
        let steps = [
            json!({"calls": [
                {"name": "gate__calculate", "arguments": {"expression": "31415926535 * 2"}},
                {"name": "local__echo", "arguments": {"text": "argument-marker"}},
                {"name": "local__refuse", "arguments": {"text": "argument-marker"}},
                {"name": "local__die", "arguments": {"text": "argument-marker"}},
            ]}),
            json!({"text": "answer-marker"}),
        ];
        scripted(front.path(), &format!("{remote}{local}"), &steps);
        let (server, address) = serve(front.path(), filter, &[], &[key]);
        let body = json!({
            "input": "prompt-marker",
            "tools": [
                {"type": "mcp", "server_label": "gate", "require_approval": "never"},
                {"type": "mcp", "server_label": "local", "require_approval": "never"},
            ],
        });
        let (status, answer) = request_with(&address, "POST", "/responses", "", &body.to_string());
        assert_eq!(status, 200, "{answer}");
        for part in ["62831853070", "argument-marker", "answer-marker"] {
            assert!(answer.contains(part), "{part} is missing: {answer}");
        }
        stop(server);
        stop(gate);
        let (front, gateway) = (log(front.path()), log(gateway.path()));
        if filter != "rmcp=trace" {
            assert!(front.contains("call failed"), "{front}");
            assert!(gateway.contains("listening"), "{gateway}");
        }
        assert_content_free(&front, filter);
        assert_content_free(&gateway, filter);
    }
}

/// Every token of [`tokens_of_http_servers_are_logged_at_no_level`] has this in it.
const TOKEN: &str = "-token-4242";

#[test]
fn tokens_of_http_servers_are_logged_at_no_level() {
    let texts = FILTERS.map(|filter| (filter, "text"));
    for (filter, format) in texts.into_iter().chain([("trace", "json")]) {
        let keys = [
            ("GATE_KEY", format!("gate{TOKEN}")),
            ("FRONT_KEY", format!("front{TOKEN}")),
            ("WRONG_KEY", format!("wrong{TOKEN}")),
        ];
        let keys = keys.each_ref().map(|(name, key)| (*name, key.as_str()));
        // An MCP server over HTTP that demands a bearer token.
        let table = format!("[log]\nformat = \"{format}\"\n[server]\napi_key_env = ");
        let gateway = folder(&format!("{table}\"GATE_KEY\"\n"));
        let (gate, gate_address) = serve(gateway.path(), filter, &["--mcp"], &keys);
        let url = format!("http://{gate_address}/mcp");
        let front = tempfile::tempdir().unwrap();
        let config = format!(
            "{table}\"FRONT_KEY\"\nmcp_hosts = [\"http://{gate_address}\"]\n\
             [mcp.gate]\nurl = \"{url}\"\nbearer_env = \"GATE_KEY\"\n\
             [mcp.wrong]\nurl = \"{url}\"\nheaders = {{ Authorization = \"Bearer ${{WRONG_KEY}}\" }}\n"
        );
        let arguments = json!({"expression": "31415926535 * 2"});
        let steps = [
            json!({"calls": [
                {"name": "gate__calculate", "arguments": arguments},
                {"name": "own__calculate", "arguments": arguments},
            ]}),
            json!({"text": "answer-marker"}),
        ];
        scripted(front.path(), &config, &steps);
        let (server, address) = serve(front.path(), filter, &[], &keys);
        let body = json!({
            "input": "prompt-marker",
            "tools": [
                {"type": "mcp", "server_label": "gate", "require_approval": "never"},
                {"type": "mcp", "server_label": "wrong", "require_approval": "never"},
                {"type": "mcp", "server_label": "own", "server_url": url, "require_approval": "never",
                    "authorization": keys[0].1, "headers": {"x-tenant": format!("tenant{TOKEN}")}},
            ],
        });
        let ask = |key: &str| {
            let header = format!("authorization: Bearer {key}\r\n");
            request_with(&address, "POST", "/responses", &header, &body.to_string())
        };
        let (status, answer) = ask(keys[1].1);
        assert_eq!(status, 200, "{answer}");
        // Both good tokens were accepted and the wrong one was not.
        let response: Value = serde_json::from_str(&answer).unwrap();
        let items = response["output"].as_array().unwrap().iter();
        let ends = items.map(|it| (&it["server_label"], &it["status"], it["output"].as_str()));
        let ends: Vec<_> = ends.collect();
        for label in ["gate", "own"] {
            let is_result = |output: Option<&str>| output.is_some_and(|it| it.contains(MARKERS[5]));
            let mut ends = ends.iter();
            assert!(ends.any(|it| it.0 == label && is_result(it.2)), "{answer}");
        }
        assert!(
            ends.contains(&(&json!("wrong"), &json!("failed"), None)),
            "{answer}"
        );
        assert_eq!(ask(keys[2].1).0, 401);
        stop(server);
        stop(gate);
        let (front, gateway) = (log(front.path()), log(gateway.path()));
        if filter != "rmcp=trace" {
            assert!(front.contains("an MCP server has no tools"), "{front}");
            assert!(gateway.contains("listening"), "{gateway}");
        }
        for log in [front, gateway] {
            assert_content_free(&log, filter);
            let lines: Vec<&str> = log.lines().filter(|it| it.contains(TOKEN)).collect();
            assert!(lines.is_empty(), "`{filter}` as {format}:\n{lines:#?}");
        }
    }
}

#[test]
fn stdio_gateway_logs_no_content_at_any_level() {
    for filter in FILTERS {
        let folder = folder(&fake("local", "legacy", ""));
        let command = haft(folder.path(), &["mcp", "serve", "--mode", "passthrough"]);
        let mut client = LineClient::greeting(logging(command, folder.path(), filter), json!({}));
        let text = client.text("calculate", json!({"expression": "31415926535 * 2"}));
        assert!(text.contains("62831853070"), "{text}");
        let text = client.text("local__echo", json!({"text": "argument-marker"}));
        assert!(text.contains("argument-marker"), "{text}");
        client.call("local__refuse", json!({"text": "argument-marker"}));
        client.call("local__die", json!({"text": "argument-marker"}));
        assert_eq!(client.leave(), Some(0));
        let log = log(folder.path());
        if filter != "rmcp=trace" {
            assert!(log.contains("outcome=\"failed\""), "{log}");
        }
        assert_content_free(&log, filter);
    }
}

#[test]
fn chat_writes_the_same_with_and_without_a_filter() {
    let steps = [
        json!({"calls": [{"name": "local__echo", "arguments": {"text": "argument-marker"}}]}),
        json!({"text": "answer-marker"}),
    ];
    let run = |filter: Option<&str>| {
        let folder = tempfile::tempdir().unwrap();
        scripted(folder.path(), &fake("local", "legacy", ""), &steps);
        let mut command = haft(folder.path(), &["chat"]);
        filter.map(|filter| command.env("HAFT_LOG", filter));
        told(command, "prompt-marker\n")
    };
    // What chat shows of a call is its transcript; the duration differs from run to run.
    let lines = |text: &str| -> Vec<String> {
        let cut = |line: &str| line.split('(').next().unwrap().to_owned();
        text.lines().map(cut).collect()
    };
    let usual = run(None);
    assert!(usual.2.contains("argument-marker"), "{usual:?}");
    for filter in FILTERS {
        let verbose = run(Some(filter));
        assert_eq!((verbose.0, &verbose.1), (usual.0, &usual.1), "{filter}");
        assert_eq!(lines(&verbose.2), lines(&usual.2), "{filter}");
    }
}

#[test]
fn served_scripts_log_no_content_at_any_level() {
    let tools = "tool Till {\n    @describe(\"Say a text\")\n    pub fn say(self, @param(\"Text\") text: String) -> \
                 String { \"${text} 62831853070\" }\n}\n";
    for filter in FILTERS {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tools.conc"), tools).unwrap();
        let steps = [
            json!({"calls": [{"name": "Till__say", "arguments": {"text": "argument-marker"}}]}),
            json!({"text": "answer-marker"}),
        ];
        scripted(
            folder.path(),
            "[concerto]\nfiles = [\"tools.conc\"]\n",
            &steps,
        );
        let (server, address) = serve(folder.path(), filter, &[], &[]);
        let body = json!({"input": "prompt-marker", "tools": [{"type": "haft:Till__say"}]});
        let (status, answer) = request_with(&address, "POST", "/responses", "", &body.to_string());
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains("argument-marker 62831853070"), "{answer}");
        stop(server);
        assert_content_free(&log(folder.path()), filter);
    }
}
