//! `[gateway.NAME]` and rules: each caller sees and calls what is for it, at each endpoint, and nothing else.

use std::path::Path;

use serde_json::{Value, json};

use crate::http::serving;
use crate::kit::{LONG, LineClient, fake, folder, mcp};
use crate::support::{Running, haft, told};

/// A key of `haft keys add`.
pub(crate) fn key(folder: &Path, name: &str, tenant: &str, roles: &[&str]) -> String {
    let mut arguments = vec!["keys", "add", name, "--tenant", tenant];
    for role in roles {
        arguments.extend(["--role", role]);
    }
    let (code, out, aside) = told(haft(folder, &arguments), "");
    assert_eq!(code, Some(0), "{aside}");
    out.trim().to_owned()
}

/// An answer of an endpoint.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The JSON-RPC message, plain or as the last event.
    pub(crate) fn message(&self) -> Value {
        let mut events = self.body.lines().filter_map(|it| it.strip_prefix("data: "));
        let text = events.next_back().unwrap_or(&self.body);
        let start = text.find('{').unwrap_or_default();
        let end = text.rfind('}').map_or(text.len(), |at| at + 1);
        serde_json::from_str(&text[start..end]).unwrap_or_else(|_| panic!("{}", self.body))
    }
}

/// A client of one endpoint that speaks HTTP by hand.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: String,
    path: &'static str,
    key: String,
}

impl Endpoint {
    pub(crate) fn new(address: &str, path: &'static str, key: &str) -> Self {
        Self {
            address: address.trim_start_matches("http://").to_owned(),
            path,
            key: key.to_owned(),
        }
    }

    fn send(&self, headers: &str, message: &Value) -> Answer {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let body = message.to_string();
        write!(
            stream,
            "POST {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\
             authorization: Bearer {}\r\n{headers}\r\n{body}",
            self.path,
            self.address,
            body.len(),
            self.key,
        )
        .unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        Answer {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// A request of the current revision, which has no sessions.
    pub(crate) fn modern(&self, method: &str, mut params: Value) -> Answer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        });
        let mut headers = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n");
        if let Some(name) = params["name"].as_str() {
            headers = format!("{headers}mcp-name: {name}\r\n");
        }
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.send(&headers, &message)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let answer = self.modern("tools/list", json!({}));
        assert_eq!(answer.status, 200, "{}{}", answer.head, answer.body);
        let message = answer.message();
        assert_eq!(message["result"]["cacheScope"], "private", "{message}");
        let tools = message["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.modern("tools/call", params).message()
    }

    /// Opens a session of an older revision.
    fn session(&self) -> String {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }});
        let answer = self.send("", &hello);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let session = answer
            .head
            .lines()
            .find_map(|it| it.strip_prefix("mcp-session-id: "));
        session
            .unwrap_or_else(|| panic!("{}", answer.head))
            .to_owned()
    }

    fn in_session(&self, session: &str) -> Answer {
        let headers = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n");
        self.send(
            &headers,
            &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        )
    }
}

/// Three servers, three endpoints, and a rule.
fn audiences() -> tempfile::TempDir {
    let config = "[gateway]\nmode = \"passthrough\"\nroles = [\"admin\"]\n\
         [gateway.coding]\nmode = \"passthrough\"\nservers = [\"code\"]\ntools = [\"clock\"]\n\
         description = \"Tools for developers\"\nroles = [\"developer\", \"admin\"]\n\
         [gateway.support]\nmode = \"passthrough\"\nservers = [\"tracker\", \"code\"]\n\
         tenants = [\"acme\", \"other\"]\n\
         [[gateway.support.rule]]\nroles = [\"admin\"]\n\
         [[gateway.support.rule]]\nroles = [\"agent\"]\nallow = [\"tracker__*\"]\ndeny = [\"*__slow*\"]\n\
         [[gateway.support.rule]]\ndeny = [\"*\"]\n";
    folder(&format!(
        "{config}{}{}",
        fake("code", "modern", "allow = [\"echo\"]"),
        fake("tracker", "modern slow", "")
    ))
}

#[test]
fn each_caller_sees_and_calls_what_is_for_it_at_each_endpoint() {
    let folder = audiences();
    let admin = key(folder.path(), "root", "acme", &["admin"]);
    let agent = key(folder.path(), "helpdesk", "acme", &["agent"]);
    let developer = key(folder.path(), "laptop", "other", &["developer"]);
    let (_running, address) = serving(folder.path(), &[]);
    let at = |path, key: &str| Endpoint::new(&address, path, key);

    let all = at("/mcp", &admin).names();
    for name in ["clock", "code__echo", "tracker__echo"] {
        assert!(all.iter().any(|it| it == name), "{all:?}");
    }
    assert_eq!(
        at("/mcp/coding", &developer).names(),
        ["clock", "code__echo"]
    );
    let seen = at("/mcp/support", &agent).names();
    assert!(
        seen.iter().all(|it| it.starts_with("tracker__")),
        "{seen:?}"
    );
    assert!(seen.contains(&"tracker__echo".into()), "{seen:?}");
    let all_of_support = at("/mcp/support", &admin).names();
    assert!(
        all_of_support.contains(&"code__echo".into()),
        "{all_of_support:?}"
    );
    assert!(
        at("/mcp/support", &developer).names().is_empty(),
        "the last rule is for it"
    );

    // What is not listed cannot be called either, and is not known.
    let called = at("/mcp/support", &agent).call("tracker__echo", json!({"text": "hi"}));
    assert!(
        called["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("hi"),
        "{called}"
    );
    for (path, key, name) in [
        ("/mcp/support", &agent, "code__echo"),
        ("/mcp/support", &developer, "tracker__echo"),
        ("/mcp/coding", &developer, "tracker__echo"),
        ("/mcp/coding", &developer, "calculate"),
    ] {
        let refused = at(path, key).call(name, json!({}));
        let absent = at(path, key).call("no_such__tool", json!({}));
        assert_eq!(refused["error"]["code"], -32602, "{path} {name}: {refused}");
        assert_eq!(refused["error"]["code"], absent["error"]["code"]);
    }
    let hello = at("/mcp/coding", &developer)
        .modern("server/discover", json!({}))
        .message();
    let instructions = hello["result"]["instructions"].as_str().unwrap();
    assert!(
        instructions.starts_with("Tools for developers\n"),
        "{hello}"
    );
    // Of the servers only those that are for this caller are named.
    assert!(instructions.ends_with("\n- code: 1 tool (echo)"), "{hello}");
}

#[test]
fn an_endpoint_for_others_is_one_that_does_not_exist() {
    let folder = audiences();
    let agent = key(folder.path(), "helpdesk", "acme", &["agent"]);
    let stranger = key(folder.path(), "stranger", "elsewhere", &[]);
    let (_running, address) = serving(folder.path(), &[]);
    let list = |path, key: &str| Endpoint::new(&address, path, key).modern("tools/list", json!({}));
    for path in ["/mcp", "/mcp/coding", "/mcp/nothing", "/mcp/nothing/more"] {
        let answer = list(path, &agent);
        assert_eq!(answer.status, 404, "{path}");
        let text = answer.body.replace(&format!("POST {path}`"), "it");
        let expected = "unknown route `it; the MCP endpoints for this key are `/mcp/support`\"";
        assert!(text.contains(expected), "{text}");
    }
    for path in ["/mcp", "/mcp/coding", "/mcp/support", "/mcp/nothing"] {
        let answer = list(path, &stranger);
        assert_eq!(answer.status, 404, "{path}");
        let text = answer.body.replace(&format!("POST {path}`"), "it");
        let expected = "unknown route `it; this key may use no MCP endpoint\"";
        assert!(text.contains(expected), "{text}");
    }
    for path in ["/mcp", "/mcp/support", "/mcp/nothing"] {
        assert_eq!(list(path, "haft_wrong").status, 401, "{path}");
    }
}

#[test]
fn a_session_belongs_to_its_key_and_its_endpoint() {
    let folder = audiences();
    let admin = key(folder.path(), "root", "acme", &["admin"]);
    let agent = key(folder.path(), "helpdesk", "acme", &["agent"]);
    let (_running, address) = serving(folder.path(), &[]);
    let at = |path, key: &str| Endpoint::new(&address, path, key);
    let session = at("/mcp/support", &admin).session();
    assert_eq!(at("/mcp/support", &admin).in_session(&session).status, 200);
    // Another key of the same tenant, and the same key elsewhere.
    assert_eq!(at("/mcp/support", &agent).in_session(&session).status, 404);
    assert_eq!(at("/mcp/coding", &admin).in_session(&session).status, 404);
    assert_eq!(at("/mcp", &admin).in_session(&session).status, 404);
    let own = at("/mcp/support", &agent).session();
    let list = at("/mcp/support", &agent).in_session(&own).message();
    let tools = list["result"]["tools"].as_array().unwrap();
    let is_of_tracker = |it: &Value| it["name"].as_str().unwrap().starts_with("tracker__");
    assert!(
        !tools.is_empty() && tools.iter().all(is_of_tracker),
        "{list}"
    );
}

#[test]
fn only_the_servers_of_an_endpoint_are_started() {
    let folder = audiences();
    let developer = key(folder.path(), "laptop", "other", &["developer"]);
    let (running, address) = serving(folder.path(), &[]);
    let coding = Endpoint::new(&address, "/mcp/coding", &developer);
    coding.names();
    assert_eq!(children_with(&running, "modern slow"), 0, "the tracker");
    assert!(children_with(&running, "modern") > 0);
}

/// How many processes below this one have this value in their environment.
fn children_with(running: &Running, words: &str) -> usize {
    let wanted = format!("{}={words}\0", crate::fake::WORDS);
    let mut pending = vec![running.0.id().to_string()];
    let mut found = 0;
    while let Some(id) = pending.pop() {
        let read = |name: &str| std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        if String::from_utf8_lossy(&read("environ")).contains(&wanted) {
            found += 1;
        }
        for task in std::fs::read_dir(format!("/proc/{id}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let below = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            pending.extend(below.split_whitespace().map(str::to_owned));
        }
    }
    found
}

#[test]
fn an_endpoint_is_served_over_standard_input_too() {
    let folder = audiences();
    let mut client = LineClient::of_haft(folder.path(), &["--endpoint", "coding"], json!({}));
    assert_eq!(client.names(), ["clock", "code__echo"]);
    let (code, _, aside) = mcp(folder.path(), &["serve", "--endpoint", "codign"]);
    assert_eq!(code, Some(2), "{aside}");
    assert!(aside.contains("`coding`, `support`"), "{aside}");
}

#[test]
fn the_page_at_the_start_and_the_check_name_the_endpoints() {
    let folder = audiences();
    let command = haft(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let (_running, lines) = Running::start_with(command);
    let page = lines.join("\n");
    let address = lines[0].strip_prefix("listening on ").unwrap();
    for path in ["/mcp", "/mcp/coding", "/mcp/support"] {
        let url = format!("{address}{path}");
        assert!(lines.iter().any(|it| it.ends_with(&url)), "{url}: {page}");
    }
    let (code, out, aside) = told(haft(folder.path(), &["config", "check", "--json"]), "");
    assert_eq!(code, Some(0), "{aside}");
    let checked: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(checked["endpoints"], json!(["/mcp/coding", "/mcp/support"]));
    let (_, out, _) = told(haft(folder.path(), &["config", "show"]), "");
    for heading in [
        "[gateway.coding]",
        "[[gateway.support.rule]]",
        "deny = [\"*__slow*\"]",
    ] {
        assert!(out.contains(heading), "{heading}: {out}");
    }
}

#[test]
fn keys_show_their_roles() {
    let folder = folder("");
    key(
        folder.path(),
        "one",
        "acme",
        &["support", "admin", "support"],
    );
    let (_, out, _) = told(haft(folder.path(), &["keys", "list", "--json"]), "");
    let keys: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(keys[0]["roles"], json!(["admin", "support"]));
    let (_, out, _) = told(haft(folder.path(), &["keys", "list"]), "");
    assert!(out.contains("admin, support"), "{out}");
    let bad = haft(folder.path(), &["keys", "add", "two", "--role", "a b"]);
    let (code, _, aside) = told(bad, "");
    assert_eq!(code, Some(2), "{aside}");
    assert!(aside.contains("no name for a role"), "{aside}");
}

#[test]
fn a_request_state_is_for_its_endpoint_and_its_key() {
    let server = fake("code", "modern", "allow = [\"echo\"]\napprove = \"always\"");
    let folder = folder(&format!("[gateway.one]\n[gateway.two]\n{server}"));
    let first = key(folder.path(), "first", "acme", &[]);
    let second = key(folder.path(), "second", "acme", &[]);
    let (_running, address) = serving(folder.path(), &[]);
    let at = |path, key: &str| Endpoint::new(&address, path, key);
    let mut params = json!({"name": "code__echo", "arguments": {"text": "hi"}});
    let asked = at("/mcp/one", &first)
        .modern("tools/call", params.clone())
        .message();
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let questions = asked["inputRequests"].as_object().unwrap();
    let answers = questions.keys().map(|key| {
        let answer = json!({"action": "accept", "content": {"approve": true, "confirm": true}});
        (key.clone(), answer)
    });
    params["inputResponses"] = Value::Object(answers.collect());
    params["requestState"] = asked["requestState"].clone();
    for (path, key) in [("/mcp/two", &first), ("/mcp/one", &second)] {
        let refused = at(path, key).modern("tools/call", params.clone()).message();
        let text = refused.to_string();
        assert!(text.contains("does not belong to this request"), "{text}");
    }
    let done = at("/mcp/one", &first)
        .modern("tools/call", params)
        .message();
    assert!(
        done["result"]["content"].to_string().contains("hi"),
        "{done}"
    );
}
