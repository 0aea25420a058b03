//! Connections: accepted, served, and let go when whoever is at the other end does not do his part.
//!
//! What comes in: a listener. What goes out: requests for the router. Somebody who opens a connection
//! and does not ask, or asks and does not read the answer, must not hold it for ever; somebody who
//! waits for an answer may, as long as the run goes on. What a body may take is the routes' business.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::middleware::AddExtension;
use axum::serve::{Listener as _, ListenerExt as _};
use axum::{Extension, Router};
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::task::TaskTracker;
use tower_layer::Layer as _;

use crate::access::{MemoryBudget, RunLine};
use crate::app::App;
use crate::drive::MAX_STALL;
use crate::lifetime::Lifetime;

/// What a connection may take.
#[derive(Clone)]
pub(crate) struct Bounds {
    pub(crate) patience: Patience,
    /// How many bytes the headers of a request may have, and how many of them there may be. Whoever
    /// sends a little more is told so by the routes; whoever sends far more is cut off.
    pub(crate) header_bytes: usize,
    pub(crate) headers: usize,
    /// Those who wait for others to be done.
    pub(crate) line: Option<Arc<RunLine>>,
    /// The memory that requests and responses share.
    pub(crate) memory: MemoryBudget,
}

impl Bounds {
    pub(crate) fn of(app: &App) -> Self {
        Self {
            patience: Patience::default(),
            header_bytes: app.options.limits.max_header_bytes,
            headers: app.options.limits.max_headers,
            line: Some(Arc::clone(&app.line)),
            memory: app.memory.clone(),
        }
    }

    /// How many bytes are read before they are understood.
    fn buffer(&self) -> usize {
        self.header_bytes.saturating_mul(2).max(MIN_BUFFER)
    }

    /// Whether other requests wait, or are about to be rejected, for what a slow reader holds.
    fn is_crowded(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.is_crowded()) || self.memory.is_under_pressure()
    }
}

/// How long a connection may take to begin, and each request of it to say all it has to say before
/// its body; and how long what is written may lie unread, also when others wait for their turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) header: Duration,
    pub(crate) stall: Duration,
    pub(crate) crowded_stall: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(75),
            stall: MAX_STALL,
            crowded_stall: Duration::from_secs(5),
        }
    }
}

/// How much a client must read within the time that a response may stall. A client that reads a byte now and then
/// would keep a large response in memory for hours.
const MIN_PROGRESS: usize = 256 * 1024;

/// How often it is looked whether others wait, while a client does not read.
const STALL_GLANCE: Duration = Duration::from_millis(500);

/// As many headers as are read without asking for memory.
const USUAL_HEADERS: usize = 100;

/// No buffer of a connection is smaller.
const MIN_BUFFER: usize = 64 * 1024;

/// How often somebody is looked at who has begun to say which protocol he speaks.
const GLANCE: Duration = Duration::from_millis(50);

/// What connections of HTTP/2 begin with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves the listener until the server stops, and then waits for the requests that are under way.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    lifetime: &Lifetime,
    bounds: Bounds,
) {
    let connections = TaskTracker::new();
    let mut listener = listener.tap_io(send_at_once);
    loop {
        tokio::select! {
            (stream, peer) = listener.accept() => {
                let stopping = lifetime.stopping_signal();
                let router = Extension(ConnectInfo(peer)).layer(router.clone());
                let service = TowerToHyperService::new(router);
                let bounds = bounds.clone();
                connections.spawn(async move {
                    let begun = timeout(bounds.patience.header, begun(&stream));
                    let begun = tokio::select! {
                        begun = begun => begun,
                        () = stopping.cancelled() => return,
                    };
                    if let Ok(Ok(protocol)) = begun {
                        answer(stream, protocol, service, stopping, bounds).await;
                    }
                });
            }
            () = lifetime.stopping() => break,
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// What is spoken over a connection.
enum Protocol {
    Http1,
    Http2,
}

/// Waits until it is clear what is spoken. Nothing is taken from what was sent.
async fn begun(stream: &TcpStream) -> io::Result<Protocol> {
    let mut first = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut first).await?;
        if first[..count] == *PREFACE {
            return Ok(Protocol::Http2);
        }
        if count == 0 || !PREFACE.starts_with(&first[..count]) {
            return Ok(Protocol::Http1);
        }
        sleep(GLANCE).await;
    }
}

/// The requests that come over a connection are for this.
type Service = TowerToHyperService<AddExtension<Router, ConnectInfo<SocketAddr>>>;

async fn answer(
    stream: TcpStream,
    protocol: Protocol,
    service: Service,
    stopping: haft_core::Cancel,
    bounds: Bounds,
) {
    let ended = match protocol {
        Protocol::Http1 => {
            let builder = http1(&bounds);
            let stream = TokioIo::new(Stalling::new(stream, bounds));
            let connection = builder.serve_connection(stream, service).with_upgrades();
            let shut_down = http1::UpgradeableConnection::graceful_shutdown;
            served(connection, &stopping, shut_down).await
        }
        // Apart: few speak it, and they need more room.
        Protocol::Http2 => {
            let builder = http2(&bounds);
            let stream = TokioIo::new(Stalling::new(stream, bounds));
            let connection = builder.serve_connection(stream, service);
            let shut_down = http2::Connection::graceful_shutdown;
            Box::pin(served(connection, &stopping, shut_down)).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Serves a connection to its end, which comes with that of the request under way when the server stops.
async fn served<C: Future>(
    connection: C,
    stopping: &haft_core::Cancel,
    shut_down: fn(Pin<&mut C>),
) -> C::Output {
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            shut_down(connection.as_mut());
            connection.await
        }
    }
}

fn http1(bounds: &Bounds) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .max_buf_size(bounds.buffer())
        .header_read_timeout(bounds.patience.header);
    if bounds.headers >= USUAL_HEADERS {
        builder.max_headers(bounds.headers.saturating_mul(2));
    }
    builder
}

fn http2(bounds: &Bounds) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(bounds.patience.header)
        .max_header_list_size(u32::try_from(bounds.buffer()).unwrap_or(u32::MAX));
    builder
}

/// Events are small and each is waited for.
fn send_at_once(connection: &mut TcpStream) {
    if let Err(error) = connection.set_nodelay(true) {
        tracing::debug!(%error, "a connection collects what it sends");
    }
}

/// A stream that breaks when what is written to it is not read for too long: sooner where others wait
/// for what whoever does not read holds.
struct Stalling<S> {
    stream: S,
    bounds: Bounds,
    stalled: Option<Stalled>,
}

struct Stalled {
    since: Instant,
    /// How many bytes the client has taken since then.
    taken: usize,
    look_again: Pin<Box<Sleep>>,
}

impl<S> Stalling<S> {
    fn new(stream: S, bounds: Bounds) -> Self {
        Self {
            stream,
            bounds,
            stalled: None,
        }
    }

    /// Passes on how many of the `offered` bytes were written, unless the client is too slow.
    fn judge(
        &mut self,
        written: Poll<io::Result<usize>>,
        offered: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            let taken = *written.as_ref().unwrap_or(&0);
            self.stalled.take_if(|stalled| {
                stalled.taken = stalled.taken.saturating_add(taken);
                taken >= offered || stalled.taken >= MIN_PROGRESS
            });
            return Poll::Ready(written);
        }
        let Patience {
            stall,
            crowded_stall,
            ..
        } = self.bounds.patience;
        let stalled = self.stalled.get_or_insert_with(|| Stalled {
            since: Instant::now(),
            taken: 0,
            look_again: Box::pin(sleep(stall.min(crowded_stall))),
        });
        loop {
            ready!(stalled.look_again.as_mut().poll(cx));
            let lasted = stalled.since.elapsed();
            if lasted >= stall || (lasted >= crowded_stall && self.bounds.is_crowded()) {
                let message = "timed out: client reads the response too slowly";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
            }
            let left = stall.saturating_sub(lasted).min(STALL_GLANCE);
            stalled.look_again.as_mut().reset(Instant::now() + left);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(written, bytes.len(), cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        let offered = pieces.iter().map(|piece| piece.len()).sum();
        self.judge(written, offered, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
