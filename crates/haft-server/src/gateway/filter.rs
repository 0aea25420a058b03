//! Which servers of a pool a gateway uses.

use std::collections::BTreeSet;

use haft_mcp::gateway::Subset;

/// Selects servers by their labels. The default selects all.
///
/// ```
/// use haft_server::ServerFilter;
/// let two = ServerFilter::only(["files", "tracker"]);
/// assert!(two.admits("files") && !two.admits("mail"));
/// assert!(ServerFilter::default().admits("mail"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ServerFilter {
    /// The only labels; all where none are given.
    labels: Option<BTreeSet<String>>,
    /// The tools that are offered; a server that can have none of them is not selected.
    subset: Option<Subset>,
}

impl ServerFilter {
    /// Selects the servers with these labels.
    pub fn only(labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            labels: Some(labels.into_iter().map(Into::into).collect()),
            subset: None,
        }
    }

    /// Selects, of these servers, those that can have tools of a subset.
    #[must_use]
    pub fn within(mut self, subset: Subset) -> Self {
        self.subset = Some(subset);
        self
    }

    /// Whether the server with this label is selected.
    pub fn admits(&self, label: &str) -> bool {
        let is_named = self.labels.as_ref().is_none_or(|it| it.contains(label));
        let subset = self.subset.as_ref();
        is_named && subset.is_none_or(|it| it.may_contain_server(label))
    }
}
