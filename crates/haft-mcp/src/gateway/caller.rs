//! Who calls.

use std::sync::Arc;

/// The principal behind a request, as whoever stands in front of the gateway has established it.
///
/// What one caller started, nobody else can go on with: sessions, sealed states and calls that wait for
/// input are bound to it.
///
/// ```
/// use haft_mcp::gateway::Caller;
/// assert_ne!(Caller::new("tenant-a"), Caller::new("tenant-b"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(Arc<str>);

impl Caller {
    /// The caller with this id: a tenant, a key, a user. Never a secret; ids appear in logs.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Whoever started this process: the one at the other end of standard input.
    pub fn local() -> Self {
        Self::new("local")
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.0
    }
}
