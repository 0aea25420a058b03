//! Messages as lines over the pipes of a child.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ServerJsonRpcMessage;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::error::Cause;
use crate::line::{Line, Lines};
use crate::traffic::Traffic;
use crate::wired::{Outgoing, SendFailure, Wired, wired};

/// A transport over a child's pipes. The child's standard input is closed with it.
pub(crate) fn over_pipes(
    stdin: impl AsyncWrite + Send + Unpin + 'static,
    stdout: impl AsyncRead + Send + Unpin + 'static,
    traffic: Arc<Traffic>,
    limit: usize,
    probe: Duration,
) -> Wired {
    let (wired, carrier) = wired(traffic, probe);
    let traffic = Arc::clone(&carrier.traffic);
    tokio::spawn(write(stdin, carrier.outgoing, Arc::clone(&traffic), limit));
    tokio::spawn(read(stdout, carrier.incoming, traffic, limit));
    wired
}

/// Writes messages until there is nobody to write for, or nobody who reads.
async fn write(
    mut stdin: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<Outgoing>,
    traffic: Arc<Traffic>,
    limit: usize,
) {
    // A message is written whole even if its sender has gone: half a line would spoil the next.
    while let Some(message) = outgoing.recv().await {
        if message.id().is_some_and(|id| !traffic.is_awaited(id)) {
            // Given up before it was written.
            continue;
        }
        let mut line = match serde_json::to_vec(&message.message) {
            Ok(line) if line.len() <= limit => line,
            Ok(line) => {
                let too_large = Cause::RequestTooLarge {
                    bytes: line.len() as u64,
                    limit: limit as u64,
                };
                let _ = message.sent.send(Err(SendFailure(too_large)));
                continue;
            }
            Err(error) => {
                let _ = message
                    .sent
                    .send(Err(SendFailure(Cause::Unexpected(error.to_string()))));
                continue;
            }
        };
        line.push(b'\n');
        if let Some(id) = message.id() {
            traffic.set_sent(id, true);
        }
        let written = async {
            stdin.write_all(&line).await?;
            stdin.flush().await
        };
        let written = written.await;
        let result = written.as_ref().copied().map_err(|error| {
            SendFailure(Cause::ConnectionLost {
                sent: true,
                detail: format!(": {error}"),
            })
        });
        // Whoever sent it may have gone.
        let _ = message.sent.send(result);
        if written.is_err() {
            return;
        }
    }
}

/// Reads lines until the child closes its output or nobody listens.
async fn read(
    stdout: impl AsyncRead + Unpin,
    incoming: mpsc::Sender<ServerJsonRpcMessage>,
    traffic: Arc<Traffic>,
    limit: usize,
) {
    let mut lines = Lines::new(BufReader::with_capacity(64 * 1024, stdout), limit);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = incoming.closed() => return,
        };
        let message = match line {
            None => return,
            // Whatever is no JSON is noise.
            Some(Line::Whole(line)) => traffic.inbound_text(&line),
            Some(Line::TooLong { id, bytes }) => {
                let id = id.and_then(|id| serde_json::from_slice(&id).ok());
                tracing::warn!(bytes, "a line of a server is too long");
                // Without an `id` it is nobody's answer: perhaps only noise.
                id.and_then(|id| {
                    traffic.fail(
                        Some(&id),
                        Cause::TooLarge {
                            bytes,
                            limit: limit as u64,
                        },
                    )
                })
            }
        };
        if let Some(message) = message
            && incoming.send(message).await.is_err()
        {
            return;
        }
    }
}
