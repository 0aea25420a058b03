//! Names for the model: unique, legal, and the same for the same request.

use std::collections::{HashMap, HashSet};

use haft_core::{MAX_NAME_BYTES, ToolName};
use haft_mcp::{Label, exposed_name, exposed_name_hashed};

use crate::wire::{OWN_LABEL, RequestTool, RequestToolKind};

/// What the model calls a client's search, unless a function of the client is called so.
const SEARCH_NAME: &str = "tool_search";

/// Which tool is meant, whatever the model calls it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// A function or custom tool of the client.
    Client {
        namespace: Option<String>,
        name: String,
    },
    /// The client's search for tools.
    Search,
    /// A tool that runs here, by its name in the catalogue.
    Hosted(String),
    /// A tool of an MCP server, by the server's label and its name there.
    Mcp { label: String, name: String },
}

impl Identity {
    pub(super) fn client(namespace: Option<&str>, name: &str) -> Self {
        Self::Client {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    pub(super) fn mcp(label: &str, name: &str) -> Self {
        Self::Mcp {
            label: label.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The name that it has if nobody else has it.
    fn plain(&self) -> String {
        let foreign = match self {
            Self::Mcp { label, name } => {
                // No MCP server can have this server's own label, so its names need no hash.
                if label != OWN_LABEL
                    && let Ok(label) = Label::from_request(label)
                {
                    let exposed = exposed_name(&label, name, MAX_NAME_BYTES);
                    return exposed.as_str().to_owned();
                }
                format!("{label}__{name}")
            }
            Self::Client {
                namespace: None,
                name,
            }
            | Self::Hosted(name) => name.clone(),
            Self::Client {
                namespace: Some(namespace),
                name,
            } => format!("{namespace}__{name}"),
            Self::Search => SEARCH_NAME.to_owned(),
        };
        ToolName::import(&foreign).as_str().to_owned()
    }

    /// A name that no other tool can have: no legal name has the mark in it, so a hash replaces it.
    fn marked(&self) -> String {
        let foreign = match self {
            Self::Mcp { label, name } => {
                if let Ok(label) = Label::from_request(label) {
                    let exposed = exposed_name_hashed(&label, name, MAX_NAME_BYTES);
                    return exposed.as_str().to_owned();
                }
                format!("{label}\u{0}{name}")
            }
            Self::Client { namespace, name } => {
                format!("{}\u{0}{name}", namespace.as_deref().unwrap_or_default())
            }
            Self::Search => format!("haft\u{0}{SEARCH_NAME}"),
            Self::Hosted(name) => format!("haft\u{0}{name}"),
        };
        ToolName::import(&foreign).as_str().to_owned()
    }

    fn is_plain_client(&self) -> bool {
        matches!(
            self,
            Self::Client {
                namespace: None,
                ..
            }
        )
    }
}

/// The names of a request's tools.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Names of the request's own functions that are in no namespace: nobody else gets them.
    reserved: HashSet<String>,
    given: HashMap<Identity, String>,
    used: HashSet<String>,
}

impl Names {
    pub(super) fn of_request(tools: &[RequestTool]) -> Self {
        let plain = tools.iter().filter_map(|tool| match &tool.kind {
            RequestToolKind::Function(function) => Some(function.name.clone()),
            RequestToolKind::Custom(custom) => Some(custom.name.clone()),
            _ => None,
        });
        Self {
            reserved: plain.collect(),
            ..Self::default()
        }
    }

    /// Gives a tool its name; one that is defined again keeps it.
    pub(super) fn take(&mut self, identity: Identity) -> String {
        let name = self.of(&identity);
        self.used.insert(name.clone());
        self.given.insert(identity, name.clone());
        name
    }

    /// Whether a tool already has this name.
    pub(super) fn is_used(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// The name of a tool, or the one that it would get.
    pub(super) fn of(&self, identity: &Identity) -> String {
        if let Some(given) = self.given.get(identity) {
            return given.clone();
        }
        let plain = identity.plain();
        let is_reserved = !identity.is_plain_client() && self.reserved.contains(&plain);
        if is_reserved || self.used.contains(&plain) {
            identity.marked()
        } else {
            plain
        }
    }
}
