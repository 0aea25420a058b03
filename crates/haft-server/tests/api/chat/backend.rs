//! A backend that says exactly what a test wants, and notices when it is left.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Takes one request, sends what it is given, and hangs up when there is no more.
pub(super) struct RawBackend {
    pub(super) base_url: String,
    pub(super) say: mpsc::UnboundedSender<&'static str>,
    /// The request, as soon as it is there.
    pub(super) request: oneshot::Receiver<String>,
    /// The other side hung up.
    pub(super) left: oneshot::Receiver<()>,
}

impl RawBackend {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (say, said) = mpsc::unbounded_channel();
        let (tell_request, request) = oneshot::channel();
        let (tell_left, left) = oneshot::channel();
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            serve(socket, said, tell_request, tell_left).await;
        });
        Self {
            base_url: format!("http://{address}/v1"),
            say,
            request,
            left,
        }
    }

    /// Waits until the other side has hung up.
    pub(super) async fn wait_until_left(self) {
        tokio::time::timeout(PATIENCE, self.left)
            .await
            .expect("still there")
            .unwrap();
    }
}

async fn serve(
    mut socket: TcpStream,
    mut said: mpsc::UnboundedReceiver<&'static str>,
    request: oneshot::Sender<String>,
    left: oneshot::Sender<()>,
) {
    let mut taken = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&taken) {
        let count = socket.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "hung up before the request was whole");
        taken.extend_from_slice(&buffer[..count]);
    }
    let _nobody_asks = request.send(String::from_utf8(taken).unwrap());
    loop {
        tokio::select! {
            words = said.recv() => match words {
                Some(words) => socket.write_all(words.as_bytes()).await.unwrap(),
                None => return,
            },
            read = socket.read(&mut buffer) => {
                assert!(matches!(read, Ok(0) | Err(_)), "more than one request");
                let _nobody_asks = left.send(());
                return;
            }
        }
    }
}

/// Whether a request with a `content-length` has come to its end.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse::<usize>().unwrap())
    });
    body.len() >= length.unwrap()
}
