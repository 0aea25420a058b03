//! Selection over a set of tools and queries.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use haft::search::{
    Detail, MAX_QUERY_CHARS, PlacedTool, SearchAnswer, SearchIndex, SearchRequest, SearchSection,
};
use haft::{Annotations, ToolDefinition, ToolName, json};
use serde::Deserialize;
use serde_json::Value;

use crate::{dense, jsonl};

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    section: Option<String>,
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
    #[serde(default)]
    relevant: Vec<String>,
}

/// A set: its tools as search knows them, and the names that the set has for them.
struct Set {
    index: SearchIndex,
    names: Vec<String>,
}

impl Set {
    fn read(folder: &Path) -> Result<Self> {
        let tools: Vec<Tool> = jsonl::read(&tools_file(folder)?)?;
        let (mut names, mut placed) = (Vec::new(), Vec::new());
        for tool in &tools {
            if let Some(definition) = definition(tool) {
                names.push(tool.name.clone());
                placed.push(Arc::new(place(tool, definition)));
            }
        }
        Ok(Self {
            index: SearchIndex::of(placed),
            names,
        })
    }

    /// What was found, in the names of the set.
    fn names(&self, answer: &SearchAnswer) -> Vec<&str> {
        let hits = answer.hits.iter();
        hits.map(|hit| &*self.names[hit.position]).collect()
    }
}

/// What is ranked, and by whom.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many tools to rank per query.
    #[arg(long, default_value_t = 20)]
    k: usize,
    /// Rank sections instead, each by its best tool.
    #[arg(long, conflicts_with = "embedder")]
    sections: bool,
    /// Hear an embedder too: `good` or `bad`, which are made up, or a server's address with its `/v1`.
    #[arg(long)]
    embedder: Option<String>,
    /// The model at that address.
    #[arg(long, default_value = "all-minilm")]
    embedding_model: String,
}

/// Ranks the tools of a set for each query: `k` hits, then what those depend on.
pub(crate) fn run(folder: &Path, options: &Options) -> Result<()> {
    let set = Set::read(folder)?;
    let mut queries: Vec<Query> = jsonl::read(&folder.join("queries.jsonl"))?;
    for query in &mut queries {
        query.query = query.query.chars().take(MAX_QUERY_CHARS).collect();
    }
    let meant = |query: &Query| (query.query.clone(), query.relevant.clone());
    let dense = options.embedder.as_deref().map(|name| {
        dense::named(
            name,
            &options.embedding_model,
            queries.iter().map(meant).collect(),
        )
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut out = jsonl::Writer::new();
    for query in &queries {
        if options.sections {
            let found = set.index.search_sections(&query.query, options.k);
            let keys: Vec<_> = found.into_iter().map(|hit| hit.section).collect();
            out.row(&json!({"id": query.id, "ranked": keys}))?;
            continue;
        }
        let request = SearchRequest::new(&query.query)
            .k(options.k)
            .detail(Detail::Names);
        let answer = match &dense {
            Some(dense) => runtime.block_on(dense.search(&set.index, &request))?,
            None => set.index.search(&request)?,
        };
        out.row(&json!({"id": query.id, "ranked": set.names(&answer)}))?;
    }
    out.finish()
}

/// A tool of a set with the name and the section that it has there.
fn place(tool: &Tool, definition: Arc<ToolDefinition>) -> PlacedTool {
    let placed = PlacedTool::new(definition);
    match &tool.section {
        Some(section) => placed.in_section(SearchSection {
            key: section.clone(),
            title: section.clone(),
            summary: String::new(),
        }),
        None => placed,
    }
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
        let name = ToolName::import(&tool.name);
        let origin = (name.as_str() != tool.name).then(|| tool.name.clone());
        let depends_on = tool.depends_on.iter();
        ToolDefinition::builder(String::from(name))
            .description(&description)
            .parameters(parameters)
            .annotations(Annotations {
                origin,
                depends_on: depends_on.map(|it| ToolName::import(&it.name)).collect(),
                ..Annotations::default()
            })
            .build()
            .ok()
    };
    let own = tool.parameters.clone().and_then(build);
    own.or_else(|| build(json!({"type": "object"})))
}
