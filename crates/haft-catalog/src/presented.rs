//! A tool under another definition: renamed, or of another kind.

use std::sync::Arc;

use haft_core::{
    BoxFuture, HydratedTool, InstantiateError, Owner, OwnersTool, ToolContext, ToolDefinition,
    ToolError, ToolObject, ToolOutput, Validator,
};
use serde_json::Value;

/// Presents `tool` by `definition`. What runs is `tool`.
pub(crate) fn presented(
    tool: Arc<dyn ToolObject>,
    definition: ToolDefinition,
) -> Arc<dyn ToolObject> {
    Arc::new(Presented {
        definition: Arc::new(definition),
        tool,
    })
}

struct Presented {
    definition: Arc<ToolDefinition>,
    tool: Arc<dyn ToolObject>,
}

impl ToolObject for Presented {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn instantiate(&self, arguments: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        Ok(Box::new(PresentedCall {
            definition: Arc::clone(&self.definition),
            call: self.tool.instantiate(arguments)?,
        }))
    }

    fn validator(&self) -> Option<Arc<dyn Validator>> {
        self.tool.validator()
    }

    fn for_owner(&self, owner: &Owner) -> OwnersTool {
        match self.tool.for_owner(owner) {
            OwnersTool::Own(tool) => {
                let own = tool.definition().renamed(self.definition.name().clone());
                let own = own.of_kind(self.definition.kind().clone());
                OwnersTool::Own(presented(tool, own))
            }
            other => other,
        }
    }

    fn runs_here(&self) -> bool {
        self.tool.runs_here()
    }
}

struct PresentedCall {
    definition: Arc<ToolDefinition>,
    call: Box<dyn HydratedTool>,
}

impl HydratedTool for PresentedCall {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn run(self: Box<Self>, context: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.call.run(context)
    }
}
