//! A part of the catalogue under a name of its own.

use std::collections::BTreeSet;

use super::access::Names;
use super::pattern::{covers_below, may_match_below};
use super::tool::ListedTool;

/// Some servers and some tools. An empty subset is everything. In the names of tools `*` stands for any text.
///
/// ```
/// use haft_mcp::gateway::{ListedTool, Subset};
/// let coding = Subset::default().with_server("github").with_tool("files__*").without("files__delete");
/// let tool = |name| ListedTool::new(name, serde_json::Map::new());
/// assert!(coding.contains(&tool("files__read")));
/// assert!(!coding.contains(&tool("files__delete")));
/// assert!(coding.contains(&tool("github__search").of_server("github", "search")));
/// assert!(!coding.contains(&tool("mail__send").of_server("mail", "send")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subset {
    servers: BTreeSet<String>,
    tools: BTreeSet<String>,
    without: BTreeSet<String>,
}

impl Subset {
    /// With all tools of the server with this label.
    #[must_use]
    pub fn with_server(mut self, label: impl Into<String>) -> Self {
        self.servers.insert(label.into());
        self
    }

    /// With the tools whose exposed name fits this pattern.
    #[must_use]
    pub fn with_tool(mut self, name: impl Into<String>) -> Self {
        self.tools.insert(name.into());
        self
    }

    /// Without the tools whose exposed name fits this pattern, whatever else is included.
    #[must_use]
    pub fn without(mut self, name: impl Into<String>) -> Self {
        self.without.insert(name.into());
        self
    }

    /// Whether tools of the server with this label can belong to it, by the names that its tools have here
    /// (`LABEL__…`). A server that cannot have any need not be started.
    ///
    /// ```
    /// use haft_mcp::gateway::Subset;
    /// let part = Subset::default().with_server("github").with_tool("files__read*");
    /// assert!(part.may_contain_server("files"));
    /// assert!(!part.may_contain_server("mail"));
    /// ```
    pub fn may_contain_server(&self, label: &str) -> bool {
        let prefix = format!("{label}__");
        let is_all = self.servers.is_empty() && self.tools.is_empty();
        let is_named = || {
            let mut tools = self.tools.iter();
            self.servers.contains(label) || tools.any(|it| may_match_below(it, &prefix))
        };
        let is_excluded = || self.without.iter().any(|it| covers_below(it, &prefix));
        (is_all || is_named()) && !is_excluded()
    }

    /// Whether every tool of the server with this label belongs to it.
    pub(super) fn contains_all_of(&self, label: &str) -> bool {
        let all = self.servers.is_empty() && self.tools.is_empty();
        (all || self.servers.contains(label)) && self.without.is_empty()
    }

    /// Whether the tool belongs to it.
    pub fn contains(&self, tool: &ListedTool) -> bool {
        self.contains_names(tool.server.as_deref(), &Names::of_tool(tool))
    }

    pub(super) fn contains_names(&self, server: Option<&str>, names: &Names<'_>) -> bool {
        let is_all = self.servers.is_empty() && self.tools.is_empty();
        let is_of_server = || server.is_some_and(|server| self.servers.contains(server));
        (is_all || is_of_server() || names.fit(&self.tools)) && !names.fit(&self.without)
    }
}
