//! `[gateway]`: haft's tools as an MCP server.

use haft_mcp::gateway::{Mode, Subset, Threshold};
use schemars::JsonSchema;
use serde::Deserialize;

/// `[gateway]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct GatewayTable {
    /// What clients see.
    pub(super) mode: Option<GatewayMode>,
    /// The labels of the only MCP servers whose tools are there; those of haft itself then are not.
    pub(super) servers: Option<Vec<String>>,
    /// The names of the only tools that are there, beside those of `servers`; a `*` at the end stands for
    /// anything.
    pub(super) tools: Option<Vec<String>>,
}

/// What a client of the gateway sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GatewayMode {
    /// Every tool as long as they are few, else three that find, describe and call the others.
    #[default]
    Auto,
    /// Every tool.
    Passthrough,
    /// Three tools that find, describe and call the others.
    Facade,
}

impl GatewayMode {
    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::Auto => Mode::Auto(Threshold::default()),
            Self::Passthrough => Mode::Passthrough,
            Self::Facade => Mode::Facade,
        }
    }
}

/// What the gateway offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GatewayConfig {
    pub(crate) mode: GatewayMode,
    pub(crate) servers: Vec<String>,
    pub(crate) tools: Vec<String>,
}

impl GatewayConfig {
    pub(super) fn of(table: GatewayTable) -> Self {
        Self {
            mode: table.mode.unwrap_or_default(),
            servers: table.servers.unwrap_or_default(),
            tools: table.tools.unwrap_or_default(),
        }
    }

    /// The part of all tools that is offered; none where it is everything.
    pub(crate) fn subset(&self) -> Option<Subset> {
        if self.servers.is_empty() && self.tools.is_empty() {
            return None;
        }
        let servers = self.servers.iter();
        let subset = servers.fold(Subset::default(), Subset::with_server);
        let tools = self.tools.iter();
        Some(tools.fold(subset, Subset::with_tool))
    }
}
