//! The tools of a pool's servers, in a catalogue.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use haft_catalog::Catalog;
use haft_core::{DefinitionError, Namespace, ToolObject, ToolSource};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use super::Pool;
use super::object::McpTool;
use super::server::Server;

/// Keeps a catalogue as the servers of a pool are, until it is dropped.
///
/// Each server is a group of the catalogue under its label, in the order of the pool. What the servers
/// change, those that come and those that go show in the catalogue's next snapshot; a run sees them from
/// its next turn on, never in the midst of one.
#[derive(Debug)]
pub struct Offering {
    filling: Arc<Filling>,
    following: JoinHandle<()>,
}

#[derive(Debug)]
struct Filling {
    pool: Pool,
    catalog: Catalog,
    /// The groups that were put there.
    groups: Mutex<HashSet<Namespace>>,
}

impl Pool {
    /// Puts the tools of all servers into a catalogue, as far as they are known, and keeps them up to
    /// date. Nothing is connected to; see [`Offering::ask_all`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use haft_catalog::Catalog;
    /// use haft_mcp::Pool;
    ///
    /// let catalog = Catalog::new();
    /// let pool = Pool::builder().build();
    /// let offering = pool.offer_in(&catalog);
    /// offering.ask_all(std::time::Duration::from_secs(30)).await;
    /// assert!(catalog.is_empty(), "there are no servers");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offer_in(&self, catalog: &Catalog) -> Offering {
        let filling = Arc::new(Filling {
            pool: self.clone(),
            catalog: catalog.clone(),
            groups: Mutex::default(),
        });
        let mut changes = self.changes();
        filling.fill();
        let follower = Arc::downgrade(&filling);
        let following = tokio::spawn(async move {
            loop {
                match changes.recv().await {
                    // Of what was missed nothing is known but that it changed something.
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
                match follower.upgrade() {
                    Some(filling) => filling.fill(),
                    None => return,
                }
            }
        });
        Offering { filling, following }
    }
}

impl Offering {
    /// Asks all servers for their tools, at the same time, and waits for them this long at most. Those
    /// that do not answer keep what is known of them.
    pub async fn ask_all(&self, patience: Duration) {
        let servers = self.filling.pool.servers();
        let asked = join_all(servers.iter().map(|server| async move {
            if let Err(error) = server.tools().await {
                tracing::warn!(server = %server.label(), %error, "its tools are not known");
            }
        }));
        // Who is late is heard of by way of the changes.
        let _ = tokio::time::timeout(patience, asked).await;
        self.filling.fill();
    }
}

impl Drop for Offering {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl Filling {
    /// Makes the catalogue as the servers are.
    fn fill(&self) {
        let servers = self.pool.servers();
        let labelled = servers.iter().filter_map(|server| {
            let label = Namespace::new(server.label().as_str()).ok()?;
            Some((label, server))
        });
        let labelled: Vec<_> = labelled.collect();
        self.catalog
            .set_group_order(labelled.iter().map(|(label, _)| label.clone()));
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        for label in groups.iter() {
            if labelled.iter().all(|(kept, _)| kept != label) {
                self.catalog.remove_group(label);
            }
        }
        groups.clear();
        for (label, server) in labelled {
            for dropped in self.catalog.set_group(&label, tools_of(server)) {
                tracing::warn!(server = %label, "{dropped}");
            }
            groups.insert(label);
        }
    }
}

/// The tools that are known of a server, as a catalogue holds them.
fn tools_of(server: &Arc<Server>) -> Vec<ToolSource> {
    let known = server.known_tools();
    let tools = known.iter().flat_map(|known| &known.tools);
    let object = |tool| -> Result<Arc<dyn ToolObject>, DefinitionError> {
        let tool = McpTool::new(Arc::clone(server), Arc::clone(tool))?;
        Ok(Arc::new(tool))
    };
    tools.map(|tool| object(tool).into()).collect()
}
