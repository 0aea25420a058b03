//! Which tools a message asks for, part by part.

use std::ops::Range;
use std::sync::Arc;

use haft_catalog::{FilterOptions, KeywordIndex};
use haft_core::{AllowedMode, ModelRequest, ToolChoice, ToolDefinition};
use serde_json::{Map, Value};

use super::arguments::fill;
use super::parts::parts;
use super::prompt::Prompt;
use super::schema::{Kind, kind_of, required};
use super::searching::{is_search, search};

/// At most so many calls in one answer.
const MAX_CALLS: usize = 16;
/// So many tools that fit equally well are tried.
const MAX_TIES: usize = 5;

/// What a message asks for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) calls: Vec<Call>,
    /// What cannot be called, in words.
    pub(super) obstacles: Vec<String>,
}

/// A call with its arguments.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
}

type Tool = Arc<ToolDefinition>;

/// Whether tools were searched for since the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Searched {
    NotYet,
    Already,
}

/// Reads what a message asks for, under the request's tool choice.
pub(super) fn plan(request: &ModelRequest, text: &str, searched: Searched) -> Plan {
    let all: Vec<Tool> = request
        .tools
        .iter()
        .map(|tool| Arc::clone(tool.definition()))
        .collect();
    let names = || all.iter().map(|tool| tool.name().as_str());
    let choice = request.tool_choice.clone().unwrap_or_default();
    let is_demanded =
        |name: &str| matches!(&choice, ToolChoice::Function(demanded) if demanded == name);
    let (finders, offered): (Vec<Tool>, Vec<Tool>) = all.iter().cloned().partition(|tool| {
        let name = tool.name().as_str();
        is_search(name, names()) && !is_demanded(name)
    });
    let finder = finders.first().filter(|_| {
        searched == Searched::NotYet
            && !matches!(&choice, ToolChoice::None | ToolChoice::Function(_))
    });
    let by_search = |finder: &Tool| Plan {
        calls: vec![search(finder, text)],
        obstacles: Vec::new(),
    };
    let tools: Vec<Tool> = match &choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Auto | ToolChoice::Required => offered.clone(),
        ToolChoice::Function(name) => named(&offered, std::slice::from_ref(name)),
        ToolChoice::Allowed(allowed) if allowed.mode == AllowedMode::None => Vec::new(),
        ToolChoice::Allowed(allowed) => named(&offered, &allowed.names),
    };
    if tools.is_empty() {
        if let Some(finder) = finder {
            return by_search(finder);
        }
        let obstacle = if searched == Searched::Already {
            "No tool was found that fits the message.".to_owned()
        } else {
            nothing_to_call(&choice, &offered)
        };
        return Plan {
            calls: Vec::new(),
            obstacles: vec![obstacle],
        };
    }
    let prompt = Prompt::read(text);
    let is_forced = matches!(choice, ToolChoice::Function(_));
    let mut plan = if is_forced {
        Plan::default()
    } else {
        by_parts(&prompt, &tools)
    };
    if let (Some(finder), []) = (finder, plan.calls.as_slice())
        && plan.obstacles.is_empty()
    {
        return by_search(finder);
    }
    if plan.calls.is_empty() && (is_forced || choice.demands_call()) {
        plan = demanded(&prompt, &tools);
    }
    if plan.calls.is_empty() && plan.obstacles.is_empty() {
        plan.obstacles.push(nothing_fits(&tools));
    }
    if request.parallel_tool_calls == Some(false) {
        plan.calls.truncate(1);
    }
    plan
}

fn named(offered: &[Tool], names: &[String]) -> Vec<Tool> {
    let tools = offered.iter();
    let is_named = |tool: &&Tool| names.iter().any(|name| name == tool.name().as_str());
    tools.filter(is_named).cloned().collect()
}

fn nothing_to_call(choice: &ToolChoice, offered: &[Tool]) -> String {
    match choice {
        _ if offered.is_empty() => {
            "No tools are offered, and without tools there is nothing that rules can do.".to_owned()
        }
        ToolChoice::Function(name) => format!("The tool `{name}` is demanded but not offered."),
        _ => "No tool may be called for this message.".to_owned(),
    }
}

fn nothing_fits(tools: &[Tool]) -> String {
    const SHOWN: usize = 10;
    let mut names: Vec<_> = tools
        .iter()
        .take(SHOWN)
        .map(|tool| format!("`{}`", tool.name()))
        .collect();
    if tools.len() > SHOWN {
        names.push(format!("{} more", tools.len() - SHOWN));
    }
    format!("None of the tools fits the message: {}.", names.join(", "))
}

/// A stretch of the message and what it asks for.
struct Segment {
    range: Range<usize>,
    /// Where the parts before it that ask for nothing begin.
    with_prefix: usize,
    /// The tools that fit best, equally well.
    tools: Vec<Tool>,
}

impl Segment {
    /// The first tool whose arguments are all there, or what the first tool lacks.
    fn call(&self, prompt: &Prompt<'_>) -> Result<Call, String> {
        let ranges = [self.range.clone(), self.with_prefix..self.range.end];
        let mut obstacle = String::new();
        for range in ranges {
            for tool in &self.tools {
                match attempt(tool, prompt, range.clone()) {
                    Ok(call) => return Ok(call),
                    Err(words) if obstacle.is_empty() => obstacle = words,
                    Err(_) => {}
                }
            }
        }
        Err(obstacle)
    }

    fn is_complete(&self, prompt: &Prompt<'_>) -> bool {
        self.call(prompt).is_ok()
    }
}

fn attempt(tool: &Tool, prompt: &Prompt<'_>, range: Range<usize>) -> Result<Call, String> {
    match fill(tool.parameters(), prompt, range) {
        Ok(arguments) => Ok(Call {
            name: tool.name().to_string(),
            arguments,
        }),
        Err(missing) => {
            let names: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
            let (names, tool) = (names.join(", "), tool.name());
            Err(format!(
                "`{tool}` needs {names}, which the message does not say."
            ))
        }
    }
}

fn by_parts(prompt: &Prompt<'_>, tools: &[Tool]) -> Plan {
    let mut plan = Plan::default();
    for segment in segments(prompt, tools) {
        match segment.call(prompt) {
            Ok(call) if plan.calls.contains(&call) || plan.calls.len() >= MAX_CALLS => {}
            Ok(call) => plan.calls.push(call),
            Err(obstacle) if plan.obstacles.contains(&obstacle) => {}
            Err(obstacle) => plan.obstacles.push(obstacle),
        }
    }
    plan
}

fn segments(prompt: &Prompt<'_>, tools: &[Tool]) -> Vec<Segment> {
    let index = KeywordIndex::new(tools);
    let mut segments: Vec<Segment> = Vec::new();
    let mut prefix = None;
    for part in parts(prompt) {
        let best = best(&index, &prompt.text[part.clone()]);
        if !best.is_empty() {
            segments.push(Segment {
                with_prefix: prefix.take().unwrap_or(part.start),
                range: part,
                tools: best,
            });
        } else if let Some(last) = segments.last_mut() {
            let again = again(prompt, last, &part);
            match again {
                Some(segment) => segments.push(segment),
                // `add 2` `and 3`, `search for cats` `and dogs`: it belongs to what was asked.
                None if !last.is_complete(prompt) || prompt.words_in(&part).len() <= 3 => {
                    last.range.end = part.end;
                }
                None => {}
            }
        } else {
            prefix.get_or_insert(part.start);
        }
    }
    segments
}

/// The tools that fit a part best, if any does.
fn best(index: &KeywordIndex, part: &str) -> Vec<Tool> {
    let least = FilterOptions::default().min_score;
    let ranked = index.rank(part, MAX_TIES);
    let Some(top) = ranked.first().map(|pick| pick.score) else {
        return Vec::new();
    };
    ranked
        .into_iter()
        // The same count over the same words gives the same number.
        .filter(|pick| pick.score >= least && pick.score >= top)
        .map(|pick| pick.tool)
        .collect()
}

/// `the weather in Oslo` `and Paris`: the same tool again, for a name in the place of a name.
fn again(prompt: &Prompt<'_>, last: &Segment, part: &Range<usize>) -> Option<Segment> {
    let first = prompt.words_in(part).first()?;
    let is_name = first.is_capitalised() || ["in", "for", "at"].contains(&first.lower.as_str());
    let tool = last.tools.first()?;
    let schema = tool.parameters()?;
    let wants_text = match required(schema).as_slice() {
        [(_, property)] => matches!(kind_of(property, schema, 0), Kind::String { .. }),
        _ => false,
    };
    let segment = Segment {
        range: part.clone(),
        with_prefix: part.start,
        tools: vec![Arc::clone(tool)],
    };
    let is_short = prompt.words_in(part).len() <= 4;
    (is_name && wants_text && is_short && last.is_complete(prompt) && segment.is_complete(prompt))
        .then_some(segment)
}

/// A call that must be made: the tool that fits best, or else the first that can be called at all.
fn demanded(prompt: &Prompt<'_>, tools: &[Tool]) -> Plan {
    let whole = 0..prompt.text.len();
    let ranked = KeywordIndex::new(tools).rank(prompt.text, tools.len());
    let ranked = ranked.into_iter().map(|pick| pick.tool);
    let mut plan = Plan::default();
    for tool in ranked.chain(tools.iter().cloned()) {
        match attempt(&tool, prompt, whole.clone()) {
            Ok(call) => {
                plan.calls.push(call);
                plan.obstacles.clear();
                break;
            }
            Err(obstacle) if plan.obstacles.is_empty() => plan.obstacles.push(obstacle),
            Err(_) => {}
        }
    }
    plan
}
