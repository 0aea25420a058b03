//! haft as an MCP server: the tools of a catalogue and of MCP servers, behind one gateway.
//!
//! What comes in: a catalogue, a pool of servers, and what of them is offered. What goes out: a
//! [`Gateway`] for standard input and output, or the route `/mcp` of a [`Server`](crate::Server), where
//! clients are let in like those of the API and are the tenants of their keys. Results of servers are passed
//! on as they are; haft's own tools are called the way that every call goes.

mod backend;
mod entry;
mod filter;
mod mounted;
mod native;
mod passing;
mod remote;

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_engine::LoopOptions;
use haft_hydrate::JsonSchemaFactory;
use haft_mcp::gateway::{Gateway, GatewayError, Mode, Subset};
use haft_mcp::{Pool, ServerStatus};

pub use self::backend::{CatalogBackend, Sight};
pub use self::filter::ServerFilter;
pub(crate) use self::mounted::Mounted;

/// The name of the part that is offered, where not everything is.
const PART: &str = "offered";

/// What a gateway offers, and how.
///
/// ```
/// use haft_mcp::gateway::Mode;
/// use haft_server::GatewayOptions;
/// let options = GatewayOptions { mode: Mode::Facade, ..GatewayOptions::default() };
/// assert!(options.subset.is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct GatewayOptions {
    /// What clients see.
    pub mode: Mode,
    /// The part of all tools that is there; everything where none is given.
    pub subset: Option<Subset>,
    /// The servers that are there; by default all that can have tools of `subset`. The others are neither
    /// started nor asked.
    pub servers: ServerFilter,
    /// Servers of the configuration that are not in the pool, because their settings cannot be used. Clients
    /// are told that they are unavailable.
    pub unusable: Vec<ServerStatus>,
}

impl GatewayOptions {
    /// The servers that are there, given the subset.
    pub fn selected_servers(&self) -> ServerFilter {
        match &self.subset {
            None => self.servers.clone(),
            Some(subset) => self.servers.clone().within(subset.clone()),
        }
    }
}

/// A gateway in front of a catalogue and MCP servers.
///
/// It must be made within a tokio runtime: it hears of the servers' changes from then on.
pub fn gateway(
    catalog: Catalog,
    pool: Pool,
    sight: Sight,
    limits: LoopOptions,
    options: GatewayOptions,
) -> Result<Gateway<CatalogBackend>, GatewayError> {
    let servers = options.selected_servers();
    let mut backend = CatalogBackend::new(catalog, pool, sight, limits, servers);
    backend.unusable = options.unusable;
    let builder = Gateway::builder(backend)
        .mode(options.mode)
        .validator(Arc::new(JsonSchemaFactory));
    match options.subset {
        None => builder.build(),
        Some(subset) => builder.subset(PART, subset).build()?.narrowed(PART),
    }
}
