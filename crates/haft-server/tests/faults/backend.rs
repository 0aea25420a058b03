//! A backend on loopback that misbehaves byte by byte, and counts who asks and who stays.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What happens to every connection once its request is whole.
#[derive(Debug, Clone)]
pub(crate) struct Behaviour {
    /// What is written, as it stands on the wire.
    pub(crate) says: Vec<u8>,
    pub(crate) end: End,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It is closed in order.
    Close,
    /// It is cut, in the middle of whatever was said.
    Reset,
    /// Nothing more comes; it is the other side's to go.
    Stall,
}

impl Behaviour {
    /// A head without a body yet, and everything that is said after it.
    pub(crate) fn say(status: u16, headers: &[(&str, &str)], body: &str, end: End) -> Self {
        let mut head = format!("HTTP/1.1 {status} Whatever\r\n");
        for (name, value) in headers {
            head.extend([*name, ": ", *value, "\r\n"]);
        }
        // Without a length the end of the connection is the end of the body: whoever wants the
        // difference between closed and cut says `chunked`.
        let said = format!("{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
        let mut says = said.into_bytes();
        if !body.is_empty() {
            says.extend_from_slice(format!("{:x}\r\n{body}\r\n", body.len()).as_bytes());
        }
        if end == End::Close {
            says.extend_from_slice(b"0\r\n\r\n");
        }
        Self { says, end }
    }

    /// Nothing is said at all.
    pub(crate) fn silent(end: End) -> Self {
        Self {
            says: Vec::new(),
            end,
        }
    }
}

/// The backend. Dropping it hangs up everywhere.
pub(crate) struct FaultyBackend {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl FaultyBackend {
    /// One that waits for a whole request before it does anything.
    pub(crate) async fn start(behaviour: Behaviour) -> Self {
        Self::serve(behaviour, Patience::Whole).await
    }

    /// One that does what it does whatever comes.
    pub(crate) async fn speaking_first(behaviour: Behaviour) -> Self {
        Self::serve(behaviour, Patience::FirstBytes).await
    }

    async fn serve(behaviour: Behaviour, patience: Patience) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let open = Arc::new(AtomicUsize::new(0));
        let (seen, count) = (Arc::clone(&requests), Arc::clone(&open));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (behaviour, seen) = (behaviour.clone(), Arc::clone(&seen));
                let held = Held::new(&count);
                connections.spawn(async move {
                    let _held = held;
                    misbehave(socket, &behaviour, patience, &seen).await;
                });
            }
        });
        Self {
            address,
            requests,
            open,
            task,
        }
    }

    /// The requests that came whole.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until nobody holds a connection any more.
    pub(crate) async fn until_left(&self) {
        let left = async {
            while self.open.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let left = tokio::time::timeout(PATIENCE, left).await;
        assert!(left.is_ok(), "somebody holds a connection to the backend");
    }
}

impl Drop for FaultyBackend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An open connection.
struct Held(Arc<AtomicUsize>);

impl Held {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(open))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How much is heard before anything is done.
#[derive(Clone, Copy)]
enum Patience {
    Whole,
    FirstBytes,
}

async fn misbehave(
    mut socket: TcpStream,
    behaviour: &Behaviour,
    patience: Patience,
    seen: &Mutex<Vec<String>>,
) {
    socket.set_nodelay(true).unwrap();
    let Some(request) = read_request(&mut socket, patience).await else {
        return;
    };
    seen.lock().unwrap().push(request);
    if socket.write_all(&behaviour.says).await.is_err() {
        return;
    }
    match behaviour.end {
        End::Close => {
            let _ = socket.shutdown().await;
        }
        End::Reset => {
            // What was said must arrive first: a reset throws away what is still under way.
            tokio::time::sleep(Duration::from_millis(30)).await;
            socket.set_zero_linger().unwrap();
        }
        End::Stall => {
            let _gone = socket.read(&mut [0; 64]).await;
        }
    }
}

/// A whole request; none if it does not become one.
async fn read_request(socket: &mut TcpStream, patience: Patience) -> Option<String> {
    let mut taken = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&taken);
        if matches!(patience, Patience::FirstBytes) && !taken.is_empty() {
            return Some(text.into_owned());
        }
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
        if socket.read_buf(&mut taken).await.ok()? == 0 {
            return None;
        }
    }
}
