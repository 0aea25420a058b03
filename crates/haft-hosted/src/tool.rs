//! What the hosted tools have in common: typed arguments, and work beside the runtime's threads.

use std::sync::Arc;

use haft_core::{
    DefinitionError, IntoToolOutput, ToolContext, ToolDefinitionBuilder, ToolError, ToolObject,
    dynamic_tool, output_schema_of, read_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A tool, or why its definition is none. [`Catalog::register`](haft_catalog::Catalog::register)
/// takes either and reports the latter.
pub type HostedTool = Result<Arc<dyn ToolObject>, DefinitionError>;

/// A tool that reads arguments of type `A`, gives a result of type `O` and may block meanwhile.
pub(crate) fn hosted_tool<A, O, F>(definition: ToolDefinitionBuilder, run: F) -> HostedTool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    O: Serialize + JsonSchema + Send + 'static,
    F: Fn(A, &ToolContext) -> Result<O, ToolError> + Send + Sync + 'static,
{
    let definition = definition
        .parameters(schema_of::<A>())
        .output_schema(output_schema_of::<O>())
        .build()?;
    let run = Arc::new(run);
    Ok(dynamic_tool(definition, move |arguments, context| {
        let run = Arc::clone(&run);
        async move {
            let arguments: A = read_arguments(&arguments)?;
            let work = move || run(arguments, &context)?.into_tool_output();
            tokio::task::spawn_blocking(work).await?
        }
    }))
}
