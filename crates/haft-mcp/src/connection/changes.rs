//! The notices that a server's tools changed.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorCode, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, ServiceError, Subscription};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{ServerCapabilities, ServerIdentity};
use crate::traffic::{ServerEvent, Traffic};

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
    /// The resources whose changes are wanted.
    resources: watch::Sender<Vec<String>>,
}

impl Listener {
    pub(super) fn start(
        peer: Peer<RoleClient>,
        traffic: Arc<Traffic>,
        acknowledge: Duration,
        identity: &ServerIdentity,
    ) -> Self {
        let (answered, is_answered) = watch::channel(false);
        let (resources, wanted) = watch::channel(Vec::new());
        let listening = Listening {
            peer,
            traffic,
            acknowledge,
            tools: identity.tells_changes,
            capabilities: identity.capabilities,
            wanted,
        };
        Self {
            task: tokio::spawn(listening.run(answered)),
            is_answered,
            resources,
        }
    }

    /// Sets the resources whose changes are wanted.
    pub(super) fn watch_resources(&self, uris: Vec<String>) {
        self.resources.send_if_modified(|current| {
            let is_new = *current != uris;
            *current = uris;
            is_new
        });
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

/// The task behind a [`Listener`].
struct Listening {
    peer: Peer<RoleClient>,
    traffic: Arc<Traffic>,
    acknowledge: Duration,
    tools: bool,
    capabilities: ServerCapabilities,
    wanted: watch::Receiver<Vec<String>>,
}

impl Listening {
    /// What is subscribed to now.
    fn filter(&mut self) -> SubscriptionFilter {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = self.tools.then_some(true);
        filter.prompts_list_changed = self.capabilities.prompts_list_changed.then_some(true);
        filter.resources_list_changed = self.capabilities.resources_list_changed.then_some(true);
        let uris = self.wanted.borrow_and_update();
        filter.resource_subscriptions = (!uris.is_empty()).then(|| uris.clone());
        filter
    }

    async fn run(mut self, answered: watch::Sender<bool>) {
        let mut wait = FIRST_WAIT;
        let mut is_first = true;
        // Kept until the next one is acknowledged, so that no notice falls between the two.
        let mut current: Option<Subscription> = None;
        while !self.peer.is_transport_closed() {
            let filter = self.filter();
            if filter == SubscriptionFilter::new() {
                let _ = answered.send(true);
                current = None;
                if self.wanted.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let listen = self.peer.listen(filter);
            let subscribed = tokio::time::timeout(self.acknowledge, listen).await;
            let _ = answered.send(true);
            match subscribed {
                Ok(Ok(subscription)) => {
                    let acknowledged = subscription.acknowledged();
                    if *acknowledged == SubscriptionFilter::new() && self.wanted.borrow().is_empty()
                    {
                        // It will not send notices. The time to live of the lists is all there is.
                        return;
                    }
                    if !std::mem::take(&mut is_first) && current.is_none() {
                        self.note_missed();
                    }
                    wait = FIRST_WAIT;
                    let subscription = current.insert(subscription);
                    // The notices themselves are counted before they come here.
                    let is_wanted_anew = loop {
                        tokio::select! {
                            notice = subscription.next() => match notice {
                                Ok(Some(_)) => {}
                                Ok(None) | Err(_) => break false,
                            },
                            changed = self.wanted.changed() => match changed {
                                Ok(()) => break true,
                                Err(_) => return,
                            },
                        }
                    };
                    if is_wanted_anew {
                        continue;
                    }
                }
                Ok(Err(ServiceError::McpError(error)))
                    if error.code == ErrorCode::METHOD_NOT_FOUND =>
                {
                    return;
                }
                Ok(Err(_)) | Err(_) => {}
            }
            current = None;
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Whatever changed while nothing was subscribed to was not reported.
    fn note_missed(&self) {
        self.traffic.note_change();
        if self.capabilities.prompts {
            self.traffic.publish(ServerEvent::PromptsChanged);
        }
        if self.capabilities.resources {
            self.traffic.publish(ServerEvent::ResourcesChanged);
        }
        for uri in self.wanted.borrow().iter() {
            let event = ServerEvent::ResourceUpdated(uri.clone());
            self.traffic.publish(event);
        }
    }
}
