//! What holds for every way into the loop, whatever its configuration says nothing about.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{Running, haft, request, scripted, told};

/// The same call again and again.
fn in_circles() -> Vec<Value> {
    let call = json!({"name": "calculate", "arguments": {"expression": "1+1"}});
    vec![json!({"calls": [call]}); 8]
}

/// Other calls, without an end.
fn without_end() -> Vec<Value> {
    let call =
        |n: usize| json!({"name": "calculate", "arguments": {"expression": format!("{n}+1")}});
    let mut steps: Vec<_> = (0..11).map(|n| json!({"calls": [call(n)]})).collect();
    steps.push(json!({"text": "so far"}));
    steps
}

/// R13
#[test]
fn chat_notices_loops_and_ends_after_so_many_rounds() {
    let folder = tempfile::tempdir().unwrap();
    for (steps, words) in [
        (in_circles(), "Loop detected: 'calculate' was called"),
        (without_end(), "10"),
    ] {
        scripted(folder.path(), "", &steps);
        let (code, out, aside) = told(haft(folder.path(), &["chat", "--json"]), "go\n");
        assert_eq!(code, Some(1), "{aside}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["status"], "incomplete", "{out}");
        let reason = answer["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{words} is not in {reason}");
    }
}

/// R13
#[test]
fn a_server_notices_loops_and_ends_after_so_many_rounds() {
    for (steps, reason) in [
        (in_circles(), "loop_detected"),
        (without_end(), "max_turns"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        scripted(folder.path(), "", &steps);
        let (_running, address) = Running::configured(folder.path());
        let body = json!({"input": "go", "tools": [{"type": "haft:calculate"}]});
        let address = address.strip_prefix("http://").unwrap();
        let (status, response) = request(address, "POST", "/responses", &body.to_string());
        assert_eq!(status, 200, "{response}");
        let response: Value = serde_json::from_str(&response).unwrap();
        assert_eq!(
            response["incomplete_details"]["reason"], reason,
            "{response}"
        );
    }
}
