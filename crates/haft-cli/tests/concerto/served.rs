//! Tools of programs behind the server and the gateway, and in `haft tools` and `haft chat`.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::{CallOptions, ConnectOptions, Connection, Label, ServerSettings, TransportSettings};
use serde_json::{Value, json};

use crate::kit::{folder, printed, say};
use crate::support::{Running, haft, request, scripted, told};

const LONG: Duration = Duration::from_mins(1);

const TOOLS: &str = r#"
tool Till {
    sum: Int = 0,
    @describe("Add two amounts")
    pub fn add(mut self, @param("Left") a: Int, @param("Right") b: Int = 1) -> Int {
        println("adding");
        self.sum += a + b;
        a + b
    }
    @describe("All that was added")
    pub fn total(self) -> Int { self.sum }
    @describe("Halve an even amount")
    pub fn halve(self, @param("Amount") n: Int) -> Result<Int, String> {
        if n % 2 != 0 { throw "odd amount ${n}"; }
        Ok(n / 2)
    }
    @describe("Show a note")
    pub fn note(self, @param("Text") text: Option<String>) -> String { "${text}" }
    @describe("Read a file")
    pub fn file(self, @param("Path") path: String) -> Result<String, String> { std::fs::read_file(path) }
}
tool Bad {
    @describe("Never ends") pub fn endless(self) -> Int { let mut i = 0; while true { i += 1; } i }
    @describe("Takes all memory") pub fn bomb(self) -> Int {
        let mut xs = [""];
        while true { xs.push("x".repeat(1000000)); }
        xs.len()
    }
    @describe("Panics") pub fn panics(self) -> Int { panic("boom"); }
    @describe("Recurses") pub fn deep(self, @param("n") n: Int) -> Int { Bad::deep(n + 1) + 1 }
}
"#;

fn in_config(more: &str) -> String {
    format!(
        "[concerto]\nfiles = [\"tools.conc\"]\nmax_memory = \"32MiB\"\ncall_limit = \"1s\"\n{more}"
    )
}

#[test]
fn tools_are_listed_shown_and_called_by_hand() {
    let folder = folder(&[("tools.conc", TOOLS), ("data/a.txt", "A")]);
    let (code, out, _) = say(
        folder.path(),
        &["tools", "list", "--concerto", "tools.conc"],
    );
    assert_eq!(code, Some(0));
    assert!(out.contains("Till__add"), "{out}");
    assert!(
        out.contains("haft:Till__add") && out.contains("clock"),
        "{out}"
    );
    let call = |arguments: &[&str]| {
        let mut all = vec!["tools", "call", "--concerto", "tools.conc"];
        all.extend(arguments);
        say(folder.path(), &all)
    };
    let (code, out, aside) = call(&["Till__add", "a=41"]);
    assert_eq!((code, out.as_str()), (Some(0), "42\n"));
    assert!(aside.contains("adding"), "{aside}");
    let (code, out, aside) = call(&["haft:Till__halve", "n=7"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(aside.contains("odd amount 7"), "{aside}");
    assert_eq!(call(&["Till__add", "a=x"]).0, Some(2));
    let (code, _, aside) = call(&["Till__file", "path=data/a.txt"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("permission denied"), "{aside}");
    let (code, out, _) = call(&["--allow-fs=data", "Till__file", "path=data/a.txt"]);
    assert_eq!((code, out.as_str()), (Some(0), "A\n"));
    let out = printed(
        folder.path(),
        &[
            "tools",
            "show",
            "--concerto",
            "tools.conc",
            "Till__add",
            "--json",
        ],
    );
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["type"], "haft:Till__add");
}

#[test]
fn a_program_with_errors_lets_nothing_start() {
    let folder = folder(&[
        ("bad.conc", "tool T { pub fn f() {} }\n"),
        ("none.conc", "fn main() {}\n"),
        (
            "first.conc",
            "const A: Int = 1 / 0;\n tool T { @describe(\"x\") pub fn f() -> Int { A } }\n",
        ),
    ]);
    for (file, words) in [
        ("bad.conc", "bad.conc:1:17: error[E024]"),
        ("none.conc", "has no tool that could be offered"),
        ("first.conc", "runtime error: division by zero"),
        ("gone.conc", "there is no file `gone.conc`"),
    ] {
        for command in [
            &["serve", "--listen", "127.0.0.1:0", "--model", "offline"][..],
            &["mcp", "serve"],
            &["tools", "list"],
            &["chat", "--model", "offline"],
        ] {
            let mut all = command.to_vec();
            all.extend(["--concerto", file]);
            let (code, out, aside) = say(folder.path(), &all);
            assert!(matches!(code, Some(1 | 2)), "{all:?}: {aside}");
            assert!(!out.contains("listening"), "{out}");
            assert!(aside.contains(words), "{all:?}: {aside}");
        }
    }
}

fn serving(folder: &Path, arguments: &[&str]) -> (Running, String) {
    let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
    all.extend(arguments);
    let (running, lines) = Running::start_with(haft(folder, &all));
    let address = lines[0].strip_prefix("listening on http://").unwrap();
    (running, address.to_owned())
}

fn respond(address: &str, tool: &str) -> Value {
    let body =
        json!({"model": "scripted", "input": "go", "tools": [{"type": format!("haft:{tool}")}]});
    let (status, body) = request(address, "POST", "/responses", &body.to_string());
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn a_response_calls_a_tool_that_runs_here() {
    let folder = folder(&[("tools.conc", TOOLS)]);
    let call =
        |name: &str, arguments: &str| json!({"calls": [{"name": name, "arguments": arguments}]});
    scripted(
        folder.path(),
        "",
        &[
            call("Till__add", "{\"a\": 40, \"b\": 2}"),
            json!({"text": "It is 42."}),
            call("Till__halve", "{\"n\": 7}"),
            json!({"text": "It is odd."}),
        ],
    );
    let (_running, address) = serving(folder.path(), &["--concerto", "tools.conc"]);
    let response = respond(&address, "Till__add");
    assert_eq!(response["status"], "completed", "{response}");
    let text = response.to_string();
    assert!(
        text.contains("It is 42.") && text.contains("haft:Till__add"),
        "{text}"
    );
    let response = respond(&address, "Till__halve").to_string();
    assert!(response.contains("odd amount 7"), "{response}");
}

#[test]
fn bad_tools_are_bad_calls_and_the_server_goes_on() {
    let folder = folder(&[("tools.conc", TOOLS)]);
    let mut steps = Vec::new();
    for (name, arguments) in [
        ("Bad__endless", "{}"),
        ("Bad__bomb", "{}"),
        ("Bad__panics", "{}"),
        ("Bad__deep", "{\"n\": 1}"),
        ("Till__add", "{\"a\": 1}"),
    ] {
        steps.push(json!({"calls": [{"name": name, "arguments": arguments}]}));
        steps.push(json!({"text": "So be it."}));
    }
    scripted(folder.path(), &in_config(""), &steps);
    let (_running, address) = serving(folder.path(), &[]);
    for (tool, words) in [
        ("Bad__endless", "1"),
        ("Bad__bomb", "max memory exceeded (32 MiB)"),
        ("Bad__panics", "panic: boom"),
        ("Bad__deep", "max call depth exceeded"),
        ("Till__add", "So be it."),
    ] {
        let response = respond(&address, tool);
        assert_eq!(response["status"], "completed", "{response}");
        assert!(response.to_string().contains(words), "{tool}: {response}");
    }
}

async fn client(folder: &Path, arguments: &[&str]) -> Connection {
    let label = Label::new("gate").unwrap();
    let mut all = vec!["mcp", "serve"];
    all.extend(arguments);
    let mut settings = ServerSettings::stdio(label, env!("CARGO_BIN_EXE_haft")).args(all);
    if let TransportSettings::Stdio(stdio) = &mut settings.transport {
        stdio.cwd = Some(folder.to_owned());
    }
    let options = ConnectOptions::default();
    let opening = Connection::open(Arc::new(settings), &options);
    tokio::time::timeout(LONG, opening).await.unwrap().unwrap()
}

async fn call(client: &Connection, name: &str, arguments: Value) -> Value {
    let arguments = arguments.as_object().unwrap().clone();
    let called = client.call_tool(name, arguments, CallOptions::default());
    let outcome = tokio::time::timeout(LONG, called).await.unwrap().unwrap();
    (*outcome.raw).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_lists_and_calls_them_and_survives_bad_ones() {
    let folder = folder(&[("tools.conc", TOOLS), ("haft.toml", &in_config(""))]);
    let client = client(folder.path(), &["--mode", "passthrough"]).await;
    let list = client.list_tools().await.unwrap();
    let names: Vec<String> = list.tools.into_iter().map(|it| it.name).collect();
    for name in ["Till__add", "Till__total", "Bad__bomb", "clock"] {
        assert!(names.iter().any(|it| it == name), "{names:?}");
    }
    let result = call(&client, "Till__add", json!({"a": 40, "b": 2})).await;
    assert_eq!(result["content"][0]["text"], "42", "{result}");
    // Null for an `Option` is as if it were not there.
    let result = call(&client, "Till__note", json!({"text": null})).await;
    assert_eq!(result["content"][0]["text"], "None", "{result}");
    for (name, arguments, words) in [
        ("Bad__panics", json!({}), "panic: boom"),
        ("Bad__bomb", json!({}), "max memory exceeded (32 MiB)"),
        ("Bad__deep", json!({"n": 1}), "max call depth exceeded"),
        ("Bad__endless", json!({}), ""),
        ("Till__halve", json!({"n": 7}), "odd amount 7"),
        ("Till__add", json!({"a": "x"}), ""),
    ] {
        let result = call(&client, name, arguments).await;
        assert_eq!(result["isError"], true, "{name}: {result}");
        assert!(result.to_string().contains(words), "{name}: {result}");
    }
    // The state of a tool lives as long as the server.
    call(&client, "Till__add", json!({"a": 7, "b": 1})).await;
    let result = call(&client, "Till__total", json!({})).await;
    assert_eq!(result["content"][0]["text"], "50", "{result}");
}

const SHARED: &str = r#"
hashmap kept: HashMap<String, String> = HashMap::new();
tool Box {
    @describe("Keep a text")
    pub fn keep(self, @param("Key") key: String, @param("Bytes") bytes: Int) -> Int {
        kept.set(key, "x".repeat(bytes));
        kept.len()
    }
    @describe("Show how long a text is")
    pub fn look(self, @param("Key") key: String) -> Int { (kept.get(key) ?? "").len() }
    @describe("Delete a text")
    pub fn drop(self, @param("Key") key: String) -> Int { kept.delete(key); kept.len() }
    @describe("Use memory")
    pub fn work(self) -> Int { "x".repeat(4000000).len() }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_fails_the_call_that_fills_it_and_no_other() {
    let folder = folder(&[("tools.conc", SHARED), ("haft.toml", &in_config(""))]);
    let client = client(folder.path(), &["--mode", "passthrough"]).await;
    let keep = async |key: usize| {
        let arguments = json!({"key": key.to_string(), "bytes": 1_000_000});
        call(&client, "Box__keep", arguments).await
    };
    let mut kept = 0;
    let refused = loop {
        let result = keep(kept).await;
        if result["isError"] == true {
            break result;
        }
        kept += 1;
        assert!(kept < 30, "the store holds more than the memory");
    };
    let text = refused.to_string();
    assert!(
        text.contains("stores of the program are full (24 MiB)"),
        "{text}"
    );
    assert!(kept > 15, "{kept}");
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    // Calls of others have memory, read what is stored and make room.
    let result = call(&client, "Box__work", json!({})).await;
    assert_eq!(text(&result), "4000000", "{result}");
    let result = call(&client, "Box__look", json!({"key": "0"})).await;
    assert_eq!(text(&result), "1000000", "{result}");
    for key in 0..3 {
        let result = call(&client, "Box__drop", json!({"key": key.to_string()})).await;
        assert_eq!(text(&result), (kept - 1 - key).to_string(), "{result}");
    }
    let result = keep(kept).await;
    assert_eq!(text(&result), (kept - 2).to_string(), "{result}");
}

#[test]
fn a_conversation_can_use_them() {
    let folder = folder(&[("tools.conc", TOOLS)]);
    scripted(
        folder.path(),
        "",
        &[
            json!({"calls": [{"name": "Till__add", "arguments": "{\"a\": 41}"}]}),
            json!({"text": "42 it is."}),
        ],
    );
    let chat = haft(
        folder.path(),
        &["chat", "--concerto", "tools.conc", "--tools", "Till__add"],
    );
    let (code, out, aside) = told(chat, "go\n");
    assert_eq!(code, Some(0), "{aside}");
    assert!(out.contains("42 it is."), "{out}");
    let elsewhere = [
        "chat",
        "--server",
        "127.0.0.1:1",
        "--concerto",
        "tools.conc",
    ];
    let (code, _, aside) = say(folder.path(), &elsewhere);
    assert_eq!(code, Some(2));
    assert!(aside.contains("haft serve --concerto"), "{aside}");
}

#[test]
fn a_server_that_is_told_to_stop_leaves_a_busy_tool() {
    let folder = folder(&[("tools.conc", TOOLS)]);
    let more = in_config("[server]\nstop_wait = \"1s\"\n").replace("1s\"\n[", "60s\"\n[");
    scripted(
        folder.path(),
        &more,
        &[
            json!({"calls": [{"name": "Bad__endless", "arguments": "{}"}]}),
            json!({"text": "end"}),
        ],
    );
    let (mut running, address) = serving(folder.path(), &[]);
    let asking = std::thread::spawn(move || {
        let body =
            json!({"model": "scripted", "input": "go", "tools": [{"type": "haft:Bad__endless"}]});
        let _ = request(&address, "POST", "/responses", &body.to_string());
    });
    std::thread::sleep(Duration::from_millis(500));
    let id = running.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    let begun = std::time::Instant::now();
    while running.0.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < LONG, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = asking.join();
}
