//! The gateway over standard input and output: one message a line.

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, ServerInitializeError, ServiceExt as _};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, Empty};

use super::backend::Backend;
use super::caller::Caller;
use super::gateway::Gateway;
use super::handler::Handler;
use super::incoming::{self, Incoming, MAX_MESSAGE_BYTES, Unreadable};
use crate::line::{Line, Lines};

impl<B: Backend> Gateway<B> {
    /// Serves one client over two byte streams, one message a line, until it goes away or the gateway is
    /// closed. Both eras: the first request decides.
    ///
    /// Nothing else may be written to the stream while this runs.
    pub async fn serve_stdio<R, W>(
        &self,
        read: R,
        write: W,
        caller: Caller,
    ) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let transport = LineTransport::new(read, write);
        let handler = Handler::new(self.clone(), caller);
        let closing = self.core.closing.child_token();
        let running = match handler.serve_with_ct(transport, closing).await {
            Ok(running) => running,
            // The client left before it sent anything, which is its right.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(ServeError(error.to_string())),
        };
        let ended = running.waiting().await;
        ended.map_err(|error| ServeError(error.to_string()))?;
        Ok(())
    }
}

/// Reads lines itself, so that each that cannot be read is answered, and writes by the library.
struct LineTransport<R, W: AsyncWrite> {
    lines: Lines<BufReader<R>>,
    writer: AsyncRwTransport<RoleServer, Empty, W>,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(read: R, write: W) -> Self {
        Self {
            lines: Lines::new(BufReader::new(read), MAX_MESSAGE_BYTES),
            writer: AsyncRwTransport::new_server(tokio::io::empty(), write),
        }
    }

    fn reject(&mut self, unreadable: Unreadable) {
        tracing::debug!(error = %unreadable.error.message, "rejected a message of the client");
        // In a task of its own: a wait for the next message may be dropped, an answer must not be.
        tokio::spawn(self.writer.send(unreadable.into_message()));
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.writer.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.lines.next().await? {
                Line::Whole(line) => match incoming::read(&line) {
                    Incoming::Message(message) => return Some(*message),
                    Incoming::Ignored => {}
                    Incoming::Unreadable(unreadable) => self.reject(unreadable),
                },
                Line::TooLong { id, bytes } => {
                    self.reject(Unreadable::too_long(
                        id.as_deref(),
                        bytes,
                        MAX_MESSAGE_BYTES,
                    ));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writer.close().await
    }
}

/// Why a client could not be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the client cannot be served: {0}")]
pub struct ServeError(String);
