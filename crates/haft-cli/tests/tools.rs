//! `haft tools`: what there is, what it takes, and calls by hand.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::terminal::Terminal;
use support::{Running, haft, request, told};

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["tools"];
    all.extend(arguments);
    told(haft(folder, &all), "")
}

/// A folder whose files may be searched, and whose models and keys are not there.
fn searched() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    std::fs::write(folder.path().join("docs/a.md"), "snow in Oslo\n").unwrap();
    let config = "[server]\napi_key_env = \"NOT_SET\"\n[loop]\nrepair = true\n\
                  [search_files]\nfolders = [\"docs\"]\n\
                  [[model]]\nname = \"a\"\nadapter = \"anthropic\"\napi_key_env = \"NOT_SET\"\n";
    std::fs::write(folder.path().join("haft.toml"), config).unwrap();
    folder
}

#[test]
fn the_tools_are_those_that_a_server_would_have() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, aside) = run(folder.path(), &["list"]);
    assert_eq!(code, Some(0));
    let names: Vec<_> = out
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(names, ["calculate", "clock"]);
    let types: Vec<_> = out
        .lines()
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(types, ["haft:calculate", "haft:clock"]);
    assert!(aside.contains("`folders` of `[search_files]`"), "{aside}");
    let (code, _, aside) = run(folder.path(), &["call", "search_files", "query=snow"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("`folders` of `[search_files]`"), "{aside}");
    assert!(
        !folder.path().join("haft-data").exists(),
        "nothing is searched, nothing is kept"
    );

    let folder = searched();
    let (code, out, aside) = run(folder.path(), &["list", "--json"]);
    assert_eq!(code, Some(0), "{aside}");
    let tools: Vec<Value> = serde_json::from_str(&out).unwrap();
    let types: Vec<_> = tools
        .iter()
        .map(|tool| tool["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["haft:calculate", "haft:clock", "haft:search_files"]);
    assert_eq!(tools[0]["kind"], "internal");
    let (_, out, aside) = run(folder.path(), &["call", "search_files", "query=snow"]);
    assert!(out.contains("docs/a.md"), "{aside}");
    assert!(
        !folder.path().join("haft-data").exists(),
        "a call by hand keeps nothing either"
    );
}

#[test]
fn a_server_says_by_which_type_a_tool_is_named_and_when_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, lines) = Running::start(folder.path());
    let address = lines[0].strip_prefix("listening on http://").unwrap();
    for (tool, words) in [
        ("clock", "did you mean `haft:clock`?"),
        ("search_files", "did you mean `haft:search_files`?"),
        (
            "haft:search_files",
            "once `[search_files]` of its configuration lists folders",
        ),
        ("haft:telepathy", "there is `haft:calculate`, `haft:clock`)"),
    ] {
        let body = json!({"input": "hi", "tools": [{"type": tool}]}).to_string();
        let (status, answer) = request(address, "POST", "/responses", &body);
        assert_eq!(status, 400, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_tool_is_shown_with_what_it_takes() {
    let folder = searched();
    for name in ["calculate", "search_files"] {
        let (code, out, aside) = run(folder.path(), &["show", name]);
        assert_eq!((code, aside.as_str()), (Some(0), ""));
        insta::assert_snapshot!(format!("show_{name}"), out);
    }
    let (_, out, _) = run(folder.path(), &["show", "haft:calculate", "--json"]);
    let tool: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(tool["name"], "calculate");
    assert_eq!(tool["annotations"]["read_only"], true);
    let (code, _, aside) = run(folder.path(), &["show", "calcluate"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        aside,
        "haft: there is no tool `calcluate`\n  = help: did you mean `calculate`?\n"
    );
}

#[test]
fn a_tool_is_called_with_arguments_in_any_form() {
    let folder = tempfile::tempdir().unwrap();
    let result = "{\"result\":\"0.3\",\"exact\":true}\n";
    for arguments in [
        &["call", "calculate", "expression=0.1 + 0.2"][..],
        &["call", "haft:calculate", "{\"expression\": \"0.1 + 0.2\"}"],
    ] {
        let called = run(folder.path(), arguments);
        assert_eq!(called, (Some(0), result.to_owned(), String::new()));
    }
    let command = haft(folder.path(), &["tools", "call", "calculate", "-"]);
    let (code, out, _) = told(command, "{\"expression\": \"0.1 + 0.2\"}\n");
    assert_eq!((code, out.as_str()), (Some(0), result));
    let (code, out, _) = run(folder.path(), &["call", "clock"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("\"timezone\":\"UTC\""), "{out}");
}

#[test]
fn the_code_says_what_became_of_a_call() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, words) in [
        (&["calculate", "expression=1/0"][..], 1, "zero"),
        (
            &["calculate", "{\"expression\": 1}"],
            2,
            "'expression' must be string, got number",
        ),
        (
            &["calculate", "{\"expression\": \"1\""],
            2,
            "haft tools show calculate",
        ),
        (&["calculate"], 2, "missing field 'expression'"),
        (
            &["calculate", "expresion=1"],
            2,
            "did you mean `expression`?",
        ),
        (&["shell", "command=ls"], 2, "there is no tool `shell`"),
        (&[], 2, "Usage:"),
    ] {
        let mut all = vec!["call"];
        all.extend(arguments);
        let (ended, out, aside) = run(folder.path(), &all);
        assert_eq!(
            (ended, out.as_str()),
            (Some(code), ""),
            "{arguments:?}: {aside}"
        );
        assert!(aside.contains(words), "{arguments:?}: {aside}");
    }
    let json = ["call", "calculate", "--json", "{\"expression\": 1}"];
    let (code, out, _) = run(folder.path(), &json);
    assert_eq!(code, Some(2));
    let call: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(call["status"], "refused");
    assert_eq!(call["errors"].as_array().unwrap().len(), 1, "{call}");
    let json = ["call", "calculate", "--json", "expression=6*7"];
    let (code, out, _) = run(folder.path(), &json);
    assert_eq!(code, Some(0));
    let call: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(call["value"], json!({"result": "42", "exact": true}));
}

#[test]
fn a_call_that_must_not_run_unasked_is_asked_about() {
    let folder = searched();
    // Coerced arguments need somebody's word.
    let arguments = "{\"query\":\"snow\",\"limit\":\"2\"}";
    let (code, out, aside) = run(folder.path(), &["call", "search_files", arguments]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{aside}");
    assert!(aside.contains("nobody is there to be asked"), "{aside}");
    let (code, out, aside) = run(folder.path(), &["call", "search_files", arguments, "--yes"]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(out.contains("docs/a.md"), "{out}");

    std::fs::write(folder.path().join("arguments.json"), arguments).unwrap();
    for (answer, code) in [("n", 1), ("y", 0)] {
        let quoted = format!("'{arguments}'");
        let mut terminal =
            Terminal::run(folder.path(), &["tools", "call", "search_files", &quoted]);
        terminal.sees("although its arguments were coerced? [y/N] ");
        terminal.line(answer);
        let (ended, seen) = terminal.ends();
        let has_run = String::from_utf8(seen).unwrap().contains("docs/a.md");
        assert_eq!((ended, has_run), (Some(code), code == 0), "{answer}");
    }
}

/// Definitions in a file, as an MCP server lists them.
fn definitions() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tool = |name: &str, description: &str| {
        json!({"name": name, "description": description, "inputSchema": {"type": "object",
            "properties": {"owner": {"type": "string", "description": "Who owns it."}}}})
    };
    let mut tools = vec![
        tool("create_issue", "Open a new issue in a repository."),
        tool("list_branches", "List the branches of a repository."),
        tool("send_mail", "Send a message to somebody."),
        json!({"no": "tool"}),
    ];
    for n in 0..60 {
        tools.push(tool(
            &format!("filler_{n}"),
            "Something else altogether, told at some length.",
        ));
    }
    std::fs::write(
        folder.path().join("a.json"),
        json!({"tools": tools}).to_string(),
    )
    .unwrap();
    folder
}

#[test]
fn tools_are_found_with_scores_and_reasons() {
    let folder = definitions();
    let (code, out, aside) = run(
        folder.path(),
        &["search", "open an issue", "--file", "a.json"],
    );
    assert_eq!(code, Some(0), "{aside}");
    let first = out.lines().next().unwrap();
    assert!(
        first.contains("create_issue") && first.contains("Open a new issue"),
        "{out}"
    );
    assert!(
        out.lines().nth(1).unwrap().contains("words: open, issu"),
        "{out}"
    );
    assert!(
        aside.contains("1 entries of `a.json` are no tool definitions"),
        "{aside}"
    );
    assert!(aside.contains("of 63 tools"), "{aside}");

    let query = [
        "search",
        "send_mail",
        "branches",
        "-n",
        "2",
        "--file",
        "a.json",
        "--json",
    ];
    let (_, out, _) = run(folder.path(), &query);
    let answer: Value = serde_json::from_str(&out).unwrap();
    let hits = answer["hits"].as_array().unwrap();
    let names: Vec<_> = hits.iter().map(|hit| &hit["name"]).collect();
    assert_eq!(names, ["send_mail", "list_branches"]);
    assert_eq!(
        (&hits[0]["reason"], &hits[0]["score"]),
        (&json!("exact"), &json!(1.0))
    );

    let (code, _, aside) = run(folder.path(), &["search", "zzz", "--file", "a.json"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("nothing fits among 63 tools"), "{aside}");

    // Without a file, those of the configuration.
    let (code, out, _) = run(folder.path(), &["search", "what time is it"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("clock"), "{out}");
}

#[test]
fn the_cost_of_tools_is_counted_in_real_tokens() {
    let folder = definitions();
    let cost = |more: &[&str]| {
        let mut all = vec!["cost", "--file", "a.json", "--json"];
        all.extend(more);
        let (code, out, aside) = run(folder.path(), &all);
        assert_eq!(code, Some(0), "{aside}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let all = cost(&["--loaded", "2"]);
    assert_eq!(
        (&all["counted_as"], &all["tools"]),
        (&json!("o200k_base"), &json!(63))
    );
    let (full, brief) = (
        all["tokens"].as_u64().unwrap(),
        all["brief_tokens"].as_u64().unwrap(),
    );
    let names = all["name_tokens"].as_u64().unwrap();
    assert!(names < brief && brief < full, "{all}");
    let deferred = &all["deferred"];
    assert!(deferred["saved_percent"].as_f64().unwrap() > 80.0, "{all}");
    assert!(
        deferred["worst_tokens"].as_u64() >= deferred["tokens"].as_u64(),
        "{all}"
    );
    let asked = cost(&["--loaded", "1", "--query", "create_issue"]);
    let search = asked["deferred"]["search_tokens"].as_u64().unwrap();
    assert!(
        asked["deferred"]["tokens"].as_u64().unwrap() > search,
        "{asked}"
    );

    let (code, out, _) = run(folder.path(), &["cost", "--file", "a.json"]);
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with("63 tools, in tokens of o200k_base"),
        "{out}"
    );
    let (code, _, aside) = run(folder.path(), &["cost", "--file", "nowhere.json"]);
    assert_eq!(code, Some(2));
    assert!(aside.contains("`nowhere.json` cannot be read"), "{aside}");
}

/// A folder with this configuration.
fn configured(toml: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("haft.toml"), toml).unwrap();
    folder
}

#[test]
fn what_is_held_back_is_shown_with_the_setting_that_says_so() {
    let folder = configured("[loop]\ndefer = \"always\"\n");
    let (_, out, aside) = run(folder.path(), &["list"]);
    assert!(out.lines().all(|it| it.ends_with("(held back)")), "{out}");
    let because = "`defer = \"always\"` of `[loop]`";
    let words = format!("finds them with `search_tools`: {because}");
    assert!(aside.contains(&words), "{aside}");
    let (_, out, _) = run(folder.path(), &["show", "clock"]);
    let words = format!("held back until the model finds it: {because}");
    assert!(out.contains(&words), "{out}");
    let (_, out, _) = run(folder.path(), &["show", "clock", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    let holding = json!({"is_held_back": true, "because": because});
    assert_eq!(shown["holding"], holding);

    let folder = configured("");
    let (_, out, aside) = run(folder.path(), &["list"]);
    assert!(!format!("{out}{aside}").contains("held back"), "{out}");
    let (_, out, _) = run(folder.path(), &["list", "--json"]);
    let tools: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(tools[0]["holding"]["is_held_back"], false);
}

#[test]
fn the_cost_is_also_that_of_what_the_configuration_holds_back() {
    for (word, held) in [("always", 2), ("never", 0), ("auto", 0)] {
        let folder = configured(&format!("[loop]\ndefer = \"{word}\"\n"));
        let (_, out, aside) = run(folder.path(), &["cost", "--json"]);
        let cost: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{aside}"));
        let here = &cost["configured"];
        assert_eq!(
            (&here["defer"], &here["held_back_tools"]),
            (&json!(word), &json!(held))
        );
        let sent = if held > 0 {
            &cost["deferred"]["search_tokens"]
        } else {
            &cost["tokens"]
        };
        assert_eq!(&here["tokens"], sent);
        let (_, out, _) = run(folder.path(), &["cost"]);
        let words = format!("here: {held} held back (`defer = \"{word}\"`)");
        assert!(out.contains(&words), "{out}");
    }
}

#[test]
fn a_query_that_finds_nothing_is_told_and_one_tool_is_one_tool() {
    let folder = configured("");
    let one = json!([{"name": "🔥", "description": "Burns things"}]);
    std::fs::write(folder.path().join("one.json"), one.to_string()).unwrap();
    let cost = |query| {
        run(
            folder.path(),
            &["cost", "--file", "one.json", "--query", query],
        )
    };
    let (code, out, aside) = cost("zebra");
    assert_eq!(code, Some(0));
    assert!(out.starts_with("1 tool, in tokens"), "{out}");
    assert!(out.contains("nothing found and nothing loaded"), "{out}");
    assert!(aside.contains("note: nothing fits `zebra`"), "{aside}");
    let (_, out, aside) = cost("burn");
    assert!(out.contains("what the query finds loaded"), "{out}");
    assert_eq!(aside, "");
    let search = |query| run(folder.path(), &["search", query, "--file", "one.json"]);
    assert!(search("zebra").2.contains("nothing fits among 1 tool:"));
    let (code, out, _) = search("🔥");
    assert_eq!(code, Some(0));
    assert!(out.contains("its name"), "{out}");
}
