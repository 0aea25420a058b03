//! `haft mcp login` on hosts without a browser, with a fixed port, and at servers that offer no OAuth.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::json;

use crate::kit::{folder, mcp};
use crate::support::haft;

/// An MCP server with its authorization server: `is_open` answers everybody, `has_oauth` describes the way in.
fn guarded(is_open: bool, has_oauth: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let base = address.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let base = base.clone();
            std::thread::spawn(move || answer(stream, &base, is_open, has_oauth));
        }
    });
    address
}

fn answer(mut stream: TcpStream, base: &str, is_open: bool, has_oauth: bool) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (status, answer) = match path.as_str() {
        "/mcp" if is_open => ("200 OK", json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        "/mcp" => ("401 Unauthorized", json!({})),
        path if has_oauth && path.starts_with("/.well-known/oauth-protected-resource") => (
            "200 OK",
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}),
        ),
        path if has_oauth && path.starts_with("/.well-known/oauth-authorization-server") => (
            "200 OK",
            json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" if has_oauth => {
            let mut client: serde_json::Value = serde_json::from_str(&body).unwrap();
            client["client_id"] = "it".into();
            ("201 Created", client)
        }
        "/token" if has_oauth && body.contains("code=good") => (
            "200 OK",
            json!({"access_token": "hunter2", "token_type": "Bearer", "scope": "read", "expires_in": 3600}),
        ),
        _ => ("404 Not Found", json!({})),
    };
    let answer = answer.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    );
}

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

#[test]
fn the_address_of_the_browser_can_be_pasted_back() {
    let address = guarded(false, true);
    let port = free_port();
    let folder = folder(&format!(
        "[mcp.search]\nurl = \"{address}/mcp\"\noauth = {{ callback_port = {port} }}\n"
    ));
    for (pasted, is_right) in [
        ("good", true),
        ("http://127.0.0.1:9/callback?code=good&state=STATE", true),
        ("http://127.0.0.1:9/callback?code=good&state=other", false),
    ] {
        let mut command = haft(folder.path(), &["mcp", "login", "search", "--paste"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let page = lines
            .by_ref()
            .map(Result::unwrap)
            .find(|it| it.contains("/authorize?"))
            .unwrap();
        assert!(
            page.contains(&format!("127.0.0.1%3A{port}%2Fcallback")),
            "{page}"
        );
        let state = page
            .split("state=")
            .nth(1)
            .unwrap()
            .split('&')
            .next()
            .unwrap();
        writeln!(
            child.stdin.as_ref().unwrap(),
            "{}",
            pasted.replace("STATE", state)
        )
        .unwrap();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        let output = child.wait_with_output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.success(), is_right, "{pasted}: {out}{rest:?}");
        if is_right {
            assert!(out.contains("logged in to `search`"), "{out}");
        } else {
            assert!(
                rest.join("\n").contains("belongs to another login"),
                "{rest:?}"
            );
        }
        assert!(!out.contains("hunter2"));
    }
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    let (code, _, aside) = mcp(folder.path(), &["login", "search", "--port", &port]);
    assert_eq!(code, Some(1));
    assert!(aside.contains(&format!("port {port}")), "{aside}");
}

#[test]
fn a_server_without_oauth_says_what_to_do() {
    for (is_open, expected) in [
        (true, "no login is needed"),
        (false, "give it a token with `bearer_env`"),
    ] {
        let address = guarded(is_open, false);
        let folder = folder(&format!("[mcp.search]\nurl = \"{address}/mcp\"\n"));
        let (code, _, aside) = mcp(folder.path(), &["login", "search"]);
        assert_eq!(code, Some(2), "{aside}");
        assert!(aside.contains(expected), "{aside}");
    }
}
