//! What happens to a server without being asked: notices of changes, warmth, and rest.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::server::Server;
use crate::connection::Connection;
use crate::traffic::ServerEvent;

/// Notices that come within this count as one.
const COALESCED: Duration = Duration::from_millis(250);

/// How often a connection that is kept warm is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Looks after a connection for as long as it lasts.
pub(super) fn watch(server: &Arc<Server>, connection: &Arc<Connection>) {
    let changes = connection.changes();
    tokio::spawn(hear_changes(Arc::downgrade(server), changes));
    tokio::spawn(pass_on_events(Arc::downgrade(server), connection.events()));
    if let Some(idle) = server.settings().idle_shutdown {
        let connection = Arc::downgrade(connection);
        tokio::spawn(rest(Arc::downgrade(server), connection, idle));
    }
}

async fn hear_changes(server: Weak<Server>, mut changes: crate::connection::Changes) {
    while changes.next().await {
        tokio::time::sleep(COALESCED).await;
        changes.mark_heard();
        let Some(server) = server.upgrade() else {
            return;
        };
        server.expire();
        if let Err(error) = server.refresh().await {
            tracing::warn!(server = %server.label(), %error, "changed tools cannot be read, those known from before stay");
        }
    }
}

/// Reports what a server says about its prompts, resources and log.
async fn pass_on_events(server: Weak<Server>, mut events: broadcast::Receiver<ServerEvent>) {
    loop {
        let missed = match events.recv().await {
            Ok(event) => {
                let Some(server) = server.upgrade() else {
                    return;
                };
                server.reported(event);
                continue;
            }
            Err(RecvError::Lagged(missed)) => missed,
            Err(RecvError::Closed) => return,
        };
        let Some(server) = server.upgrade() else {
            return;
        };
        tracing::warn!(server = %server.label(), missed, "the server sends notices faster than they are read");
        server.reported(ServerEvent::PromptsChanged);
        server.reported(ServerEvent::ResourcesChanged);
    }
}

/// Closes a connection that nobody uses.
async fn rest(server: Weak<Server>, connection: Weak<Connection>, idle: Duration) {
    let mut wait = idle;
    loop {
        tokio::time::sleep(wait).await;
        let Some(server) = server.upgrade() else {
            return;
        };
        let is_current = server
            .connected()
            .is_some_and(|it| std::ptr::eq(Arc::as_ptr(&it), connection.as_ptr()));
        if !is_current {
            return;
        }
        match server.close_if_idle(idle).await {
            Some(later) => wait = later,
            None => return,
        }
    }
}

/// Connects now and whenever the connection was lost.
pub(super) fn keep_warm(server: &Arc<Server>) {
    let server = Arc::downgrade(server);
    tokio::spawn(async move {
        loop {
            let pause = match server.upgrade() {
                Some(server) if !server.is_retired() => {
                    if server.connected().is_none() {
                        // Whoever uses it is told what is wrong; here it is told once.
                        if let Err(error) = server.refresh().await {
                            tracing::warn!(server = %server.label(), %error, "the server cannot be used yet");
                        }
                    }
                    server.pause().max(LOOK)
                }
                _ => return,
            };
            tokio::time::sleep(pause).await;
        }
    });
}
