//! The tools' way into a catalogue.

use haft_catalog::{Catalog, RegisterReport};

use crate::workspace::Workspace;

/// Adds the built-in tools to a [`Catalog`].
pub trait RegisterBuiltin {
    /// Registers the tools of a workspace, in their fixed order.
    fn register_all_builtin(&self, workspace: Workspace) -> RegisterReport;
}

impl RegisterBuiltin for Catalog {
    #[track_caller]
    fn register_all_builtin(&self, workspace: Workspace) -> RegisterReport {
        self.register_all(workspace.tools())
    }
}
