//! `haft responses` against a real server.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::terminal::Terminal;
use support::{Running, haft, request, scripted, told};

/// A server in a folder, whose address its configuration does not say.
struct Served {
    folder: tempfile::TempDir,
    address: String,
    _running: Running,
}

impl Served {
    fn with(steps: &[Value]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        scripted(folder.path(), "", steps);
        let (running, address) = Running::configured(folder.path());
        Self {
            folder,
            address,
            _running: running,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn create(&self, body: &Value) -> String {
        let host = self.address.strip_prefix("http://").unwrap();
        let (status, body) = request(host, "POST", "/responses", &body.to_string());
        assert_eq!(status, 200, "{body}");
        let response: Value = serde_json::from_str(&body).unwrap();
        response["id"].as_str().unwrap().to_owned()
    }

    fn haft(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = haft(self.path(), arguments);
        command.env("HAFT_SERVER", &self.address);
        told(command, "")
    }
}

#[test]
fn responses_are_listed_for_people_and_for_programs() {
    let served = Served::with(&[json!({"text": "Hello.", "repeat": "forever"})]);
    let (code, out, _) = served.haft(&["responses", "list"]);
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with("there are no stored responses at http://"),
        "{out}"
    );
    let mut ids: Vec<String> = (0..3)
        .map(|_| served.create(&json!({"input": "hi"})))
        .collect();
    ids.sort();

    let (code, out, aside) = served.haft(&["responses", "list"]);
    assert_eq!((code, aside.as_str()), (Some(0), ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 4, "{out}");
    assert!(lines[0].starts_with("id "), "{out}");
    for line in &lines[1..] {
        assert!(
            line.contains("completed") && line.ends_with("scripted"),
            "{out}"
        );
    }
    let mut listed: Vec<_> = lines[1..]
        .iter()
        .map(|it| it.split(' ').next().unwrap())
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, ids);

    let (_, out, _) = served.haft(&["responses", "list", "--limit", "2"]);
    assert_eq!(
        out.lines().count(),
        4,
        "two, a heading, and that there are more: {out}"
    );
    assert!(out.contains("there are more"), "{out}");
    let (_, out, _) = served.haft(&["responses", "list", "--limit", "2", "--json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (list["data"].as_array().unwrap().len(), &list["has_more"]),
        (2, &json!(true))
    );
    let (_, out, _) = served.haft(&["responses", "list", "--all", "--json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list["data"].as_array().unwrap().len(), 3);
    assert_eq!(list["data"][0]["output"], json!([]));
}

#[test]
fn more_than_a_page_is_listed_page_by_page() {
    let served = Served::with(&[json!({"text": "Hello.", "repeat": "forever"})]);
    for _ in 0..105 {
        served.create(&json!({"input": "hi"}));
    }
    let (_, out, _) = served.haft(&["responses", "list", "--all", "--json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    let ids = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap());
    let ids: std::collections::BTreeSet<_> = ids.collect();
    assert_eq!(ids.len(), 105);
    let (_, out, _) = served.haft(&["responses", "list", "--limit", "102"]);
    assert_eq!(out.lines().count(), 104);
}

#[test]
fn a_response_is_shown_with_what_was_said_and_called() {
    let evil = "Done.\u{1b}[2J\nReally.";
    let served = Served::with(&[
        json!({"calls": [{"name": "calculate", "arguments": {"expression": "6*7"}}],
            "usage": {"input_tokens": 10, "output_tokens": 3}}),
        json!({"text": evil, "usage": {"input_tokens": 20, "output_tokens": 4}}),
    ]);
    let body = json!({"input": "6*7?", "tools": [{"type": "haft:calculate"}],
        "instructions": "Be exact."});
    let id = served.create(&body);
    let (code, out, aside) = served.haft(&["responses", "show", &id]);
    assert_eq!((code, aside.as_str()), (Some(0), ""));
    let settings = insta_filters();
    settings.bind(|| insta::assert_snapshot!("a_response", out));
    let (_, out, _) = served.haft(&["responses", "show", &id, "--items"]);
    settings.bind(|| insta::assert_snapshot!("a_response_with_its_items", out));

    let (_, out, _) = served.haft(&["responses", "show", &id, "--json", "--items"]);
    assert!(!out.contains('\u{1b}'), "{out}");
    let response: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(response["id"], *id);
    assert_eq!(response["input_items"][0]["content"][0]["text"], "6*7?");
    let last = response["output"].as_array().unwrap().last().unwrap();
    assert_eq!(
        last["content"][0]["text"], evil,
        "programs get what was said"
    );
}

/// What differs from time to time.
fn insta_filters() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"resp_[0-9a-f]+", "resp_1");
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "[moment]");
    settings.add_filter(r"(now|\d+ s ago)", "[ago]");
    settings.add_filter(r"\d+(\.\d)? m?s\b", "[time]");
    settings
}

#[test]
fn what_is_not_there_is_told() {
    let served = Served::with(&[]);
    let (code, out, aside) = served.haft(&["responses", "show", "resp_none"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(aside, "haft: there is no stored response `resp_none`\n");
    let (code, _, aside) = served.haft(&["responses", "show", "../models"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("`../models` is no id"), "{aside}");
    let (code, _, _) = served.haft(&["responses", "show"]);
    assert_eq!(code, Some(2), "a wrong use");
}

#[test]
fn responses_are_deleted_only_if_somebody_says_so() {
    let served = Served::with(&[json!({"text": "Hello.", "repeat": "forever"})]);
    let ids: Vec<String> = (0..3)
        .map(|_| served.create(&json!({"input": "hi"})))
        .collect();
    let (code, _, aside) = served.haft(&["responses", "delete", &ids[0]]);
    assert_eq!(code, Some(1));
    assert!(
        aside.contains("nobody is there to be asked") && aside.contains("--yes"),
        "{aside}"
    );

    let arguments = [
        "responses",
        "delete",
        &ids[0],
        "resp_none",
        &ids[1],
        "--yes",
    ];
    let (code, out, aside) = served.haft(&arguments);
    assert_eq!(code, Some(1), "one of them is not there");
    assert_eq!(out, format!("deleted {}\ndeleted {}\n", ids[0], ids[1]));
    assert_eq!(aside, "haft: there is no stored response `resp_none`\n");
    let (code, out, _) = served.haft(&["responses", "list", "--json"]);
    assert_eq!(code, Some(0));
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);

    for (answer, code) in [("n", 1), ("y", 0)] {
        let arguments = ["responses", "delete", &ids[2], "--server", &served.address];
        let mut terminal = Terminal::run(served.path(), &arguments);
        terminal.sees("delete 1 response for good? [y/N] ");
        terminal.line(answer);
        assert_eq!(terminal.ends().0, Some(code), "{answer}");
    }
    let (_, out, _) = served.haft(&["responses", "list"]);
    assert!(out.starts_with("there are no"), "{out}");
}

#[test]
fn a_response_in_the_background_is_waited_for() {
    let slow = json!({"text": "tick tick tick", "pieces": 5, "delay_ms": 300});
    let fails = json!({"fault": {"status": {"code": 400}}});
    let served = Served::with(&[slow.clone(), slow, fails]);
    let body = json!({"input": "count", "background": true});
    let id = served.create(&body);
    let (code, _, aside) = served.haft(&["responses", "wait", &id, "--timeout", "10ms"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("has not ended after 10 ms"), "{aside}");
    let (code, out, aside) = served.haft(&["responses", "wait", &id]);
    assert_eq!(
        (code, aside.as_str()),
        (Some(0), ""),
        "no signs of life without a terminal"
    );
    assert!(
        out.contains("completed") && out.contains("tick tick tick"),
        "{out}"
    );

    let id = served.create(&body);
    let mut terminal = Terminal::run(
        served.path(),
        &["responses", "wait", &id, "--server", &served.address],
    );
    terminal.sees(&format!("{id}: in_progress"));
    terminal.sees("completed");
    assert_eq!(terminal.ends().0, Some(0));

    let id = served.create(&body);
    let (code, out, _) = served.haft(&["responses", "wait", &id, "--json"]);
    assert_eq!(code, Some(1), "it has failed");
    let response: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(response["status"], "failed");
}

#[test]
fn the_server_of_a_folder_is_found_by_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    // A port that is free now and most likely a moment later.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    std::fs::write(folder.path().join("door.key"), "hunter2222\n").unwrap();
    let door = format!("[server]\nlisten = \"{address}\"\napi_key_file = \"door.key\"\n");
    scripted(folder.path(), &door, &[]);
    let (_running, _) = Running::start_with(haft(folder.path(), &["serve"]));
    let (code, out, aside) = told(haft(folder.path(), &["responses", "list"]), "");
    assert_eq!(code, Some(0), "{aside}");
    assert!(out.contains(&address.to_string()), "{out}");
    // The key of a configuration is not for others.
    let named = ["responses", "list", "--server", &address.to_string()];
    let (code, _, aside) = told(haft(folder.path(), &named), "");
    assert_eq!(code, Some(1));
    assert!(aside.contains("wants a key"), "{aside}");
}

#[test]
fn something_else_at_the_address_is_told() {
    use std::io::{Read as _, Write as _};
    let folder = tempfile::tempdir().unwrap();
    for (answer, words) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<hi>",
            "does not speak JSON",
        ),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnope",
            "is it a haft server",
        ),
        (
            "HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\n{}",
            "try again in 7.0 s",
        ),
        (
            "HTTP/1.1 500 Oh\r\ncontent-length: 25\r\n\r\n{\"error\":{\"message\":\"m\"}}",
            "failed (HTTP 500): m",
        ),
        ("", "cannot be reached"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 27\r\n\r\n{\"data\":[],\"has_more\":true}",
            "does not list as haft does",
        ),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 2048];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let arguments = ["responses", "list", "--server", &address];
        let (code, _, aside) = told(haft(folder.path(), &arguments), "");
        answering.join().unwrap();
        assert_eq!(code, Some(1), "{aside}");
        assert!(aside.contains(words), "`{words}`: {aside}");
    }
}
