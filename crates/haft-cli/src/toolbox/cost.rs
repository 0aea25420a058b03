//! `haft tools cost`: what tools cost in every request, and what holding them back saves.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use haft::engine::search_tools_definition;
use haft::search::{SearchIndex, SearchRequest};
use haft::{BriefSchema, Catalog, ToolDefinition, Value, json};

use super::definitions;
use crate::arguments::ToolCostArguments;
use crate::failure::Failure;
use crate::terminal::print_json;
use crate::text::one_line;
use crate::tokens;

/// How many of the dearest tools are shown.
const DEAREST: usize = 10;

/// What tools cost, in tokens.
struct Cost {
    tools: Vec<(Arc<ToolDefinition>, usize)>,
    /// All definitions.
    full: usize,
    /// Each in one line, as `pick_tools` shows them.
    brief: usize,
    /// The names alone.
    names: usize,
    /// `search_tools` itself.
    search: usize,
    /// So many tools are loaded.
    loaded: usize,
    /// What those cost on average over the queries, or so many of average size.
    usual: usize,
    /// The dearest so many.
    worst: usize,
}

pub(super) async fn cost(arguments: &ToolCostArguments) -> Result<ExitCode, Box<dyn Error>> {
    let tools = definitions::of(&arguments.which).await?;
    let cost = Cost::of(tools, arguments.loaded, &arguments.queries)?;
    if arguments.json {
        print_json(&cost.to_json())?;
    } else {
        cost.page()?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Cost {
    fn of(
        tools: Vec<Arc<ToolDefinition>>,
        loaded: usize,
        queries: &[String],
    ) -> Result<Self, Box<dyn Error>> {
        let brief = briefs(&tools)?;
        let names = tools.iter().map(|tool| tokens::count(tool.name().as_str()));
        let names = names.sum();
        let mut tools: Vec<_> = tools
            .into_iter()
            .map(|tool| {
                let cost = tokens::of_tool(&tool);
                (tool, cost)
            })
            .collect();
        let full: usize = tools.iter().map(|(_, cost)| cost).sum();
        let loaded = loaded.min(tools.len());
        let usual = match queries {
            [] => full * loaded / tools.len().max(1),
            _ => found(&tools, loaded, queries)?,
        };
        let search = search_tools_definition()?;
        tools.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        Ok(Self {
            worst: tools.iter().take(loaded).map(|(_, cost)| cost).sum(),
            tools,
            full,
            brief,
            names,
            search: tokens::of_tool(&search),
            loaded,
            usual,
        })
    }

    /// How much of the definitions is not sent, in percent with one decimal; below zero where more is sent.
    fn saved(&self, sent: usize) -> f64 {
        let tenths = sent.abs_diff(self.full) * 1000 / self.full.max(1);
        let percent = f64::from(u32::try_from(tenths).unwrap_or(u32::MAX)) / 10.0;
        if sent > self.full { -percent } else { percent }
    }

    fn to_json(&self) -> Value {
        let dearest = self.tools.iter().take(DEAREST);
        let dearest = dearest.map(|(tool, cost)| json!({"name": tool.name(), "tokens": cost}));
        json!({
            "counted_as": tokens::METHOD,
            "tools": self.tools.len(),
            "tokens": self.full,
            "brief_tokens": self.brief,
            "name_tokens": self.names,
            "deferred": {
                "search_tokens": self.search,
                "loaded_tools": self.loaded,
                "tokens": self.search + self.usual,
                "saved_percent": self.saved(self.search + self.usual),
                "worst_tokens": self.search + self.worst,
                "worst_saved_percent": self.saved(self.search + self.worst),
            },
            "dearest": dearest.collect::<Vec<_>>(),
        })
    }

    fn page(&self) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        let count = self.tools.len();
        writeln!(out, "{count} tools, in tokens of {}", tokens::METHOD)?;
        let mut row = |what: &str, sent: usize| {
            let saved = self.saved(sent);
            let word = if saved < 0.0 { "more" } else { "saved" };
            writeln!(out, "  {what:<46}{sent:>9}  {:>5.1} % {word}", saved.abs())
        };
        row("all definitions, in every request", self.full)?;
        row("one line each (`pick_tools`)", self.brief)?;
        row("held back, nothing loaded (`search_tools`)", self.search)?;
        let loaded = self.loaded;
        row(
            &format!("held back, {loaded} loaded"),
            self.search + self.usual,
        )?;
        row(
            &format!("held back, the {loaded} dearest loaded"),
            self.search + self.worst,
        )?;
        writeln!(out, "the dearest")?;
        for (tool, cost) in self.tools.iter().take(DEAREST) {
            writeln!(out, "  {:<46}{cost:>9}", one_line(tool.name().as_str(), 44))?;
        }
        Ok(())
    }
}

/// What all tools cost in one line each.
fn briefs(tools: &[Arc<ToolDefinition>]) -> Result<usize, Box<dyn Error>> {
    let binding = Catalog::new().snapshot().bind().without_tools();
    let binding = binding.with_tools(tools.iter().cloned()).build()?;
    let binding = binding.with_briefs(BriefSchema::Drop, |_| true);
    Ok(binding
        .tools_for_llm()
        .map(|tool| tokens::of_tool(tool))
        .sum())
}

/// What the tools cost that the queries find, on average.
fn found(
    tools: &[(Arc<ToolDefinition>, usize)],
    loaded: usize,
    queries: &[String],
) -> Result<usize, Failure> {
    let index = SearchIndex::of(tools.iter().map(|(tool, _)| Arc::clone(tool)));
    let mut all = 0;
    for query in queries {
        let answer = index.search(&SearchRequest::new(query).k(loaded));
        let answer = answer.map_err(|error| Failure::mistake(error.to_string()))?;
        let costs = answer.hits.iter().filter_map(|hit| tools.get(hit.position));
        all += costs.map(|(_, cost)| cost).sum::<usize>();
    }
    Ok(all / queries.len().max(1))
}
