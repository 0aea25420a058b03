//! `haft keys` as a process, and a server that goes by them.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Running, haft, request_with};

/// What a command prints that succeeds: on standard output and on standard error.
fn told(folder: &Path, arguments: &[&str]) -> (String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = haft(folder, arguments).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{arguments:?}: {stderr}");
    (String::from_utf8(stdout).unwrap(), stderr)
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    refused_with(1, folder, arguments)
}

fn refused_with(code: i32, folder: &Path, arguments: &[&str]) -> String {
    let output = haft(folder, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn listed(folder: &Path) -> Vec<Value> {
    let (json, _) = told(folder, &["keys", "list", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    json.as_array().unwrap().clone()
}

/// A key that was just made.
fn made(folder: &Path, arguments: &[&str]) -> String {
    let (key, _) = told(folder, &[&["keys", "add"], arguments].concat());
    key.trim_end().to_owned()
}

#[test]
fn a_key_is_printed_once_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let add = ["keys", "add", "ci", "--tenant", "acme", "--expires", "30d"];
    let (key, words) = told(folder.path(), &add);
    let key = key.strip_suffix('\n').unwrap();
    assert!(key.starts_with("haft_") && key.len() == 48, "{key}");
    assert!(
        key.bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it))
    );
    assert!(!words.contains(key), "{words}");
    assert!(
        words.contains("`ci`") && words.contains("`acme`"),
        "{words}"
    );
    assert!(words.contains("needs a key"), "{words}");
    let kept = fs::read_to_string(folder.path().join("haft-data/keys.json")).unwrap();
    assert!(!kept.contains(key) && !kept.contains(&key[5..]), "{kept}");
    let (table, _) = told(folder.path(), &["keys", "list"]);
    assert!(
        !table.contains(key) && table.contains(&key[44..]),
        "{table}"
    );
    let (_, words) = told(folder.path(), &["keys", "add", "other"]);
    assert!(
        !words.contains("every request to"),
        "only the first says so"
    );
}

#[test]
fn keys_are_listed_and_revoked_by_id_or_name() {
    let folder = tempfile::tempdir().unwrap();
    let (none, words) = told(folder.path(), &["keys", "list"]);
    assert!(
        none.is_empty() && words.contains("haft keys add"),
        "{words}"
    );
    let words = refused(folder.path(), &["keys", "revoke", "one"]);
    assert!(words.contains("there are no keys in `"), "{words}");
    assert!(words.contains("haft-data`\n"), "{words}");
    for hint in ["--data-dir DIR", "--config FILE"] {
        assert!(words.contains(hint), "{words}");
    }
    assert_eq!(listed(folder.path()), [json!(null); 0]);
    let limits = ["--requests-per-minute", "60", "--concurrent", "4"];
    made(folder.path(), &[&["one"], &limits[..]].concat());
    made(folder.path(), &["two"]);
    let keys = listed(folder.path());
    assert_eq!(
        (&keys[0]["name"], &keys[0]["tenant"], &keys[0]["state"]),
        (&json!("one"), &json!("default"), &json!("active"))
    );
    assert_eq!(keys[0]["requests_per_minute"], 60);
    assert_eq!(
        (&keys[0]["concurrent"], &keys[1]["concurrent"]),
        (&json!(4), &json!(null))
    );
    let (table, _) = told(folder.path(), &["keys", "list"]);
    assert!(table.contains("60 a minute, 4 at once"), "{table}");

    let id = keys[0]["id"].as_str().unwrap();
    let (words, _) = told(folder.path(), &["keys", "revoke", id]);
    assert!(words.starts_with("revoked `one`"), "{words}");
    let (words, _) = told(folder.path(), &["keys", "revoke", "one"]);
    assert!(words.contains("was revoked before"), "{words}");
    let words = refused(folder.path(), &["keys", "revoke", "three"]);
    assert!(
        words.starts_with("haft: there is no key `three`"),
        "{words}"
    );
    let words = refused(folder.path(), &["keys", "add", "two"]);
    assert!(words.contains("is called `two` already"), "{words}");
    // A name can be used again, and then means the new one.
    told(folder.path(), &["keys", "add", "one"]);
    told(folder.path(), &["keys", "revoke", "one"]);
    let states: Vec<_> = listed(folder.path())
        .iter()
        .map(|key| key["state"].clone())
        .collect();
    assert_eq!(states, ["revoked", "active", "revoked"]);
}

#[test]
fn what_cannot_be_a_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, why) in [
        (&["key_mine"][..], "no name for a key"),
        (&[" mine"], "no name for a key"),
        (&["mine", "--tenant", "a b"], "no name for a tenant"),
        (&["mine", "--tenant", ".."], "no name for a tenant"),
        (&["mine", "--expires", "0s"], "no time"),
    ] {
        let words = refused_with(2, folder.path(), &[&["keys", "add"], arguments].concat());
        assert!(words.contains(why), "{words}");
    }
    assert!(!folder.path().join("haft-data/keys.json").exists());
    made(folder.path(), &["good"]);
    let path = folder.path().join("haft-data/keys.json");
    fs::write(&path, "{\"version\": 1, \"keys\": [").unwrap();
    for arguments in [
        &["keys", "add", "x"][..],
        &["keys", "list"],
        &["keys", "revoke", "good"],
    ] {
        let words = refused(folder.path(), arguments);
        assert!(words.contains("damaged"), "{words}");
    }
    let left = fs::read_to_string(&path).unwrap();
    assert_eq!(
        left, "{\"version\": 1, \"keys\": [",
        "what is damaged is not written over"
    );
}

#[test]
fn those_who_add_at_once_do_not_lose_each_others_keys() {
    let folder = tempfile::tempdir().unwrap();
    let adding: Vec<_> = (0..12)
        .map(|at| {
            let name = format!("key {at}");
            let mut command = haft(folder.path(), &["keys", "add", &name]);
            command.stdout(std::process::Stdio::null());
            command.stderr(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for mut child in adding {
        assert!(child.wait().unwrap().success());
    }
    let mut names: Vec<_> = listed(folder.path())
        .iter()
        .map(|key| key["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 12);
}

/// The status of a request with this key.
fn status(address: &str, key: Option<&str>) -> u16 {
    let header = key.map(|key| format!("authorization: Bearer {key}\r\n"));
    request_with(address, "GET", "/models", &header.unwrap_or_default(), "").0
}

/// Asks until the answer is this one; a server looks at its keys once a second.
fn becomes(address: &str, key: Option<&str>, expected: u16) {
    let until = Instant::now() + Duration::from_secs(20);
    while status(address, key) != expected {
        assert!(Instant::now() < until, "it never becomes {expected}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_server_that_runs_takes_keys_over() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, lines) = Running::start(folder.path());
    let address = lines[0].strip_prefix("listening on http://").unwrap();
    assert_eq!(status(address, None), 200);
    let first = made(folder.path(), &["first"]);
    becomes(address, None, 401);
    assert_eq!(status(address, Some(&first)), 200);
    assert_eq!(status(address, Some("haft_wrong")), 401);
    let second = made(folder.path(), &["second"]);
    becomes(address, Some(&second), 200);
    told(folder.path(), &["keys", "revoke", "first"]);
    becomes(address, Some(&first), 401);
    assert_eq!(status(address, Some(&second)), 200);
}

#[test]
fn an_address_that_others_reach_needs_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--listen", "0.0.0.0:0", "--model", "offline"];
    let words = refused_with(2, folder.path(), &arguments);
    assert!(
        words.starts_with("haft: others can reach `0.0.0.0:"),
        "{words}"
    );
    for way in ["haft keys add", "--listen 127.0.0.1:", "--allow-anonymous"] {
        assert!(words.contains(way), "{words}");
    }
    let port = |lines: &[String]| {
        let (_, port) = lines[0].rsplit_once(':').unwrap();
        format!("127.0.0.1:{port}")
    };

    let open = [&arguments[..], &["--allow-anonymous"]].concat();
    let (running, lines) = Running::start_with(haft(folder.path(), &open));
    assert_eq!(status(&port(&lines), None), 200);
    let page = lines.join("\n");
    assert!(
        page.contains("whoever reaches this address can use it"),
        "{page}"
    );
    running.kill();

    let key = made(folder.path(), &["first"]);
    let (_running, lines) = Running::start_with(haft(folder.path(), &arguments));
    assert_eq!(status(&port(&lines), None), 401);
    assert_eq!(status(&port(&lines), Some(&key)), 200);
    let page = lines.join("\n");
    assert!(page.contains("`haft keys list --data-dir /"), "{page}");
    assert!(page.contains("$HAFT_API_KEY"), "{page}");
    assert!(!page.contains(&key), "{page}");
}

#[test]
fn a_damaged_file_of_keys_keeps_a_server_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    made(folder.path(), &["first"]);
    fs::write(folder.path().join("haft-data/keys.json"), "{}").unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--model", "offline"];
    let words = refused(folder.path(), &arguments);
    assert!(
        words.contains("keys.json") && words.contains("damaged"),
        "{words}"
    );
}

fn address(lines: &[String]) -> &str {
    lines[0].strip_prefix("listening on http://").unwrap()
}

#[test]
fn a_lost_file_of_keys_keeps_a_server_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("haft-data/keys.json");
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--model", "offline"];
    let serve = || Running::start_with(haft(folder.path(), &arguments));
    // The first key is made while the server runs.
    let (running, lines) = serve();
    assert_eq!(status(address(&lines), None), 200);
    made(folder.path(), &["first"]);
    std::thread::sleep(Duration::from_millis(2500));
    running.kill();
    fs::remove_file(&file).unwrap();
    for _ in 0..2 {
        let words = refused_with(2, folder.path(), &arguments);
        assert!(
            words.contains("keys.json` is missing") && words.contains("--forget-api-keys"),
            "{words}"
        );
    }

    let key = made(folder.path(), &["second"]);
    let (running, lines) = serve();
    assert_eq!(status(address(&lines), None), 401);
    assert_eq!(status(address(&lines), Some(&key)), 200);
    running.kill();

    fs::remove_file(&file).unwrap();
    let forgetting = [&arguments[..], &["--forget-api-keys"]].concat();
    let (running, lines) = Running::start_with(haft(folder.path(), &forgetting));
    assert_eq!(status(address(&lines), None), 200);
    running.kill();
    // Once is enough.
    let (_running, lines) = serve();
    assert_eq!(status(address(&lines), None), 200);
}
