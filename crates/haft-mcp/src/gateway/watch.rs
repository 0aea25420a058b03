//! Telling clients that something has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionContext, SubscriptionSendError};
use tokio::sync::broadcast;

use super::backend::{Backend, Change, WatchGuard};
use super::caller::Caller;
use super::gateway::Gateway;
use super::tool::ListedTool;

/// How long further changes are waited for, so that a storm becomes one notice.
const GATHER: Duration = Duration::from_millis(250);

/// The resources that a legacy client watches.
pub(super) type Watched = Arc<Mutex<BTreeMap<String, WatchGuard>>>;

/// The changes that a client of this gateway can notice.
pub(super) struct Watch<B> {
    gateway: Gateway<B>,
    caller: Caller,
    changes: broadcast::Receiver<Change>,
    /// The list of tools as it was, if it was looked at.
    seen: Option<u64>,
}

impl<B: Backend> Watch<B> {
    pub(super) fn new(
        gateway: Gateway<B>,
        caller: Caller,
        changes: broadcast::Receiver<Change>,
    ) -> Self {
        Self {
            gateway,
            caller,
            changes,
            seen: None,
        }
    }

    /// Waits for changes and gathers those that come together. Nothing more ever comes after none.
    async fn next(&mut self) -> Option<BTreeSet<Change>> {
        loop {
            let mut gathered = BTreeSet::new();
            gather(self.changes.recv().await, &mut gathered)?;
            tokio::time::sleep(GATHER).await;
            loop {
                match self.changes.try_recv() {
                    Ok(change) => {
                        gathered.insert(change);
                    }
                    Err(broadcast::error::TryRecvError::Lagged(_)) => everything(&mut gathered),
                    Err(_) => break,
                }
            }
            if gathered.contains(&Change::Tools) && !self.list_differs().await {
                gathered.remove(&Change::Tools);
            }
            if !gathered.is_empty() {
                return Some(gathered);
            }
        }
    }

    /// Whether the client would see another list. Behind the facade most changes change nothing.
    async fn list_differs(&mut self) -> bool {
        let Ok(visible) = self.gateway.visible(&self.caller).await else {
            return true;
        };
        if !visible.is_hidden {
            self.seen = None;
            return true;
        }
        let listed = self.gateway.listed(&self.caller, &visible);
        let now = mark(&listed);
        self.seen.replace(now) != Some(now)
    }

    /// Tells a legacy client, until it has gone.
    pub(super) async fn tell(mut self, peer: Peer<RoleServer>, watched: Watched) {
        while let Some(changes) = self.next().await {
            for change in changes {
                let told = match change {
                    Change::Tools => peer.notify_tool_list_changed().await,
                    Change::Prompts => peer.notify_prompt_list_changed().await,
                    Change::Resources => peer.notify_resource_list_changed().await,
                    Change::Resource(uri) => {
                        if !is_watched(&watched, &uri) {
                            continue;
                        }
                        let notice = ResourceUpdatedNotificationParam::new(uri);
                        peer.notify_resource_updated(notice).await
                    }
                };
                if told.is_err() {
                    return;
                }
            }
        }
    }

    /// Tells a modern client that listens, until it stops.
    pub(super) async fn tell_listener(mut self, listener: SubscriptionContext) {
        let closing = self.gateway.core.closing.clone();
        loop {
            let changes = tokio::select! {
                changes = self.next() => changes,
                () = listener.cancelled() => return,
                () = closing.cancelled() => return,
            };
            let Some(changes) = changes else {
                // Nothing will come, but the client need not be told so by the end of its stream.
                tokio::select! {
                    () = listener.cancelled() => {}
                    () = closing.cancelled() => {}
                }
                return;
            };
            for change in changes {
                let sink = listener.sink();
                let told = match change {
                    Change::Tools => sink.notify_tool_list_changed().await,
                    Change::Prompts => sink.notify_prompt_list_changed().await,
                    Change::Resources => sink.notify_resource_list_changed().await,
                    Change::Resource(uri) => sink.notify_resource_updated(uri).await,
                };
                match told {
                    // What it did not ask for it is not told.
                    Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                    Err(_) => return,
                }
            }
        }
    }
}

/// A hash of what a client sees of these tools behind the facade.
fn mark(tools: &[Arc<ListedTool>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in tools {
        (&tool.name, &tool.description).hash(&mut hasher);
    }
    hasher.finish()
}

fn is_watched(watched: &Watched, uri: &str) -> bool {
    let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
    // Servers may report a part of the resource that was subscribed to.
    let is_part = |of: &String| {
        uri.strip_prefix(of.as_str())
            .is_some_and(|it| it.starts_with('/'))
    };
    watched.contains_key(uri) || watched.keys().any(is_part)
}

fn gather(
    change: Result<Change, broadcast::error::RecvError>,
    gathered: &mut BTreeSet<Change>,
) -> Option<()> {
    match change {
        Ok(change) => {
            gathered.insert(change);
        }
        Err(broadcast::error::RecvError::Lagged(_)) => everything(gathered),
        Err(broadcast::error::RecvError::Closed) => return None,
    }
    Some(())
}

/// Nobody knows what was missed.
fn everything(gathered: &mut BTreeSet<Change>) {
    gathered.extend([Change::Tools, Change::Prompts, Change::Resources]);
}
