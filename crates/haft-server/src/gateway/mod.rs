//! haft as an MCP server: the tools of a catalogue and of MCP servers, behind one gateway.
//!
//! What comes in: a catalogue, a pool of servers, and what of them is offered to whom. What goes out: a
//! [`Gateway`] for standard input and output, or the routes `/mcp` and `/mcp/NAME` of a
//! [`Server`](crate::Server), where clients send the API keys of the server and are the tenants of these keys.
//! Results of servers are passed on unchanged; haft's own tools are called the way that every call goes.

mod backend;
mod endpoints;
mod entry;
mod events;
mod filter;
mod journal;
mod links;
mod lists;
mod monitor;
mod mounted;
mod native;
mod offers;
mod passing;
mod remote;
mod server_logs;
mod uri_template;

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_engine::LoopOptions;
use haft_hydrate::JsonSchemaFactory;
use haft_mcp::gateway::{Access, AccessRule, CallerFilter, Gateway, GatewayError, Mode, Subset};
use haft_mcp::{Pool, ServerStatus};

pub use self::backend::{CatalogBackend, Sight};
pub(crate) use self::endpoints::Endpoints;
pub use self::endpoints::is_endpoint_name;
pub use self::filter::ServerFilter;
pub use self::journal::{CallEntry, CallJournal, CallQuery};
pub use self::monitor::CallMonitor;
pub(crate) use self::mounted::Mounted;

/// What a gateway offers, how, and to whom.
///
/// ```
/// use haft_mcp::gateway::{AccessRule, CallerFilter, Mode, Subset};
/// use haft_server::GatewayOptions;
///
/// let support = GatewayOptions {
///     mode: Mode::Facade,
///     subset: Some(Subset::default().with_server("tracker")),
///     callers: CallerFilter::default().with_role("support"),
///     rules: vec![AccessRule::default().denying("*__delete*")],
///     ..GatewayOptions::default()
/// };
/// assert!(support.instructions.is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct GatewayOptions {
    /// What clients see.
    pub mode: Mode,
    /// The part of all tools that is offered; everything where none is given. MCP servers without any tool in it
    /// are not started.
    pub subset: Option<Subset>,
    /// The servers that are there; by default all that can have tools of `subset`. The others are neither
    /// started nor asked.
    pub servers: ServerFilter,
    /// Servers of the configuration that are not in the pool, because their settings cannot be used. Clients
    /// are told that they are unavailable.
    pub unusable: Vec<ServerStatus>,
    /// Who may use it over HTTP: everybody with a key where nobody is named.
    pub callers: CallerFilter,
    /// What single callers may use of the subset: the first rule that is for a caller decides, and without one the
    /// whole subset is allowed. What a rule hides cannot be called either.
    pub rules: Vec<AccessRule>,
    /// What a model should know about these tools as a whole.
    pub instructions: Option<String>,
    /// Reports each call.
    pub monitor: CallMonitor,
}

impl GatewayOptions {
    /// The servers that are there, given the subset.
    pub fn selected_servers(&self) -> ServerFilter {
        match &self.subset {
            None => self.servers.clone(),
            Some(subset) => self.servers.clone().within(subset.clone()),
        }
    }

    fn access(&self) -> Access {
        Access::new(self.subset.clone(), self.rules.clone())
    }
}

/// A gateway in front of a catalogue and MCP servers.
///
/// It must be built within a tokio runtime: it listens for changes of the servers from then on. Who may reach it is
/// up to the caller of this function; `callers` of the options is for the routes of a [`Server`](crate::Server).
pub fn gateway(
    catalog: Catalog,
    pool: Pool,
    sight: Sight,
    limits: LoopOptions,
    options: GatewayOptions,
) -> Result<Gateway<CatalogBackend>, GatewayError> {
    let (servers, access) = (options.selected_servers(), options.access());
    let mut backend = CatalogBackend::new(catalog, pool, sight, limits, servers);
    backend.access = access;
    backend.instructions = options.instructions;
    backend.unusable = options.unusable;
    backend.monitor = options.monitor;
    Gateway::builder(backend)
        .mode(options.mode)
        .validator(Arc::new(JsonSchemaFactory))
        .build()
}
