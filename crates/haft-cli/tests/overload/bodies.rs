//! Clients that send a large body and never its end.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::Server;
use crate::backend;
use crate::client::{Client, load};

const MIB: usize = 1 << 20;

/// How much they may take, in MiB: what they share, half of it again for a body that grows, and the
/// connections.
const MORE_MEMORY: f64 = 128.0;

/// Announces a body and sends half of it; the connection stays open.
async fn begin(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        8 * MIB
    );
    // Whoever is refused is hung up on before he has sent it.
    if stream.write_all(head.as_bytes()).await.is_ok() {
        let half = vec![b' '; 4 * MIB];
        let _ = tokio::time::timeout(Duration::from_secs(30), stream.write_all(&half)).await;
    }
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_large_bodies_take_what_they_may_and_nothing_from_small_ones() {
    let backend = backend::start(Duration::ZERO).await;
    let config = "[server]\nmax_body_bytes = \"8MiB\"\n[limits]\nmax_pending_bytes = \"32MiB\"\n";
    let server = Server::start(&backend, config, |_| {}).await;
    load(&server.address, None, 4, Duration::from_secs(1)).await;
    let before = server.memory();
    let mut senders = Vec::new();
    for _ in 0..100 {
        senders.push(begin(&server.address).await);
        let more = server.memory() - before;
        assert!(more < MORE_MEMORY, "{more} MiB for {}", senders.len());
    }
    let more = server.memory() - before;
    eprintln!("{more} MiB more");
    let small = load(&server.address, None, 4, Duration::from_secs(1)).await;
    assert!(small.good() > 0 && small.answers.len() == 1, "{small:?}");
    let large = format!(r#"{{"input":"{}","store":false}}"#, "x".repeat(6 * MIB));
    let mut client = Client::connect(&server.address).await;
    client.ask(None, &large).await;
    let (status, wait) = client.answer().await;
    assert!(status == 503 && wait.is_some(), "{status} {wait:?}");
    drop(senders);
    // When they have gone, there is room again.
    for _ in 0..100 {
        let mut client = Client::connect(&server.address).await;
        client.ask(None, &large).await;
        if client.answer().await.0 == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("what was given is not given back");
}
