//! Connections: accepted, served, and let go when whoever is at the other end does not do his part.
//!
//! What comes in: a listener. What goes out: requests for the router. Somebody who opens a connection
//! and does not ask, or asks and does not read the answer, must not hold it for ever; somebody who
//! waits for an answer may, as long as the run goes on. What a body may take is the routes' business.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::middleware::AddExtension;
use axum::serve::{Listener as _, ListenerExt as _};
use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep, timeout};
use tokio_util::task::TaskTracker;
use tower_layer::Layer as _;

use crate::drive::MAX_STALL;
use crate::lifetime::Lifetime;

/// How long a connection may take to begin, and each request of it to say all it has to say before
/// its body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) header: Duration,
    pub(crate) stall: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(75),
            stall: MAX_STALL,
        }
    }
}

/// How often somebody is looked at who has begun to say which protocol he speaks.
const GLANCE: Duration = Duration::from_millis(50);

/// What connections of HTTP/2 begin with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves the listener until the server stops, and then waits for the requests that are under way.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    lifetime: &Lifetime,
    patience: Patience,
) {
    let connections = TaskTracker::new();
    let mut listener = listener.tap_io(send_at_once);
    loop {
        tokio::select! {
            (stream, peer) = listener.accept() => {
                let stopping = lifetime.stopping_signal();
                let router = Extension(ConnectInfo(peer)).layer(router.clone());
                connections.spawn(async move {
                    let begun = timeout(patience.header, begun(&stream));
                    let is_there = tokio::select! {
                        begun = begun => matches!(begun, Ok(Ok(()))),
                        () = stopping.cancelled() => false,
                    };
                    if is_there {
                        answer(stream, router, stopping, patience).await;
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

/// Waits until it is clear which protocol is spoken. Nothing is taken from what was sent.
async fn begun(stream: &TcpStream) -> io::Result<()> {
    let mut first = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut first).await?;
        let is_open = count < PREFACE.len() && PREFACE.starts_with(&first[..count]);
        if count == 0 || !is_open {
            return Ok(());
        }
        sleep(GLANCE).await;
    }
}

async fn answer(
    stream: TcpStream,
    router: AddExtension<Router, ConnectInfo<SocketAddr>>,
    stopping: haft_core::Cancel,
    patience: Patience,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.header);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(patience.header)
        // WebSockets over HTTP/2 begin with it.
        .enable_connect_protocol();
    let stream = TokioIo::new(Stalling::new(stream, patience.stall));
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(builder.serve_connection_with_upgrades(stream, service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "a connection broke");
    }
}

/// Events are small and each is waited for.
fn send_at_once(connection: &mut TcpStream) {
    if let Err(error) = connection.set_nodelay(true) {
        tracing::debug!(%error, "a connection collects what it sends");
    }
}

/// A stream that breaks when what is written to it is not read for too long.
struct Stalling<S> {
    stream: S,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            stalled: None,
        }
    }

    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        stalled.as_mut().poll(cx).map(|()| {
            let words = "the other end does not read";
            Err(io::Error::new(io::ErrorKind::TimedOut, words))
        })
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
        self.judge(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.judge(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
