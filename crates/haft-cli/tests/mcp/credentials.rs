//! Credentials of single tenants: each call goes upstream with those of its caller, and never with any others.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::endpoints::{Endpoint, key};
use crate::http::serving;
use crate::kit::{LONG, LineClient, folder, mcp};
use crate::support::{haft, request_with, told};

/// What an upstream server saw of one request.
#[derive(Debug, Clone)]
struct Seen {
    method: String,
    /// The method of the message, if there was one.
    message: String,
    headers: Vec<(String, String)>,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// An MCP server over HTTP that answers by the credentials of each request, and remembers them.
struct Upstream {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Upstream {
    /// `is_open`: whether requests without credentials are answered.
    fn start(is_open: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&all);
                std::thread::spawn(move || answer(&stream, &seen, is_open));
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The credentials of all calls of tools so far, in their order.
    fn calls(&self) -> Vec<String> {
        let seen = self.seen();
        let calls = seen.iter().filter(|it| it.message == "tools/call");
        let credentials = calls.map(|it| it.header("authorization").unwrap_or("none").to_owned());
        credentials.collect()
    }
}

/// Reads one request and answers it.
fn answer(stream: &TcpStream, all: &Mutex<Vec<Seen>>, is_open: bool) {
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut lines = BufReader::new(stream);
    let mut first = String::new();
    lines.read_line(&mut first).unwrap_or_default();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap_or_default();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut seen = Seen {
        method: first.split(' ').next().unwrap_or_default().to_owned(),
        message: String::new(),
        headers,
    };
    let length = seen.header("content-length").and_then(|it| it.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    lines.read_exact(&mut body).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    seen.message.clone_from(&method);
    let credentials = seen.header("authorization").unwrap_or("none").to_owned();
    let other = seen.header("x-api-key").map(str::to_owned);
    all.lock().unwrap().push(seen.clone());
    let schema = json!({"type": "object"});
    let mut tools = vec![json!({"name": "whoami", "inputSchema": schema})];
    if credentials == "Bearer acme-token" {
        tools.push(json!({"name": "only_acme", "inputSchema": schema}));
    }
    let result = match method.as_str() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "upstream", "version": "1"},
        }),
        "tools/list" => json!({"tools": tools}),
        "tools/call" => {
            let text = format!("{credentials} {}", other.unwrap_or_default());
            json!({"content": [{"type": "text", "text": text.trim()}]})
        }
        "ping" => json!({}),
        _ => Value::Null,
    };
    let has_credentials = credentials != "none" || seen.header("x-api-key").is_some();
    let (status, body) = if !has_credentials && !is_open {
        ("401 Unauthorized", String::new())
    } else if seen.method == "DELETE" || method.starts_with("notifications/") {
        ("202 Accepted", String::new())
    } else if seen.method != "POST" {
        ("405 Method Not Allowed", String::new())
    } else if result.is_null() {
        let error = json!({"code": -32601, "message": "unknown method"});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        ("200 OK", answer.to_string())
    } else {
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        ("200 OK", answer.to_string())
    };
    let _ = write!(
        &mut &*stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: s{credentials}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
}

/// A server with the token `shared-token`, and one of its own for `acme`.
fn tokens(url: &str, more: &str) -> tempfile::TempDir {
    let folder = folder(&format!(
        "[gateway]\nmode = \"passthrough\"\n[mcp.tracker]\nurl = \"{url}\"\nbearer_file = \"shared\"\n{more}\n\
         [mcp.tracker.tenants.acme]\nbearer_file = \"acme\"\n\
         [mcp.tracker.tenants.header]\nheaders = {{ x-api-key = \"header-key\" }}\n"
    ));
    std::fs::write(folder.path().join("shared"), "shared-token").unwrap();
    std::fs::write(folder.path().join("acme"), "acme-token").unwrap();
    folder
}

fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn each_call_goes_upstream_with_the_credentials_of_its_tenant() {
    let upstream = Upstream::start(false);
    let folder = tokens(&upstream.url, "");
    let keys = ["acme", "header", "other"].map(|name| key(folder.path(), name, name, &[]));
    let (_running, address) = serving(folder.path(), &[]);
    let [acme, header, other] = keys
        .each_ref()
        .map(|key| Endpoint::new(&address, "/mcp", key));
    for _ in 0..2 {
        assert_eq!(
            text(&other.call("tracker__whoami", json!({}))),
            "Bearer shared-token"
        );
        assert_eq!(
            text(&acme.call("tracker__whoami", json!({}))),
            "Bearer acme-token"
        );
        assert_eq!(
            text(&header.call("tracker__whoami", json!({}))),
            "none header-key"
        );
    }
    // Lists are those of each one's connection.
    let has_own = |endpoint: &Endpoint| endpoint.names().contains(&"tracker__only_acme".into());
    assert!(has_own(&acme) && !has_own(&other) && !has_own(&header));
    assert_eq!(
        other.call("tracker__only_acme", json!({}))["error"]["code"],
        -32602
    );
    assert_eq!(
        text(&acme.call("tracker__only_acme", json!({}))),
        "Bearer acme-token"
    );
    // The keys of haft stay in haft.
    let seen = format!("{:?}", upstream.seen());
    assert!(keys.iter().all(|key| !seen.contains(key)), "{seen}");
}

#[test]
fn the_responses_api_uses_the_credentials_of_the_tenant_too() {
    let upstream = Upstream::start(false);
    let folder = tokens(&upstream.url, "require_tenant_credentials = true");
    let (acme, other) = (
        key(folder.path(), "acme", "acme", &[]),
        key(folder.path(), "other", "other", &[]),
    );
    let (_running, address) = serving(folder.path(), &[]);
    let listed = |key: &str| {
        let body = json!({"input": "hi", "tools": [{"type": "mcp", "server_label": "tracker"}]});
        let headers = format!("authorization: Bearer {key}\r\ncontent-type: application/json\r\n");
        let (status, answer) = request_with(
            address.trim_start_matches("http://"),
            "POST",
            "/responses",
            &headers,
            &body.to_string(),
        );
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let items = answer["output"].as_array().unwrap().iter();
        let item = items.clone().find(|it| it["type"] == "mcp_list_tools");
        item.unwrap_or_else(|| panic!("{answer}")).clone()
    };
    let item = listed(&acme);
    assert_eq!(item["tools"].as_array().unwrap().len(), 2, "{item}");
    let item = listed(&other);
    let error = item["error"].to_string();
    assert!(
        error.contains("tenant `other` has no credentials"),
        "{item}"
    );
    let seen = upstream.seen();
    let is_of_acme = |it: &Seen| it.header("authorization") == Some("Bearer acme-token");
    assert!(!seen.is_empty() && seen.iter().all(is_of_acme), "{seen:?}");
}

#[test]
fn a_tenant_that_needs_credentials_never_uses_the_shared_ones() {
    let upstream = Upstream::start(true);
    let folder = tokens(&upstream.url, "require_tenant_credentials = true");
    let (acme, other) = (
        key(folder.path(), "acme", "acme", &[]),
        key(folder.path(), "other", "other", &[]),
    );
    let (_running, address) = serving(folder.path(), &[]);
    let other = Endpoint::new(&address, "/mcp", &other);
    let listed = other.names();
    assert!(
        !listed.iter().any(|it| it.starts_with("tracker__")),
        "{listed:?}"
    );
    let answer = other.call("tracker__whoami", json!({}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(
        text(&answer).contains("`[mcp.tracker.tenants.other]`"),
        "{answer}"
    );
    assert!(upstream.seen().is_empty(), "{:?}", upstream.seen());
    let acme = Endpoint::new(&address, "/mcp", &acme);
    assert_eq!(
        text(&acme.call("tracker__whoami", json!({}))),
        "Bearer acme-token"
    );
    assert_eq!(upstream.calls(), ["Bearer acme-token"]);
}

/// Stores a login as `haft mcp login` does.
fn store_login(folder: &Path, url: &str, user: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let tokens = json!({"version": 2, "tokens": [{
        "server": url, "issuer": null, "user": user, "saved_at": 1,
        "credentials": {
            "client_id": "haft",
            "token_response": {"access_token": format!("{user}-login"), "token_type": "bearer"},
            "granted_scopes": [],
        },
    }]});
    let data = folder.join("haft-data");
    std::fs::create_dir_all(&data).unwrap();
    let file = data.join("mcp-tokens.json");
    std::fs::write(&file, tokens.to_string()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn each_tenant_has_a_login_of_its_own() {
    // Even where the server would answer without one.
    let upstream = Upstream::start(true);
    let url = &upstream.url;
    let folder = folder(&format!(
        "[gateway]\nmode = \"passthrough\"\n[mcp.crm]\nurl = \"{url}\"\noauth = {{ per_user = true }}\n"
    ));
    let (acme, other) = (
        key(folder.path(), "acme", "acme", &[]),
        key(folder.path(), "other", "other", &[]),
    );
    store_login(folder.path(), url, "acme");
    let (_running, address) = serving(folder.path(), &[]);
    let acme = Endpoint::new(&address, "/mcp", &acme);
    let other = Endpoint::new(&address, "/mcp", &other);
    assert_eq!(
        text(&acme.call("crm__whoami", json!({}))),
        "Bearer acme-login"
    );
    let answer = other.call("crm__whoami", json!({}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(
        text(&answer).contains("`haft mcp login crm --user other`"),
        "{answer}"
    );
    let is_of_acme = |it: &Seen| it.header("authorization") == Some("Bearer acme-login");
    assert!(
        upstream.seen().iter().all(is_of_acme),
        "{:?}",
        upstream.seen()
    );
    // A login that comes later is used without a restart.
    store_login(folder.path(), url, "other");
    assert_eq!(
        text(&other.call("crm__whoami", json!({}))),
        "Bearer other-login"
    );
    // Over standard input the operator may act for a tenant.
    let mut client = LineClient::of_haft(folder.path(), &["--user", "other"], json!({}));
    assert_eq!(client.text("crm__whoami", json!({})), "Bearer other-login");
    let forget = ["login", "crm", "--user", "other", "--forget"];
    let (code, out, aside) = mcp(folder.path(), &forget);
    assert_eq!(code, Some(0), "{out}{aside}");
    let stored = std::fs::read_to_string(folder.path().join("haft-data/mcp-tokens.json"));
    assert!(!stored.unwrap().contains("other-login"));
}

#[test]
fn a_login_for_a_tenant_needs_logins_per_user() {
    let folder = folder("[mcp.crm]\nurl = \"http://127.0.0.1:9/mcp\"\n");
    let (code, _, aside) = mcp(folder.path(), &["login", "crm", "--user", "acme"]);
    assert_eq!(code, Some(2), "{aside}");
    assert!(aside.contains("per_user = true"), "{aside}");
}

#[test]
fn the_connection_of_a_tenant_is_closed_with_its_last_key() {
    let upstream = Upstream::start(false);
    let folder = tokens(&upstream.url, "");
    let acme = key(folder.path(), "acme", "acme", &[]);
    key(folder.path(), "other", "other", &[]);
    let (_running, address) = serving(folder.path(), &[]);
    let endpoint = Endpoint::new(&address, "/mcp", &acme);
    assert_eq!(
        text(&endpoint.call("tracker__whoami", json!({}))),
        "Bearer acme-token"
    );
    let (code, _, aside) = told(haft(folder.path(), &["keys", "revoke", "acme"]), "");
    assert_eq!(code, Some(0), "{aside}");
    // The end of the session is what closing looks like from the other side.
    let is_end = |it: &Seen| {
        it.method == "DELETE" && it.header("authorization") == Some("Bearer acme-token")
    };
    let begin = Instant::now();
    while !upstream.seen().iter().any(is_end) {
        assert!(begin.elapsed() < LONG, "{:?}", upstream.seen());
        std::thread::sleep(Duration::from_millis(100));
    }
}
