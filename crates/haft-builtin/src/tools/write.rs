//! `write_file`: a whole file.

use haft_core::{ToolContext, ToolDefinition};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Built, file_tool};
use crate::refusal::Refusal;
use crate::workspace::Workspace;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The file, relative to the workspace. Directories that are missing are made.
    path: String,
    /// The whole new content.
    content: String,
}

pub(crate) fn write_file(workspace: &Workspace) -> Built {
    let definition = ToolDefinition::builder("write_file")
        .description("Write a text file of the workspace, replacing what is there.")
        .destructive()
        .idempotent();
    file_tool(workspace, definition, run)
}

fn run(
    workspace: &Workspace,
    arguments: &Arguments,
    context: &ToolContext,
) -> Result<String, Refusal> {
    let (shown, bytes) = (&arguments.path, arguments.content.as_bytes());
    let root = workspace.open()?;
    let path = root.resolve(shown)?;
    let mut history = workspace.history();
    history
        .write(&root, workspace.journalled(context)?, &path, bytes)
        .map_err(|error| Refusal::io(shown, &error))?;
    Ok(format!("Wrote {} bytes to '{shown}'.", bytes.len()))
}
