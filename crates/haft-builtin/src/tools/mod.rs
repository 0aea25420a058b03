//! The tools, one file each.

mod bash;
mod edit;
mod list;
mod read;
mod text;
mod write;

use std::sync::Arc;

use haft_core::{
    DefinitionError, ToolContext, ToolDefinitionBuilder, ToolError, ToolObject, ToolOutput,
    dynamic_tool, read_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub(crate) use bash::bash;
pub(crate) use edit::edit_file;
pub(crate) use list::list_files;
pub(crate) use read::read_file;
pub(crate) use write::write_file;

use crate::refusal::{Refusal, output};
use crate::workspace::Workspace;

/// A tool, or why its definition is none.
pub(crate) type Built = Result<Arc<dyn ToolObject>, DefinitionError>;

/// A tool over local files: its work may block, and so it is done beside the runtime's threads.
fn file_tool<A>(
    workspace: &Workspace,
    definition: ToolDefinitionBuilder,
    run: fn(&Workspace, &A, &ToolContext) -> Result<String, Refusal>,
) -> Built
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
{
    let definition = definition.parameters(schema_of::<A>()).build()?;
    let workspace = workspace.clone();
    Ok(dynamic_tool(definition, move |arguments, context| {
        let workspace = workspace.clone();
        async move {
            let arguments: A = read_arguments(&arguments)?;
            blocking(move || output(run(&workspace, &arguments, &context))).await
        }
    }))
}

async fn blocking(
    work: impl FnOnce() -> Result<ToolOutput, ToolError> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    tokio::task::spawn_blocking(work).await?
}
