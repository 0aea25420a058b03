//! A tool under another name, where a client's own function bears the first.

use std::sync::Arc;

use haft_core::{HydratedTool, InstantiateError, ToolDefinition, ToolName, ToolObject, Validator};
use serde_json::Value;

/// The same tool, called otherwise.
pub(super) fn renamed(tool: Arc<dyn ToolObject>, name: &str) -> Arc<dyn ToolObject> {
    let definition = tool.definition().renamed(ToolName::import(name));
    Arc::new(Renamed {
        definition: Arc::new(definition),
        tool,
    })
}

struct Renamed {
    definition: Arc<ToolDefinition>,
    tool: Arc<dyn ToolObject>,
}

impl ToolObject for Renamed {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn instantiate(&self, arguments: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        self.tool.instantiate(arguments)
    }

    fn validator(&self) -> Option<Arc<dyn Validator>> {
        self.tool.validator()
    }

    fn runs_here(&self) -> bool {
        self.tool.runs_here()
    }
}
