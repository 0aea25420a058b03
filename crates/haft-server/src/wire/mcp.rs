//! What a request says about an MCP server (`open-responses.md` §5.6).

use std::collections::BTreeMap;
use std::fmt;

use haft_mcp::{Secret, Url};

/// The `server_label` that means this server itself: its hosted tools, for clients that cannot send the type
/// `haft:clock` and the like. No MCP server can have it.
pub(crate) const OWN_LABEL: &str = "haft";

/// An entry of `tools` of type `mcp`.
#[derive(Clone, PartialEq)]
pub(crate) struct McpEntry {
    /// `server_label`
    pub(crate) label: String,
    /// `server_description`, for a model that sees nothing else of it.
    pub(crate) description: Option<String>,
    /// Where the server is; one of the operator's own if it does not say.
    pub(crate) address: Option<McpAddress>,
    /// `allowed_tools`
    pub(crate) allowed: Option<ToolFilter>,
    /// `require_approval`
    pub(crate) approval: Option<ApprovalWish>,
    pub(crate) defer_loading: bool,
    /// Whether it tells of tools that this server found: where theirs is to be found, the request says.
    pub(crate) is_found: bool,
}

/// A server that the request brings along. All of it may be secret.
#[derive(Clone, PartialEq)]
pub(crate) struct McpAddress {
    pub(crate) url: Url,
    pub(crate) headers: BTreeMap<String, Secret>,
    pub(crate) bearer: Option<Secret>,
}

impl fmt::Debug for McpEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "McpEntry({})", self.label)
    }
}

/// Some of a server's tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ToolFilter {
    pub(crate) names: Option<Vec<String>>,
    pub(crate) read_only: Option<bool>,
}

impl ToolFilter {
    /// Whether a tool is one of them. One that says nothing means all.
    pub(crate) fn admits(&self, name: &str, is_read_only: bool) -> bool {
        let is_named = self.names.as_ref();
        let is_named = is_named.is_none_or(|names| names.iter().any(|own| own == name));
        is_named && self.read_only.is_none_or(|wanted| wanted == is_read_only)
    }

    fn says_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Which calls need a person's word, by the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApprovalWish {
    Always,
    Never,
    By {
        always: Option<ToolFilter>,
        never: Option<ToolFilter>,
    },
}

impl ApprovalWish {
    /// Whether a person is to be asked about calls of a tool: `always` wins, and so does silence.
    pub(crate) fn asks(&self, name: &str, is_read_only: bool) -> bool {
        let (always, never) = match self {
            Self::Always => return true,
            Self::Never => return false,
            Self::By { always, never } => (always, never),
        };
        let is_in = |filter: &Option<ToolFilter>| {
            let filter = filter.as_ref().filter(|filter| !filter.says_nothing());
            filter.is_some_and(|filter| filter.admits(name, is_read_only))
        };
        is_in(always) || !is_in(never)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> ToolFilter {
        ToolFilter {
            names: Some(names.iter().map(|&name| name.to_owned()).collect()),
            read_only: None,
        }
    }

    #[test]
    fn whoever_is_in_neither_list_or_in_both_is_asked_about() {
        let wish = ApprovalWish::By {
            always: Some(named(&["both"])),
            never: Some(named(&["both", "never"])),
        };
        assert!(!wish.asks("never", false));
        assert!(wish.asks("both", false));
        assert!(wish.asks("neither", true));
        let empty = ApprovalWish::By {
            always: None,
            never: Some(ToolFilter::default()),
        };
        assert!(empty.asks("any", true));
    }

    #[test]
    fn a_filter_by_effect_admits_what_is_known_to_read_only() {
        let filter = ToolFilter {
            names: None,
            read_only: Some(true),
        };
        assert!(filter.admits("a", true));
        assert!(!filter.admits("a", false));
        assert!(ToolFilter::default().admits("a", false));
    }
}
