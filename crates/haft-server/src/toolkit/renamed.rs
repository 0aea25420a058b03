//! A tool under another name or kind.

use std::sync::Arc;

use haft_core::{
    CustomKind, DefinitionError, HydratedTool, InstantiateError, Owner, OwnersTool, ToolDefinition,
    ToolKind, ToolName, ToolObject, Validator,
};
use serde_json::Value;

/// The same tool, called otherwise.
pub(super) fn renamed(tool: Arc<dyn ToolObject>, name: &str) -> Arc<dyn ToolObject> {
    let definition = tool.definition().renamed(ToolName::import(name));
    redefined(tool, definition)
}

/// The same tool under another name, with these annotations in addition.
pub(super) fn annotated<'a>(
    tool: Arc<dyn ToolObject>,
    name: &str,
    annotations: impl IntoIterator<Item = (&'a str, Value)>,
) -> Result<Arc<dyn ToolObject>, DefinitionError> {
    let own = tool.definition();
    let mut json = own.renamed(ToolName::import(name)).to_json();
    for (key, value) in annotations {
        json["annotations"][key] = value;
    }
    let definition = ToolDefinition::from_json(json)?.of_kind(own.kind().clone());
    Ok(redefined(tool, definition))
}

/// The same tool, of a type with a slug.
pub(crate) fn of_type(tool: Arc<dyn ToolObject>, kind: CustomKind) -> Arc<dyn ToolObject> {
    let definition = tool.definition().of_kind(ToolKind::Custom(kind));
    redefined(tool, definition)
}

fn redefined(tool: Arc<dyn ToolObject>, definition: ToolDefinition) -> Arc<dyn ToolObject> {
    Arc::new(Redefined {
        definition: Arc::new(definition),
        tool,
    })
}

struct Redefined {
    definition: Arc<ToolDefinition>,
    tool: Arc<dyn ToolObject>,
}

impl ToolObject for Redefined {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn instantiate(&self, arguments: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        self.tool.instantiate(arguments)
    }

    fn validator(&self) -> Option<Arc<dyn Validator>> {
        self.tool.validator()
    }

    fn for_owner(&self, owner: &Owner) -> OwnersTool {
        match self.tool.for_owner(owner) {
            OwnersTool::Own(tool) => {
                let own = tool.definition().renamed(self.definition.name().clone());
                let own = own.of_kind(self.definition.kind().clone());
                OwnersTool::Own(redefined(tool, own))
            }
            other => other,
        }
    }

    fn runs_here(&self) -> bool {
        self.tool.runs_here()
    }
}
