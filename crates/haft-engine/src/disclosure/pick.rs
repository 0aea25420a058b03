//! `pick_tools`: tools are shown in one line each until the model picks them (`dynamic-tools.md` §8).

use std::sync::Arc;

use haft_core::{
    Annotations, DefinitionError, ToolContext, ToolDefinition, ToolError, ToolName, ToolObject,
    ToolOutput, dynamic_tool, read_arguments,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::memory::Picked;

/// What the model calls to see tools in full.
pub(crate) const PICK_TOOLS: &str = "pick_tools";

const DESCRIPTION: &str = "Select tools to get their full specifications";

#[derive(Deserialize)]
struct Arguments {
    tools: Vec<String>,
}

/// What a pick did, for the loop.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pick {
    pub(crate) picked: Vec<ToolName>,
    pub(crate) unknown: Vec<String>,
    /// How many of them were not picked before.
    pub(crate) fresh: usize,
}

/// The tool that picks among these. What it takes is looked at by itself: the model reads in its own
/// words what was wrong.
pub(crate) fn pick_tools(
    name: &ToolName,
    among: Arc<[ToolName]>,
) -> Result<Arc<dyn ToolObject>, DefinitionError> {
    let definition = definition(name, json!({"type": "string"}), None)?;
    Ok(dynamic_tool(definition, move |arguments, context| {
        let among = Arc::clone(&among);
        async move { pick(&arguments, &among, &context) }
    }))
}

/// How the tool is shown: with the names that can still be picked.
pub(crate) fn shown(
    name: &ToolName,
    unpicked: &[&ToolName],
) -> Result<Arc<ToolDefinition>, DefinitionError> {
    let names: Vec<_> = unpicked.iter().map(|name| name.as_str()).collect();
    definition(name, json!({"type": "string", "enum": names}), Some(1))
}

fn definition(
    name: &ToolName,
    item: Value,
    least: Option<u32>,
) -> Result<Arc<ToolDefinition>, DefinitionError> {
    let mut tools = json!({"type": "array", "description": "Tool names to select"});
    if let Some(least) = least {
        tools["minItems"] = least.into();
    }
    tools["items"] = item;
    ToolDefinition::builder(name.as_str())
        .description(DESCRIPTION)
        .parameters(json!({
            "type": "object",
            "properties": {"tools": tools},
            "required": ["tools"],
            "additionalProperties": false,
        }))
        .annotations(Annotations {
            read_only: true,
            idempotent: true,
            sequential: true,
            ..Annotations::default()
        })
        .build()
}

fn pick(
    arguments: &Value,
    among: &[ToolName],
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let Arguments { tools } = read_arguments(arguments)?;
    if tools.is_empty() {
        return Ok(ToolOutput::failure(
            "No tools given. Put tool names in \"tools\".",
        ));
    }
    let (mut picked, mut unknown) = (Vec::<ToolName>::new(), Vec::<String>::new());
    for name in tools {
        match among.iter().find(|known| known.as_str() == name) {
            Some(known) if !picked.contains(known) => picked.push(known.clone()),
            None if !unknown.contains(&name) => unknown.push(name),
            // A second time says nothing more.
            _ => {}
        }
    }
    let before = context.slice::<Picked>()?;
    if picked.is_empty() {
        let left = among.iter().filter(|name| !before.0.contains(name));
        return Ok(ToolOutput::failure(format!(
            "Unknown tools: {}. Available: {}.",
            unknown.join(", "),
            listed(left)
        )));
    }
    let fresh = picked.iter().filter(|name| !before.0.contains(name));
    let fresh: Vec<_> = fresh.cloned().collect();
    let count = fresh.len();
    context.update::<Picked>(move |picked| {
        for name in &fresh {
            picked.add(name);
        }
    })?;
    let mut text = format!(
        "Selected {}. Full specs available next turn.",
        listed(picked.iter())
    );
    if !unknown.is_empty() {
        text = format!("{text} Unknown tools ignored: {}.", unknown.join(", "));
    }
    let done = Pick {
        picked,
        unknown,
        fresh: count,
    };
    Ok(ToolOutput::serialized(&done)?
        .with_message(text)
        .hiding_value())
}

fn listed<'a>(names: impl Iterator<Item = &'a ToolName>) -> String {
    let names: Vec<_> = names.map(ToolName::as_str).collect();
    names.join(", ")
}
