//! A server on loopback that records requests and plays given bytes in given pieces.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Each piece is one chunk on the wire.
    pub pieces: Vec<Vec<u8>>,
    pub ending: Ending,
}

/// The bytes of an answer, from text or JSON.
pub struct Body(Vec<u8>);

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<Value> for Body {
    fn from(json: Value) -> Self {
        Self(json.to_string().into_bytes())
    }
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Clean,
    /// The connection is closed in the middle.
    Broken,
    /// Nothing comes any more.
    Silent,
}

impl Reply {
    /// A JSON answer in one piece.
    pub fn json(status: u16, json: impl Into<Body>) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            pieces: vec![json.into().0],
            ending: Ending::Clean,
        }
    }

    /// Server-sent events in one piece.
    pub fn sse(text: &str) -> Self {
        Self {
            headers: vec![("content-type".into(), "text/event-stream".into())],
            pieces: vec![text.as_bytes().to_vec()],
            ..Self::json(200, "")
        }
    }

    /// Lines of JSON in one piece.
    pub fn ndjson(text: &str) -> Self {
        Self {
            headers: vec![("content-type".into(), "application/x-ndjson".into())],
            ..Self::sse(text)
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Cuts the answer at these places.
    pub fn cut_at(mut self, places: &[usize]) -> Self {
        let whole = self.pieces.concat();
        let mut start = 0;
        self.pieces.clear();
        for end in places.iter().copied().chain([whole.len()]) {
            if end > start {
                self.pieces.push(whole[start..end].to_vec());
                start = end;
            }
        }
        self
    }

    /// Cuts the answer into pieces of this size.
    pub fn in_pieces_of(mut self, size: usize) -> Self {
        self.pieces = self
            .pieces
            .concat()
            .chunks(size)
            .map(<[u8]>::to_vec)
            .collect();
        self
    }
}

/// The server. It plays its answers in order, the last one again and again.
pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Recorded>>>,
    connections: Arc<AtomicUsize>,
    closed: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_at("127.0.0.1:0", replies).await
    }

    /// The same at this address.
    pub async fn start_at(
        address: impl tokio::net::ToSocketAddrs,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(replies.into_iter().collect::<VecDeque<_>>()));
        let seen = Arc::clone(&requests);
        let connections = Arc::new(AtomicUsize::new(0));
        let closed = Arc::new(Notify::new());
        let (count, gone) = (Arc::clone(&connections), Arc::clone(&closed));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (replies, seen) = (Arc::clone(&replies), Arc::clone(&seen));
                let gone = Arc::clone(&gone);
                tokio::spawn(async move {
                    connection(stream, replies, seen).await;
                    gone.notify_one();
                });
            }
        });
        Self {
            url,
            requests,
            connections,
            closed,
            task,
        }
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().unwrap().clone()
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Waits until a connection has ended.
    pub async fn until_closed(&self) {
        self.closed.notified().await;
    }

    /// The only request.
    pub fn request(&self) -> Recorded {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "one request was expected");
        requests.remove(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connection(
    mut stream: TcpStream,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<Recorded>>>,
) {
    // Each piece leaves at once, as from a real server.
    stream.set_nodelay(true).unwrap();
    let mut held = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut held).await {
        seen.lock().unwrap().push(request);
        let reply = {
            let mut replies = replies.lock().unwrap();
            if replies.len() > 1 {
                replies.pop_front()
            } else {
                replies.front().cloned()
            }
        };
        let reply = reply.expect("an answer to play");
        if play(&mut stream, &reply).await.is_err() || reply.ending != Ending::Clean {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Recorded> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while buffer.len() < head_end + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer[head_end..head_end + length].to_vec();
    buffer.drain(..head_end + length);
    Some(Recorded {
        method,
        path,
        headers,
        body,
    })
}

async fn play(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} Whatever\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    for piece in reply.pieces.iter().filter(|piece| !piece.is_empty()) {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await?;
    }
    match reply.ending {
        Ending::Clean => stream.write_all(b"0\r\n\r\n").await,
        Ending::Broken => stream.shutdown().await,
        // Until the other side goes away.
        Ending::Silent => stream.read(&mut [0]).await.map(|_| ()),
    }
}
