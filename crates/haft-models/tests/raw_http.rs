//! What servers do with a connection that they should not, byte by byte over loopback.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use bytes::Bytes;
use haft_core::{ModelError, ModelErrorKind};
use haft_models::http::{Body, Endpoint, Http, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A client, and the server that it asks.
struct Place {
    listener: TcpListener,
    endpoint: Endpoint,
    http: Http,
    timeouts: Timeouts,
}

impl Place {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
        Self {
            listener,
            endpoint: Endpoint::new(&endpoint).unwrap(),
            http: Http::default(),
            timeouts: Timeouts::default(),
        }
    }

    async fn post(&self, body: impl Into<Bytes>) -> Result<Body, ModelError> {
        let accept = "text/plain";
        self.http
            .post(&self.endpoint, "a", body.into(), accept, &self.timeouts)
            .await
    }

    /// What comes back, whole.
    async fn ask(&self) -> Result<String, ModelError> {
        let whole = self.post("{}").await?.whole().await?;
        Ok(String::from_utf8(whole.to_vec()).unwrap())
    }

    async fn accept(&self) -> Served {
        let accepting = tokio::time::timeout(Duration::from_secs(5), self.listener.accept());
        let (stream, _) = accepting.await.expect("nobody connects").unwrap();
        stream.set_nodelay(true).unwrap();
        Served(stream)
    }

    /// Whether another connection is asked for.
    async fn is_connected_to_again(&self) -> bool {
        let waiting = Duration::from_millis(100);
        tokio::time::timeout(waiting, self.listener.accept())
            .await
            .is_ok()
    }
}

/// One connection, as the server sees it.
struct Served(TcpStream);

impl Served {
    /// Reads a request with the body `{}`; false if there is none.
    async fn hears(&mut self) -> bool {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n{}") {
            if self.0.read_buf(&mut request).await.unwrap_or(0) == 0 {
                return false;
            }
        }
        true
    }

    async fn says(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }
}

const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood";

/// The first answer of a server, and whether its connection is used for the next request.
async fn answer_and_what_follows(first: &str) -> (Result<String, ModelError>, bool) {
    let place = Place::new().await;
    let serving = async {
        let mut one = place.accept().await;
        assert!(one.hears().await);
        one.says(first).await;
        let is_reused = one.hears().await;
        if is_reused {
            one.says(GOOD).await;
        } else {
            drop(one);
            let mut other = place.accept().await;
            assert!(other.hears().await);
            other.says(GOOD).await;
        }
        is_reused
    };
    let asking = async {
        let first = place.ask().await;
        assert_eq!(place.ask().await.unwrap(), "good");
        first
    };
    tokio::join!(asking, serving)
}

#[tokio::test]
async fn a_connection_is_used_again_only_when_it_is_clear_where_the_answer_ended() {
    let chunks = "2;a=\"b\"\r\nhe\r\n3\r\nllo\r\n0\r\nsum: 1\r\n\r\n";
    for (head, body, is_reused) in [
        ("1.1 200 OK\r\ncontent-length: 5", "hello", true),
        ("1.1 200 OK\r\ncontent-length: 5, 5", "hello", true),
        ("1.1 200 OK\r\ntransfer-encoding: chunked", chunks, true),
        (
            "1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5",
            "hello",
            true,
        ),
        (
            "1.1 200 OK\r\nconnection: close\r\ncontent-length: 5",
            "hello",
            false,
        ),
        ("1.0 200 OK\r\ncontent-length: 5", "hello", false),
        (
            "1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 3",
            chunks,
            false,
        ),
        (
            "1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked",
            chunks,
            false,
        ),
        ("1.1 200 OK\r\ncontent-length: 5", "hello\r\n", false),
        (
            "1.1 200 OK\r\ntransfer-encoding: chunked",
            &format!("{chunks}x"),
            false,
        ),
        // An answer to a question that nobody has asked.
        (
            "1.1 200 OK\r\ncontent-length: 5",
            &format!("hello{GOOD}"),
            false,
        ),
    ] {
        let (answer, was_reused) =
            answer_and_what_follows(&format!("HTTP/{head}\r\n\r\n{body}")).await;
        assert_eq!(answer.unwrap(), "hello", "{head}");
        assert_eq!(was_reused, is_reused, "{head}\n{body}");
    }
}

#[tokio::test]
async fn an_answer_without_a_clear_end_is_refused_and_its_connection_closed() {
    for head in [
        "1.1 200 OK\r\ncontent-length: 5, 4",
        "1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 4",
        "1.1 200 OK\r\ncontent-length: -5",
        "1.1 200 OK\r\ntransfer-encoding: gzip, chunked",
        "1.1 200 OK\r\ntransfer-encoding: chunked\r\nno header",
        "2.0 200 OK\r\ncontent-length: 5",
    ] {
        let (answer, was_reused) =
            answer_and_what_follows(&format!("HTTP/{head}\r\n\r\nhello")).await;
        let error = answer.unwrap_err();
        assert!(error.message.contains("is not HTTP/1.1"), "{head}: {error}");
        assert!(!was_reused, "{head}");
    }
}

#[tokio::test]
async fn what_is_said_before_the_answer_is_passed_over() {
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n";
    let (answer, was_reused) = answer_and_what_follows(&format!("{early}{GOOD}")).await;
    assert_eq!(answer.unwrap(), "good");
    assert!(was_reused);
}

/// Before the answer, and as one.
#[tokio::test]
async fn a_head_without_end_is_refused() {
    for line in [
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: ",
        "",
    ] {
        let place = Place::new().await;
        let serving = async {
            let mut one = place.accept().await;
            assert!(one.hears().await);
            loop {
                let words = if line.ends_with("\r\n\r\n") {
                    line.repeat(100)
                } else {
                    "b".repeat(4096)
                };
                if one.0.write_all(words.as_bytes()).await.is_err() {
                    break;
                }
            }
        };
        let asking = async {
            let place = &place;
            place.ask().await.unwrap_err()
        };
        let error = tokio::select! {
            error = asking => error,
            () = serving => panic!("the server was left before anything was told"),
        };
        let is_told = error.message.contains("bytes before its body")
            || error.message.contains("is not HTTP/1.1");
        assert!(is_told, "{error}");
    }
}

/// The server has taken the request in: it may have done what it was asked for.
#[tokio::test]
async fn a_request_of_which_anything_was_heard_is_not_sent_again() {
    for said in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nconte"] {
        let place = Place::new().await;
        let serving = async {
            let mut one = place.accept().await;
            assert!(one.hears().await);
            one.says(GOOD).await;
            assert!(one.hears().await);
            one.says(said).await;
            drop(one);
            assert!(!place.is_connected_to_again().await, "{said}");
        };
        let asking = async {
            assert_eq!(place.ask().await.unwrap(), "good");
            let error = place.ask().await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Unreachable);
            assert!(
                error.message.contains("in the middle of the answer"),
                "{error}"
            );
        };
        tokio::join!(asking, serving);
    }
}

#[tokio::test]
async fn a_request_is_sent_again_once_and_only_over_a_connection_that_was_used_before() {
    let place = Place::new().await;
    let serving = async {
        let mut one = place.accept().await;
        assert!(one.hears().await);
        one.says(GOOD).await;
        assert!(one.hears().await);
        drop(one);
        let mut other = place.accept().await;
        assert!(other.hears().await);
        drop(other);
        assert!(!place.is_connected_to_again().await);
    };
    let asking = async {
        assert_eq!(place.ask().await.unwrap(), "good");
        let error = place.ask().await.unwrap_err();
        assert!(
            error.message.contains("hung up before it answered"),
            "{error}"
        );
    };
    tokio::join!(asking, serving);
}

/// What was said too late must not become the answer to somebody else.
#[tokio::test]
async fn a_connection_is_left_whose_answer_nobody_waited_for() {
    let late = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate";
    // Before the answer, in the middle of its head, of its body, and at its end.
    for heard in [0, 20, late.len() - 2, late.len()] {
        let mut place = Place::new().await;
        place.timeouts.header = Duration::from_millis(100);
        let serving = async {
            let mut one = place.accept().await;
            assert!(one.hears().await);
            one.says(&late[..heard]).await;
            let mut other = place.accept().await;
            let _ = one.0.write_all(&late.as_bytes()[heard..]).await;
            assert!(other.hears().await);
            other.says(GOOD).await;
            assert!(!one.hears().await);
        };
        let asking = async {
            match place.post("{}").await {
                Ok(unread) => drop(unread),
                Err(error) => assert_eq!(error.kind, ModelErrorKind::Timeout),
            }
            assert_eq!(place.ask().await.unwrap(), "good");
        };
        tokio::join!(asking, serving);
    }
}

#[tokio::test]
async fn a_server_that_only_pretends_to_go_on_is_not_waited_for() {
    let mut place = Place::new().await;
    place.timeouts.idle = Duration::from_millis(150);
    for (begun, crumb) in [
        ("transfer-encoding: chunked\r\n\r\n5;a=", "b"),
        ("transfer-encoding: chunked\r\n\r\n0\r\n", "a: b\r\n"),
        ("content-length: 5\r\n\r\nhell", ""),
    ] {
        let serving = async {
            let mut one = place.accept().await;
            assert!(one.hears().await);
            one.says(format!("HTTP/1.1 200 OK\r\n{begun}")).await;
            while one.0.write_all(crumb.as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let error = tokio::select! {
            answer = place.ask() => answer.unwrap_err(),
            () = serving => panic!("nobody was left to tell"),
        };
        assert_eq!(error.kind, ModelErrorKind::Timeout, "{begun}: {error}");
    }
}

/// More than the system takes at once.
#[tokio::test]
async fn the_rest_of_a_request_is_sent_while_its_answer_begins() {
    const LONG: usize = 16 * 1024 * 1024;
    let place = Place::new().await;
    let serving = async {
        let mut one = place.accept().await;
        one.says("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nread\r\n")
            .await;
        let mut request = Vec::new();
        while !request.ends_with(b"end") {
            assert!(one.0.read_buf(&mut request).await.unwrap() > 0);
        }
        one.says("4\r\n all\r\n0\r\n\r\n").await;
        assert!(request.len() > LONG);
        assert!(one.hears().await, "it is used for the next request");
        one.says(GOOD).await;
    };
    let asking = async {
        let body = [vec![b' '; LONG], b"end".to_vec()].concat();
        let whole = place.post(body).await.unwrap().whole().await.unwrap();
        assert_eq!(whole, "read all");
        assert_eq!(place.ask().await.unwrap(), "good");
    };
    tokio::join!(asking, serving);
}
