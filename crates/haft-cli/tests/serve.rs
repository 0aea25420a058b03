//! `haft serve` as a process: what it says, what it refuses, and how it stops.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::json;
#[cfg(unix)]
use support::Running;
use support::{haft, scripted};

/// What a command says that fails with this code and prints nothing.
fn refused(command: &mut Command, code: i32) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let words = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{words}");
    assert!(stdout.is_empty(), "{words}");
    words
}

#[test]
fn a_bad_file_is_told_with_its_line_by_every_way_to_serve() {
    let folder = tempfile::tempdir().unwrap();
    let bad = "[server]\n\n  lisen = \"127.0.0.1:0\"\n";
    fs::write(folder.path().join("haft.toml"), bad).unwrap();
    let expected = "haft.toml:3:3: unknown key `lisen`\n  |\n3 |   lisen = \"127.0.0.1:0\"\n  |   \
                    ^^^^^\n  = help: did you mean `listen`?\n";
    for arguments in [
        &[][..],
        &["serve"],
        &["serve", "--config", "haft.toml"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let words = refused(&mut haft(folder.path(), arguments), 2);
        assert_eq!(words, expected, "{arguments:?}");
    }
}

#[test]
fn a_named_file_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = haft(folder.path(), &["serve", "--config", "gone.toml"]);
    let words = refused(&mut command, 2);
    assert!(
        words.starts_with("gone.toml: there is no such file"),
        "{words}"
    );
    assert!(words.contains("haft init gone.toml"), "{words}");
}

#[test]
fn a_file_that_is_no_text_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("haft.toml"), b"[server]\n\xff").unwrap();
    let words = refused(&mut haft(folder.path(), &["serve"]), 2);
    assert!(words.contains("not UTF-8"), "{words}");
    fs::remove_file(folder.path().join("haft.toml")).unwrap();
    fs::create_dir(folder.path().join("haft.toml")).unwrap();
    let words = refused(&mut haft(folder.path(), &["serve"]), 2);
    assert!(words.contains("cannot be read"), "{words}");
}

#[test]
fn a_bad_variable_is_told_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = haft(folder.path(), &["serve"]);
    let words = refused(command.env("HAFT_SERVER__LISTEN", "nowhere"), 2);
    assert!(words.starts_with("HAFT_SERVER__LISTEN: "), "{words}");
    let mut command = haft(folder.path(), &["serve"]);
    let words = refused(command.env("HAFT_LOG", "haft=loud"), 2);
    assert!(words.starts_with("HAFT_LOG: "), "{words}");
}

#[test]
fn a_key_never_reaches_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[model]]\nname = \"a\"\nadapter = \"anthropic\"\napi_key = \"sk-hunter2\"\n";
    fs::write(folder.path().join("haft.toml"), text).unwrap();
    let words = refused(&mut haft(folder.path(), &["serve"]), 2);
    assert!(words.contains("api_key_env"), "{words}");
    assert!(!words.contains("hunter2"), "{words}");
}

#[test]
fn an_occupied_port_is_told_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = haft(folder.path(), &["serve", "--listen", &address]);
    let words = refused(command.args(["--model", "offline"]), 1);
    assert!(
        words.starts_with(&format!("haft: cannot listen on `{address}`: ")),
        "{words}"
    );
    assert!(words.contains("--listen 127.0.0.1:0"), "{words}");

    // The flag wins over the variable, and the variable over the file.
    fs::write(
        folder.path().join("haft.toml"),
        "[server]\nlisten = \"192.0.2.1:1\"\n",
    )
    .unwrap();
    let mut command = haft(folder.path(), &["serve", "--model", "offline"]);
    let words = refused(command.env("HAFT_SERVER__LISTEN", &address), 1);
    assert!(words.contains(&address), "{words}");
    let mut command = haft(folder.path(), &["serve", "--model", "offline"]);
    command.env("HAFT_SERVER__LISTEN", "192.0.2.1:2");
    let words = refused(command.args(["--listen", &address]), 1);
    assert!(words.contains(&address), "{words}");
}

#[test]
fn a_data_folder_that_cannot_be_is_told_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("occupied"), "").unwrap();
    let arguments = ["serve", "--model", "offline", "--data-dir", "occupied/data"];
    let words = refused(&mut haft(folder.path(), &arguments), 1);
    assert!(
        words.starts_with("haft: cannot write to the data folder"),
        "{words}"
    );
    assert!(words.contains("--data-dir"), "{words}");
}

#[test]
fn a_model_of_the_command_line_without_its_key_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--model", "anthropic:claude-sonnet-5"];
    let words = refused(&mut haft(folder.path(), &arguments), 2);
    assert!(words.contains("`ANTHROPIC_API_KEY` is not set"), "{words}");
}

#[test]
fn help_tells_of_every_flag() {
    let folder = tempfile::tempdir().unwrap();
    let output = haft(folder.path(), &["serve", "--help"]).output().unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[cfg(unix)]
#[test]
fn the_page_comes_when_requests_are_answered_and_its_command_works() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, lines) = Running::start(folder.path());
    let address = lines[0].strip_prefix("listening on http://").unwrap();
    assert!(!address.ends_with(":0"), "{address}");
    let data_dir = folder.path().canonicalize().unwrap().join("haft-data");
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with(data_dir.to_str().unwrap()))
    );
    let curl = lines.last().unwrap();
    let output = Command::new("sh").args(["-c", curl]).output().unwrap();
    let events = String::from_utf8(output.stdout).unwrap();
    assert!(events.contains("haft:clock"), "{events}");
    assert!(events.contains("event: response.completed"), "{events}");
}

#[cfg(unix)]
#[test]
fn a_signal_stops_it_in_peace() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut running, _) = Running::start(folder.path());
        running.signal(signal);
        let status = running.0.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{signal}");
    }
}

#[cfg(unix)]
#[test]
fn two_servers_do_not_share_a_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, _) = Running::start(folder.path());
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--model", "offline"];
    let words = refused(&mut haft(folder.path(), &arguments), 1);
    assert!(words.contains("in use by another haft"), "{words}");
    assert!(words.contains("--data-dir"), "{words}");
}

#[cfg(unix)]
#[test]
fn a_database_of_a_newer_haft_is_not_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let (running, _) = Running::start(folder.path());
    running.kill();
    let path = folder.path().join("haft-data/haft.db");
    let database = rusqlite::Connection::open(path).unwrap();
    database.pragma_update(None, "user_version", 9999).unwrap();
    drop(database);
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--model", "offline"];
    let words = refused(&mut haft(folder.path(), &arguments), 2);
    assert!(words.contains("has version 9999"), "{words}");
}

/// What somebody gets who sends this request; the body comes after the status.
#[cfg(unix)]
fn answered(address: &str, headers: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let patience = std::time::Duration::from_secs(30);
    stream.set_read_timeout(Some(patience)).unwrap();
    let body = r#"{"input": "hi"}"#;
    let length = body.len();
    write!(
        stream,
        "POST /v1/responses HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[cfg(unix)]
#[test]
fn what_the_file_says_reaches_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[server]\napi_key_file = \"door.key\"\nmax_body_bytes = 1024\n\
                  data_dir = \"mine\"\n[[model]]\nname = \"rules\"\nadapter = \"offline\"\n";
    fs::write(folder.path().join("haft.toml"), config).unwrap();
    fs::write(folder.path().join("door.key"), "hunter2\n").unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0"];
    let (_running, lines) = Running::start_with(haft(folder.path(), &arguments));
    assert!(folder.path().join("mine/haft.db").exists());
    let address = lines[0].strip_prefix("listening on http://").unwrap();

    let answer = answered(address, "");
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    let answer = answered(address, "authorization: Bearer hunter2\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains(r#""model":"rules""#), "{answer}");

    let page = lines.join("\n");
    assert!(page.contains("as `haft.toml` says"), "{page}");
    assert!(!page.contains("hunter2"), "{page}");
    let curl = lines.last().unwrap();
    let output = Command::new("sh").args(["-c", curl]).output().unwrap();
    let events = String::from_utf8(output.stdout).unwrap();
    assert!(events.contains("event: response.completed"), "{events}");
}

#[cfg(unix)]
#[test]
fn a_providers_key_in_the_environment_picks_the_model_and_stays_secret() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = haft(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("ANTHROPIC_API_KEY", "hunter2");
    command.env("ANTHROPIC_MODEL", "claude-of-tests");
    let (_running, lines) = Running::start_with(command);
    let page = lines.join("\n");
    assert!(page.contains("claude-of-tests by anthropic"), "{page}");
    assert!(
        page.contains("because `ANTHROPIC_API_KEY` is set"),
        "{page}"
    );
    assert!(!page.contains("hunter2"), "{page}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_on_this_machine_is_used() {
    use haft::testing::{ScriptedServer, say};
    let model = ScriptedServer::start([say("I was here all the time.")])
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = haft(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("OLLAMA_HOST", model.url());
    let asked = tokio::task::spawn_blocking(move || {
        let (_running, lines) = Running::start_with(command);
        let address = lines[0].strip_prefix("listening on http://").unwrap();
        (answered(address, ""), lines.join("\n"))
    });
    let (answer, page) = asked.await.unwrap();
    assert!(
        page.contains("because it answers at http://127.0.0.1:"),
        "{page}"
    );
    assert!(answer.contains("I was here all the time."), "{answer}");
}

#[cfg(unix)]
#[test]
fn folders_that_may_be_searched_make_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("docs")).unwrap();
    let config = "[search_files]\nfolders = [\"docs\"]\n";
    fs::write(folder.path().join("haft.toml"), config).unwrap();
    let (_running, lines) = Running::start(folder.path());
    let tools = lines
        .iter()
        .find(|line| line.starts_with("  tools"))
        .unwrap();
    assert!(tools.contains("haft:search_files"), "{tools}");
}

#[cfg(unix)]
#[test]
fn sigterm_ends_a_server_that_is_blocked_by_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let steps = [json!({"text": "hello", "repeat": "forever"})];
    scripted(folder.path(), "[server]\nstop_wait = \"1s\"", &steps);
    let mut command = haft(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("HAFT_LOG", "trace");
    // The pipe of the log is never read: when it is full, every thread that logs is blocked.
    let (mut running, lines) = Running::start_logging_to(Stdio::piped(), command);
    let address = lines[0].strip_prefix("listening on http://").unwrap();
    let is_blocked = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(3)))
            .unwrap();
        let body = r#"{"input": "hi"}"#;
        write!(
            stream,
            "POST /v1/responses HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream.read_to_end(&mut Vec::new()).is_err()
    };
    assert!((0..5_000).any(|_| is_blocked()), "the log never fills up");
    running.signal("TERM");
    for _ in 0..600 {
        if running.0.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the server is still running");
}
