//! A part of the catalogue under a name of its own.

use std::collections::BTreeSet;

use super::tool::ListedTool;

/// Some servers and some tools. An empty subset is everything.
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

    /// With the tool of this exposed name; a `*` at the end stands for anything.
    #[must_use]
    pub fn with_tool(mut self, name: impl Into<String>) -> Self {
        self.tools.insert(name.into());
        self
    }

    /// Without the tool of this exposed name, whatever else is said; a `*` at the end stands for
    /// anything.
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
        if self.servers.is_empty() && self.tools.is_empty() {
            return true;
        }
        let prefix = format!("{label}__");
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => start.starts_with(&prefix) || prefix.starts_with(start),
            None => pattern.starts_with(&prefix),
        };
        self.servers.contains(label) || self.tools.iter().any(fits)
    }

    /// Whether the tool belongs to it.
    pub fn contains(&self, tool: &ListedTool) -> bool {
        let named = |names: &BTreeSet<String>| names.iter().any(|it| fits(it, &tool.name));
        let all = self.servers.is_empty() && self.tools.is_empty();
        let of_server = || {
            let server = tool.server.as_ref();
            server.is_some_and(|server| self.servers.contains(server))
        };
        (all || of_server() || named(&self.tools)) && !named(&self.without)
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
