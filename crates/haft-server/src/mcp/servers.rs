//! The servers of a request, each asked for its tools.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{join_all, try_join_all};
use haft_core::ToolObject;
use haft_mcp::{Guest, Label, NotAllowed, Server, ServerTools, SystemResolver, ToolDef};

use crate::app::{App, Caller};
use crate::context::Context;
use crate::error::{ApiError, ErrorCode};
use crate::toolkit::{Search, hosted_tools};
use crate::wire::{CreateRequest, McpAddress, McpEntry, OWN_LABEL, RequestTool, RequestToolKind};

/// How many servers one request may name.
const MAX_SERVERS: usize = 64;

/// How long the tools of a server are waited for. What takes longer is there for the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Somebody waits for a response.
    OfRequest,
    /// Everybody waits for the server to start.
    OfStart,
}

impl Patience {
    fn limit(self) -> Duration {
        match self {
            Self::OfRequest => Duration::from_secs(30),
            Self::OfStart => Duration::from_secs(10),
        }
    }
}

/// A server that a request names, and its tools for this request.
#[derive(Debug, Clone)]
pub(crate) struct ListedServer {
    pub(crate) label: String,
    /// The tools, or why they could not be listed, as a message for the client.
    pub(crate) tools: Result<Vec<OfferedTool>, String>,
    /// Why there are no tools, or fewer than the server offers, as a message for the client.
    pub(crate) shortfall: Option<String>,
}

/// A tool that the request may use.
#[derive(Debug, Clone)]
pub(crate) struct OfferedTool {
    pub(crate) source: ToolSource,
    /// Whether a person is asked before each call.
    pub(crate) asks: bool,
}

/// Who executes an offered tool.
#[derive(Clone)]
pub(crate) enum ToolSource {
    /// An MCP server.
    Remote {
        server: Arc<Server>,
        tool: Arc<ToolDef>,
    },
    /// This process: a `haft:` tool that the request names by the label [`OWN_LABEL`].
    Hosted(Arc<dyn ToolObject>),
}

impl ToolSource {
    /// The tool's name at its server.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Remote { tool, .. } => &tool.name,
            Self::Hosted(tool) => tool.definition().name().as_str(),
        }
    }
}

impl fmt::Debug for ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolSource({})", self.name())
    }
}

/// Where a server is to be found, or why it is not.
enum Found {
    Server(Arc<Server>),
    /// This server itself, with these tools.
    Hosted(Vec<Arc<dyn ToolObject>>),
    Missing(String),
}

impl App {
    /// The servers that a request names, in its order, all asked at once.
    pub(crate) async fn mcp_servers(
        &self,
        caller: &Caller,
        request: &CreateRequest,
        context: &Context,
        patience: Patience,
    ) -> Result<Vec<ListedServer>, ApiError> {
        // Nothing can be called.
        if context.compacts_now {
            return Ok(Vec::new());
        }
        let loaded = context.loaded();
        let entries = entries(&request.tools, &loaded);
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        if entries.len() > MAX_SERVERS {
            let message = format!(
                "there are {} MCP servers in `tools`, {MAX_SERVERS} are allowed: leave some out",
                entries.len()
            );
            return Err(ApiError::new(ErrorCode::InvalidValue, message).at("tools"));
        }
        let found = entries
            .iter()
            .map(|(param, entry)| self.find(caller, param, entry));
        let found = try_join_all(found).await?;
        let listed = entries.iter().zip(found);
        // Of one type, however deep it goes from here: those who wait for it are types as well.
        let listed = listed.map(|((_, entry), found)| list(entry, found, patience.limit()).boxed());
        Ok(join_all(listed).await)
    }

    async fn find(
        &self,
        caller: &Caller,
        param: &str,
        entry: &McpEntry,
    ) -> Result<Found, ApiError> {
        let Some(address) = &entry.address else {
            if entry.label == OWN_LABEL {
                let tools = hosted_tools(&self.catalog.snapshot(), &caller.owner).collect();
                return Ok(Found::Hosted(tools));
            }
            return match self.mcp.server(&entry.label) {
                Some(server) => {
                    let server = self.mcp.for_tenant(&server, caller.owner.as_str());
                    Ok(Found::Server(server))
                }
                None => Err(unknown(param, &entry.label)),
            };
        };
        let admitted = self.mcp_hosts.admit(&address.url, &SystemResolver).await;
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(problem @ NotAllowed::Unknown { .. }) => {
                if let NotAllowed::Unknown { host, reason } = &problem {
                    tracing::warn!(host, reason, "the `server_url` of a request is not used");
                }
                return Ok(Found::Missing(problem.to_string()));
            }
            Err(problem) => {
                let error = ApiError::new(ErrorCode::McpServerNotAllowed, problem.to_string());
                return Err(error.at(format!("{param}.server_url")));
            }
        };
        let McpAddress {
            headers, bearer, ..
        } = address.clone();
        let label = Label::from_request(&entry.label).map_err(|error| {
            let param = format!("{param}.server_label");
            ApiError::new(ErrorCode::InvalidValue, error.to_string()).at(param)
        })?;
        Ok(Found::Server(self.mcp.guest(Guest {
            label,
            url: admitted.url,
            pinned: admitted.pinned,
            headers,
            bearer,
            principal: caller.owner.to_string(),
        })))
    }
}

/// What the request says about servers, and what its history says about others. Where the request declares
/// a server, its own word holds, whatever an item brought along: the address, the credentials, which tools
/// there are and which of them are asked about. Of two others with one label the later is meant.
fn entries<'r>(
    declared: &'r [RequestTool],
    loaded: &'r [RequestTool],
) -> Vec<(&'r str, &'r McpEntry)> {
    let has_client_search = Search::of(declared.iter().chain(loaded)) == Search::Client;
    // One that is for the client to find is asked only when it was found.
    let (waiting, own): (Vec<_>, Vec<_>) =
        servers_in(declared).partition(|(_, entry)| entry.defer_loading && has_client_search);
    let mut entries: Vec<(&str, &McpEntry)> = Vec::new();
    for entry in own {
        put(&mut entries, entry);
    }
    let mut found = Vec::new();
    for entry in servers_in(loaded) {
        let is_it = |other: &&(&str, &McpEntry)| other.1.label == entry.1.label;
        if entries.iter().any(|other| is_it(&other)) {
            continue;
        }
        match waiting.iter().rev().find(is_it) {
            Some(declared) => put(&mut found, *declared),
            // What was found says nothing about where it is: an item shows no more than the origin of an address.
            None if entry.1.is_found && entry.1.address.is_some() => {}
            None if entry.1.is_found && found.iter().any(|other| is_it(&other)) => {}
            None => put(&mut found, entry),
        }
    }
    entries.extend(found);
    entries
}

/// Puts an entry in the place of one with its label, or behind all.
fn put<'r>(entries: &mut Vec<(&'r str, &'r McpEntry)>, entry: (&'r str, &'r McpEntry)) {
    let mut known = entries.iter_mut();
    match known.find(|(_, other)| other.label == entry.1.label) {
        Some(earlier) => *earlier = entry,
        None => entries.push(entry),
    }
}

fn servers_in(tools: &[RequestTool]) -> impl Iterator<Item = (&str, &McpEntry)> {
    tools.iter().filter_map(|tool| match &tool.kind {
        RequestToolKind::Mcp(entry) => Some((tool.param.as_str(), &**entry)),
        _ => None,
    })
}

async fn list(entry: &McpEntry, found: Found, limit: Duration) -> ListedServer {
    let mut shortfall = None;
    let tools = match found {
        Found::Missing(problem) => Err(problem),
        Found::Hosted(tools) => {
            let count = tools.len();
            let offered = offered_hosted(entry, tools);
            if offered.is_empty() {
                shortfall = Some(format!(
                    "`allowed_tools` admits none of the {count} tools of this server"
                ));
            }
            Ok(offered)
        }
        Found::Server(server) => match tokio::time::timeout(limit, server.tools()).await {
            Ok(Ok(tools)) => {
                let offered = offered(entry, &server, &tools);
                shortfall = tools.shortfall();
                if offered.is_empty() && !tools.tools.is_empty() {
                    let count = tools.tools.len();
                    shortfall = Some(format!(
                        "`allowed_tools` admits none of the {count} tools of the server"
                    ));
                }
                Ok(offered)
            }
            Ok(Err(error)) => {
                tracing::warn!(server = entry.label, %error, "an MCP server has no tools for a request");
                Err(error.cause.for_callers())
            }
            Err(_) => Err(format!("no list of tools within {} s", limit.as_secs())),
        },
    };
    ListedServer {
        label: entry.label.clone(),
        tools,
        shortfall,
    }
}

fn offered(entry: &McpEntry, server: &Arc<Server>, tools: &ServerTools) -> Vec<OfferedTool> {
    let is_trusted = server.settings().trusted;
    let tools = tools.tools.iter().filter_map(|tool| {
        // What a stranger says about himself counts for nothing.
        let is_read_only = is_trusted && tool.hints.read_only == Some(true);
        let is_allowed = entry.allowed.as_ref();
        if !is_allowed.is_none_or(|filter| filter.admits(&tool.name, is_read_only)) {
            return None;
        }
        let wish = entry.approval.as_ref();
        let wish = wish.map(|wish| wish.asks(&tool.name, is_read_only));
        let asks = match entry.address {
            // Whoever brings a server along decides about it.
            Some(_) => wish.unwrap_or(true),
            // The operator's word may be made stricter, never weaker.
            None => server.needs_approval(tool) || wish == Some(true),
        };
        let source = ToolSource::Remote {
            server: Arc::clone(server),
            tool: Arc::clone(tool),
        };
        Some(OfferedTool { source, asks })
    });
    tools.collect()
}

/// Those of this server's own tools that an entry admits.
fn offered_hosted(entry: &McpEntry, tools: Vec<Arc<dyn ToolObject>>) -> Vec<OfferedTool> {
    let tools = tools.into_iter().filter_map(|tool| {
        let definition = tool.definition();
        let name = definition.name().as_str();
        let is_read_only = definition.annotations().read_only;
        let is_allowed = entry.allowed.as_ref();
        if !is_allowed.is_none_or(|filter| filter.admits(name, is_read_only)) {
            return None;
        }
        // The definition itself says whether the operator wants a person to be asked; a request may only add to that.
        let wish = entry.approval.as_ref();
        let asks = wish.is_some_and(|wish| wish.asks(name, is_read_only));
        let source = ToolSource::Hosted(tool);
        Some(OfferedTool { source, asks })
    });
    tools.collect()
}

fn unknown(param: &str, label: &str) -> ApiError {
    let message = format!(
        "no MCP server is called `{label}` here: say where it is by `server_url`, or have the operator \
         configure it"
    );
    ApiError::new(ErrorCode::McpServerNotAllowed, message).at(format!("{param}.server_label"))
}
