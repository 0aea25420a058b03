//! `haft tools cost`: what tools cost in every request, and what holding them back saves.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use haft::engine::search_tools_definition;
use haft::search::{SearchIndex, SearchRequest};
use haft::{BriefSchema, Catalog, Defer, LoopOptions, ToolDefinition, Value, json};

use super::definitions::{self, LookedAt};
use super::holding::Holding;
use super::note;
use crate::arguments::ToolCostArguments;
use crate::failure::Failure;
use crate::terminal::print_json;
use crate::text::{counted, one_line};
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
    /// How many queries were asked.
    queries: usize,
    /// Those that found nothing.
    found_nothing: Vec<String>,
    /// Tools that are never held back, whatever the rest is.
    always_shown: usize,
    /// What the configuration makes of it; none of definitions in files.
    configured: Option<Configured>,
}

/// What a configuration makes of its tools.
struct Configured {
    /// `defer` of `[loop]`.
    defer: &'static str,
    /// So many are held back.
    held: usize,
    /// What goes with the first request.
    sent: usize,
}

impl Configured {
    fn of(options: &LoopOptions, tools: &[(Arc<ToolDefinition>, usize)], search: usize) -> Self {
        let all: Vec<_> = tools.iter().map(|(tool, _)| Arc::clone(tool)).collect();
        let holding = Holding::of(options, &all);
        let (held, shown): (Vec<_>, Vec<_>) = tools
            .iter()
            .partition(|(tool, _)| holding.tool(tool).is_held);
        let shown: usize = shown.iter().map(|(_, cost)| cost).sum();
        Self {
            defer: holding.usual(),
            held: held.len(),
            sent: if held.is_empty() {
                shown
            } else {
                shown + search
            },
        }
    }
}

pub(super) async fn cost(arguments: &ToolCostArguments) -> Result<ExitCode, Box<dyn Error>> {
    let looked_at = definitions::of(&arguments.which).await?;
    let cost = Cost::of(looked_at, arguments.loaded, &arguments.queries)?;
    for query in &cost.found_nothing {
        let query = one_line(query, 128);
        note(&format!(
            "nothing fits `{query}`, so that nothing is loaded for it: say it with other words"
        ));
    }
    if arguments.json {
        print_json(&cost.to_json())?;
    } else {
        cost.page()?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Cost {
    fn of(looked_at: LookedAt, loaded: usize, queries: &[String]) -> Result<Self, Box<dyn Error>> {
        let LookedAt { tools, options } = looked_at;
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
        let (usual, found_nothing) = match queries {
            [] => (full * loaded / tools.len().max(1), Vec::new()),
            _ => found(&tools, loaded, queries)?,
        };
        let search = search_tools_definition()?;
        let search = tokens::of_tool(&search);
        let is_always_shown = |tool: &ToolDefinition| tool.annotations().defer == Defer::Never;
        let always_shown = tools.iter().filter(|(tool, _)| is_always_shown(tool));
        let always_shown = always_shown.map(|(_, cost)| cost).sum();
        let configured = options.map(|options| Configured::of(&options, &tools, search));
        tools.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        Ok(Self {
            worst: tools.iter().take(loaded).map(|(_, cost)| cost).sum(),
            tools,
            full,
            brief,
            names,
            search,
            loaded,
            usual,
            queries: queries.len(),
            found_nothing,
            always_shown,
            configured,
        })
    }

    /// How much of the definitions is not sent, in percent with one decimal; below zero where more is sent.
    fn saved(&self, sent: usize) -> f64 {
        let tenths = sent.abs_diff(self.full) * 1000 / self.full.max(1);
        let percent = f64::from(u32::try_from(tenths).unwrap_or(u32::MAX)) / 10.0;
        if sent > self.full { -percent } else { percent }
    }

    /// What is sent where all tools that may be are held back and these were loaded.
    fn held_back(&self, loaded: usize) -> usize {
        (self.search + self.always_shown + loaded).min(self.search + self.full)
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
                "always_shown_tokens": self.always_shown,
                "loaded_tools": self.loaded,
                "tokens": self.held_back(self.usual),
                "saved_percent": self.saved(self.held_back(self.usual)),
                "worst_tokens": self.held_back(self.worst),
                "worst_saved_percent": self.saved(self.held_back(self.worst)),
                "queries_without_result": self.found_nothing,
            },
            "configured": self.configured.as_ref().map(|it| json!({
                "defer": it.defer,
                "held_back_tools": it.held,
                "tokens": it.sent,
                "saved_percent": self.saved(it.sent),
            })),
            "dearest": dearest.collect::<Vec<_>>(),
        })
    }

    fn page(&self) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        let count = counted(self.tools.len() as u64, "tool");
        writeln!(out, "{count}, in tokens of {}", tokens::METHOD)?;
        let mut row = |what: &str, sent: usize| {
            let saved = self.saved(sent);
            let word = if saved < 0.0 { "more" } else { "saved" };
            writeln!(out, "  {what:<46}{sent:>9}  {:>5.1} % {word}", saved.abs())
        };
        row("all definitions, in every request", self.full)?;
        row("one line each (`pick_tools`)", self.brief)?;
        row(
            "held back, nothing loaded (`search_tools`)",
            self.held_back(0),
        )?;
        let loaded = self.loaded;
        let usual = match self.queries {
            0 => format!("held back, {loaded} loaded"),
            many if self.found_nothing.len() == many => {
                String::from("held back, nothing found and nothing loaded")
            }
            1 => String::from("held back, what the query finds loaded"),
            _ => String::from("held back, what a query finds loaded, on average"),
        };
        row(&usual, self.held_back(self.usual))?;
        let dearest = match loaded {
            1 => String::from("held back, the dearest loaded"),
            many => format!("held back, the {many} dearest loaded"),
        };
        row(&dearest, self.held_back(self.worst))?;
        if let Some(Configured { defer, held, sent }) = &self.configured {
            let what = format!("here: {held} held back (`defer = \"{defer}\"`)");
            row(&what, *sent)?;
        }
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

/// What the tools cost that the queries find, on average, and those that find none.
fn found(
    tools: &[(Arc<ToolDefinition>, usize)],
    loaded: usize,
    queries: &[String],
) -> Result<(usize, Vec<String>), Failure> {
    let index = SearchIndex::of(tools.iter().map(|(tool, _)| Arc::clone(tool)));
    let mut all = 0;
    let mut without_result = Vec::new();
    for query in queries {
        let answer = index.search(&SearchRequest::new(query).k(loaded));
        let answer = answer.map_err(|error| Failure::mistake(error.to_string()))?;
        if answer.hits.is_empty() {
            without_result.push(query.clone());
        }
        let costs = answer.hits.iter().filter_map(|hit| tools.get(hit.position));
        all += costs.map(|(_, cost)| cost).sum::<usize>();
    }
    Ok((all / queries.len().max(1), without_result))
}
