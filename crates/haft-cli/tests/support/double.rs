//! A server that answers from a list, for what a real one does not do by itself.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A server on loopback; what it was sent, and where it is.
pub(crate) struct Double {
    pub(crate) address: String,
    received: Arc<Mutex<Vec<Value>>>,
}

impl Double {
    /// Answers `GET /v1/models`, and each `POST /v1/responses` with the next of these streams.
    pub(crate) fn start(streams: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<Value>>>::default();
        let log = Arc::clone(&received);
        std::thread::spawn(move || {
            let mut streams = streams.into_iter();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if reader.read_line(&mut head).unwrap_or(0) == 0 {
                        break;
                    }
                }
                let length = head.to_ascii_lowercase();
                let length = length.split("content-length: ").nth(1);
                let length = length.and_then(|it| it.lines().next()?.trim().parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                reader.read_exact(&mut body).unwrap();
                let (kind, answer) = if head.starts_with("GET") {
                    let models = json!({"data": [{"id": "double", "owned_by": "haft"}]});
                    ("application/json", models.to_string())
                } else {
                    log.lock()
                        .unwrap()
                        .push(serde_json::from_slice(&body).unwrap());
                    ("text/event-stream", streams.next().unwrap())
                };
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{answer}"
                );
            }
        });
        Self { address, received }
    }

    /// The bodies that came.
    pub(crate) fn received(&self) -> Vec<Value> {
        self.received.lock().unwrap().clone()
    }
}

/// A stream that ends well with these items.
pub(crate) fn ended_with(id: &str, items: &[Value]) -> String {
    let response = json!({"id": id, "status": "completed", "model": "double", "output": items});
    let created = json!({"type": "response.created", "response": {"id": id}});
    let completed = json!({"type": "response.completed", "response": response});
    format!("data: {created}\n\ndata: {completed}\n\ndata: [DONE]\n\n")
}
