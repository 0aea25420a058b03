//! A transport for rmcp whose two ends are channels: whatever carries the messages sits behind them.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot};

use crate::error::Cause;
use crate::traffic::Traffic;

/// How many messages wait in each direction.
const QUEUE: usize = 64;

/// A message was not sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
pub(crate) struct SendFailure(pub(crate) Cause);

impl SendFailure {
    pub(crate) fn closed() -> Self {
        Self(Cause::ConnectionLost {
            sent: false,
            detail: String::new(),
        })
    }
}

/// A message on its way out.
pub(crate) struct Outgoing {
    pub(crate) message: ClientJsonRpcMessage,
    pub(crate) sent: oneshot::Sender<Result<(), SendFailure>>,
}

impl Outgoing {
    /// The id, if it is a request.
    pub(crate) fn id(&self) -> Option<&RequestId> {
        match &self.message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        }
    }
}

/// The end that rmcp holds.
pub(crate) struct Wired {
    traffic: Arc<Traffic>,
    outgoing: Option<mpsc::Sender<Outgoing>>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    /// For the one message that this side makes up itself. It does not keep the channel open.
    own: mpsc::WeakSender<ServerJsonRpcMessage>,
    probe: Duration,
}

/// The end of whoever carries the messages.
pub(crate) struct Carrier {
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) outgoing: mpsc::Receiver<Outgoing>,
    pub(crate) incoming: mpsc::Sender<ServerJsonRpcMessage>,
}

/// Both ends. The question for the era is given up after `probe`.
pub(crate) fn wired(traffic: Arc<Traffic>, probe: Duration) -> (Wired, Carrier) {
    let (to_carrier, outgoing) = mpsc::channel(QUEUE);
    let (to_rmcp, incoming) = mpsc::channel(QUEUE);
    let wired = Wired {
        traffic: Arc::clone(&traffic),
        outgoing: Some(to_carrier),
        incoming,
        own: to_rmcp.downgrade(),
        probe,
    };
    (
        wired,
        Carrier {
            traffic,
            outgoing,
            incoming: to_rmcp,
        },
    )
}

impl Wired {
    /// Answers the question for the era if the server does not.
    fn watch_probe(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else {
            return;
        };
        if !matches!(
            request.request,
            rmcp::model::ClientRequest::DiscoverRequest(_)
        ) {
            return;
        }
        let (id, probe) = (request.id.clone(), self.probe);
        let (traffic, own) = (Arc::clone(&self.traffic), self.own.clone());
        tokio::spawn(async move {
            tokio::time::sleep(probe).await;
            if let Some(answer) = traffic.no_era(&id)
                && let Some(own) = own.upgrade()
            {
                // Nobody who reads it is left: nobody who needs it.
                let _ = own.send(answer).await;
            }
        });
    }
}

impl Transport<RoleClient> for Wired {
    type Error = SendFailure;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SendFailure>> + Send + 'static {
        self.traffic.outbound(&message);
        self.watch_probe(&message);
        let outgoing = self.outgoing.clone();
        async move {
            let outgoing = outgoing.ok_or_else(SendFailure::closed)?;
            let (sent, done) = oneshot::channel();
            let queued = outgoing.send(Outgoing { message, sent }).await;
            queued.map_err(|_| SendFailure::closed())?;
            done.await.unwrap_or_else(|_| Err(SendFailure::closed()))
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), SendFailure> {
        self.outgoing = None;
        self.incoming.close();
        Ok(())
    }
}
