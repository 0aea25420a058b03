//! What servers report about prompts, resources and their logs, passed on to the clients of a gateway.

use std::sync::Arc;

use haft_mcp::gateway::Change;
use haft_mcp::{Pool, ServerEvent};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use super::ServerFilter;
use super::offers::placed_uri;
use super::server_logs::ServerLogs;

/// Ends a task when it is dropped.
pub(super) struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Passes on what the selected servers report, until what is returned is dropped.
pub(super) fn pass_on(
    pool: Pool,
    selected: ServerFilter,
    changes: broadcast::Sender<Change>,
    logs: &Arc<ServerLogs>,
) -> AbortOnDrop {
    let mut events = pool.events();
    let logs = Arc::clone(logs);
    AbortOnDrop(tokio::spawn(async move {
        // It fails if there are no clients, which is no error.
        let report = |change| drop(changes.send(change));
        loop {
            let event = match events.recv().await {
                Ok(event) => event,
                Err(RecvError::Lagged(_)) => {
                    report(Change::Prompts);
                    report(Change::Resources);
                    continue;
                }
                Err(RecvError::Closed) => return,
            };
            let label = &event.server;
            if !selected.admits(label) {
                continue;
            }
            match event.event {
                ServerEvent::PromptsChanged => report(Change::Prompts),
                ServerEvent::ResourcesChanged => report(Change::Resources),
                ServerEvent::ResourceUpdated(uri) => {
                    let mut servers = pool.servers();
                    servers.retain(|it| selected.admits(it.label().as_str()));
                    report(Change::Resource(placed_uri(&servers, label, &uri)));
                }
                ServerEvent::Log(message) => logs.pass_on(label, &message),
                _ => {}
            }
        }
    }))
}
