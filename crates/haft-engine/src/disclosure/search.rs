//! `search_tools`: tools that are held back until the model asks for them (`dynamic-tools.md` §8.1).

use std::sync::Arc;

use haft_core::{
    Annotations, BoxFuture, DefinitionError, ToolContext, ToolDefinition, ToolError, ToolName,
    ToolObject, ToolOutput, dynamic_tool, read_arguments,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::memory::Deferral;

/// What the model calls to find tools.
pub(crate) const SEARCH_TOOLS: &str = "search_tools";

/// What a search finds at most if nothing is said.
const LIMIT: usize = 8;

/// What it finds at most, whatever is said.
const MAX_LIMIT: usize = 40;

/// The longest query, in characters.
const MAX_QUERY: usize = 1000;

const DESCRIPTION: &str = "Find tools by what they do. Search once for each step, with a verb, an \
    object and a system, such as \"create issue github\"; do not paste the user's message. The tools \
    that are found can be called from the next turn on.";

/// Finds tools among those that a binding holds back.
pub trait ToolFinder: Send + Sync + 'static {
    /// The tools that fit the query, best first, at most `limit`.
    fn find<'a>(
        &'a self,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<ToolDefinition>>, ToolError>>;
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    /// A number of any form: `8.0` is an integer too.
    #[serde(default)]
    limit: Option<f64>,
}

/// What a search found, for the loop.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) tools: Vec<ToolName>,
}

/// The tool that searches with this finder. The note comes behind its description.
pub(crate) fn search_tools(
    name: &ToolName,
    finder: Arc<dyn ToolFinder>,
    note: Option<&str>,
) -> Result<Arc<dyn ToolObject>, DefinitionError> {
    let definition = search_tools_described(name.as_str(), note)?;
    Ok(dynamic_tool(definition, move |arguments, context| {
        let finder = Arc::clone(&finder);
        async move { search(arguments, &*finder, &context).await }
    }))
}

/// `search_tools` as models see it, for those who want to know what it costs.
pub fn search_tools_definition() -> Result<Arc<ToolDefinition>, DefinitionError> {
    search_tools_described(SEARCH_TOOLS, None)
}

/// The same under another name, with a note behind its description: see [`Run::search_note`](crate::Run::search_note).
pub fn search_tools_described(
    name: &str,
    note: Option<&str>,
) -> Result<Arc<ToolDefinition>, DefinitionError> {
    let described = ToolDefinition::builder(name);
    let described = match note {
        None => described.description(DESCRIPTION),
        // Others may have written it.
        Some(note) => described.foreign_description(format!("{DESCRIPTION}\n\n{note}")),
    };
    described
        .parameters(json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many tools to find at most; 8 if not said.",
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        }))
        .annotations(Annotations {
            read_only: true,
            idempotent: true,
            ..Annotations::default()
        })
        .build()
}

async fn search(
    arguments: Value,
    finder: &dyn ToolFinder,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let Arguments { query, limit } = read_arguments(&arguments)?;
    let query: String = query.chars().take(MAX_QUERY).collect();
    let limit = limit.map_or(LIMIT, whole);
    let hits = finder.find(&query, limit).await?;
    if hits.is_empty() {
        return Ok(ToolOutput::text("No tool found."));
    }
    let names: Vec<_> = hits.iter().map(|tool| tool.name().clone()).collect();
    let found = names.clone();
    context.update::<Deferral>(move |deferral| deferral.remember(&names))?;
    let lines: Vec<_> = hits
        .iter()
        .map(|tool| format!("{}: {}", tool.name(), tool.brief()))
        .collect();
    Ok(ToolOutput::serialized(&Found { tools: found })?
        .with_message(lines.join("\n"))
        .hiding_value())
}

fn whole(limit: f64) -> usize {
    (1..MAX_LIMIT)
        .find(|count| f64::from(u32::try_from(*count).unwrap_or(u32::MAX)) >= limit)
        .unwrap_or(MAX_LIMIT)
}
