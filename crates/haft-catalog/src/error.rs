//! What goes wrong on the way into a catalogue.

use std::fmt;

use haft_core::{DefinitionError, ToolName};

use crate::near::suggestion;
use crate::origin::Origin;

/// Why a tool was not registered. The catalogue is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The tool's own types or JSON make no definition.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The name belongs to haft's own tools.
    #[error(
        "tool `{name}`, registered at {origin}, has the name of one of haft's own tools: \
         rename it or register it in a namespace"
    )]
    ReservedName {
        /// The name.
        name: ToolName,
        /// Where it was registered.
        origin: Origin,
    },
    /// Two tools end on one name.
    #[error(
        "tool `{name}` is registered twice, first at {first}, then at {second}: rename one, \
         register one in another namespace, or use `replace`"
    )]
    DuplicateTool {
        /// The name.
        name: ToolName,
        /// Where the tool that keeps the name was registered.
        first: Origin,
        /// Where the refused one comes from.
        second: Origin,
    },
    /// The schema does not compile.
    #[error("tool `{tool}` has an invalid schema: {reason}: correct its parameters")]
    InvalidSchema {
        /// The tool.
        tool: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// The operator's configuration does not fit the tool's `config_schema`.
    #[error("the configuration of tool `{tool}` is invalid: {reason}: correct `[tools.{tool}]`")]
    InvalidConfig {
        /// The tool.
        tool: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// `replace` without anything to replace.
    #[error("there is no tool `{name}` to replace: use `register`")]
    NothingToReplace {
        /// The name.
        name: ToolName,
    },
}

/// Why a validator was not attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// No such tool.
    #[error(
        "there is no tool `{name}` to attach a validator to: {}",
        suggestion(near, "register it first")
    )]
    UnknownTool {
        /// The name as given.
        name: String,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// The tool opted out of a schema, and with it of validation.
    #[error(
        "tool `{name}` has no parameter schema, so a validator would never be asked: \
         give it a schema"
    )]
    NoSchema {
        /// The tool.
        name: ToolName,
    },
}

/// What became of a list of tools. One bad tool never spoils the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "tools may have been rejected: look at `rejected` or call `into_result`"]
pub struct RegisterReport {
    /// The wire names of those that are in, in the order of the list.
    pub registered: Vec<ToolName>,
    /// Those that are not, and why.
    pub rejected: Vec<Rejection>,
}

impl RegisterReport {
    /// The wire names, or an error if any tool was rejected. The others stay registered.
    pub fn into_result(self) -> Result<Vec<ToolName>, RejectedTools> {
        if self.rejected.is_empty() {
            Ok(self.registered)
        } else {
            Err(RejectedTools(self.rejected))
        }
    }
}

/// One tool of a list that was not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Its position in the list, from 0.
    pub position: usize,
    /// Why.
    pub error: RegisterError,
}

/// Some tools of a list were not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedTools(pub Vec<Rejection>);

impl fmt::Display for RejectedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the tools were not registered", self.0.len())?;
        for Rejection { position, error } in &self.0 {
            write!(f, "; number {}: {error}", position + 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for RejectedTools {}

/// Something that an operator should know about a tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The tool: its wire name, or the name that its server gives it.
    pub tool: String,
    /// What happened to it.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool `{}`: {}", self.tool, self.message)
    }
}
