//! The front door for a client that started this process.

use rmcp::service::{ServerInitializeError, ServiceExt as _};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::backend::Backend;
use super::caller::Caller;
use super::gateway::Gateway;
use super::handler::Handler;

/// The longest message.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

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
        let transport = AsyncRwTransport::new_server(read, write);
        let transport = transport.with_max_line_length(MAX_LINE_BYTES);
        let handler = Handler::new(self.clone(), caller);
        let closing = self.core.closing.child_token();
        let running = match handler.serve_with_ct(transport, closing).await {
            Ok(running) => running,
            // It left before it said anything, which is its right.
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

/// Why a client could not be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the client cannot be served: {0}")]
pub struct ServeError(String);
