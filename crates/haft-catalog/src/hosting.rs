//! What an internal tool needs before it may be registered: its kind and its configuration.

use std::sync::Arc;

use haft_core::{InitContext, InternalTool, ToolKind, ToolObject, ValidatorFactory, caught};
use serde_json::{Value, json};

use crate::error::RegisterError;
use crate::presented::presented;

/// The tool with the kind that it has by being here: its calls run in this process.
pub(crate) fn as_internal(tool: Arc<dyn InternalTool>) -> Arc<dyn ToolObject> {
    let tool: Arc<dyn ToolObject> = tool;
    match tool.definition().kind() {
        ToolKind::Function => {
            let definition = tool.definition().of_kind(ToolKind::Internal);
            presented(tool, definition)
        }
        _ => tool,
    }
}

/// Checks the operator's configuration against the tool's schema. No configuration counts as an
/// empty one; a tool without schema takes none.
pub(crate) fn checked_context(
    tool: &dyn InternalTool,
    config: Option<Value>,
    factory: &Arc<dyn ValidatorFactory>,
) -> Result<InitContext, RegisterError> {
    let invalid = |reason: String| RegisterError::InvalidConfig {
        tool: tool.definition().name().to_string(),
        reason,
    };
    let schema = caught(|| tool.config_schema())
        .map_err(|panic| invalid(format!("its config_schema panicked: {panic}")))?;
    let Some(schema) = schema else {
        return match config {
            None => Ok(InitContext::default()),
            Some(_) => Err(invalid("the tool takes no configuration".to_owned())),
        };
    };
    let config = config.unwrap_or_else(|| json!({}));
    let errors = caught(|| {
        let validator = factory.compile(&schema)?;
        Ok(validator.validate(&config))
    })
    .map_err(|panic| {
        invalid(format!(
            "its config_schema makes the validator panic: {panic}"
        ))
    })?
    .map_err(|error: haft_core::SchemaError| invalid(format!("its config_schema: {error}")))?;
    if errors.is_empty() {
        Ok(InitContext { config })
    } else {
        let messages: Vec<_> = errors.into_iter().map(|error| error.message).collect();
        Err(invalid(messages.join("; ")))
    }
}
