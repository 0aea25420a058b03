//! The tools of one request: what the model may see and call, and what each is for the client
//! (`open-responses.md` §5).

mod builder;
mod choice;
mod mcp;
mod names;
mod renamed;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_catalog::{BindError, Binding, Snapshot};
use haft_core::Owner;

use crate::error::{ApiError, ErrorCode};
use crate::history::ToolNames;
use crate::mcp::ListedServer;
use crate::stream::{HostedCall, Shown};
use crate::wire::{RequestTool, WireChoice};

use builder::Builder;
pub(crate) use builder::is_client_search;
use choice::{Offer, lower_choice};
use names::{Identity, Names};
pub(crate) use renamed::of_type;

/// What becomes of hosted tool types that nobody provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnsupportedTools {
    /// `web_search` is left out with a warning, because coding agents send it unasked; every other
    /// is refused.
    #[default]
    WebSearch,
    /// All are left out with a warning.
    Ignore,
    /// All are refused.
    Reject,
}

/// The tools of one request.
#[derive(Debug)]
pub(crate) struct Toolkit {
    pub(crate) binding: Binding,
    /// What each tool is for the client, by the name that the model calls it by.
    pub(crate) shown: HashMap<String, Shown>,
    /// The tools about whose calls somebody may be asked, by the same name.
    pub(crate) asking: HashSet<String>,
    /// The labels of the MCP servers, and what became of each.
    servers: HashMap<String, ServerState>,
    /// Whether the request declares a tool that runs here.
    pub(crate) is_agentic: bool,
    /// Whether it asks for vendor events.
    pub(crate) wants_events: bool,
    /// The types that were left out.
    pub(crate) ignored: Vec<String>,
    names: Names,
}

/// What goes into a toolkit.
pub(crate) struct Ingredients<'r> {
    pub(crate) tools: &'r [RequestTool],
    /// Tools that items of the history brought, oldest first.
    pub(crate) loaded: &'r [RequestTool],
    pub(crate) choice: &'r WireChoice,
    pub(crate) snapshot: &'r Arc<Snapshot>,
    /// Whose request it is: some tools are not the same for everybody.
    pub(crate) owner: &'r Owner,
    pub(crate) unsupported: UnsupportedTools,
    /// The MCP servers of the request.
    pub(crate) mcp: &'r [ListedServer],
    /// Whether arguments are repaired, so that any call may need somebody's word.
    pub(crate) repairs: bool,
}

/// What became of an MCP server of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerState {
    Listed,
    /// It has no tools now, because of this.
    Unavailable(String),
    /// It waits for the client's search.
    Deferred,
}

impl Toolkit {
    pub(crate) fn build(ingredients: &Ingredients<'_>) -> Result<Self, ApiError> {
        let builder = Builder::of(ingredients)?;
        let search = builder.names.of(&Identity::Search);
        let offer = Offer {
            has_tools: !builder.tools.is_empty(),
            names: &builder.wire_names,
            search: builder.has_client_search.then_some(search.as_str()),
            servers: &builder.servers,
        };
        let choice = lower_choice(ingredients.choice, &offer)?;
        let tools = builder.tools.into_iter().map(|(_, tool)| tool);
        let binding = ingredients
            .snapshot
            .bind()
            .without_tools()
            .with_tools(tools);
        let binding = binding
            .tool_choice(choice)
            .build()
            .map_err(|error| refused(&error))?;
        Ok(Self {
            binding,
            shown: builder.shown,
            asking: builder.asking,
            servers: builder.servers,
            is_agentic: builder.is_agentic,
            wants_events: builder.wants_events,
            ignored: builder.ignored,
            names: builder.names,
        })
    }
}

impl Toolkit {
    /// A call that somebody was asked about under these names, as it runs here; none if the request
    /// has no such server or tool.
    pub(crate) fn asked_about(
        &self,
        label: &str,
        name: &str,
        arguments: &str,
    ) -> Option<HostedCall> {
        let hosted = format!("{label}:{name}");
        let shown = if self.servers.contains_key(label) {
            Shown::Mcp {
                server_label: label.to_owned(),
                name: name.to_owned(),
            }
        } else {
            let mut shown = self.shown.values();
            shown
                .find(|shown| matches!(shown, Shown::Hosted { item_type } if *item_type == hosted))?
                .clone()
        };
        shown.hosted(arguments)
    }
}

/// In calls of the history, tools are called what the model would call them now.
impl ToolNames for Toolkit {
    fn client(&self, namespace: Option<&str>, name: &str) -> String {
        self.names.of(&Identity::client(namespace, name))
    }

    fn search(&self) -> String {
        self.names.of(&Identity::Search)
    }

    fn mcp(&self, label: &str, name: &str) -> String {
        let hosted = format!("{label}:{name}");
        let is_it =
            |shown: &Shown| matches!(shown, Shown::Hosted { item_type } if *item_type == hosted);
        if label == "haft" || self.shown.values().any(is_it) {
            return self.hosted(&hosted);
        }
        self.names.of(&Identity::mcp(label, name))
    }

    fn hosted(&self, item_type: &str) -> String {
        let is_it =
            |shown: &Shown| matches!(shown, Shown::Hosted { item_type: own } if own == item_type);
        let known = self.shown.iter().find(|(_, shown)| is_it(shown));
        if let Some((name, _)) = known {
            return name.clone();
        }
        let (_, name) = item_type.split_once(':').unwrap_or(("", item_type));
        self.names.of(&Identity::Hosted(name.to_owned()))
    }
}

fn refused(error: &BindError) -> ApiError {
    match error {
        BindError::ChoiceNotOffered { .. } | BindError::NothingAllowed => {
            ApiError::new(ErrorCode::ToolNotFound, error.to_string()).at("tool_choice")
        }
        _ => ApiError::new(ErrorCode::InvalidFunctionParameters, error.to_string()).at("tools"),
    }
}

/// The name of a tool as requests write it, and what it is called for the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WireName {
    Function {
        name: String,
        namespace: Option<String>,
        backend: String,
    },
    Custom {
        name: String,
        namespace: Option<String>,
        backend: String,
    },
    /// A tool of the client that waits for its search.
    Deferred {
        name: String,
        namespace: Option<String>,
    },
    Hosted {
        tool_type: String,
        /// None for one that is left out.
        backend: Option<String>,
    },
    Mcp {
        server_label: String,
        name: String,
        backend: String,
    },
}
