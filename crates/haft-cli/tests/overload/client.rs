//! Clients that ask again as soon as they are answered, and long before they are told to.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// No answer of these tests takes so long, on the slowest machine.
const LATE: Duration = Duration::from_mins(1);

/// When those come back who were told to come back later.
const PAUSE: Duration = Duration::from_millis(100);

/// What many clients were answered.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How many by status.
    pub(crate) answers: BTreeMap<u16, usize>,
    /// What the slowest took.
    pub(crate) slowest: Duration,
}

impl Tally {
    pub(crate) fn good(&self) -> usize {
        self.answers.get(&200).copied().unwrap_or_default()
    }

    fn add(&mut self, other: Self) {
        for (status, count) in other.answers {
            *self.answers.entry(status).or_default() += count;
        }
        self.slowest = self.slowest.max(other.slowest);
    }
}

/// So many clients at the same time, for so long.
pub(crate) async fn load(
    address: &str,
    key: Option<&str>,
    clients: usize,
    lasts: Duration,
) -> Tally {
    let end = Instant::now() + lasts;
    let clients: Vec<_> = (0..clients)
        .map(|_| {
            let (address, key) = (address.to_owned(), key.map(str::to_owned));
            tokio::spawn(async move { ask_until(end, &address, key.as_deref()).await })
        })
        .collect();
    let mut all = Tally::default();
    for client in clients {
        all.add(client.await.unwrap());
    }
    all
}

async fn ask_until(end: Instant, address: &str, key: Option<&str>) -> Tally {
    let mut tally = Tally::default();
    let mut client = Client::connect(address).await;
    while Instant::now() < end {
        let begun = Instant::now();
        client.ask(key, r#"{"input":"go","store":false}"#).await;
        let (status, wait) = client.answer().await;
        // What comes later than the end belongs to nobody's share.
        if Instant::now() < end {
            *tally.answers.entry(status).or_default() += 1;
        }
        tally.slowest = tally.slowest.max(begun.elapsed());
        match status {
            200 => {}
            429 | 503 => {
                let wait = wait.expect("who is refused is told when to come back");
                assert!(!wait.is_zero() && wait < LATE, "{wait:?}");
                tokio::time::sleep(PAUSE).await;
            }
            other => panic!("the answer is {other}"),
        }
    }
    tally
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    address: String,
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream, address)
    }

    pub(crate) fn over(stream: TcpStream, address: &str) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            address: address.to_owned(),
        }
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    pub(crate) async fn ask(&mut self, key: Option<&str>, body: &str) {
        let key = key.map(|key| format!("authorization: Bearer {key}\r\n"));
        let request = format!(
            "POST /v1/responses HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n{}\r\n{body}",
            self.address,
            body.len(),
            key.unwrap_or_default()
        );
        // Whoever is refused may be hung up on before all is sent: the answer tells.
        let _ = self.stream.write_all(request.as_bytes()).await;
    }

    /// What is at a path.
    pub(crate) async fn get(&mut self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.address);
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let (status, _, body) = self.whole().await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// The status of an answer, and when to come back.
    pub(crate) async fn answer(&mut self) -> (u16, Option<Duration>) {
        let (status, wait, _) = self.whole().await;
        (status, wait)
    }

    async fn whole(&mut self) -> (u16, Option<Duration>, String) {
        loop {
            let text = String::from_utf8_lossy(&self.buffer);
            if let Some(end) = text.find("\r\n\r\n") {
                let head = text[..end].to_ascii_lowercase();
                let header = |name: &str| -> Option<u64> {
                    let value = head.split(&format!("\r\n{name}: ")).nth(1)?;
                    value.split("\r\n").next()?.parse().ok()
                };
                let length = header("content-length").expect("a whole answer");
                let whole = end + 4 + usize::try_from(length).unwrap();
                if self.buffer.len() >= whole {
                    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                    let wait = header("retry-after").map(Duration::from_secs);
                    let body = text[end + 4..].to_owned();
                    self.buffer.drain(..whole);
                    return (status, wait, body);
                }
            }
            let mut piece = [0; 4096];
            let read = tokio::time::timeout(LATE, self.stream.read(&mut piece)).await;
            let count = read.expect("no answer comes").unwrap();
            assert!(count > 0, "the connection was closed");
            self.buffer.extend_from_slice(&piece[..count]);
        }
    }
}
