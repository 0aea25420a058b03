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
        memory: MemoryBudget::new(1 << 30, 0),
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

/// Takes a few bytes a second.
struct Trickle(Pin<Box<Sleep>>);

impl AsyncWrite for Trickle {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.0.as_mut().poll(cx));
        self.0
            .as_mut()
            .reset(Instant::now() + Duration::from_secs(1));
        Poll::Ready(Ok(bytes.len().min(10)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// How long a client that reads ten bytes a second is served.
async fn served_for(memory: MemoryBudget) -> Duration {
    let bounds = Bounds {
        patience: Patience::default(),
        header_bytes: 1024,
        headers: 10,
        line: None,
        memory,
    };
    let mut stream = Stalling::new(Trickle(Box::pin(sleep(Duration::ZERO))), bounds);
    let begun = Instant::now();
    let written = stream.write_all(&vec![0; 1 << 20]).await;
    assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn client_that_reads_too_slowly_is_disconnected() {
    let limits = Patience::default();
    let memory = MemoryBudget::new(1 << 20, 0);
    let calm = served_for(memory.clone()).await;
    assert!(calm >= limits.stall && calm < limits.stall * 2, "{calm:?}");
    let _held = memory.force(1 << 20);
    let crowded = served_for(memory).await;
    assert!(crowded < limits.crowded_stall * 2, "{crowded:?}");
}
