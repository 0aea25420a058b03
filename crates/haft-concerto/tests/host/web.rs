//! `std::http` (§12) against a real server on loopback.

use haft_concerto::natives::Grant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::kit::{manifest, stage};

/// A server that answers `/echo` with what it was sent, `/large` with too much, and sends on from `/away`
/// to another host and from `/on` to `/echo`.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut piece = vec![0; 16 * 1024];
                let mut read = String::new();
                loop {
                    let count = socket.read(&mut piece).await.unwrap_or(0);
                    read.push_str(&String::from_utf8_lossy(&piece[..count]));
                    let whole = read.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                        let head = head.to_ascii_lowercase();
                        let length = head.split("content-length: ").nth(1);
                        let length = length.and_then(|it| it.lines().next()?.parse().ok());
                        body.len() >= length.unwrap_or(0)
                    });
                    if whole || count == 0 {
                        break;
                    }
                }
                let path = read.split(' ').nth(1).unwrap_or_default().to_owned();
                let (status, headers, body) = match path.as_str() {
                    "/away" => (
                        302,
                        format!("location: http://localhost:{port}/echo\r\n"),
                        String::new(),
                    ),
                    "/on" => (303, "location: /echo\r\n".to_owned(), String::new()),
                    "/round" => (302, "location: /round\r\n".to_owned(), String::new()),
                    "/large" => (200, String::new(), "x".repeat((16 << 20) + 1)),
                    _ => (201, "x-kind: echo\r\n".to_owned(), read),
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                let _ = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    format!("http://127.0.0.1:{port}")
}

async fn run(program: &str, hosts: &[&str]) -> String {
    let program = program.replace("ADDRESS", &server().await);
    let stage = stage(&manifest("http://127.0.0.1:9", ""), &program, |setup| {
        setup.permissions.net = Grant::Only(hosts.iter().map(|it| (*it).to_owned()).collect());
    });
    stage.run().await.unwrap()
}

#[tokio::test]
async fn a_body_is_sent_as_json_and_the_answer_is_a_record() {
    let program = r#"
        let r = std::http::post("ADDRESS/echo", { "b": 2, "a": "x" }, { "X-Own": "yes" }).unwrap();
        emit("status", r.status);
        emit("kind", r.headers["x-kind"]);
        emit("type", typeof(r));
        emit("body", r.body);
    "#;
    let printed = run(program, &["127.0.0.1"]).await;
    assert!(
        printed.starts_with("[emit:status] 201\n[emit:kind] echo\n[emit:type] HttpResponse\n"),
        "{printed}"
    );
    assert!(printed.contains("POST /echo HTTP/1.1"), "{printed}");
    assert!(
        printed.contains("content-type: application/json"),
        "{printed}"
    );
    assert!(printed.contains("x-own: yes"), "{printed}");
    assert!(printed.contains("{\"a\":\"x\",\"b\":2}"), "{printed}");
}

#[tokio::test]
async fn a_redirect_is_followed_only_to_a_host_that_is_allowed() {
    let program = r#"
        emit("on", std::http::post("ADDRESS/on", 1).unwrap().body.starts_with("GET /echo"));
        emit("away", std::http::get("ADDRESS/away"));
        emit("round", std::http::get("ADDRESS/round").is_err());
    "#;
    let printed = run(program, &["127.0.0.1"]).await;
    let denied = "Err(permission denied: localhost: allow it with --allow-net=localhost)";
    assert_eq!(
        printed,
        format!("[emit:on] true\n[emit:away] {denied}\n[emit:round] true\n")
    );
    let printed = run(program, &["127.0.0.1", "localhost"]).await;
    assert!(printed.contains("[emit:away] Ok("), "{printed}");
}

#[tokio::test]
async fn what_was_said_to_one_host_is_not_said_to_the_next() {
    let program = r#"
        let said = { "Authorization": "Bearer k", "X-Api-Key": "k", "Accept": "text/plain" };
        emit("on", std::http::get("ADDRESS/on", said).unwrap().body);
        emit("away", std::http::get("ADDRESS/away", said).unwrap().body);
    "#;
    // Names of hosts have no case.
    let printed = run(program, &["127.0.0.1", "LocalHost"]).await;
    let (on, away) = printed.split_once("[emit:away]").unwrap();
    assert!(on.contains("x-api-key: k") && on.contains("authorization: Bearer k"));
    assert!(away.contains("accept: text/plain"), "{away}");
    assert!(!away.contains("x-api-key") && !away.contains("authorization"));
}

#[tokio::test]
async fn a_password_in_an_address_is_in_no_message() {
    let program = r#"
        emit("gone", std::http::get("http://me:secret@127.0.0.1:9/x"));
        emit("odd", std::http::get("ftp://me:secret@127.0.0.1/x"));
        emit("bad", std::http::get("http://me:secret@127.0.0.1:99999/x"));
    "#;
    let printed = run(program, &["127.0.0.1"]).await;
    assert!(
        printed.contains("http://127.0.0.1:9/x: request failed"),
        "{printed}"
    );
    assert_eq!(printed.lines().count(), 3, "{printed}");
    assert!(!printed.contains("secret"), "{printed}");
}

#[tokio::test]
async fn what_is_too_large_or_not_there_is_an_error() {
    let program = r#"
        emit("large", std::http::get("ADDRESS/large"));
        emit("gone", std::http::get("http://127.0.0.1:9/").is_err());
    "#;
    let printed = run(program, &["127.0.0.1"]).await;
    assert!(
        printed.contains("the answer is larger than 16777216 bytes"),
        "{printed}"
    );
    assert!(printed.ends_with("[emit:gone] true\n"), "{printed}");
}

/// The clock jumps when everybody waits.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let silent = tokio::spawn(async move {
        let mut sockets = Vec::new();
        loop {
            sockets.push(listener.accept().await);
        }
    });
    let program = format!("emit(\"r\", std::http::get(\"http://{address}/\"));");
    let stage = stage(&manifest("http://127.0.0.1:9", ""), &program, |setup| {
        setup.permissions.net = Grant::Everything;
    });
    let printed = stage.run().await.unwrap();
    let expected = format!("[emit:r] Err(GET http://{address}/: no answer within 30s)\n");
    assert_eq!(printed, expected);
    silent.abort();
}
