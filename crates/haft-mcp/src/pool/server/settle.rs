//! The first list over a connection: read until the server has registered its tools.
//!
//! Servers may register tools after the handshake and announce them by `list_changed`. What they list at
//! once is then empty or a part, and must neither be shown nor pinned as if it were all.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Server, locked};
use crate::connection::Connection;
use crate::error::McpError;
use crate::listing::ToolList;

/// A first list counts as whole when no change is announced for so long.
const QUIET: Duration = Duration::from_millis(300);

/// The same for a list that is empty or lacks tools that the server had before.
const QUIET_IF_SHORT: Duration = Duration::from_millis(1200);

/// Notices that arrive within this time are answered by one list.
const COALESCED: Duration = Duration::from_millis(50);

/// How long a first list may take to become whole; what is announced later is read in the background.
const LONGEST: Duration = Duration::from_secs(3);

/// How long after its first list a server that was never seen before may add tools without approval.
const REGISTERING: Duration = Duration::from_secs(10);

impl Server {
    /// Reads the list over a connection; the first one until it is quiet.
    pub(super) async fn list_over(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
    ) -> Result<ToolList, McpError> {
        let is_settled = {
            let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
            listed.is_settled
        };
        if is_settled {
            return connection.list_tools().await;
        }
        connection.subscribed(QUIET).await;
        self.settled_list(connection).await
    }

    async fn settled_list(&self, connection: &Arc<Connection>) -> Result<ToolList, McpError> {
        let deadline = Instant::now() + LONGEST;
        let mut changes = connection.changes();
        let mut list = connection.list_tools().await?;
        let mut may_ask_again = true;
        loop {
            let is_short = self.is_short(&list);
            if !is_short && (self.knows_tools() || !connection.identity().tells_changes) {
                return Ok(list);
            }
            let quiet = if is_short { QUIET_IF_SHORT } else { QUIET };
            let until = deadline.min(Instant::now() + quiet);
            match tokio::time::timeout_at(until, changes.next()).await {
                Ok(true) if Instant::now() < deadline => {
                    tokio::time::sleep(COALESCED).await;
                    changes.mark_heard();
                }
                // Not every server announces what it registers.
                Err(_) if is_short && may_ask_again => may_ask_again = false,
                Ok(_) | Err(_) => return Ok(list),
            }
            match connection.list_tools().await {
                Ok(newer) => list = newer,
                Err(error) => {
                    tracing::warn!(server = %self.label(), %error, "the first list of tools could not be read again");
                    return Ok(list);
                }
            }
        }
    }

    /// Whether tools are known from an earlier connection or process.
    fn knows_tools(&self) -> bool {
        self.known_tools().is_some_and(|it| !it.tools.is_empty())
    }

    /// Whether a list has no tools, or lacks some that were known before. A server that knows no lists will
    /// not have one later.
    fn is_short(&self, list: &ToolList) -> bool {
        let listed = || list.tools.iter().chain(&list.excluded);
        if listed().next().is_none() {
            return list.is_complete;
        }
        let known = self.known_tools();
        let mut known = known.iter().flat_map(|known| &known.tools);
        known.any(|known| listed().all(|tool| tool.name != known.name))
    }

    /// Whether tools that appear now belong to the server's first list. A server that declares no
    /// `listChanged` has none to announce.
    pub(super) fn is_registering(&self) -> bool {
        let tells = |connection: Arc<Connection>| connection.identity().tells_changes;
        let until = *locked(&self.registering_until);
        until.is_some_and(|until| Instant::now() < until) && self.connected().is_some_and(tells)
    }

    /// Starts the time in which tools that appear belong to the server's first list.
    pub(super) fn begin_registering(&self) {
        *locked(&self.registering_until) = Some(Instant::now() + REGISTERING);
    }
}
