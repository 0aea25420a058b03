//! How a model, a request or a script says which tools it means.

use std::sync::Arc;

use crate::definition::ToolDefinition;
use crate::name::{Namespace, ToolName};
use crate::tool::{Tool, ToolObject, ToolSource};

/// A tool, or all tools of a namespace or MCP server.
///
/// ```
/// use haft_core::ToolRef;
/// let references: [ToolRef; 2] = ["get_weather".into(), "files".into()];
/// assert!(matches!(&references[0], ToolRef::Name(name) if name == "get_weather"));
/// ```
#[derive(Debug, Clone)]
pub enum ToolRef {
    /// The tool of this wire name or, where no tool bears it, all tools of this namespace.
    Name(String),
    /// All tools of a namespace or MCP server.
    Namespace(Namespace),
    /// This tool, wherever it comes from.
    Tool(ToolSource),
}

impl From<&str> for ToolRef {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for ToolRef {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl From<ToolName> for ToolRef {
    fn from(name: ToolName) -> Self {
        Self::Name(name.into())
    }
}

impl From<Namespace> for ToolRef {
    fn from(namespace: Namespace) -> Self {
        Self::Namespace(namespace)
    }
}

impl From<ToolSource> for ToolRef {
    fn from(tool: ToolSource) -> Self {
        Self::Tool(tool)
    }
}

impl From<Arc<dyn ToolObject>> for ToolRef {
    fn from(tool: Arc<dyn ToolObject>) -> Self {
        Self::Tool(tool.into())
    }
}

impl From<Arc<ToolDefinition>> for ToolRef {
    /// A definition alone is a function of the caller.
    fn from(definition: Arc<ToolDefinition>) -> Self {
        Self::Tool(definition.into())
    }
}

impl<T: Tool> From<T> for ToolRef {
    /// The value only names its type: `with_tools([get_weather])`.
    fn from(tool: T) -> Self {
        Self::Tool(tool.into())
    }
}
