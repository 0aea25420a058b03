//! The hostile server on a port of this machine: real bytes over real sockets, and a note of every
//! request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Url;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::brain::{Brain, Sink};

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// How it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Streamable HTTP that answers with JSON.
    Json,
    /// Streamable HTTP that answers with events.
    Events,
    /// The older protocol.
    Sse,
}

#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) address: std::net::SocketAddr,
    style: Style,
    brain: Brain,
    seen: Arc<Mutex<Vec<Seen>>>,
    canned: Arc<Mutex<VecDeque<Vec<u8>>>>,
    streams: Arc<Mutex<Vec<mpsc::UnboundedSender<Vec<u8>>>>>,
    session: Arc<Mutex<usize>>,
    hang_ups: Arc<Mutex<usize>>,
}

impl Web {
    pub(crate) async fn start(style: Style, words: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web = Self {
            address: listener.local_addr().unwrap(),
            style,
            brain: Brain::new(words.iter().copied()),
            seen: Arc::default(),
            canned: Arc::default(),
            streams: Arc::default(),
            session: Arc::default(),
            hang_ups: Arc::default(),
        };
        let served = web.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let web = served.clone();
                tokio::spawn(async move {
                    // Whoever asks may hang up.
                    let _ = web.talk(socket).await;
                });
            }
        });
        web
    }

    pub(crate) fn url(&self) -> Url {
        Url::parse(&format!("http://{}/mcp", self.address)).unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests of this method of the protocol.
    pub(crate) fn seen_rpc(&self, method: &str) -> Vec<Seen> {
        self.seen()
            .into_iter()
            .filter(|seen| seen.rpc() == method)
            .collect()
    }

    /// The next request gets these bytes, whatever it asks.
    pub(crate) fn answer_next(&self, bytes: impl Into<Vec<u8>>) {
        self.canned.lock().unwrap().push_back(bytes.into());
    }

    /// Forgets the session, and ends every open stream.
    pub(crate) fn restart(&self) {
        *self.session.lock().unwrap() += 1;
        self.streams.lock().unwrap().clear();
    }

    /// How often a client ended a stream before it was finished.
    pub(crate) fn hang_ups(&self) -> usize {
        *self.hang_ups.lock().unwrap()
    }

    fn session(&self) -> String {
        format!("session-{}", self.session.lock().unwrap())
    }

    async fn talk(&self, socket: TcpStream) -> std::io::Result<()> {
        let mut socket = BufReader::new(socket);
        while let Some(request) = read(&mut socket).await? {
            self.seen.lock().unwrap().push(request.clone());
            let canned = self.canned.lock().unwrap().pop_front();
            if let Some(bytes) = canned {
                socket.write_all(&bytes).await?;
                // Whatever else is to come is for the test to say.
                if !bytes.starts_with(b"HTTP/1.1 200") {
                    continue;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                return Ok(());
            }
            match (request.method.as_str(), self.style) {
                ("GET", Style::Sse) => {
                    return self.stream(&mut socket, Some("/messages?key=1")).await;
                }
                ("GET", _) if self.brain.has("no-get") => {
                    socket
                        .write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
                        .await?;
                }
                ("GET", _) => return self.stream(&mut socket, None).await,
                ("POST", Style::Sse) if request.path.starts_with("/messages") => {
                    let streams = Arc::clone(&self.streams);
                    let sink: Sink = Arc::new(move |message| {
                        streams
                            .lock()
                            .unwrap()
                            .retain(|stream| stream.send(message.clone()).is_ok());
                    });
                    self.brain.hear(&request.body, &sink);
                    socket
                        .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                        .await?;
                }
                ("POST", Style::Sse) => {
                    socket
                        .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nnot found")
                        .await?;
                }
                ("POST", _) => self.post(&mut socket, &request).await?,
                _ => {
                    socket
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                        .await?;
                }
            }
        }
        Ok(())
    }

    async fn post(&self, socket: &mut BufReader<TcpStream>, request: &Seen) -> std::io::Result<()> {
        if request.body["id"].is_null() {
            let (to, _from) = mpsc::unbounded_channel();
            self.brain.hear(&request.body, &sink_to(to));
            return socket
                .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                .await;
        }
        let rpc = request.rpc();
        let needs_session =
            self.brain.has("sessions") && !matches!(rpc, "initialize" | "server/discover");
        if needs_session && request.headers.get("mcp-session-id") != Some(&self.session()) {
            return socket
                .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                .await;
        }
        if self.brain.has("plain-400") && rpc == "server/discover" {
            return socket
                .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 10\r\n\r\nno session")
                .await;
        }
        if self.brain.has("error-500") && rpc == "server/discover" {
            return socket
                .write_all(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
                .await;
        }
        if self.brain.has("mirror")
            && rpc == "tools/call"
            && request.body["params"]["name"] == "mirrored"
        {
            let wanted = request.body["params"]["arguments"]["region"].as_str();
            if request.headers.get("mcp-param-region").map(String::as_str) != wanted {
                let body = serde_json::json!({"jsonrpc": "2.0", "id": request.body["id"], "error": {"code": -32020, "message": "header mismatch"}}).to_string();
                let head = format!(
                    "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                return socket.write_all(head.as_bytes()).await;
            }
        }
        let (to, mut from) = mpsc::unbounded_channel();
        self.brain.hear(&request.body, &sink_to(to));
        let session = if self.brain.has("sessions") && rpc == "initialize" {
            format!("mcp-session-id: {}\r\n", self.session())
        } else {
            String::new()
        };
        let is_stream = self.style == Style::Events || rpc == "subscriptions/listen";
        if !is_stream {
            // Everything but the answer is lost on this way.
            loop {
                let message = tokio::select! {
                    Some(message) = from.recv() => message,
                    gone = hung_up(socket) => { gone?; *self.hang_ups.lock().unwrap() += 1; return Ok(()); }
                };
                if is_answer(&message) {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{session}content-length: {}\r\n\r\n",
                        message.len()
                    );
                    socket.write_all(head.as_bytes()).await?;
                    return socket.write_all(&message).await;
                }
            }
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{session}transfer-encoding: chunked\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await?;
        loop {
            let message = tokio::select! {
                Some(message) = from.recv() => message,
                gone = hung_up(socket) => { gone?; *self.hang_ups.lock().unwrap() += 1; return Ok(()); }
            };
            chunk(socket, &event("message", &message)).await?;
            if is_answer(&message) {
                return socket.write_all(b"0\r\n\r\n").await;
            }
        }
    }

    /// A stream that stays open until the server restarts.
    async fn stream(
        &self,
        socket: &mut BufReader<TcpStream>,
        endpoint: Option<&str>,
    ) -> std::io::Result<()> {
        let (to, mut from) = mpsc::unbounded_channel();
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n").await?;
        if let Some(endpoint) = endpoint {
            let endpoint = if self.brain.has("foreign-endpoint") {
                "http://127.0.0.2:1/steal"
            } else {
                endpoint
            };
            if self.brain.has("no-endpoint") {
                chunk(socket, b": nothing to see\n\n").await?;
            } else {
                chunk(socket, &event("endpoint", endpoint.as_bytes())).await?;
            }
        }
        self.streams.lock().unwrap().push(to);
        while let Some(message) = from.recv().await {
            chunk(socket, &event("message", &message)).await?;
        }
        socket.write_all(b"0\r\n\r\n").await
    }

    /// Says something on every open stream.
    pub(crate) fn tell(&self, message: &Value) {
        for stream in self.streams.lock().unwrap().iter() {
            let _ = stream.send(message.to_string().into_bytes());
        }
    }
}

/// Ends when the client does.
async fn hung_up(socket: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    loop {
        if socket.fill_buf().await.map_or(true, <[u8]>::is_empty) {
            return Ok(());
        }
        // It has more to say, later.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn sink_to(to: mpsc::UnboundedSender<Vec<u8>>) -> Sink {
    Arc::new(move |message| {
        let _ = to.send(message);
    })
}

fn is_answer(message: &[u8]) -> bool {
    serde_json::from_slice::<Value>(message)
        .is_ok_and(|message| message.get("method").is_none() && message.get("id").is_some())
}

fn event(name: &str, data: &[u8]) -> Vec<u8> {
    [
        b"event: ",
        name.as_bytes(),
        b"\r\ndata: ",
        data,
        b"\r\n\r\n",
    ]
    .concat()
}

async fn chunk(socket: &mut BufReader<TcpStream>, bytes: &[u8]) -> std::io::Result<()> {
    socket
        .write_all(format!("{:x}\r\n", bytes.len()).as_bytes())
        .await?;
    socket.write_all(bytes).await?;
    socket.write_all(b"\r\n").await
}

async fn read(socket: &mut BufReader<TcpStream>) -> std::io::Result<Option<Seen>> {
    let mut line = String::new();
    if socket.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, path) = (
        words.next().unwrap_or_default().to_owned(),
        words.next().unwrap_or_default().to_owned(),
    );
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(Some(Seen {
        method,
        path,
        headers,
        body,
    }))
}

/// An answer with this status, these header lines and this body.
pub(crate) fn raw(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
