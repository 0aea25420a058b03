//! `haft chat` at a terminal: prompts, keys, questions.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::double::{Double, ended_with};
use support::terminal::{CTRL_C, CTRL_D, Terminal};
use support::{Running, scripted};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// An answer that takes minutes if nobody stops it.
fn endless() -> serde_json::Value {
    json!({"text": "tick ".repeat(400), "pieces": 5, "delay_ms": 250})
}

#[test]
fn a_person_is_welcomed_asked_and_answered() {
    let folder = folder();
    let steps = [
        json!({"calls": [{"name": "calculate", "arguments": {"expression": "6*7"}}]}),
        json!({"text": "It is\n42."}),
        json!({"expect": {"user": {"equals": "two\nlines"}}, "text": "I see both."}),
    ];
    scripted(folder.path(), "", &steps);
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    let welcome = terminal.sees("> ");
    assert!(welcome.contains("scripted, in this process"), "{welcome}");
    assert!(welcome.contains("clock, calculate"), "{welcome}");
    terminal.line("6*7?");
    terminal.sees("calculate");
    terminal.sees("{\"expression\":\"6*7\"}");
    terminal.sees("✓");
    terminal.sees("  It is\r\n  42.");
    terminal.sees("> ");
    terminal.line("two\\");
    terminal.sees("… ");
    terminal.line("lines");
    terminal.sees("I see both.");
    terminal.sees("> ");
    terminal.line("/usage");
    terminal.sees("2 answers:");
    // Tab completes commands.
    terminal.keys("/he\t");
    terminal.sees("/help ");
    terminal.keys("\r");
    terminal.sees("begin a new conversation");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn lines_that_are_typed_or_pasted_at_once_are_taken_one_after_the_other() {
    let folder = folder();
    let answer = |text: &str| json!({"expect": {"user": {"equals": text}}, "text": text.repeat(2)});
    scripted(
        folder.path(),
        "",
        &[answer("one"), answer("two"), answer("three\nfour")],
    );
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    terminal.keys("one\rtwo\r");
    terminal.sees("oneone");
    terminal.sees("twotwo");
    terminal.sees("> ");
    // As a terminal marks what is pasted: it is one message.
    terminal.keys("\u{1b}[200~three\nfour\u{1b}[201~\r");
    terminal.sees("fourthree");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn what_is_typed_while_an_answer_comes_is_taken_when_it_has_come() {
    let folder = folder();
    let answer = |text: &str| json!({"expect": {"user": {"equals": text}}, "text": text.repeat(2)});
    let slow = json!({"text": "tick ".repeat(30) + "done.", "pieces": 5, "delay_ms": 100});
    let steps = [slow, answer("two"), answer("three"), answer("four")];
    scripted(folder.path(), "", &steps);
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    terminal.line("one");
    terminal.sees("tick tick");
    // Two lines, and the beginning of a third.
    terminal.keys("two\rthree\rfo");
    terminal.sees("done.");
    terminal.sees("twotwo");
    terminal.sees("threethree");
    terminal.sees("> ");
    terminal.line("ur");
    terminal.sees("fourfour");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let folder = folder();
    let steps = [
        json!({"calls": [{"name": "calculate", "arguments": {"expression": "1+1"}}], "delay_ms": 1500}),
        json!({"expect": {"outputs": [{"is_error": true}]}, "text": "As you wish."}),
        json!({"expect": {"user": {"equals": "y"}}, "text": "Yes to what?"}),
    ];
    scripted(folder.path(), "", &steps);
    let mut terminal = Terminal::run(folder.path(), &["chat", "--ask"]);
    terminal.sees("> ");
    terminal.keys("one\ry\r");
    terminal.sees("may it run?");
    // The line that was typed ahead is shown, and the question stays.
    terminal.sees("may it run?");
    terminal.answer("n");
    terminal.sees("As you wish.");
    // It stands in the next line, to be sent or changed.
    terminal.sees("> ");
    terminal.sees("y");
    terminal.keys("\r");
    terminal.sees("Yes to what?");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn whoever_waits_sees_that_something_happens() {
    let folder = folder();
    scripted(
        folder.path(),
        "",
        &[json!({"text": "At last.", "delay_ms": 1500})],
    );
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    terminal.line("hi");
    terminal.sees("waiting for the model");
    terminal.sees("At last.");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn ctrl_c_stops_the_answer_and_not_the_program() {
    let folder = folder();
    scripted(
        folder.path(),
        "",
        &[endless(), json!({"text": "Still here."})],
    );
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    terminal.line("count");
    terminal.sees("tick tick");
    terminal.keys(CTRL_C);
    terminal.sees("stopped; ctrl-c once more leaves");
    terminal.sees("> ");
    terminal.line("are you there?");
    terminal.sees("Still here.");
    terminal.sees("> ");
    terminal.line("/quit");
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn ctrl_c_twice_leaves() {
    let folder = folder();
    scripted(folder.path(), "", &[endless()]);
    // At the prompt, where a line that was begun is forgotten.
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    terminal.keys("half a li");
    terminal.sees("half a li");
    terminal.keys(CTRL_C);
    terminal.sees("ctrl-c once more leaves");
    terminal.sees("> ");
    terminal.keys(CTRL_C);
    assert_eq!(terminal.ends().0, Some(130));

    // Behind an answer that it stopped.
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    terminal.line("count");
    terminal.sees("tick tick");
    terminal.keys(CTRL_C);
    terminal.sees("stopped");
    terminal.sees("> ");
    terminal.keys(CTRL_C);
    assert_eq!(terminal.ends().0, Some(130));
}

#[test]
fn a_person_decides_about_calls() {
    let folder = folder();
    let calls = |expressions: &[&str]| {
        let calls = expressions.iter().map(
            |expression| json!({"name": "calculate", "arguments": {"expression": expression}}),
        );
        json!({"calls": calls.collect::<Vec<_>>()})
    };
    let steps = [
        calls(&["1+1"]),
        json!({"expect": {"outputs": [{"is_error": false}]}, "text": "Two."}),
        calls(&["2+2"]),
        json!({"expect": {"outputs": [{"text": {"contains": "too dear"}, "is_error": true}]},
            "text": "As you wish."}),
        calls(&["3+3", "4+4"]),
        json!({"expect": {"outputs": [{"is_error": false}, {"is_error": false}]}, "text": "Fine."}),
        json!({"calls": [{"name": "clock", "arguments": {}}]}),
        json!({"text": "Never said."}),
    ];
    scripted(folder.path(), "", &steps);
    let mut terminal = Terminal::run(folder.path(), &["chat", "--ask"]);
    terminal.sees("> ");
    terminal.line("one");
    terminal.sees("you want to be asked");
    terminal.sees("\"expression\": \"1+1\"");
    terminal.sees("may it run?");
    terminal.answer("");
    terminal.sees("say `y`");
    terminal.sees("may it run?");
    terminal.answer("y");
    terminal.sees("Two.");
    terminal.sees("> ");
    terminal.line("two");
    terminal.sees("may it run?");
    terminal.answer("no, too dear");
    terminal.sees("✗");
    terminal.sees("As you wish.");
    terminal.sees("> ");
    terminal.line("three");
    terminal.sees("may it run?");
    terminal.answer("a");
    let seen = terminal.sees("Fine.");
    assert!(!seen.contains("may it run?"), "{seen}");
    terminal.sees("> ");
    terminal.line("four");
    terminal.sees("clock");
    terminal.sees("may it run?");
    terminal.answer("q");
    terminal.sees("stopped");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    let (code, seen) = terminal.ends();
    assert_eq!(code, Some(0));
    assert!(!String::from_utf8(seen).unwrap().contains("Never said"));
}

#[test]
fn commands_do_what_they_say() {
    let folder = folder();
    let steps = [
        json!({"text": "Hello."}),
        json!({"expect": {"user": {"equals": "/etc"}}, "text": "A folder."}),
        json!({"expect": {"user": {"equals": "Who am I?"}, "items": 1}, "text": "No idea."}),
    ];
    scripted(folder.path(), "", &steps);
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    terminal.line("hi");
    terminal.sees("Hello.");
    for (line, words) in [
        ("/usage", "1 answer:"),
        ("/tools", "calculate"),
        ("/model", "* scripted"),
        ("/save talk.md", "wrote talk.md"),
        (
            "/save talk.md",
            "`talk.md` is there already: give another name, or remove it first",
        ),
        ("/hlep", "did you mean `/help`?"),
        ("/model gpt", "there is no model `gpt`"),
        ("//etc", "A folder."),
        ("/new", "a new conversation"),
        ("Who am I?", "No idea."),
    ] {
        terminal.sees("> ");
        terminal.line(line);
        terminal.sees(words);
    }
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
    let saved = std::fs::read_to_string(folder.path().join("talk.md")).unwrap();
    assert_eq!(saved, "## user\n\nhi\n\n## assistant\n\nHello.\n\n");
}

#[test]
fn a_servers_models_and_conversation_are_at_hand() {
    let folder = folder();
    let steps = [json!({"text": "One."}), json!({"text": "Two."})];
    scripted(folder.path(), "", &steps);
    let (_running, address) = Running::configured(folder.path());
    let mut terminal = Terminal::run(folder.path(), &["chat", "--server", &address]);
    terminal.sees("> ");
    terminal.line("one");
    terminal.sees("One.");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
    let arguments = ["chat", "--server", &address, "--continue"];
    let mut terminal = Terminal::run(folder.path(), &arguments);
    terminal.sees("continuing `resp_");
    terminal.sees("One.");
    terminal.sees("> ");
    terminal.line("/model gpt");
    terminal.sees("the server has no model `gpt`: take one of `scripted`");
    terminal.sees("> ");
    terminal.line("two");
    terminal.sees("Two.");
    terminal.sees("> ");
    terminal.line("/save all.json");
    terminal.sees("wrote all.json");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends().0, Some(0));
    let saved = std::fs::read_to_string(folder.path().join("all.json")).unwrap();
    let items: Vec<serde_json::Value> = serde_json::from_str(&saved).unwrap();
    let roles: Vec<_> = items
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

#[test]
fn nothing_that_a_model_writes_steers_the_terminal() {
    let folder = folder();
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[35mpink\u{9b}35m\u{1b}]52;c;aGk=\u{7}done";
    scripted(folder.path(), "", &[json!({"text": evil, "pieces": 1})]);
    let mut terminal = Terminal::run(folder.path(), &["chat"]);
    terminal.sees("> ");
    terminal.line("hi");
    terminal.sees("done");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    let (_, seen) = terminal.ends();
    let seen = String::from_utf8(seen).unwrap();
    for sequence in [
        "\u{1b}]0;",
        "\u{1b}[2J",
        "\u{1b}[35m",
        "\u{9b}",
        "\u{1b}]52",
    ] {
        assert!(!seen.contains(sequence), "{sequence:?}: {seen:?}");
    }
}

#[test]
fn colours_are_there_unless_somebody_does_not_want_them() {
    for (arguments, variable, is_coloured) in [
        (&["chat"][..], None, true),
        (&["chat"], Some("NO_COLOR"), false),
        (&["chat", "--color", "never"], None, false),
    ] {
        let folder = folder();
        scripted(folder.path(), "", &[]);
        let mut terminal = Terminal::run_with(folder.path(), arguments, |command| {
            command.env_remove("NO_COLOR");
            command.envs(variable.map(|name| (name, "1")));
        });
        let welcome = terminal.sees("> ");
        assert_eq!(welcome.contains("\u{1b}[1m"), is_coloured, "{welcome:?}");
        terminal.keys(CTRL_D);
        terminal.ends();
    }
}

#[test]
fn a_server_is_stopped_and_goes_on_where_it_was_stopped() {
    let folder = folder();
    let steps = [
        json!({"text": "Hello."}),
        endless(),
        json!({"expect": {"user": {"equals": "and now?"}}, "text": "Still here."}),
    ];
    scripted(folder.path(), "", &steps);
    let (_running, address) = Running::configured(folder.path());
    let mut terminal = Terminal::run(folder.path(), &["chat", "--server", &address]);
    let welcome = terminal.sees("> ");
    assert!(
        welcome.contains(&format!("scripted at {address}")),
        "{welcome}"
    );
    terminal.line("hi");
    terminal.sees("Hello.");
    terminal.sees("> ");
    terminal.line("count");
    terminal.sees("tick tick");
    terminal.keys(CTRL_C);
    terminal.sees("stopped");
    terminal.sees("> ");
    terminal.line("and now?");
    terminal.sees("Still here.");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    terminal.sees(&format!(
        "to go on: `haft chat --server {address}/v1 --response resp_"
    ));
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn a_server_that_asks_for_approval_gets_the_word_of_the_person() {
    let folder = folder();
    let request = |id: &str, name: &str| {
        json!({"type": "mcp_approval_request", "id": id, "server_label": "air", "name": name,
            "arguments": "{\"seat\":\"1A\"}"})
    };
    let double = Double::start(vec![
        ended_with(
            "resp_1",
            &[request("mcpr_1", "book"), request("mcpr_2", "pay")],
        ),
        ended_with("resp_2", &[request("mcpr_3", "book")]),
        ended_with("resp_3", &[]),
    ]);
    let mut terminal = Terminal::run(folder.path(), &["chat", "--server", &double.address]);
    terminal.sees("> ");
    terminal.line("book it");
    terminal.sees("air/book");
    terminal.sees("\"seat\": \"1A\"");
    terminal.sees("may it run?");
    terminal.answer("a");
    terminal.sees("air/pay");
    terminal.sees("may it run?");
    terminal.answer("n too dear");
    terminal.sees("> ");
    terminal.keys(CTRL_D);
    terminal.ends();
    let received = double.received();
    assert_eq!(received.len(), 3, "the second time nobody is asked");
    let answer = |id: &str, approve: bool| json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve});
    let mut refusal = answer("mcpr_2", false);
    refusal["reason"] = "too dear".into();
    assert_eq!(received[1]["previous_response_id"], "resp_1");
    assert_eq!(
        received[1]["input"],
        json!([answer("mcpr_1", true), refusal])
    );
    assert_eq!(received[2]["input"], json!([answer("mcpr_3", true)]));
}
