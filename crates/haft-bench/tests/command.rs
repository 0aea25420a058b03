//! The lines that scorers read.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// A folder of its own with these files of JSON lines.
fn folder(name: &str, files: &[(&str, &[Value])]) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&home).unwrap();
    for (file, rows) in files {
        let lines: Vec<_> = rows.iter().map(Value::to_string).collect();
        fs::write(home.join(file), lines.join("\n")).unwrap();
    }
    home
}

fn run(arguments: &[&str]) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_haft-bench"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn hydrate_writes_one_line_per_case() {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]
    });
    let home = folder(
        "hydrate",
        &[(
            "cases.jsonl",
            &[
                json!({"id": "good", "input": "{\"n\": 1}", "schema": schema}),
                json!({"id": "broken", "input": "{\"n\": \"1\",}", "schema": schema}),
                json!({"id": "cut", "input": "{\"n\": 1, \"m\": \"x", "schema": schema}),
                json!({"id": "arguments", "arguments": {"n": 2}, "schema": schema}),
                json!({"id": "any root", "input": "[1, 2]"}),
                json!({"id": "text root", "input": "\"{}\""}),
                json!({"id": "bad schema", "input": "{}", "schema": {"type": "bogus"}}),
                json!({"id": 9, "input": {"n": 3}, "schema": schema}),
                json!({"id": "wrapped", "tool": "t", "input": "{\"name\":\"t\",\"arguments\":{\"n\":4}}", "schema": schema}),
            ],
        )],
    );
    let cases = home.join("cases.jsonl");
    assert_eq!(
        run(&["hydrate", cases.to_str().unwrap()]),
        [
            json!({"id": "good", "status": "ok", "value": {"n": 1}}),
            json!({"id": "broken", "status": "repaired", "value": {"n": 1}}),
            json!({"id": "cut", "status": "error"}),
            json!({"id": "arguments", "status": "ok", "value": {"n": 2}}),
            json!({"id": "any root", "status": "ok", "value": [1, 2]}),
            json!({"id": "text root", "status": "ok", "value": "{}"}),
            json!({"id": "bad schema", "status": "error"}),
            json!({"id": 9, "status": "ok", "value": {"n": 3}}),
            json!({"id": "wrapped", "status": "repaired", "value": {"n": 4}}),
        ]
    );
}

#[test]
fn the_preview_policy_shows_what_arguments_refuse() {
    let cut = json!({"id": "cut", "input": "{\"a\": \"Os"});
    let home = folder("preview", &[("cases.jsonl", &[cut])]);
    let cases = home.join("cases.jsonl");
    let cases = cases.to_str().unwrap();
    assert_eq!(
        run(&["hydrate", cases]),
        [json!({"id": "cut", "status": "error"})]
    );
    assert_eq!(
        run(&["hydrate", cases, "--policy", "preview"]),
        [json!({"id": "cut", "status": "repaired", "value": {"a": "Os"}})]
    );
}

#[test]
fn select_ranks_k_tools_and_then_what_they_depend_on() {
    let tools = [
        json!({"name": "weather.get", "description": "Get the weather for a city", "depends_on": [{"name": "locate"}]}),
        json!({"name": "locate", "description": "Find where a user is", "depends_on": [{"name": "ask"}]}),
        json!({"name": "ask", "description": null, "parameters": {"type": "dict"}}),
        json!({"name": "weather_history", "description": "Past weather", "parameters": {"type": "object"}}),
    ];
    let queries = [
        json!({"id": "q1", "query": "weather in this city"}),
        json!({"id": 2, "query": "the of a"}),
    ];
    let own = folder(
        "set",
        &[("tools.jsonl", &tools), ("queries.jsonl", &queries)],
    );
    let expected = [
        json!({"id": "q1", "ranked": ["weather.get", "locate", "ask"]}),
        json!({"id": 2, "ranked": []}),
    ];
    assert_eq!(
        run(&["select", own.to_str().unwrap(), "--k", "1"]),
        expected
    );

    let borrowed = folder("borrowed_set", &[("queries.jsonl", &queries)]);
    fs::write(
        borrowed.join("META.json"),
        r#"{"tools": "../set/tools.jsonl"}"#,
    )
    .unwrap();
    assert_eq!(
        run(&["select", borrowed.to_str().unwrap(), "--k", "1"]),
        expected
    );
}

#[test]
fn a_missing_file_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_haft-bench"))
        .args(["hydrate", "no-such-file.jsonl"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-file.jsonl"));
}
