//! What a model is told that asks for a section.

use std::sync::Arc;

use haft_core::{DefinitionError, ToolDefinition};
use serde_json::json;

use super::context::Context;
use super::error::RenderError;
use super::render::{SectionTool, has_summary, text, tools_of};
use super::survey::Survey;
use super::tree::Tree;
use super::visibility::SectionState;

/// The name of the tool by which a model asks for a section.
pub const READ_SECTION: &str = "read_section";

/// The answer to one call of `read_section`.
#[derive(Debug, Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each answers a question of its own to whoever carries the call out"
)]
pub struct Read {
    /// The key that was asked for.
    pub key: String,
    /// Whether there is such a section for the model.
    pub is_success: bool,
    /// The whole message for the model: a line, and the content after a blank line.
    pub text: String,
    /// The content alone; none where the key is unknown.
    pub content: Option<String>,
    /// Whether the section was shown already.
    pub is_already_expanded: bool,
    /// The tools that come with it and were not offered before, depth first as declared.
    pub collected: Vec<SectionTool>,
    /// Whether `Full` has to be stored for this key: exactly when tools were collected.
    pub changes_override: bool,
    /// Whether the content tells of further sections to read, so that `read_section` has to stay.
    pub offers_read_section: bool,
}

pub(super) fn read(tree: &Tree, key: &str, context: &Context<'_>) -> Result<Read, RenderError> {
    let survey = Survey::new(tree, context)?;
    let in_prompt = survey.of_prompt();
    let declared = tree.by_path.get(key);
    let declared = declared.and_then(|at| Some((*at, tree.nodes.get(*at)?, in_prompt.get(*at)?)));
    let (at, node, state) = match declared {
        // Whoever disables a section may want to withhold it: it must look like an unknown one.
        Some((at, node, standing)) if standing.state != SectionState::Disabled => {
            (at, node, standing.state)
        }
        _ => return Ok(unknown(key)),
    };
    let inside = at..node.end;
    let nodes = &tree.nodes[inside.clone()];
    let standings = survey.of_reading(at);
    let shown = text(nodes, &standings, &context.params)?;
    let is_already_expanded = state == SectionState::Shown;
    let collected: Vec<_> = if is_already_expanded {
        Vec::new()
    } else {
        nodes
            .iter()
            .zip(&standings)
            .zip(&in_prompt[inside])
            .filter(|((_, here), before)| here.offers_tools && !before.offers_tools)
            .flat_map(|((node, _), _)| tools_of(node))
            .collect()
    };
    let line = if is_already_expanded {
        "Section is already expanded.".to_owned()
    } else {
        format!("Content of section '{key}':")
    };
    Ok(Read {
        key: key.to_owned(),
        is_success: true,
        text: format!("{line}\n\n{shown}"),
        content: Some(shown),
        is_already_expanded,
        changes_override: !collected.is_empty(),
        collected,
        offers_read_section: has_summary(&standings),
    })
}

fn unknown(key: &str) -> Read {
    Read {
        key: key.to_owned(),
        is_success: false,
        text: format!("Unknown section key: '{key}'"),
        content: None,
        is_already_expanded: false,
        collected: Vec::new(),
        changes_override: false,
        offers_read_section: false,
    }
}

/// What a model is told instead of the content where the prompt is started again with it.
///
/// ```
/// assert_eq!(
///     haft_catalog::prompt::restart_text("ref"),
///     "Section 'ref' expanded. Its content and tools are now part of the prompt."
/// );
/// ```
pub fn restart_text(key: &str) -> String {
    format!("Section '{key}' expanded. Its content and tools are now part of the prompt.")
}

/// The tool by which a model asks for a section, as it is offered.
pub fn read_section_definition() -> Result<Arc<ToolDefinition>, DefinitionError> {
    ToolDefinition::builder(READ_SECTION)
        .description("Read the full content of a summarized section.")
        .parameters(json!({
            "type": "object",
            "properties": {
                "section_key": {
                    "type": "string",
                    "description": "Section key as shown in parentheses in its heading."
                }
            },
            "required": ["section_key"],
            "additionalProperties": false
        }))
        .build()
}
