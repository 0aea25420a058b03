//! `haft chat` in a pipe: line by line, without prompts or colours.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::double::{Double, ended_with};
use support::terminal::{CTRL_D, Terminal};
use support::{Running, haft, request, scripted, told};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_line_from_a_pipe_is_answered_and_that_is_all() {
    let folder = folder();
    scripted(folder.path(), "", &[json!({"text": "Hello *there*."})]);
    let (code, out, aside) = told(haft(folder.path(), &["chat"]), "hi\n");
    assert_eq!(
        (code, out.as_str(), aside.as_str()),
        (Some(0), "Hello *there*.\n", "")
    );
    assert!(!folder.path().join("haft-data").exists(), "nothing is kept");
}

#[test]
fn what_one_was_told_the_next_answer_knows() {
    let folder = folder();
    let steps = [
        json!({"expect": {"user": {"equals": "I am Ada."}}, "text": "Hello Ada."}),
        json!({"expect": {"user": {"equals": "Who\nam I?"}, "items": 3}, "text": "Ada."}),
        json!({"expect": {"user": {"equals": "Who\n/new\nam I?"}, "items": 5}, "text": "Ada."}),
    ];
    scripted(folder.path(), "", &steps);
    let lines = "I am Ada.\n\nWho\\\nam I?\n\"\"\"\nWho\n/new\nam I?\n\"\"\"\n";
    let (code, out, aside) = told(haft(folder.path(), &["chat"]), lines);
    assert_eq!(out, "Hello Ada.\nAda.\nAda.\n", "{aside}");
    assert_eq!(code, Some(0));
}

#[test]
fn calls_are_told_beside_the_answer() {
    let folder = folder();
    let steps = [
        json!({"text": "Let me see.", "calls": [
            {"name": "calculate", "arguments": {"expression": "6*7"}},
            {"name": "calculate", "arguments": {"expresion": "6*7"}},
            {"name": "shell", "arguments": {}},
        ]}),
        json!({"text": "42"}),
    ];
    scripted(folder.path(), "", &steps);
    let (code, out, aside) = told(haft(folder.path(), &["chat"]), "6*7?\n");
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "Let me see.\n42\n"),
        "{aside}"
    );
    assert!(
        aside.contains("→ calculate {\"expression\":\"6*7\"}"),
        "{aside}"
    );
    let done = |line: &str| line.starts_with("✓ calculate (") && line.contains("\"result\":\"42\"");
    assert!(aside.lines().any(done), "{aside}");
    let refused = |line: &str| line.starts_with("✗ calculate (") && line.contains("expresion");
    assert!(aside.lines().any(refused), "{aside}");
    assert!(
        aside.lines().any(|line| line.starts_with("✗ shell (")),
        "{aside}"
    );
}

#[test]
fn thoughts_are_shown_only_to_those_who_want_them() {
    for (arguments, is_shown) in [
        (&["chat"][..], false),
        (&["chat", "--show-reasoning"], true),
    ] {
        let folder = folder();
        scripted(
            folder.path(),
            "",
            &[json!({"reasoning": "Hm.", "text": "Yes."})],
        );
        let (_, out, aside) = told(haft(folder.path(), arguments), "hi\n");
        assert_eq!(out, "Yes.\n");
        assert_eq!(aside.contains("Hm."), is_shown, "{aside}");
    }
}

#[test]
fn nothing_that_a_model_or_a_tool_writes_steers_the_terminal() {
    let folder = folder();
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{1b}]52;c;aGk=\u{1b}\\";
    let steps = [
        json!({"calls": [{"name": evil, "arguments": evil}]}),
        json!({"text": evil, "pieces": 1}),
    ];
    scripted(folder.path(), "", &steps);
    let (_, out, aside) = told(haft(folder.path(), &["chat", "--color", "never"]), "hi\n");
    let steers = |it: char| it.is_control() && it != '\n';
    assert!(
        !out.contains(steers) && !aside.contains(steers),
        "{out:?}{aside:?}"
    );
    assert!(out.contains("[2J"), "the rest is shown: {out:?}");
}

#[test]
fn an_answer_that_fails_is_told_and_the_code_says_so() {
    let folder = folder();
    let none = "[loop.retry]\nattempts = 1\n";
    let steps = [
        json!({"fault": {"status": {"code": 401}}}),
        json!({"text": "Now."}),
    ];
    scripted(folder.path(), none, &steps);
    let (code, out, aside) = told(haft(folder.path(), &["chat"]), "hi\nagain\n");
    assert_eq!((code, out.as_str()), (Some(1), "Now.\n"));
    assert!(aside.starts_with("haft: "), "{aside}");
}

#[test]
fn json_has_one_line_per_answer() {
    let folder = folder();
    let steps = [
        json!({"calls": [{"name": "calculate", "arguments": {"expression": "1+1"}}]}),
        json!({"text": "Two.", "usage": {"input_tokens": 5, "output_tokens": 2}}),
        json!({"text": "Three."}),
    ];
    scripted(folder.path(), "", &steps);
    let command = haft(folder.path(), &["chat", "--json"]);
    let (code, out, _) = told(command, "1+1?\nand more?\n");
    assert_eq!(code, Some(0));
    let answers: Vec<Value> = out
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(answers.len(), 2, "{out}");
    assert_eq!(answers[0]["status"], "completed");
    assert_eq!(answers[0]["text"], "Two.");
    assert_eq!(answers[0]["calls"][0]["name"], "calculate");
    assert_eq!(answers[0]["calls"][0]["is_error"], false);
    assert_eq!(answers[1]["text"], "Three.");
}

#[test]
fn a_line_from_a_pipe_is_a_message_whatever_it_begins_with() {
    let folder = folder();
    let lines = ["/etc/hosts, what is it?", "//etc", "/save talk.md", "/quit"];
    let answered = |line: &&str| json!({"expect": {"user": {"equals": line}}, "text": "ok"});
    let steps: Vec<Value> = lines.iter().map(answered).collect();
    scripted(folder.path(), "", &steps);
    let command = haft(folder.path(), &["chat"]);
    let (code, out, aside) = told(command, &lines.join("\n"));
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "ok\nok\nok\nok\n"),
        "{aside}"
    );
    assert!(
        !folder.path().join("talk.md").exists(),
        "nothing is written"
    );
}

#[test]
fn a_message_on_the_command_line_is_told_where_it_belongs() {
    let folder = folder();
    let command = haft(folder.path(), &["chat", "it's", "me"]);
    let (code, out, aside) = told(command, "");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(aside.contains(r"echo 'it'\''s me' | haft chat"), "{aside}");
}

#[test]
fn a_model_that_is_not_there_is_a_mistake() {
    let folder = folder();
    scripted(
        folder.path(),
        "",
        &[json!({"text": "Hello.", "repeat": "forever"})],
    );
    let (code, _, aside) = told(haft(folder.path(), &["chat", "--model", "gpt"]), "hi\n");
    assert_eq!(code, Some(2));
    assert!(aside.contains("there is no model `gpt`"), "{aside}");
    let (_running, address) = Running::configured(folder.path());
    let chat = |model| {
        let arguments = ["chat", "--server", &address, "--model", model];
        told(haft(folder.path(), &arguments), "hi\n")
    };
    let (code, _, aside) = chat("gpt");
    assert_eq!(code, Some(2));
    assert!(
        aside.contains("the server has no model `gpt`") && aside.contains("`scripted`"),
        "{aside}"
    );
    // By the name that stands for whichever it is.
    assert_eq!(chat("default").1, "Hello.\n");
}

#[test]
fn what_is_continued_is_ones_own_and_told() {
    let folder = folder();
    let others = tempfile::tempdir().unwrap();
    let steps = [
        json!({"expect": {"user": {"equals": "mine"}}, "text": "ok"}),
        json!({"expect": {"user": {"equals": "theirs"}}, "text": "ok"}),
        json!({"expect": {"user": {"equals": "more"}, "items": 3}, "text": "yours"}),
        json!({"expect": {"user": {"equals": "what?"}}, "text": "ok"}),
        json!({"expect": {"user": {"equals": "in it"}, "items": 1}, "text": "ok"}),
        json!({"expect": {"user": {"equals": "still"}, "items": 3}, "text": "ok"}),
    ];
    scripted(folder.path(), "", &steps);
    let (_running, address) = Running::configured(folder.path());
    let chat = |home: &std::path::Path, more: &[&str], line: &str| {
        let mut arguments = vec!["chat", "--json", "--server", &address];
        arguments.extend(more);
        let (code, out, aside) = told(haft(home, &arguments), line);
        assert_eq!(code, Some(0), "{aside}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["status"], "completed", "{out}");
        (answer, aside)
    };
    let id = |answer: &Value| answer["response_id"].as_str().unwrap().to_owned();
    let (mine, _) = chat(folder.path(), &[], "mine\n");
    let (theirs, _) = chat(others.path(), &[], "theirs\n");
    let (more, aside) = chat(folder.path(), &["--continue"], "more\n");
    assert_eq!(more["text"], "yours");
    assert!(
        aside.contains(&format!("continuing `{}` of 2", id(&mine))),
        "{aside}"
    );
    assert!(!aside.contains(&id(&theirs)), "{aside}");
    // Whoever was never here is told that it may be somebody else's.
    let nobody = tempfile::tempdir().unwrap();
    let (_, aside) = chat(nobody.path(), &["--continue"], "what?\n");
    let words = ["whoever made it", "none from here is remembered"];
    assert!(words.iter().all(|it| aside.contains(it)), "{aside}");

    let (answer, aside) = chat(folder.path(), &["--conversation", "new"], "in it\n");
    let conversation = answer["conversation_id"].as_str().unwrap();
    let words = format!("`--conversation {conversation}` goes on with it");
    assert!(aside.contains(&words), "{aside}");
    let (answer, aside) = chat(folder.path(), &["--continue"], "still\n");
    assert_eq!(answer["conversation_id"], conversation);
    let words = format!("continuing the conversation `{conversation}`");
    assert!(aside.contains(&words), "{aside}");
}

#[test]
fn what_is_gone_is_not_continued_in_silence() {
    let folder = folder();
    scripted(
        folder.path(),
        "",
        &[json!({"text": "ok", "repeat": "forever"})],
    );
    let (_running, address) = Running::configured(folder.path());
    let chat = |more: &[&str]| {
        let mut arguments = vec!["chat", "--json", "--server", &address];
        arguments.extend(more);
        told(haft(folder.path(), &arguments), "hi\n")
    };
    let (code, _, aside) = chat(&["--continue"]);
    assert_eq!(code, Some(1));
    assert!(aside.contains("there is nothing to continue"), "{aside}");
    let host = address.strip_prefix("http://").unwrap();
    let body = json!({"input": "somebody else's"}).to_string();
    assert_eq!(request(host, "POST", "/responses", &body).0, 200);
    let answer: Value = serde_json::from_str(&chat(&[]).1).unwrap();
    let id = answer["response_id"].as_str().unwrap();
    assert_eq!(
        request(host, "DELETE", &format!("/responses/{id}"), "").0,
        200
    );
    let (code, _, aside) = chat(&["--continue"]);
    assert_eq!(code, Some(0), "{aside}");
    assert!(aside.contains("the last one from here is gone"), "{aside}");
}

#[test]
fn calls_that_need_approval_do_not_run_where_nobody_can_be_asked() {
    let calls = json!({"calls": [{"name": "calculate", "arguments": {"expression": "6*7"}}]});
    let steps = [calls, json!({"text": "Done."})];
    for (arguments, has_run) in [(&["chat", "--ask"][..], false), (&["chat"], true)] {
        let folder = folder();
        scripted(folder.path(), "", &steps);
        let (code, _, aside) = told(haft(folder.path(), arguments), "6*7?\n");
        assert_eq!(code, Some(0));
        assert_eq!(aside.contains("\"result\":\"42\""), has_run, "{aside}");
        assert_eq!(
            aside.contains("nobody is there to be asked"),
            !has_run,
            "{aside}"
        );
    }
}

#[test]
fn coerced_arguments_need_a_word_and_yes_is_one() {
    let arguments = json!({"query": "snow", "limit": "2"});
    let calls = json!({"calls": [{"name": "search_files", "arguments": arguments}]});
    let steps = [calls, json!({"text": "Done."})];
    for (arguments, has_run) in [(&["chat"][..], false), (&["chat", "--yes"], true)] {
        let folder = folder();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        std::fs::write(folder.path().join("docs/a.md"), "snow in Oslo\n").unwrap();
        let config = "[loop]\nrepair = true\n[search_files]\nfolders = [\"docs\"]\n";
        scripted(folder.path(), config, &steps);
        let (_, _, aside) = told(haft(folder.path(), arguments), "snow?\n");
        assert_eq!(aside.contains("docs/a.md"), has_run, "{aside}");
    }
}

#[test]
fn only_the_tools_that_are_wanted_are_offered() {
    let folder = folder();
    let offers = |names: &[&str]| json!({"expect": {"tools": {"exactly": names}}, "text": "ok"});
    scripted(folder.path(), "", &[offers(&["clock"])]);
    let command = haft(folder.path(), &["chat", "--tools", "haft:clock"]);
    assert_eq!(told(command, "hi\n").1, "ok\n");
    scripted(folder.path(), "", &[offers(&[])]);
    let command = haft(folder.path(), &["chat", "--tools", "none"]);
    assert_eq!(told(command, "hi\n").1, "ok\n");
    let command = haft(folder.path(), &["chat", "--tools", "shell"]);
    let (code, _, aside) = told(command, "hi\n");
    assert_eq!(code, Some(2));
    assert!(aside.contains("there is no tool `shell` here"), "{aside}");
}

#[test]
fn a_server_answers_and_keeps_the_conversation() {
    let folder = folder();
    let steps = [
        json!({"expect": {"tools": {"exactly": ["clock", "calculate"]},
            "instructions": {"contains": "Be brief."}},
            "calls": [{"name": "calculate", "arguments": {"expression": "6*7"}}]}),
        json!({"text": "42"}),
        json!({"expect": {"user": {"equals": "Sure?"}}, "text": "Sure."}),
        json!({"expect": {"user": {"equals": "Really?"}}, "text": "Really."}),
        json!({"expect": {"user": {"equals": "Who are you?"}, "items": 1}, "text": "Nobody."}),
    ];
    scripted(folder.path(), "", &steps);
    let (_running, address) = Running::configured(folder.path());
    let with_server = |more: &[&str]| {
        let mut arguments = vec!["chat", "--server", &address, "--instructions", "Be brief."];
        arguments.extend(more);
        haft(folder.path(), &arguments)
    };
    let (code, out, aside) = told(with_server(&[]), "6*7?\nSure?\n");
    assert_eq!((code, out.as_str()), (Some(0), "42\nSure.\n"), "{aside}");
    assert!(
        aside.contains("✓ calculate {\"expression\":\"6*7\"} ("),
        "{aside}"
    );

    // The command line wins over the environment, and what was said before is there again.
    let mut command = with_server(&["--continue"]);
    command.env("HAFT_SERVER", "http://127.0.0.1:1");
    let (_, out, aside) = told(command, "Really?\n");
    assert_eq!(out, "Really.\n", "{aside}");
    let (_, out, aside) = told(with_server(&["--conversation", "new"]), "Who are you?\n");
    assert_eq!(out, "Nobody.\n", "{aside}");
}

#[test]
fn functions_of_the_client_are_answered_by_the_person() {
    let folder = folder();
    let steps = [
        json!({"calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]}),
        json!({"expect": {"outputs": [{"text": {"equals": "4 °C and snow"}}]}, "text": "Take a coat."}),
        json!({"text": "Bye."}),
    ];
    scripted(folder.path(), "", &steps);
    let (_running, address) = Running::configured(folder.path());
    let function = json!({"type": "function", "name": "weather", "parameters": {"type": "object",
        "properties": {"city": {"type": "string"}}}});
    let body = json!({"input": "Do I need a coat in Oslo?", "tools": [function]});
    let host = address.strip_prefix("http://").unwrap();
    let (status, body) = request(host, "POST", "/responses", &body.to_string());
    assert_eq!(status, 200, "{body}");
    let response: Value = serde_json::from_str(&body).unwrap();
    let id = response["id"].as_str().unwrap();
    let call = response["output"][0]["call_id"].as_str().unwrap();
    let arguments = ["chat", "--server", &address, "--response", id];
    let asked = format!("weather {{\"city\":\"Oslo\"}}: `/output {call} TEXT`");
    // A pipe cannot answer it, and says so.
    let (code, out, aside) = told(haft(folder.path(), &arguments), "hello?\n");
    assert_eq!((code, out.as_str()), (Some(1), ""), "{aside}");
    assert!(aside.contains(&asked), "{aside}");
    let mut terminal = Terminal::run(folder.path(), &arguments);
    terminal.sees("> ");
    terminal.line("/output nothing 1");
    terminal.sees("does not wait for a call `nothing`");
    terminal.sees("> ");
    terminal.line(&format!("/output {call} 4 °C and snow"));
    terminal.sees("Take a coat.");
    terminal.sees("> ");
    terminal.line("bye");
    terminal.sees("Bye.");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_to_do() {
    let folder = folder();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let (code, out, aside) = told(haft(folder.path(), &["chat", "--server", &address]), "hi\n");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let words = format!("haft: nobody listens at http://{address}/v1\n  = help: ");
    assert!(aside.starts_with(&words), "{aside}");

    let config = format!("[server]\nlisten = \"{address}\"\n");
    std::fs::write(folder.path().join("haft.toml"), config).unwrap();
    let (_, _, aside) = told(haft(folder.path(), &["chat", "--continue"]), "hi\n");
    assert!(aside.contains("start it with `haft serve`"), "{aside}");
}

#[test]
fn a_key_is_asked_for_and_never_shown() {
    let folder = folder();
    let door = "[server]\napi_key_file = \"door.key\"\n";
    std::fs::write(folder.path().join("door.key"), "hunter2222\n").unwrap();
    std::fs::write(folder.path().join("wrong.key"), "swordfish\n").unwrap();
    scripted(
        folder.path(),
        door,
        &[json!({"text": "Come in.", "repeat": "forever"})],
    );
    let (_running, address) = Running::configured(folder.path());
    let chat = |more: &[&str], key: Option<&str>| {
        let mut arguments = vec!["chat", "--server", &address];
        arguments.extend(more);
        let mut command = haft(folder.path(), &arguments);
        command.envs(key.map(|key| ("HAFT_API_KEY", key)));
        let (code, out, aside) = told(command, "hi\n");
        assert!(
            !aside.contains("hunter2222") && !aside.contains("swordfish"),
            "{aside}"
        );
        (code, out, aside)
    };
    let (code, _, aside) = chat(&[], None);
    assert_eq!(code, Some(1));
    assert!(
        aside.contains("wants a key") && aside.contains("HAFT_API_KEY"),
        "{aside}"
    );
    let (_, _, aside) = chat(&["--key-file", "wrong.key"], None);
    assert!(aside.contains("refuses the key"), "{aside}");
    assert_eq!(chat(&["--key-file", "door.key"], None).1, "Come in.\n");
    assert_eq!(chat(&[], Some("hunter2222")).1, "Come in.\n");
    let (code, _, aside) = chat(&["--key-file", "gone.key"], None);
    assert_eq!(code, Some(1));
    assert!(aside.contains("cannot be read from `gone.key`"), "{aside}");
}

#[test]
fn an_answer_that_breaks_off_is_told_and_the_conversation_goes_on() {
    let folder = folder();
    let said = |text: &str| json!({"type": "response.output_text.delta", "delta": text});
    let broken = format!("data: {}\n\n", said("Half an ans"));
    let double = Double::start(vec![
        ended_with("resp_1", &[]),
        broken,
        String::from("data: no JSON\n\n"),
        ended_with("resp_2", &[]),
    ]);
    let arguments = ["chat", "--server", &double.address];
    let (code, out, aside) = told(haft(folder.path(), &arguments), "one\ntwo\nthree\nfour\n");
    assert_eq!((code, out.as_str()), (Some(1), "Half an ans\n"), "{aside}");
    assert!(
        aside.contains("broke off") && aside.contains("does not speak JSON"),
        "{aside}"
    );
    let previous: Vec<Value> = double
        .received()
        .iter()
        .map(|body| body["previous_response_id"].clone())
        .collect();
    assert_eq!(
        previous,
        [
            json!(null),
            json!("resp_1"),
            json!("resp_1"),
            json!("resp_1")
        ]
    );
}

#[test]
fn sections_of_the_configuration_are_read_and_bring_their_tools() {
    let folder = folder();
    let config = "[[prompt.section]]\nkey = \"task\"\ntitle = \"Task\"\nbody = \"Help with $what.\"\n\
                  [[prompt.section]]\nkey = \"sums\"\ntitle = \"Sums\"\nbody = \"Add with care.\"\n\
                  summary = \"How to add.\"\nvisibility = \"summary\"\ntools = [\"calculate\"]\n\
                  [prompt.params]\nwhat = \"numbers\"\n";
    let steps = [
        json!({"expect": {"tools": {"exactly": ["clock", "read_section"]},
            "instructions": {"contains": "Help with numbers."}},
            "calls": [{"name": "read_section", "arguments": {"section_key": "sums"}}]}),
        json!({"expect": {"tools": {"exactly": ["clock", "read_section", "calculate"]}},
            "calls": [{"name": "calculate", "arguments": {"expression": "6*7"}}]}),
        json!({"text": "42"}),
        // What was opened stays open.
        json!({"expect": {"instructions": {"contains": "Add with care."}}, "text": "Still 42."}),
    ];
    scripted(folder.path(), config, &steps);
    let (code, out, aside) = told(haft(folder.path(), &["chat"]), "6*7?\nsure?\n");
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "42\nStill 42.\n"),
        "{aside}"
    );
}

#[test]
fn without_a_model_a_search_and_the_call_of_what_it_found_can_be_seen() {
    let folder = folder();
    let config = "[loop]\ndefer = \"always\"\n";
    std::fs::write(folder.path().join("haft.toml"), config).unwrap();
    let arguments = ["chat", "--model", "offline", "--json"];
    let (code, out, aside) = told(haft(folder.path(), &arguments), "Calculate 2^64\n");
    assert_eq!(code, Some(0), "{aside}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    let calls = answer["calls"].as_array().unwrap().iter();
    let names: Vec<_> = calls.map(|call| call["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["search_tools", "calculate"]);
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("18446744073709551616"), "{text}");
}

#[test]
fn a_prompt_that_cannot_be_rendered_is_told_before_anything_is_typed() {
    let folder = folder();
    let section = "[[prompt.section]]\nkey = \"a\"\ntitle = \"A\"\nbody = \"For $who.\"\n";
    scripted(folder.path(), section, &[json!({"text": "Hello."})]);
    let (code, out, aside) = told(haft(folder.path(), &["chat"]), "hi\n");
    assert_eq!((code, out.as_str()), (Some(2), ""), "{aside}");
    assert!(aside.starts_with("haft.toml:4:13: "), "{aside}");
    assert!(aside.contains("there is no parameter `who`"), "{aside}");
}
