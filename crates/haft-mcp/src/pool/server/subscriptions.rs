//! Subscriptions to resources of a server, which outlast its connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::{Server, locked};
use crate::connection::{CallOptions, Connection};
use crate::error::{Cause, Era, McpError};
use crate::traffic::ServerEvent;

/// How many resources of one server are subscribed to at the same time.
const MAX_SUBSCRIPTIONS: usize = 1_024;

/// How often the connection to a server with subscriptions is checked.
const CHECK: Duration = Duration::from_secs(1);

/// The resources that are subscribed to, each with the number of its subscribers.
#[derive(Debug, Default)]
pub(in crate::pool) struct Subscriptions {
    counts: Mutex<BTreeMap<String, usize>>,
    is_kept: AtomicBool,
}

impl Subscriptions {
    fn uris(&self) -> Vec<String> {
        locked(&self.counts).keys().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        locked(&self.counts).is_empty()
    }
}

/// A subscription to one resource of a server, until it is dropped. Changes are reported by
/// [`Pool::events`](crate::Pool::events). If the server restarts, it is subscribed to again, and a change
/// is reported, since one may have been missed.
#[derive(Debug)]
#[must_use = "dropping a subscription ends it"]
pub struct ResourceSubscription {
    server: Weak<Server>,
    uri: String,
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade() {
            server.release(&self.uri);
        }
    }
}

impl Server {
    /// Subscribes to changes of a resource, by the URI that the server knows.
    ///
    /// ```no_run
    /// # async fn example(pool: haft_mcp::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut events = pool.events();
    /// let server = pool.server("files").ok_or("no such server")?;
    /// let _subscription = server.subscribe("file:///srv/README.md").await?;
    /// let event = events.recv().await?;
    /// println!("{}: {:?}", event.server, event.event);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn subscribe(self: &Arc<Self>, uri: &str) -> Result<ResourceSubscription, McpError> {
        let connection = self.connection().await?;
        if !connection.identity().capabilities.subscribe {
            return Err(self.unsupported("subscriptions to resources"));
        }
        let is_first = {
            let mut counts = locked(&self.offers.subscriptions.counts);
            if counts.len() >= MAX_SUBSCRIPTIONS && !counts.contains_key(uri) {
                let text = format!("more than {MAX_SUBSCRIPTIONS} resources are subscribed to");
                return Err(self.failure(Cause::Settings(text)));
            }
            let count = counts.entry(uri.to_owned()).or_default();
            *count += 1;
            *count == 1
        };
        let subscription = ResourceSubscription {
            server: Arc::downgrade(self),
            uri: uri.to_owned(),
        };
        if is_first {
            self.subscribe_over(&connection, uri).await?;
        }
        self.keep_subscribed();
        Ok(subscription)
    }

    async fn subscribe_over(&self, connection: &Connection, uri: &str) -> Result<(), McpError> {
        if connection.era() == Era::Modern {
            connection.watch_resources(self.offers.subscriptions.uris());
            return Ok(());
        }
        let options = CallOptions {
            call_timeout: Some(self.settings().timeouts.list),
            ..CallOptions::default()
        };
        connection.subscribe(uri, options).await
    }

    /// Ends one subscription; the last one of a resource ends the server's.
    fn release(self: &Arc<Self>, uri: &str) {
        let is_last = {
            let mut counts = locked(&self.offers.subscriptions.counts);
            let Some(count) = counts.get_mut(uri) else {
                return;
            };
            *count -= 1;
            let is_last = *count == 0;
            if is_last {
                counts.remove(uri);
            }
            is_last
        };
        let Some(connection) = self.connected().filter(|_| is_last) else {
            return;
        };
        if connection.era() == Era::Modern {
            return connection.watch_resources(self.offers.subscriptions.uris());
        }
        // Without a runtime the connection has ended as well.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let uri = uri.to_owned();
            runtime.spawn(async move {
                if let Err(error) = connection.unsubscribe(&uri).await {
                    tracing::debug!(%error, "failed to unsubscribe");
                }
            });
        }
    }

    /// Subscribes again over a new connection, and reports each resource as changed: changes while the
    /// server was away were not reported.
    pub(super) async fn resume_subscriptions(&self, connection: &Connection) {
        for uri in self.offers.subscriptions.uris() {
            if let Err(error) = self.subscribe_over(connection, &uri).await {
                tracing::warn!(server = %self.label(), %error, "failed to subscribe again");
            }
            self.publish(ServerEvent::ResourceUpdated(uri));
        }
    }

    /// Connects again when the connection is lost, as long as there are subscriptions.
    fn keep_subscribed(self: &Arc<Self>) {
        if self
            .offers
            .subscriptions
            .is_kept
            .swap(true, Ordering::AcqRel)
        {
            return;
        }
        let server = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                let pause = match server.upgrade() {
                    Some(server) if !server.is_retired() => {
                        let subscriptions = &server.offers.subscriptions;
                        if subscriptions.is_empty() {
                            subscriptions.is_kept.store(false, Ordering::Release);
                            // One that came in between has seen that this task runs.
                            if subscriptions.is_empty()
                                || subscriptions.is_kept.swap(true, Ordering::AcqRel)
                            {
                                return;
                            }
                        }
                        if server.connected().is_none()
                            && let Err(error) = server.connection().await
                        {
                            tracing::debug!(server = %server.label(), %error, "failed to reconnect a server with subscriptions");
                        }
                        server.pause().max(CHECK)
                    }
                    _ => return,
                };
                tokio::time::sleep(pause).await;
            }
        });
    }
}
