//! HTTP as bytes on a socket: what clients that count chunks and connections see.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::Served;

pub(crate) fn address(served: &Served) -> SocketAddr {
    let address = served.base.strip_prefix("http://").unwrap();
    address.strip_suffix("/v1").unwrap().parse().unwrap()
}

/// A request that is under way.
pub(crate) struct Raw {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Raw {
    /// Sends a body to `/v1/responses`.
    pub(crate) async fn post(served: &Served, body: &Value) -> Self {
        let body = body.to_string();
        let mut raw = Self::begin(served, body.len()).await;
        raw.send(body.as_bytes()).await;
        raw
    }

    /// A connection on which nothing was sent yet.
    pub(crate) async fn connect(served: &Served) -> Self {
        Self {
            stream: TcpStream::connect(address(served)).await.unwrap(),
            buffer: Vec::new(),
        }
    }

    /// Says that a body of this size comes.
    pub(crate) async fn begin(served: &Served, size: usize) -> Self {
        let mut raw = Self::connect(served).await;
        let address = address(served);
        let head = format!(
            "POST /v1/responses HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             content-length: {size}\r\n\r\n"
        );
        raw.send(head.as_bytes()).await;
        raw
    }

    /// Sends more.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn more(&mut self) {
        let mut piece = [0; 4096];
        let read = self.stream.read(&mut piece);
        let read = tokio::time::timeout(Duration::from_secs(10), read).await;
        let count = read.expect("nothing comes").unwrap();
        assert!(count > 0, "the connection was closed");
        self.buffer.extend_from_slice(&piece[..count]);
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.drain(..at + 2).collect::<Vec<_>>();
                return String::from_utf8(line[..at].to_vec()).unwrap();
            }
            self.more().await;
        }
    }

    /// The status line and the headers.
    pub(crate) async fn head(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line().await;
            if line.is_empty() {
                return lines;
            }
            lines.push(line.to_ascii_lowercase());
        }
    }

    /// The next chunk of the body; none at its end.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let size = usize::from_str_radix(&self.line().await, 16).unwrap();
        while self.buffer.len() < size + 2 {
            self.more().await;
        }
        let chunk: Vec<u8> = self.buffer.drain(..size + 2).collect();
        assert!(chunk.ends_with(b"\r\n"));
        (size > 0).then(|| String::from_utf8(chunk[..size].to_vec()).unwrap())
    }
}

/// What a backend that never answers noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// A request is there.
    Asked,
    /// The one who asked hung up.
    HungUp,
}

/// A model server that takes a request, begins an answer if it is told to, and waits.
pub(crate) struct SilentBackend {
    pub(crate) url: String,
    noticed: mpsc::UnboundedReceiver<Noticed>,
}

impl SilentBackend {
    /// One that sends `beginning` and nothing more.
    pub(crate) async fn start(beginning: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, noticed) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut buffer = vec![0; 65536];
                    let _ = socket.read(&mut buffer).await;
                    let _ = tell.send(Noticed::Asked);
                    let _ = socket.write_all(beginning.as_bytes()).await;
                    while socket.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
                    let _ = tell.send(Noticed::HungUp);
                });
            }
        });
        Self {
            url: format!("http://{address}/v1"),
            noticed,
        }
    }

    /// What it notices next, soon.
    pub(crate) async fn notices(&mut self, limit: Duration) -> Noticed {
        let noticed = tokio::time::timeout(limit, self.noticed.recv()).await;
        noticed.expect("nothing is noticed").unwrap()
    }
}
