//! `tools`: the functions that the model may call.

use std::collections::HashSet;
use std::sync::Arc;

use haft_core::{ToolDefinition, cut};
use serde_json::Value;

use crate::error::{ApiError, ErrorCode};
use crate::wire::read::fields::Fields;
use crate::wire::read::forms::{Flag, Form as _, ListOf, Name, Object, Text};
use crate::wire::read::{Read, Vocabulary, parameters};

/// Reads the tools; each name once.
pub(super) fn tools(
    value: Value,
    path: &str,
    words: &Vocabulary<'_>,
) -> Read<Vec<Arc<ToolDefinition>>> {
    let tools = ListOf(|value: Value, path: &str| tool(value, path, words)).read(value, path)?;
    let mut seen = HashSet::new();
    for (at, tool) in tools.iter().enumerate() {
        if !seen.insert(tool.name()) {
            let at = format!("{path}[{at}].function.name");
            let message = format!(
                "`{at}` is `{}`, like that of an earlier tool: give each its own, or remove one",
                tool.name()
            );
            return Err(ApiError::new(ErrorCode::DuplicateTool, message).at(at));
        }
    }
    Ok(tools)
}

fn tool(value: Value, path: &str, words: &Vocabulary<'_>) -> Read<Arc<ToolDefinition>> {
    let mut fields = Fields::of(value, path)?;
    let at = fields.at("type");
    let kind = fields.need("type", Text)?;
    if kind != "function" {
        let message = format!(
            "`{at}` is `{}`, but this model knows functions only: declare the tool as a `function`",
            cut(&kind)
        );
        return Err(ApiError::new(ErrorCode::UnsupportedTool, message).at(at));
    }
    let mut function = fields.need("function", Object)?;
    let name = function.need("name", Name)?;
    let at = function.at("parameters");
    let given = function.take("parameters");
    let schema = parameters(given, &at, &name, words)?;
    let mut builder = ToolDefinition::builder(&name).parameters(schema);
    if let Some(description) = function.get("description", Text)? {
        builder = builder.foreign_description(description);
    }
    if let Some(strict) = function.get("strict", Flag)? {
        builder = builder.strict(strict);
    }
    builder.build().map_err(|error| {
        ApiError::new(ErrorCode::InvalidFunctionParameters, error.to_string()).at(at)
    })
}
