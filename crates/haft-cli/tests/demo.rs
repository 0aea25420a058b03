//! What a new user sees first, word for word.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};

use haft::json;
use haft::testing::{Fault, ScriptedServer, call, fault, output_contains, say, user_contains};

fn haft(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_haft"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Standard output of a command that succeeds without a word on standard error.
fn shown(arguments: &[&str]) -> String {
    let output = haft(arguments);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text with `‹time›` for every time in it.
fn timeless(text: &str) -> String {
    let mut told: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let (unit, rest) = word.split_at(word.find([')', '\n']).unwrap_or(word.len()));
        let is_time = |before: &String| before.trim_start_matches('(').parse::<f64>().is_ok();
        match told.last_mut().filter(|before| is_time(before)) {
            Some(number) if ["ms", "s"].contains(&unit) => {
                let opening = if number.starts_with('(') { "(" } else { "" };
                *number = format!("{opening}‹time›{rest}");
            }
            _ => told.push(word.to_owned()),
        }
    }
    told.join(" ")
}

#[test]
fn the_demonstration_shows_a_whole_run() {
    insta::assert_snapshot!(timeless(&shown(&["demo"])));
}

#[test]
fn the_demonstration_shows_what_happens_to_every_call() {
    insta::assert_snapshot!(shown(&["demo", "calls"]));
}

#[test]
fn a_question_of_ones_own_is_answered_with_the_same_tools() {
    let text = shown(&["ask", "Convert 100 degrees to celsius"]);
    assert!(text.contains("100 °F are 37.8 °C"), "{text}");
    assert!(text.contains("completed: 2 turns, 1 call, "), "{text}");
}

#[test]
fn a_missing_key_is_named_before_anything_is_asked() {
    let output = haft(&["ask", "hi", "--model", "openai-chat:gpt-5.2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("`OPENAI_API_KEY` is not set"), "{words}");
}

/// `haft ask` of a model on loopback, while the server answers.
async fn asked(server: &ScriptedServer, model: &str) -> Output {
    let mut haft = Command::new(env!("CARGO_BIN_EXE_haft"));
    haft.args(["ask", "Which notes are there?", "--model", model])
        .env("NO_COLOR", "1")
        .env("OPENAI_API_KEY", "secret-key")
        .env("OPENAI_BASE_URL", server.base_url())
        .env("ANTHROPIC_API_KEY", "secret-key")
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("OLLAMA_HOST", server.url());
    tokio::task::spawn_blocking(move || haft.output().unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn every_adapter_answers_with_the_tools() {
    for model in [
        "openai-chat:some-model",
        "openai-responses:some-model",
        "anthropic:some-model",
        "ollama:some-model",
    ] {
        let server = ScriptedServer::start([
            call("find_notes", json!({"word": "milk"})).expect(user_contains("Which notes")),
            say("There is milk to buy.").expect(output_contains("oat milk")),
        ])
        .await
        .unwrap();
        let output = asked(&server, model).await;
        server.assert_finished();
        assert!(output.status.success(), "{model}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(r#"→ find_notes {"word":"milk"}"#), "{text}");
        assert!(text.contains("There is milk to buy."), "{text}");
        assert!(text.contains("completed: 2 turns, 1 call, "), "{text}");
    }
}

#[tokio::test]
async fn a_run_that_fails_says_why_and_keeps_the_key_to_itself() {
    let refusal = Fault::Status {
        code: 401,
        body: Some(json!({"error": {"message": "no such key: secret-key"}})),
        headers: BTreeMap::new(),
    };
    let server = ScriptedServer::start([fault(refusal)]).await.unwrap();
    let output = asked(&server, "openai-chat:some-model").await;
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("failed: 1 turn, 0 calls"), "{text}");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("haft: "), "{words}");
    assert!(words.contains("no such key"), "{words}");
    assert!(!text.contains("no such key"), "{text}");
    for told in [text, words] {
        assert!(!told.contains("secret-key"), "{told}");
    }
}

#[tokio::test]
async fn a_request_that_is_repeated_says_which_attempt_it_is() {
    let busy = Fault::Status {
        code: 503,
        body: None,
        headers: BTreeMap::new(),
    };
    let server = ScriptedServer::start([fault(busy), say("Here I am.")])
        .await
        .unwrap();
    let output = asked(&server, "openai-chat:some-model").await;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("· attempt 1: "), "{text}");
    assert!(text.contains("; attempt 2 in "), "{text}");
}

#[test]
fn bad_arguments_are_errors_that_say_what_to_do() {
    for arguments in [
        &["--nonsense"][..],
        &["nonsense"],
        &["demo", "nonsense"],
        &["ask"],
        &["ask", ""],
        &["ask", "hi", "--model", "gpt-5.2"],
        &["ask", "hi", "--model", "ollama:"],
        &["serve", "--listen", "nowhere"],
        &["serve", "--model", "gpt-5.2"],
        &["serve", "--nonsense"],
        &["init", "one", "two"],
    ] {
        let output = haft(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.contains("--help"), "{words}");
    }
}

#[test]
fn help_names_every_command() {
    let text = shown(&["--help"]);
    for command in ["serve", "init", "demo", "ask"] {
        assert!(text.contains(&format!("\n  {command} ")), "{text}");
    }
    let text = shown(&["ask", "--help"]);
    assert!(
        text.contains("anthropic:NAME") && text.contains("OLLAMA_HOST"),
        "{text}"
    );
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    for arguments in [&["demo"][..], &["demo", "calls"]] {
        let mut haft = Command::new(env!("CARGO_BIN_EXE_haft"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(haft.stdout.take());
        let output = haft.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}
