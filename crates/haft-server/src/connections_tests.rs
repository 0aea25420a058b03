#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

use super::*;

const SOON: Duration = Duration::from_millis(100);

/// Longer than any of these tests needs on the slowest machine.
const LATE: Duration = Duration::from_secs(30);

async fn connect(router: Router, patience: Patience) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let lifetime = Arc::new(Lifetime::default());
    let bounds = Bounds {
        patience,
        header_bytes: 1024,
        headers: 10,
        line: None,
    };
    tokio::spawn(async move { serve(listener, router, &lifetime, bounds).await });
    TcpStream::connect(address).await.unwrap()
}

/// What comes until the other end closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(LATE, stream.read_to_end(&mut bytes)).await;
    // A connection that is reset is closed, too.
    let _ = read.expect("the connection is not closed");
    String::from_utf8(bytes).unwrap()
}

fn hurried() -> Patience {
    Patience {
        header: SOON,
        ..Patience::default()
    }
}

#[tokio::test]
async fn who_does_not_ask_is_let_go() {
    let beginnings: [&[u8]; 5] = [
        b"",
        b"P",
        b"PRI * HTTP/2.0\r\n",
        b"GET / HTTP/1.1\r\nHost",
        b"POST / HTTP/1.1\r\nHost: here\r\n",
    ];
    for beginning in beginnings {
        let mut stream = connect(Router::new(), hurried()).await;
        stream.write_all(beginning).await.unwrap();
        assert_eq!(rest(&mut stream).await, "", "{beginning:?}");
    }
}

#[tokio::test]
async fn who_has_asked_may_wait_for_the_answer() {
    let slow = get(|| async {
        sleep(SOON * 5).await;
        "at last"
    });
    let mut stream = connect(Router::new().route("/", slow), hurried()).await;
    let request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.ends_with("at last"), "{answer}");
}

#[tokio::test]
async fn who_does_not_read_is_let_go() {
    let (dropped, is_dropped) = oneshot::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(Some(dropped)));
    let endless = get(move || async move {
        let held = held.lock().unwrap().take();
        Body::from_stream(stream::repeat_with(move || {
            let _held = &held;
            Ok::<_, Infallible>(Bytes::from_static(&[b'a'; 1024]))
        }))
    });
    let patience = Patience {
        stall: SOON,
        ..Patience::default()
    };
    let mut stream = connect(Router::new().route("/", endless), patience).await;
    let request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
    stream.write_all(request).await.unwrap();
    timeout(LATE, is_dropped).await.unwrap().unwrap_err();
}
