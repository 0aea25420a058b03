//! Long results of foreground responses are on no disk, and those of dead background runs do not stay.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::json;

use crate::kit::{LONG, fake};
use crate::support::{Running, haft, scripted};

const MARKER: &str = "spilled-marker";

/// The files below a folder that hold the marker in clear.
fn revealing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(MARKER) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// A server whose model calls a tool with a long result and then one that never answers.
fn serving(folder: &Path) -> (Running, String) {
    let text = MARKER.repeat(1000);
    let steps = [
        json!({"calls": [{"name": "local__echo", "arguments": {"text": text}}]}),
        json!({"calls": [{"name": "local__silent", "arguments": {}}]}),
    ];
    let config = format!(
        "[loop]\nspill_bytes = 1000\n{}",
        fake("local", "legacy", "")
    );
    scripted(folder, &config, &steps);
    // The script holds the marker, and the server has read it.
    let temporary = folder.join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = haft(folder, &["serve", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", &temporary);
    let (running, lines) = Running::start_with(command);
    let address = lines[0].strip_prefix("listening on http://").unwrap();
    (running, address.to_owned())
}

/// Asks for a stream, and reads it until the second call has begun.
fn until_second_call(address: &str, body: &serde_json::Value) -> TcpStream {
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(
        stream,
        "POST /v1/responses HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let is_second = |line: &String| {
        line.contains("\"type\":\"mcp_call\"") && line.contains("\"name\":\"silent\"")
    };
    lines
        .map_while(Result::ok)
        .find(is_second)
        .expect("the stream ended");
    stream
}

fn body(more: serde_json::Value) -> serde_json::Value {
    let mut body = json!({"input": "go", "stream": true, "tools": [
        {"type": "mcp", "server_label": "local", "require_approval": "never"},
    ]});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn long_results_of_unstored_responses_are_on_no_disk_even_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (running, address) = serving(folder.path());
    let stream = until_second_call(&address, &body(json!({"store": false})));
    let (temporary, data) = (folder.path().join("tmp"), folder.path().join("haft-data"));
    assert_eq!(revealing(&temporary), Vec::<String>::new());
    assert_eq!(revealing(&data), Vec::<String>::new());
    running.kill();
    assert_eq!(revealing(&temporary), Vec::<String>::new());
    assert_eq!(revealing(&data), Vec::<String>::new());
    drop(stream);
}

#[test]
fn long_results_of_background_responses_are_in_the_data_folder_and_leftovers_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("haft-data/spill/haft-spill-dead");
    fs::create_dir_all(&dead).unwrap();
    fs::write(dead.join("result.txt"), MARKER).unwrap();
    let (_running, address) = serving(folder.path());
    let stream = until_second_call(&address, &body(json!({"background": true})));
    assert!(!dead.exists(), "a leftover stays");
    let temporary = folder.path().join("tmp");
    assert_eq!(revealing(&temporary), Vec::<String>::new());
    let spilled = revealing(&folder.path().join("haft-data/spill"));
    assert_eq!(spilled.len(), 1, "{spilled:?}");
    drop(stream);
}
