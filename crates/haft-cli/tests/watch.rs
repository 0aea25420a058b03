//! What the operator of a real server sees of it: its log, its metrics, its spans.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Running, haft, request, scripted};

fn steps() -> [Value; 2] {
    [
        json!({"calls": [{"name": "calculate", "arguments": {"expression": "6 * 7"}}]}),
        json!({"text": "hunter2", "repeat": "forever"}),
    ]
}

fn body() -> String {
    json!({"input": "hunter2", "tools": [{"type": "haft:calculate"}]}).to_string()
}

/// A server whose log is kept; its address.
fn logging(folder: &Path, variables: &[(&str, &str)]) -> (Running, String) {
    let mut command = haft(folder, &["serve", "--listen", "127.0.0.1:0"]);
    command.envs(variables.iter().copied());
    let mut child = command
        .stdout(Stdio::piped())
        // To a file: nobody reads along, and a pipe has its limits.
        .stderr(std::fs::File::create(folder.join("log")).unwrap())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let running = Running(child);
    out.read_line(&mut first).unwrap();
    // As a line for people, or for programs.
    let said: Option<Value> = serde_json::from_str(&first).ok();
    let said = said.as_ref().and_then(|said| said["address"].as_str());
    let address = said.or_else(|| first.trim().strip_prefix("listening on "));
    let address = address.and_then(|address| address.strip_prefix("http://"));
    let address = address.unwrap_or_else(|| panic!("{first}{}", log(folder)));
    // Nobody must be kept from saying the rest.
    std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    (running, address.to_owned())
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap()
}

/// Stops a server in peace; its log.
fn stopped(mut running: Running, folder: &Path) -> String {
    running.signal("TERM");
    running.0.wait().unwrap();
    log(folder)
}

/// What is at `/metrics`, with its head.
fn metrics(address: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn what_a_run_says_while_its_answer_is_read_belongs_to_its_request() {
    let folder = tempfile::tempdir().unwrap();
    let step = json!({
        "text": "tick ".repeat(20), "pieces": 5, "fault": {"cut_after_events": 8}, "delay_ms": 20,
    });
    scripted(folder.path(), "[log]\nformat = \"json\"\n", &[step]);
    let (running, address) = logging(folder.path(), &[]);
    let body = json!({"input": "hi", "stream": true}).to_string();
    let header = "x-request-id: mine-1\r\n";
    let (status, events) = support::request_with(&address, "POST", "/responses", header, &body);
    assert_eq!(status, 200, "{events}");
    assert!(events.contains("response.failed"), "{events}");
    let log = stopped(running, folder.path());
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let warnings: Vec<Value> = lines
        .filter(|line: &Value| line["level"] == "WARN")
        .collect();
    assert!(!warnings.is_empty(), "{log}");
    for warning in warnings {
        assert_eq!(warning["span"]["request_id"], "mine-1", "{log}");
    }
}

#[test]
fn the_log_is_text_or_json_and_says_what_was_asked_but_not_in_which_words() {
    for (table, variables, is_json, has_access) in [
        ("", &[][..], false, true),
        ("[log]\nformat = \"json\"\n", &[], true, true),
        (
            "[log]\naccess = false\nlevel = \"debug\"\n",
            &[],
            false,
            false,
        ),
        ("[log]\nlevel = \"off\"\n", &[], false, false),
        (
            "[log]\nlevel = \"off\"\n",
            &[("HAFT_LOG", "info")],
            false,
            true,
        ),
        ("", &[("HAFT_LOG__FORMAT", "json")], true, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        scripted(folder.path(), table, &steps());
        let (running, address) = logging(folder.path(), variables);
        let (status, _) = request(&address, "POST", "/responses", &body());
        let log = stopped(running, folder.path());
        assert_eq!(status, 200, "{log}");
        let is_told = log.contains("listening") && log.contains(&address);
        assert_eq!(is_told, !log.is_empty(), "{log}");
        assert!(!log.contains("hunter2"), "{log}");
        let access: Vec<_> = log
            .lines()
            .filter(|it| it.contains("haft::access"))
            .collect();
        assert_eq!(access.len(), usize::from(has_access), "{table} {log}");
        if !is_json {
            let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
            assert!(!log.lines().any(is_json), "{log}");
            continue;
        }
        for line in log.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(line["timestamp"].is_string() && line["message"].is_string());
        }
        let line: Value = serde_json::from_str(access[0]).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(
            (&line["method"], &line["status"]),
            (&json!("POST"), &json!(200))
        );
        assert_eq!(line["route"], "/v1/responses");
        assert!(line["request_id"].as_str().unwrap().starts_with("req_"));
        assert!(
            line["ms"].is_number() && line["bytes"].is_number(),
            "{line}"
        );
    }
}

#[test]
fn metrics_are_there_unless_the_operator_wants_none() {
    let folder = tempfile::tempdir().unwrap();
    scripted(folder.path(), "", &steps());
    let (running, address) = logging(folder.path(), &[]);
    request(&address, "POST", "/responses", &body());
    let text = metrics(&address);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let calls = "haft_tool_calls_total{kind=\"haft:calculate\",outcome=\"succeeded\"} 1\n";
    assert!(text.contains(calls), "{text}");
    assert!(text.contains("haft_build_info{version="), "{text}");
    stopped(running, folder.path());

    let off = [("HAFT_METRICS__ENABLED", "false")];
    let (_running, address) = logging(folder.path(), &off);
    let text = metrics(&address);
    assert!(text.starts_with("HTTP/1.1 404"), "{text}");
}

/// Waits until the log has this text.
fn logged(folder: &Path, text: &str) {
    for _ in 0..200 {
        if log(folder).contains(text) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("no `{text}` in {}", log(folder));
}

/// A folder with a server's configuration whose model always answers.
fn answering(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    scripted(
        folder.path(),
        more,
        &[json!({"text": "fine", "repeat": "forever"})],
    );
    folder
}

/// Stores a response; its path.
fn stored(address: &str) -> String {
    let (status, answer) = request(address, "POST", "/responses", "{\"input\": \"hi\"}");
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    format!("/responses/{}", answer["id"].as_str().unwrap())
}

/// What a server that does not start says.
fn refused(folder: &Path, code: i32) -> String {
    let command = haft(folder, &["serve", "--listen", "127.0.0.1:0"]);
    let (found, out, aside) = support::told(command, "");
    assert_eq!(found, Some(code), "{out}{aside}");
    assert_eq!(out, "", "it says that it listens");
    aside
}

#[test]
fn removed_data_folder_is_noticed_and_nothing_is_acknowledged() {
    let folder = answering("");
    let (_running, address) = logging(folder.path(), &[]);
    let path = stored(&address);
    let (data, away) = (folder.path().join("haft-data"), folder.path().join("away"));
    std::fs::rename(&data, &away).unwrap();
    let (status, answer) = request(&address, "POST", "/responses", "{\"input\": \"hi\"}");
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("\"status\":\"failed\""), "{answer}");
    assert!(!answer.contains("haft-data"), "{answer}");
    assert_eq!(support::probe(&address, "/readyz").0, 503);
    logged(folder.path(), "database file lost");
    // Another one in its place is none of this server's.
    std::fs::create_dir(&data).unwrap();
    std::fs::copy(away.join("haft.db"), data.join("haft.db")).unwrap();
    let (status, answer) = request(&address, "POST", "/responses", "{\"input\": \"hi\"}");
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("\"status\":\"failed\""), "{answer}");
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(&away, &data).unwrap();
    logged(folder.path(), "database file is back");
    stored(&address);
    assert_eq!(request(&address, "GET", &path, "").0, 200);
}

#[test]
fn removed_data_folder_is_logged_although_nobody_writes() {
    let folder = answering("");
    let (_running, address) = logging(folder.path(), &[]);
    stored(&address);
    std::fs::remove_dir_all(folder.path().join("haft-data")).unwrap();
    logged(folder.path(), "database file lost");
    assert_eq!(support::probe(&address, "/readyz").0, 503);
}

#[cfg(target_os = "linux")]
#[test]
fn second_server_is_refused_although_the_lock_file_was_removed() {
    let folder = answering("");
    let (_running, address) = logging(folder.path(), &[]);
    stored(&address);
    std::fs::remove_file(folder.path().join("haft-data/haft.db.lock")).unwrap();
    for _ in 0..2 {
        let words = refused(folder.path(), 1);
        assert!(words.contains("is in use by another haft"), "{words}");
    }
    stored(&address);
}

#[test]
fn data_that_does_not_fit_is_refused_before_anything_is_acknowledged() {
    let folder = answering("");
    let data = folder.path().join("haft-data");
    let (running, address) = logging(folder.path(), &[]);
    let path = stored(&address);
    stopped(running, folder.path());
    let database = data.join("haft.db");
    // A log that a fast exit left behind would restore what is cut off below.
    let file = rusqlite::Connection::open(&database).unwrap();
    file.pragma(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()))
        .unwrap();
    drop(file);
    let whole = std::fs::read(&database).unwrap();
    std::fs::write(&database, "").unwrap();
    assert!(refused(folder.path(), 2).contains("is empty, although it held data"));
    std::fs::write(&database, &whole[..whole.len() / 2]).unwrap();
    let message = refused(folder.path(), 1);
    assert!(message.contains("is damaged"), "{message}");
    std::fs::remove_file(&database).unwrap();
    assert!(refused(folder.path(), 2).contains("is missing"));
    std::fs::write(&database, &whole).unwrap();

    let keys = std::fs::read(data.join("sealing-keys")).unwrap();
    std::fs::remove_file(data.join("sealing-keys")).unwrap();
    for _ in 0..2 {
        let words = refused(folder.path(), 2);
        assert!(
            words.contains("sealing keys missing from `sealing-keys`"),
            "{words}"
        );
    }
    std::fs::write(data.join("sealing-keys"), keys).unwrap();

    let note = |seconds: i64| {
        let file = rusqlite::Connection::open(&database).unwrap();
        let sql = "UPDATE server_notes SET note = note + ?1 WHERE key = 'clock'";
        assert_eq!(file.execute(sql, [seconds]).unwrap(), 1);
    };
    note(86_400);
    let words = refused(folder.path(), 1);
    assert!(words.contains("behind the time of the last run"), "{words}");
    note(-86_400);
    let (running, address) = logging(folder.path(), &[]);
    assert_eq!(request(&address, "GET", &path, "").0, 200);
    stopped(running, folder.path());
}

#[test]
fn clock_that_is_far_ahead_at_the_start_deletes_nothing_for_its_age() {
    let folder = answering("[retention]\nmax_age = \"1d\"\n");
    let (running, address) = logging(folder.path(), &[]);
    let path = stored(&address);
    stopped(running, folder.path());
    // As if all of it had happened twenty days ago, or as if the clock were twenty days ahead now.
    let file = rusqlite::Connection::open(folder.path().join("haft-data/haft.db")).unwrap();
    file.execute(
        "UPDATE server_notes SET note = note - 1728000 WHERE key = 'clock'",
        [],
    )
    .unwrap();
    file.execute("UPDATE responses SET created_at = created_at - 1728000", [])
        .unwrap();
    drop(file);
    let (_running, address) = logging(folder.path(), &[]);
    logged(folder.path(), "system clock jumped ahead");
    for _ in 0..10 {
        assert_eq!(request(&address, "GET", &path, "").0, 200);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[cfg(feature = "otlp")]
mod spans {
    use super::*;
    use support::collector::{Collector, Span};
    use support::double::{Double, ended_with};
    use support::request_with;

    fn found<'s>(spans: &'s [Span], name: &str) -> &'s Span {
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no `{name}` in {spans:#?}"))
    }

    /// Serves one request with these tables and variables; the log.
    fn served(table: &str, variables: &[(&str, &str)], body: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        scripted(folder.path(), table, &steps());
        let (running, address) = logging(folder.path(), variables);
        let (status, answer) = request(&address, "POST", "/responses", body);
        assert_eq!(status, 200, "{answer}");
        stopped(running, folder.path())
    }

    #[test]
    fn they_go_where_the_configuration_or_the_environment_says_by_the_names_of_the_conventions() {
        let by_file = |url: &str| {
            format!(
                "[otlp]\nendpoint = \"{url}\"\nservice_name = \"mine\"\n\
                 headers = {{ x-key = {{ env = \"COLLECTOR_KEY\" }} }}\n"
            )
        };
        for is_in_file in [true, false] {
            let collector = Collector::start();
            let table = if is_in_file {
                by_file(&collector.url)
            } else {
                String::new()
            };
            let variables = if is_in_file {
                vec![("COLLECTOR_KEY", "hunter3")]
            } else {
                vec![
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
                    ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter3"),
                    ("OTEL_SERVICE_NAME", "mine"),
                ]
            };
            let log = served(&table, &variables, &body());
            assert!(!log.contains("hunter"), "{log}");
            for export in collector.received() {
                let head = &export.head;
                assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
                assert!(head.contains("x-key: hunter3"), "{head}");
                assert!(
                    head.contains("content-type: application/x-protobuf"),
                    "{head}"
                );
            }
            let spans = collector.spans();
            assert_eq!(spans.len(), 5, "{spans:#?}");
            let request = found(&spans, "POST /v1/responses");
            assert_eq!(request.resource["service.name"], "mine");
            assert_eq!(request.attributes["http.response.status_code"], 200);
            let run = found(&spans, "invoke_agent");
            assert_eq!(run.parent, request.id);
            assert_eq!(run.attributes["gen_ai.operation.name"], "invoke_agent");
            assert_eq!(run.attributes["gen_ai.usage.input_tokens"], 20);
            let asked = found(&spans, "chat scripted");
            assert_eq!(asked.parent, run.id);
            assert_eq!(asked.attributes["gen_ai.operation.name"], "chat");
            assert_eq!(asked.attributes["gen_ai.request.model"], "scripted");
            let call = found(&spans, "execute_tool calculate");
            assert_eq!(call.parent, run.id);
            assert_eq!(call.attributes["gen_ai.tool.name"], "calculate");
            assert!(!format!("{spans:?}").contains("hunter"), "{spans:#?}");
        }
    }

    #[test]
    fn content_goes_along_only_where_the_operator_and_the_client_let_it() {
        let unstored = json!({"input": "hunter2", "store": false}).to_string();
        for (line, body, has_content) in [
            ("capture_content = true", body(), true),
            ("capture_content = true", unstored, false),
            ("", body(), false),
        ] {
            let collector = Collector::start();
            let table = format!("[otlp]\nendpoint = \"{}\"\n{line}\n", collector.url);
            served(&table, &[], &body);
            let spans = collector.spans();
            assert!(spans.len() >= 3, "{spans:#?}");
            let told = format!("{spans:?}");
            assert_eq!(told.contains("hunter2"), has_content, "{line} {told}");
        }
    }

    #[test]
    fn a_share_of_nothing_sends_nothing() {
        let collector = Collector::start();
        let table = format!(
            "[otlp]\nendpoint = \"{}\"\nsample_ratio = 0\n",
            collector.url
        );
        served(&table, &[], &body());
        assert!(collector.received().is_empty());
    }

    #[test]
    fn a_collector_that_is_not_there_is_told_of_and_hinders_nobody() {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", gone.local_addr().unwrap());
        drop(gone);
        let table = format!(
            "[otlp]\nendpoint = \"{url}?key=hunter3\"\nheaders = {{ x-key = \"hunter3\" }}\n"
        );
        let log = served(&table, &[], &body());
        assert!(log.contains("spans cannot be exported"), "{log}");
        assert!(!log.contains("hunter"), "{log}");

        let grpc = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ];
        let log = served("", &grpc, &body());
        assert!(log.contains("haft speaks `http/protobuf`"), "{log}");
    }

    /// Everything at once, at the lowest level of the log: what providers, clients and collectors are
    /// known by is nowhere.
    #[test]
    fn keys_are_in_nothing_that_operators_see() {
        let message = json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "hunter2", "annotations": []}],
        });
        let provider = Double::start(vec![ended_with("resp_1", &[message])]);
        let collector = Collector::start();
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "[server]\napi_key_env = \"CLIENT_KEY\"\n\
             [log]\nlevel = \"trace\"\nformat = \"json\"\n\
             [otlp]\nendpoint = \"{}\"\nheaders = {{ x-key = {{ env = \"COLLECTOR_KEY\" }} }}\n\
             [[model]]\nname = \"double\"\nadapter = \"openai-responses\"\n\
             base_url = \"{}/v1\"\napi_key_env = \"PROVIDER_KEY\"\n",
            collector.url, provider.address
        );
        std::fs::write(folder.path().join("haft.toml"), config).unwrap();
        let keys = [
            ("CLIENT_KEY", "key-of-the-client"),
            ("COLLECTOR_KEY", "key-of-the-collector"),
            ("PROVIDER_KEY", "key-of-the-provider"),
        ];
        let (running, address) = logging(folder.path(), &keys);
        let ask = |key: &str, method: &str, path: &str, body: &str| {
            let header = format!("authorization: Bearer {key}\r\n");
            request_with(&address, method, path, &header, body)
        };
        let body = json!({"input": "hunter2"}).to_string();
        let (status, answer) = ask("key-of-the-client", "POST", "/responses", &body);
        assert_eq!(status, 200, "{answer}");
        let (status, _) = ask("key-of-nobody", "POST", "/responses", &body);
        assert_eq!(status, 401);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let path = format!("/responses/{}/trace", answer["id"].as_str().unwrap());
        let (status, trace) = ask("key-of-the-client", "GET", &path, "");
        assert_eq!(status, 200, "{trace}");
        let metrics = metrics(&address);
        let log = stopped(running, folder.path());
        let exports = collector.received();
        assert!(!exports.is_empty() && log.contains("haft::access"), "{log}");
        let spans = format!("{:?}", collector.spans());
        for (seen, text) in [
            ("log", &log),
            ("metrics", &metrics),
            ("trace", &trace),
            ("spans", &spans),
        ] {
            for secret in ["key-of-", "hunter2"] {
                let line = text.lines().find(|line| line.contains(secret));
                assert_eq!(line, None, "`{secret}` is in the {seen}");
            }
        }
    }
}
