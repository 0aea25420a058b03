//! `haft mcp tools`: what a server offers, and what is held back.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use haft::{Value, json};
use haft_mcp::{HeldTool, McpError, Questions, Server, ServerTools, ToolDef, exposed_name};
use owo_colors::OwoColorize;

use super::servers::{Folder, Servers};
use crate::arguments::McpToolsArguments;
use crate::failure::Failure;
use crate::terminal::{Spinner, print_json};
use crate::text::{one_line, printable};

/// How long the names are that models see.
const NAME_BYTES: usize = haft::MAX_NAME_BYTES;

/// How long a list is waited for where an older one can be shown instead.
const NEWER_LIST_WAIT: Duration = Duration::from_secs(5);

pub(super) async fn tools(arguments: McpToolsArguments) -> Result<ExitCode, Box<dyn Error>> {
    let servers = Servers::open(
        &arguments.ad_hoc,
        &arguments.from,
        Folder::Made,
        Questions::PerCall,
    )?;
    let server = servers.find(arguments.name.as_deref())?;
    let spinner = Spinner::new(&format!("connecting to `{}`", server.label()));
    let read = spinner.during(Box::pin(newest(&server))).await;
    let known = server.known_tools();
    servers.pool.close().await;
    let (tools, problem) = match (read, known) {
        (Ok(tools), _) => (tools, None),
        (Err(problem), Some(known)) => (known, Some(problem)),
        (Err(problem), None) => return Err(Failure::new(problem).into()),
    };
    if arguments.json {
        print_json(&told(&server, &tools))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    let width = tools.tools.iter().map(|it| it.name.chars().count()).max();
    let width = width.unwrap_or_default().min(40) + 2;
    for tool in &tools.tools {
        let raw = format!("{:<width$}", one_line(&tool.name, 60));
        let exposed = exposed_name(server.label(), &tool.name, NAME_BYTES);
        let exposed = format!("{:<width$}", exposed.as_str(), width = width + 10);
        let brief = haft::brief_of(tool.description.as_deref().unwrap_or_default());
        let brief = one_line(&brief, 100);
        let mark = if server.needs_approval(tool) {
            " (asked about)"
        } else {
            ""
        };
        writeln!(out, "{}{}{brief}{mark}", raw.cyan(), exposed.dimmed())?;
    }
    for held in &tools.held {
        print_held(&mut out, held)?;
    }
    drop(out);
    let mut aside = io::stderr();
    for diagnostic in &tools.diagnostics {
        writeln!(aside, "note: {}", one_line(&diagnostic.to_string(), 300))?;
    }
    if !tools.excluded.is_empty() {
        let names: Vec<_> = tools.excluded.iter().map(|it| one_line(it, 60)).collect();
        writeln!(
            aside,
            "note: excluded by `allow` or `deny`: {}",
            names.join(", ")
        )?;
    }
    if let Some(problem) = problem {
        let problem = printable(&problem);
        writeln!(
            aside,
            "note: this is what it listed the last time, because {problem}"
        )?;
    }
    if !tools.held.is_empty() {
        let label = server.label();
        writeln!(
            aside,
            "\nwhat is held back is used after `haft mcp accept {label}`, or `haft mcp accept {label} TOOL`"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The list as it is now, or why it could not be read. Where an older one is known, the wait is short.
async fn newest(server: &Arc<Server>) -> Result<Arc<ServerTools>, String> {
    let failed = |error: McpError| error.to_string();
    if server.known_tools().is_none() {
        return server.refresh().await.map_err(failed);
    }
    match tokio::time::timeout(NEWER_LIST_WAIT, server.refresh()).await {
        Ok(read) => read.map_err(failed),
        Err(_) => Err(format!(
            "the server has not answered within {} s",
            NEWER_LIST_WAIT.as_secs()
        )),
    }
}

/// A tool that waits, and what is different about it.
pub(super) fn print_held(out: &mut impl io::Write, held: &HeldTool) -> io::Result<()> {
    let why = if held.differences.is_empty() {
        "is new and held back"
    } else {
        "has changed and is held back"
    };
    let name = one_line(&held.name, 60);
    writeln!(out, "{} {}", name.cyan(), why.yellow())?;
    for difference in &held.differences {
        let text = printable(&difference.to_string());
        writeln!(out, "  {}", text.replace('\n', "\n  "))?;
    }
    Ok(())
}

fn told(server: &Server, tools: &ServerTools) -> Value {
    let list = tools.tools.iter().map(|tool| definition(server, tool));
    let held = tools.held.iter().map(|held| {
        let differences = held
            .differences
            .iter()
            .map(|it| json!({"path": it.path, "before": it.before, "after": it.after}));
        let differences: Vec<Value> = differences.collect();
        json!({"name": held.name, "differences": differences})
    });
    let diagnostics = tools.diagnostics.iter().map(ToString::to_string);
    json!({
        "server": server.label().as_str(),
        "is_live": tools.is_live,
        "tools": list.collect::<Vec<_>>(),
        "held": held.collect::<Vec<_>>(),
        "excluded": tools.excluded,
        "diagnostics": diagnostics.collect::<Vec<_>>(),
    })
}

fn definition(server: &Server, tool: &ToolDef) -> Value {
    let schema = tool.input_schema.as_ref().ok();
    let output = tool.output_schema.as_ref();
    json!({
        "name": tool.name,
        "exposed_name": exposed_name(server.label(), &tool.name, NAME_BYTES).as_str(),
        "title": tool.title,
        "description": tool.description,
        "input_schema": schema.map(|it| Value::clone(it)),
        "output_schema": output.map(|it| Value::clone(it)),
        "hints": {
            "read_only": tool.hints.read_only,
            "destructive": tool.hints.destructive,
            "idempotent": tool.hints.idempotent,
            "open_world": tool.hints.open_world,
        },
        "needs_approval": server.needs_approval(tool),
    })
}
