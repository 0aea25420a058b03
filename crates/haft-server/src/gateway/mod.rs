//! haft as an MCP server: the tools of a catalogue and of MCP servers, behind one gateway.
//!
//! What comes in: a catalogue, a pool of servers, and what of them is offered. What goes out: a
//! [`Gateway`] for standard input and output, or the route `/mcp` of a [`Server`](crate::Server), where
//! clients are let in like those of the API and are the tenants of their keys. Results of servers are passed
//! on as they are; haft's own tools are called the way that every call goes.

mod backend;
mod entry;
mod mounted;
mod native;
mod passing;
mod remote;

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_engine::LoopOptions;
use haft_hydrate::JsonSchemaFactory;
use haft_mcp::Pool;
use haft_mcp::gateway::{Gateway, GatewayError, Mode, Subset};

pub use self::backend::{CatalogBackend, Sight};
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
    let backend = CatalogBackend::new(catalog, pool, sight, limits);
    let builder = Gateway::builder(backend)
        .mode(options.mode)
        .validator(Arc::new(JsonSchemaFactory));
    match options.subset {
        None => builder.build(),
        Some(subset) => builder.subset(PART, subset).build()?.narrowed(PART),
    }
}
