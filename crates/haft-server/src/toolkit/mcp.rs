//! Tools of MCP servers become tools of the engine.

use haft_core::{ToolDefinition, ToolName, ToolObject, ToolRef};
use haft_mcp::McpTool;

use super::builder::Builder;
use super::names::Identity;
use super::{ServerState, WireName};
use crate::mcp::OfferedTool;
use crate::stream::Shown;

impl Builder {
    /// Adds the tools of a server. One that has none now costs nothing else.
    pub(super) fn add_server(&mut self, label: &str) {
        let listed = self.mcp.iter().find(|server| server.label == label);
        let tools = listed.map(|server| server.tools.clone());
        let state = match tools {
            Some(Ok(tools)) => {
                for tool in &tools {
                    self.add_mcp_tool(label, tool);
                }
                ServerState::Listed
            }
            Some(Err(problem)) => ServerState::Unavailable(problem),
            None => ServerState::Unavailable("it was not asked".to_owned()),
        };
        self.servers.insert(label.to_owned(), state);
    }

    fn add_mcp_tool(&mut self, label: &str, offered: &OfferedTool) {
        let raw = &offered.tool.name;
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
            return;
        }
        let server = offered.server.clone();
        let tool = McpTool::named(server, offered.tool.clone(), &ToolName::import(&backend));
        let tool = match tool {
            Ok(tool) if offered.asks => tool.asking(),
            Ok(tool) => tool.unasked(),
            Err(error) => {
                tracing::warn!(server = label, tool = raw, %error, "a tool is left out");
                return;
            }
        };
        self.names.take(identity);
        if self.may_ask(tool.definition()) {
            self.asking.insert(backend.clone());
        }
        self.wire_names.push(WireName::Mcp {
            server_label: label.to_owned(),
            name: raw.clone(),
            backend: backend.clone(),
        });
        let shown = Shown::Mcp {
            server_label: label.to_owned(),
            name: raw.clone(),
        };
        let tool: std::sync::Arc<dyn ToolObject> = std::sync::Arc::new(tool);
        self.put(backend, ToolRef::from(tool), shown);
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
