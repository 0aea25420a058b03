//! MCP servers of a program (§9): a real process, and streamable HTTP.

use haft_concerto::natives::Grant;
use haft_models::testing::{ScriptedCall, call, calls, say};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::kit::{bodies, manifest, provider, results, stage, tools};

/// The small server's program.
pub fn fake() -> String {
    env!("CARGO_BIN_EXE_haft-concerto-fake").to_owned()
}

/// An entry of a manifest that starts a server.
pub fn command(name: &str, line: &str) -> String {
    format!("[mcp.{name}]\ntransport = \"stdio\"\ncommand = \"{line}\"\n")
}

const ASK: &str = r#"
    model M { provider: desk, base: "small", tools: [Search] }
    match M.execute("go") { Ok(r) => emit("ok", r.text), Err(e) => emit("error", e) }
"#;

const NAMES: [&str; 4] = [
    "Search__search",
    "Search__fail",
    "Search__counted",
    "Search__secret",
];

/// Whether a process is there.
fn lives(number: &str) -> bool {
    let pid = number
        .trim()
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::test_kill_process(pid.expect("a number")).is_ok()
}

#[tokio::test]
async fn a_server_of_the_manifest_is_started_when_it_is_needed_and_ended_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let number = folder.path().join("number");
    let server = provider([
        calls([
            ScriptedCall::new("Search__search", json!({"words": "x"})),
            ScriptedCall::new("Search__fail", json!({})),
            ScriptedCall::new("Search__search", json!({"count": 1})),
            ScriptedCall::new("Search__secret", json!({})),
        ]),
        say("done"),
    ])
    .await;
    let line = format!("{} {}", fake(), number.display());
    let env = "env = { SECRET = \"NAME_OF_SECRET\" }\n";
    let more = format!("{}{env}", command("Search", &line));
    let stage = stage(&manifest(&server.base_url(), &more), ASK, |_| {});
    let ended = stage.host.run(Box::new(stage.printed.clone())).await;
    ended.unwrap();
    assert_eq!(stage.printed.text(), "[emit:ok] done\n");
    let number = std::fs::read_to_string(number).unwrap();
    assert!(lives(&number), "it is kept");
    stage.host.close().await;
    assert!(!lives(&number), "it is ended");
    assert_eq!(stage.warnings(), Vec::<String>::new());
    let bodies = bodies(&server);
    assert_eq!(tools(&bodies[0]).unwrap(), NAMES);
    let results = results(&bodies[1]);
    assert_eq!(results[0], "found \"x\" null");
    assert_eq!(results[1], "{\"error\":\"it never works\"}");
    let refused: Value = serde_json::from_str(&results[2]).unwrap();
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("missing field 'words'"),
        "{refused}"
    );
    assert_eq!(results[3], "hunter2");
}

#[tokio::test]
async fn a_host_that_is_dropped_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let number = folder.path().join("number");
    let server = provider([say("done")]).await;
    let line = format!("{} {}", fake(), number.display());
    let stage = stage(
        &manifest(&server.base_url(), &command("Search", &line)),
        ASK,
        |_| {},
    );
    stage
        .host
        .run(Box::new(stage.printed.clone()))
        .await
        .unwrap();
    let number = std::fs::read_to_string(number).unwrap();
    drop(stage);
    for _ in 0..100 {
        if !lives(&number) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the server is still there");
}

#[tokio::test]
async fn a_server_that_cannot_start_is_told_and_the_call_goes_on() {
    let server = provider([say("without")]).await;
    let stage = stage(
        &manifest(&server.base_url(), &command("Search", "/no/such/program")),
        ASK,
        |_| {},
    );
    assert_eq!(stage.run().await.unwrap(), "[emit:ok] without\n");
    assert_eq!(tools(&bodies(&server)[0]), None);
    let warnings = stage.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("MCP server `Search` is left out: "),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_command_of_the_source_needs_permission() {
    let program = format!(
        r#"mcp Search {{ transport: "stdio", command: "{}",
            fn search(words: String) -> String;
            fn absent() -> String;
        }}
        {ASK}"#,
        fake()
    );
    let server = provider([say("without"), say("with")]).await;
    let text = manifest(&server.base_url(), "");
    let refused = stage(&text, &program, |_| {});
    assert_eq!(refused.run().await.unwrap(), "[emit:ok] without\n");
    let warnings = refused.warnings();
    assert!(
        warnings[0].contains("allow it with --allow-process"),
        "{warnings:?}"
    );
    let allowed = stage(&text, &program, |setup| setup.permissions.process = true);
    assert_eq!(allowed.run().await.unwrap(), "[emit:ok] with\n");
    let expected = "MCP server `Search` has no tool `absent`, which the program declares";
    assert_eq!(allowed.warnings(), [expected]);
    let bodies = bodies(&server);
    assert_eq!(tools(&bodies[0]), None);
    assert_eq!(tools(&bodies[1]).unwrap(), NAMES);
}

#[tokio::test]
async fn code_calls_a_servers_tools() {
    let server = provider([]).await;
    let program = r#"
        emit("a", Search::search("x", 3));
        emit("b", Search::search(words: "y"));
        emit("c", Search::fail());
        emit("d", Search::counted().unwrap().count + 1);
        emit("e", Search::absent().is_err());
    "#;
    let stage = stage(
        &manifest(&server.base_url(), &command("Search", &fake())),
        program,
        |_| {},
    );
    let printed = stage.run().await.unwrap();
    let expected = "[emit:a] Ok(found \"x\" 3)\n[emit:b] Ok(found \"y\" null)\n\
                    [emit:c] Err(it never works)\n[emit:d] 4\n[emit:e] true\n";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn with_the_mock_no_server_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let number = folder.path().join("number");
    let line = format!("{} {}", fake(), number.display());
    let program = format!("{ASK}\nemit(\"code\", Search::fail().is_err());");
    let stage = stage(
        &manifest("http://127.0.0.1:9", &command("Search", &line)),
        &program,
        |setup| {
            setup.mock = true;
        },
    );
    let printed = stage.run().await.unwrap();
    assert_eq!(
        printed,
        "[emit:ok] [mock response to: go]\n[emit:code] true\n"
    );
    assert!(!number.exists());
}

#[tokio::test]
async fn variables_of_servers_in_the_source_need_permission() {
    let program = format!(
        r#"mcp Search {{ transport: "stdio", command: "{}", env: {{ "SECRET": "NAME_OF_SECRET" }} }}
        emit("s", Search::secret());"#,
        fake()
    );
    let text = manifest("http://127.0.0.1:9", "");
    let refused = stage(&text, &program, |setup| setup.permissions.process = true);
    let printed = refused.run().await.unwrap();
    assert!(
        printed.contains("allow it with --allow-env=NAME_OF_SECRET"),
        "{printed}"
    );
    let allowed = stage(&text, &program, |setup| {
        setup.permissions.process = true;
        setup.permissions.env = Grant::Everything;
    });
    assert_eq!(allowed.run().await.unwrap(), "[emit:s] Ok(hunter2)\n");
}

#[tokio::test]
async fn servers_of_the_configuration_keep_their_settings() {
    use haft_mcp::{Approve, Label, Pool, ServerSettings};
    let options = haft_concerto::Options {
        connections: haft_concerto::Connections::Known(vec!["desk".to_owned()]),
        servers: vec!["Search".to_owned()],
        ..haft_concerto::Options::default()
    };
    let compiled = haft_concerto::compile(&haft_concerto::Source::new("t.conc", ASK), &options);
    let program = haft_concerto::load::load(compiled.ir.unwrap()).unwrap();
    for (is_asked, expected) in [
        (false, "needs approval and was not approved"),
        (true, "found"),
    ] {
        let server = provider([call("Search__search", json!({"words": "x"})), say("done")]).await;
        let mut settings = ServerSettings::stdio(Label::new("Search").unwrap(), fake());
        settings.approve = Approve::Always;
        let pool = Pool::builder().build();
        pool.add(settings).unwrap();
        let mut entry = haft_models::ModelConfig::new("desk", haft_models::Adapter::OpenaiChat);
        entry.base_url = Some(server.base_url());
        let entries = haft_concerto::host::Entries::new(vec![entry]);
        let approver = |_: &haft_core::ApprovalRequest| haft_core::Decision::Allow;
        let setup = haft_concerto::host::Setup {
            models: Some(std::sync::Arc::new(entries)),
            servers: Some(pool.clone()),
            approver: is_asked.then(|| std::sync::Arc::new(approver) as _),
            ..haft_concerto::host::Setup::default()
        };
        let host = haft_concerto::host::Host::new(std::sync::Arc::clone(&program), setup);
        let printed = crate::kit::Printed::default();
        host.run(Box::new(printed.clone())).await.unwrap();
        assert_eq!(printed.text(), "[emit:ok] done\n");
        let bodies = bodies(&server);
        assert_eq!(tools(&bodies[0]).unwrap(), NAMES);
        let results = results(&bodies[1]);
        assert!(results[0].contains(expected), "{results:?}");
        host.close().await;
        assert!(
            pool.server("Search").is_some(),
            "it belongs to somebody else"
        );
        pool.close().await;
    }
}

/// A server over HTTP, and the task that serves it.
async fn over_http() -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(socket));
        }
    });
    (address, serving)
}

#[tokio::test]
async fn an_address_of_the_source_needs_permission() {
    let (address, serving) = over_http().await;
    let program =
        format!(r#"mcp Search {{ transport: "http", url: "http://{address}/mcp" }} {ASK}"#);
    let server = provider([say("without"), say("with")]).await;
    let text = manifest(&server.base_url(), "");
    let refused = stage(&text, &program, |_| {});
    assert_eq!(refused.run().await.unwrap(), "[emit:ok] without\n");
    let warnings = refused.warnings();
    assert!(
        warnings[0].contains("allow it with --allow-net=127.0.0.1"),
        "{warnings:?}"
    );
    let allowed = stage(&text, &program, |setup| {
        setup.permissions.net = Grant::Only(vec!["127.0.0.1".to_owned()]);
    });
    assert_eq!(allowed.run().await.unwrap(), "[emit:ok] with\n");
    let bodies = bodies(&server);
    assert_eq!(tools(&bodies[0]), None);
    assert_eq!(tools(&bodies[1]).unwrap(), NAMES);
    serving.abort();
}

#[tokio::test]
async fn streamable_http() {
    let (address, serving) = over_http().await;
    let server = provider([call("Search__search", json!({"words": "x"})), say("done")]).await;
    let more = format!("[mcp.Search]\ntransport = \"http\"\nurl = \"http://{address}/mcp\"\n");
    let stage = stage(&manifest(&server.base_url(), &more), ASK, |_| {});
    assert_eq!(
        stage.run().await.unwrap(),
        "[emit:ok] done\n",
        "{:?}",
        stage.warnings()
    );
    let bodies = bodies(&server);
    assert_eq!(tools(&bodies[0]).unwrap(), NAMES, "{:?}", stage.warnings());
    assert_eq!(results(&bodies[1]), ["found \"x\" null"]);
    serving.abort();
}

/// One connection to the small server over HTTP, a request each.
async fn serve(mut socket: TcpStream) {
    let mut read = Vec::new();
    let body = loop {
        let mut piece = [0; 4096];
        let count = socket.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        read.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().unwrap())
        });
        match length {
            Some(length) if body.len() < length => {}
            _ => break body.to_owned(),
        }
    };
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    let answer = match crate::brain::answer(&message) {
        Some(answer) => {
            let answer = answer.to_string();
            let length = answer.len();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
            )
        }
        None if message.is_null() => {
            "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                .to_owned()
        }
        None => {
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
        }
    };
    let _ = socket.write_all(answer.as_bytes()).await;
}

#[tokio::test]
async fn a_tool_that_a_server_does_not_have_is_told_with_the_one_that_was_meant() {
    let program = r#"
        emit("near", Search::serch("x"));
        emit("far", Search::zzzzzz("x"));
    "#;
    let more = command("Search", &fake());
    let stage = stage(&manifest("http://127.0.0.1:9", &more), program, |_| {});
    let printed = stage.run().await.unwrap();
    let near = "[emit:near] Err(MCP server 'Search' has no tool 'serch': did you mean 'search'?)";
    assert!(printed.contains(near), "{printed}");
    let far = "has no tool 'zzzzzz': it has search, fail, counted, secret";
    assert!(printed.contains(far), "{printed}");
}
