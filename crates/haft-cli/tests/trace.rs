//! `haft trace` against a real server.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Running, haft, request, scripted, told};

/// Without what differs from run to run.
fn settled(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words = line.split_inclusive(' ').map(|word| {
            let bare = word.trim_end().trim_end_matches(',');
            let is_time = bare.starts_with(|it: char| it.is_ascii_digit()) && bare.ends_with('s');
            let is_id = ["resp_", "req_"].iter().any(|it| bare.starts_with(it));
            let is_date = bare.chars().filter(|it| *it == '-').count() == 2;
            let is_clock = bare.chars().filter(|it| *it == ':').count() == 2;
            if is_time || is_id || is_date || is_clock {
                "… "
            } else {
                word
            }
        });
        let line: String = words.collect();
        let line = line.replace(|it| ('█'..='▏').contains(&it), "");
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{}{}", &line[..indent], words.join(" "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What `haft` says about this server: its code, standard output and standard error.
fn asked(folder: &Path, address: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = haft(folder, arguments);
    command.env("HAFT_SERVER", address);
    told(command, "")
}

/// Asks for a response; its id.
fn made(address: &str, body: &Value) -> String {
    let host = address.strip_prefix("http://").unwrap();
    let (status, answer) = request(host, "POST", "/responses", &body.to_string());
    assert_eq!(status, 200, "{answer}");
    let response: Value = serde_json::from_str(&answer).unwrap();
    response["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_is_shown_as_a_tree_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let steps = [
        json!({"calls": [
            {"name": "calculate", "arguments": {"expression": "6 * 7"}},
            {"name": "calculate", "arguments": {"expression": 42}},
        ]}),
        json!({"text": "42", "repeat": "forever"}),
    ];
    scripted(folder.path(), "", &steps);
    let (_running, address) = Running::configured(folder.path());
    let body = json!({"input": "hunter2", "tools": [{"type": "haft:calculate"}]});
    let id = made(&address, &body);
    let (code, out, aside) = asked(folder.path(), &address, &["trace", &id]);
    assert_eq!((code, aside.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with(&id), "{out}");
    assert!(!out.contains("hunter2") && !out.contains('\u{1b}'), "{out}");
    insta::assert_snapshot!(settled(&out));

    let (code, out, _) = asked(folder.path(), &address, &["trace", &id, "--json"]);
    assert_eq!(code, Some(0));
    assert!(!out.contains("hunter2"), "{out}");
    let trace: Value = serde_json::from_str(&out).unwrap();
    let host = address.strip_prefix("http://").unwrap();
    let (_, kept) = request(host, "GET", &format!("/responses/{id}/trace"), "");
    assert_eq!(trace, serde_json::from_str::<Value>(&kept).unwrap());
    assert_eq!(trace["response_id"], id.as_str());
    assert_eq!(trace["turns"][0]["calls"][0]["kind"], "haft:calculate");

    let mut coloured = haft(folder.path(), &["trace", &id, "--color", "always"]);
    coloured.env_remove("NO_COLOR").env("HAFT_SERVER", &address);
    assert!(told(coloured, "").1.contains('\u{1b}'));
}

#[test]
fn a_run_in_the_background_is_shown_while_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let steps = [
        json!({"calls": [{"name": "calculate", "arguments": {"expression": "6 * 7"}}]}),
        json!({"text": "never", "fault": "hang"}),
    ];
    scripted(folder.path(), "", &steps);
    let (_running, address) = Running::configured(folder.path());
    let tools = json!([{"type": "haft:calculate"}]);
    let id = made(
        &address,
        &json!({"input": "go", "background": true, "tools": tools}),
    );
    let shown = shown_with(folder.path(), &address, &id, "turn 2");
    assert!(shown.starts_with(&format!("{id}  under way\n")), "{shown}");
    assert!(shown.contains("└ haft:calculate"), "{shown}");
    let host = address.strip_prefix("http://").unwrap();
    let (status, _) = request(host, "POST", &format!("/responses/{id}/cancel"), "");
    assert_eq!(status, 200);
    shown_with(folder.path(), &address, &id, "cancelled after ");
}

/// The tree, as soon as these words are in it.
fn shown_with(folder: &Path, address: &str, id: &str, words: &str) -> String {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let (code, out, aside) = asked(folder, address, &["trace", id]);
        assert_eq!((code, aside.as_str()), (Some(0), ""), "{out}");
        if out.contains(words) {
            return out;
        }
        assert!(Instant::now() < patience, "no `{words}` in {out}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_is_not_stored_has_no_trace_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    scripted(
        folder.path(),
        "",
        &[json!({"text": "hi", "repeat": "forever"})],
    );
    let (running, address) = Running::configured(folder.path());
    let id = made(&address, &json!({"input": "hi", "store": false}));
    for (id, words) in [
        (id.as_str(), "there is no stored response"),
        ("resp_none", "there is no stored response"),
        ("../models", ""),
    ] {
        for arguments in [&["trace", id][..], &["trace", id, "--json"]] {
            let (code, out, aside) = asked(folder.path(), &address, arguments);
            assert_eq!((code, out.as_str()), (Some(1), ""), "{id}");
            assert!(aside.contains(words), "{aside}");
        }
    }
    running.kill();
    let (code, out, aside) = asked(folder.path(), &address, &["trace", "resp_1"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(aside.contains("nobody listens"), "{aside}");
}
