//! `/mcp` of `haft serve`: the same tools, behind the same door as the API.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_mcp::{CallOptions, ConnectOptions, Connection, Label, McpError, ServerSettings, Url};
use serde_json::{Map, Value, json};

use crate::kit::{LONG, ended, fake, folder};
use crate::support::{Running, haft, told};

pub(crate) fn serving(folder: &Path, more: &[&str]) -> (Running, String) {
    let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
    all.extend(more);
    let (running, lines) = Running::start_with(haft(folder, &all));
    let address = lines[0].strip_prefix("listening on ").unwrap().to_owned();
    (running, address)
}

async fn client(address: &str, key: Option<&str>) -> Result<Connection, McpError> {
    let url = Url::parse(&format!("{address}/mcp")).unwrap();
    let mut settings = ServerSettings::http(Label::new("gate").unwrap(), url);
    if let haft_mcp::TransportSettings::Http(http) = &mut settings.transport {
        http.bearer = key.map(haft_mcp::Secret::new);
    }
    let options = ConnectOptions::default();
    let opening = Connection::open(Arc::new(settings), &options);
    tokio::time::timeout(LONG, opening).await.unwrap()
}

async fn names(client: &Connection) -> Vec<String> {
    let list = client.list_tools().await.unwrap();
    list.tools.into_iter().map(|tool| tool.name).collect()
}

/// Greets `/mcp` in the older era, with these headers: the status, and what came.
fn greet(address: &str, headers: &str) -> (u16, String) {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    post(address, headers, &hello)
}

pub(crate) fn post(address: &str, headers: &str, message: &Value) -> (u16, String) {
    use std::io::{Read as _, Write as _};
    let address = address.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let body = message.to_string();
    let host = if headers.to_lowercase().contains("host:") {
        String::new()
    } else {
        format!("host: {address}\r\n")
    };
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\n{host}connection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
    (status.unwrap_or(0), answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tools_are_at_one_address() {
    let folder = folder(&format!(
        "[gateway]\nmode = \"passthrough\"\n{}",
        fake("zeta", "modern", "")
    ));
    let (mut running, address) = serving(folder.path(), &[]);
    let client = client(&address, None).await.unwrap();
    let names = names(&client).await;
    assert_eq!(names[..3], ["calculate", "clock", "zeta__echo"]);
    let outcome = client.call_tool("zeta__echo", Map::new(), CallOptions::default());
    assert_eq!(outcome.await.unwrap().raw["content"][0]["text"], "{}");
    // Somebody listens for changes; that keeps nobody from stopping.
    let begin = Instant::now();
    running.signal("TERM");
    assert_eq!(ended(&mut running.0), Some(0));
    assert!(
        begin.elapsed() < Duration::from_secs(8),
        "{:?}",
        begin.elapsed()
    );
    client.close().await;
}

#[test]
fn it_is_there_only_if_it_is_wanted() {
    let folder = folder("");
    let (_running, address) = serving(folder.path(), &[]);
    assert_eq!(greet(&address, "").0, 404);
    let other = crate::kit::folder("");
    let (_running, address) = serving(other.path(), &["--mcp"]);
    let (status, answer) = greet(&address, "");
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn neither_another_name_nor_a_page_comes_in() {
    let folder = folder("");
    let (_running, address) = serving(folder.path(), &["--mcp"]);
    for headers in [
        "host: evil.example\r\n",
        "origin: https://evil.example\r\n",
        "origin: null\r\n",
    ] {
        let (status, answer) = greet(&address, headers);
        assert_eq!(status, 403, "{headers}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_send_the_keys_of_the_api_and_are_their_tenants() {
    let folder = folder(
        "[search_files]\nfolders = [{ path = \".\", name = \"mine\", tenants = [\"acme\"] }]\n",
    );
    let key = |tenant: &str| {
        let command = haft(folder.path(), &["keys", "add", tenant, "--tenant", tenant]);
        let (code, out, aside) = told(command, "");
        assert_eq!(code, Some(0), "{aside}");
        out.trim().to_owned()
    };
    let (acme, other) = (key("acme"), key("other"));
    let (_running, address) = serving(folder.path(), &["--mcp"]);
    assert_eq!(greet(&address, "").0, 401);
    let wrong = client(&address, Some("haft-wrong")).await.unwrap_err();
    assert!(wrong.to_string().contains("401"), "{wrong}");
    let seen = names(&client(&address, Some(&acme)).await.unwrap()).await;
    assert_eq!(seen, ["calculate", "clock", "search_files"]);
    let seen = names(&client(&address, Some(&other)).await.unwrap()).await;
    assert_eq!(seen, ["calculate", "clock"], "that folder is another's");
    // A session is its tenant's.
    let (status, answer) = greet(&address, &format!("authorization: Bearer {acme}\r\n"));
    assert_eq!(status, 200, "{answer}");
    let session = answer
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap_or_else(|| panic!("{answer}"));
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    for (key, status) in [(&acme, 200), (&other, 404)] {
        let headers = format!(
            "authorization: Bearer {key}\r\nmcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n"
        );
        let (came, answer) = post(&address, &headers, &list);
        assert_eq!(came, status, "{answer}");
    }
}
