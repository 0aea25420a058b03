//! Tools of MCP servers become tools of the engine.

use std::sync::Arc;

use haft_core::{Defer, DefinitionError, ToolDefinition, ToolName, ToolObject, ToolRef};
use haft_mcp::McpTool;
use serde_json::json;

use super::builder::Builder;
use super::deferral::{Declared, Origin, Search};
use super::names::Identity;
use super::renamed::annotated;
use super::{ServerState, WireName};
use crate::mcp::{OfferedTool, ToolSource};
use crate::stream::Shown;
use crate::wire::{McpEntry, RequestTool};

impl Builder {
    /// Adds the tools of a server. One that has none now costs nothing else.
    pub(super) fn add_server(&mut self, tool: &RequestTool, entry: &McpEntry, origin: Origin) {
        let label = entry.label.as_str();
        // Found by this server: the request says where it is, and how.
        if origin == Origin::Loaded && entry.is_found && self.servers.contains_key(label) {
            return self.load_found(entry);
        }
        let wish = match origin {
            Origin::Declared if entry.defer_loading && self.waits_for_server(origin) => {
                Some(Defer::Always)
            }
            Origin::Declared => None,
            Origin::Loaded => Some(Defer::Never),
        };
        let listed = self.mcp.iter().find(|server| server.label == label);
        let tools = listed.map(|server| server.tools.clone());
        let state = match tools {
            Some(Ok(tools)) => {
                for offered in &tools {
                    if let Some(backend) = self.add_mcp_tool(label, offered, wish) {
                        self.note_mcp(tool, entry, offered, backend, origin);
                    }
                }
                ServerState::Listed
            }
            Some(Err(problem)) => ServerState::Unavailable(problem),
            None => ServerState::Unavailable("it was not asked".to_owned()),
        };
        self.servers.insert(label.to_owned(), state);
    }

    /// Loads those tools of a declared server that were found.
    fn load_found(&mut self, entry: &McpEntry) {
        let names = entry.allowed.as_ref().and_then(|it| it.names.as_ref());
        for name in names.into_iter().flatten() {
            let backend = self.names.of(&Identity::mcp(&entry.label, name));
            if self.shown.contains_key(&backend) {
                self.deferral.load(&backend);
            }
        }
    }

    /// Notes what is known of a tool of a server: where it came from, and whether it is held back.
    fn note_mcp(
        &mut self,
        tool: &RequestTool,
        entry: &McpEntry,
        offered: &OfferedTool,
        backend: String,
        origin: Origin,
    ) {
        if origin == Origin::Loaded {
            return self.deferral.load(&backend);
        }
        let settings = match &offered.source {
            ToolSource::Remote { server, .. } => Some(server.settings()),
            ToolSource::Hosted(_) => None,
        };
        let name = offered.source.name();
        if entry.defer_loading && self.waits_for_server(origin) {
            self.deferral.by_request.insert(backend.clone());
        }
        let is_mentioned = self.deferral.by_request.contains(&backend)
            || settings.is_some_and(|it| it.deferral(name) == haft_mcp::Defer::Always);
        if is_mentioned && self.search != Search::Client {
            let description = entry.description.as_deref();
            let description = description.or(settings.and_then(|it| it.description.as_deref()));
            self.deferral.mention(&entry.label, description);
        }
        let declared = Declared::OfServer {
            entry: tool.echo.clone(),
            name: name.to_owned(),
        };
        self.deferral.declared.insert(backend, declared);
    }

    /// What the model calls it; none if it is left out.
    fn add_mcp_tool(
        &mut self,
        label: &str,
        offered: &OfferedTool,
        wish: Option<Defer>,
    ) -> Option<String> {
        let raw = offered.source.name();
        let identity = Identity::mcp(label, raw);
        let backend = self.names.of(&identity);
        let is_own = self.tools.iter().any(|(name, _)| *name == backend);
        let is_again = matches!(self.shown.get(&backend), Some(Shown::Mcp { server_label, name })
            if server_label == label && name == raw);
        if self.names.is_used(&backend) && is_own && !is_again {
            tracing::warn!(
                server = label,
                tool = raw,
                "a tool is left out: its name is taken"
            );
            return None;
        }
        let tool = match executable(offered, &backend, wish) {
            Ok(tool) => tool,
            Err(error) => {
                tracing::warn!(server = label, tool = raw, %error, "a tool is left out");
                return None;
            }
        };
        self.names.take(identity);
        if self.may_ask(tool.definition()) {
            self.asking.insert(backend.clone());
        }
        self.wire_names.push(WireName::Mcp {
            server_label: label.to_owned(),
            name: raw.to_owned(),
            backend: backend.clone(),
        });
        let shown = Shown::Mcp {
            server_label: label.to_owned(),
            name: raw.to_owned(),
        };
        self.put(backend.clone(), ToolRef::from(tool), shown);
        Some(backend)
    }

    /// Whether somebody may be asked about a call of this tool: then it is not shown before that is
    /// decided.
    pub(super) fn may_ask(&self, definition: &ToolDefinition) -> bool {
        let extra = &definition.annotations().extra;
        self.repairs
            || definition.no_schema_mode().is_some()
            || extra.get("x-needs-approval") == Some(&true.into())
    }
}

/// An offered tool under the name that the model calls it by.
fn executable(
    offered: &OfferedTool,
    name: &str,
    defer: Option<Defer>,
) -> Result<Arc<dyn ToolObject>, DefinitionError> {
    match &offered.source {
        ToolSource::Remote { server, tool } => {
            let tool = McpTool::named(
                Arc::clone(server),
                Arc::clone(tool),
                &ToolName::import(name),
            )?;
            let tool = if offered.asks {
                tool.asking()
            } else {
                tool.unasked()
            };
            let tool = match defer {
                Some(defer) => tool.with_defer(defer),
                None => tool,
            };
            Ok(Arc::new(tool))
        }
        ToolSource::Hosted(tool) => {
            let asks = offered.asks.then(|| ("x-needs-approval", json!(true)));
            let defer = defer.map(|defer| ("defer", json!(defer)));
            annotated(Arc::clone(tool), name, asks.into_iter().chain(defer))
        }
    }
}
