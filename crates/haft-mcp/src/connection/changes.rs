//! The notices that a server's tools changed.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorCode, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, ServiceError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::traffic::Traffic;

/// The first and the longest wait before a subscription is opened again.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Tells that the tools of a server may have changed. Notices that come faster than they are read
/// count as one.
#[derive(Debug)]
pub struct Changes(watch::Receiver<u64>);

impl Changes {
    pub(super) fn new(mut notices: watch::Receiver<u64>) -> Self {
        notices.mark_unchanged();
        Self(notices)
    }

    /// Counts all notices that came so far as one that was heard.
    pub fn mark_heard(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits for the next change; `false` when the connection is gone and there will be none.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Keeps a subscription to changes open, as the modern era wants it.
#[derive(Debug)]
pub(super) struct Listener {
    task: JoinHandle<()>,
    /// Whether the server's first answer is there: an acknowledgement or a refusal.
    is_answered: watch::Receiver<bool>,
}

impl Listener {
    pub(super) fn start(
        peer: Peer<RoleClient>,
        traffic: Arc<Traffic>,
        acknowledge: Duration,
    ) -> Self {
        let (answered, is_answered) = watch::channel(false);
        Self {
            task: tokio::spawn(listen(peer, traffic, acknowledge, answered)),
            is_answered,
        }
    }

    /// Waits until the server has answered the first subscription, this long at most. A list that is
    /// read earlier may miss a change: notices are sent to subscribers only.
    pub(super) async fn answered(&self, limit: Duration) {
        let mut is_answered = self.is_answered.clone();
        let _ = tokio::time::timeout(limit, is_answered.wait_for(|it| *it)).await;
    }

    pub(super) fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn listen(
    peer: Peer<RoleClient>,
    traffic: Arc<Traffic>,
    acknowledge: Duration,
    answered: watch::Sender<bool>,
) {
    let mut wait = FIRST_WAIT;
    let mut is_first = true;
    while !peer.is_transport_closed() {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let subscribed = tokio::time::timeout(acknowledge, peer.listen(filter)).await;
        let _ = answered.send(true);
        match subscribed {
            Ok(Ok(mut subscription)) => {
                if subscription.acknowledged().tools_list_changed != Some(true) {
                    // It will not tell. The time to live of the list is all there is.
                    return;
                }
                if !std::mem::take(&mut is_first) {
                    // Whatever changed meanwhile was not told.
                    traffic.note_change();
                }
                wait = FIRST_WAIT;
                // The notices themselves are counted before they come here.
                while let Ok(Some(_)) = subscription.next().await {}
            }
            Ok(Err(ServiceError::McpError(error))) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return;
            }
            Ok(Err(_)) | Err(_) => {}
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}
