//! Selection over a set of tools and queries.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use haft::{KeywordIndex, ToolDefinition, ToolName, json};
use serde::Deserialize;
use serde_json::Value;

use crate::jsonl;

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    #[serde(default)]
    depends_on: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

#[derive(Deserialize)]
struct Query {
    id: Value,
    query: String,
}

/// Ranks the tools of a set for each query: `k` hits, then what those depend on.
pub(crate) fn run(set: &Path, k: usize) -> Result<()> {
    let tools: Vec<Tool> = jsonl::read(&tools_file(set)?)?;
    let definitions: Vec<_> = tools.iter().filter_map(definition).collect();
    let index = KeywordIndex::new(&definitions);
    let names: HashMap<_, _> = tools
        .iter()
        .map(|tool| (ToolName::import(&tool.name), tool.name.as_str()))
        .collect();
    let mut out = jsonl::Writer::new();
    for query in jsonl::read::<Query>(&set.join("queries.jsonl"))? {
        let mut ranked: Vec<&str> = index
            .rank(&query.query, k)
            .into_iter()
            .filter_map(|hit| names.get(hit.tool.name()).copied())
            .collect();
        append_dependencies(&mut ranked, &tools);
        out.row(&json!({"id": query.id, "ranked": ranked}))?;
    }
    out.finish()
}

/// A set without tools of its own names, in META.json, the file that holds them.
fn tools_file(set: &Path) -> Result<PathBuf> {
    let own = set.join("tools.jsonl");
    if own.exists() {
        return Ok(own);
    }
    let meta = set.join("META.json");
    let text = std::fs::read_to_string(&meta)
        .with_context(|| format!("`{}` has neither tools.jsonl nor META.json", set.display()))?;
    let meta: Value = serde_json::from_str(&text)?;
    let named = meta["tools"]
        .as_str()
        .context("META.json names no `tools` file")?;
    Ok(set.join(named))
}

/// A tool as far as ranking needs it. Foreign names and schemas need not be legal here: only their
/// text counts, and one bad tool must not spoil the set.
fn definition(tool: &Tool) -> Option<Arc<ToolDefinition>> {
    let description: String = tool
        .description
        .iter()
        .flat_map(|text| text.chars())
        .take(4096)
        .collect();
    let build = |parameters: Value| {
        ToolDefinition::builder(String::from(ToolName::import(&tool.name)))
            .description(&description)
            .parameters(parameters)
            .build()
            .ok()
    };
    let own = tool.parameters.clone().and_then(build);
    own.or_else(|| build(json!({"type": "object"})))
}

/// Appends, breadth first, what the ranked tools depend on.
fn append_dependencies<'t>(ranked: &mut Vec<&'t str>, tools: &'t [Tool]) {
    let mut at = 0;
    while at < ranked.len() {
        let tool = tools.iter().find(|tool| tool.name == ranked[at]);
        for dependency in tool.into_iter().flat_map(|tool| &tool.depends_on) {
            if !ranked.contains(&dependency.name.as_str()) {
                ranked.push(&dependency.name);
            }
        }
        at += 1;
    }
}
