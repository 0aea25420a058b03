//! `haft mcp list`: what is known, without starting anything.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft::{Value, json};
use haft_mcp::{HttpKind, Label, Questions, Server, State, TransportSettings};
use owo_colors::OwoColorize;

use super::servers::{Folder, Servers};
use crate::arguments::McpListArguments;
use crate::terminal::print_json;
use crate::text::{counted, one_line};

pub(super) fn list(arguments: &McpListArguments) -> Result<ExitCode, Box<dyn Error>> {
    let servers = Servers::configured(&arguments.from, Folder::AsItIs, Questions::PerCall)?;
    let rows: Vec<Row> = servers.labels.iter().map(|it| row(&servers, it)).collect();
    if arguments.json {
        let list: Vec<Value> = rows.iter().map(Row::json).collect();
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    let width = rows.iter().map(|it| it.label.as_str().len()).max();
    let width = width.unwrap_or_default() + 2;
    for row in &rows {
        let label = format!("{:<width$}", row.label.as_str());
        let (transport, era) = (row.transport, row.era.unwrap_or("–"));
        let mut said = row.state();
        if let Some(text) = &row.description {
            said = format!("{said:<18}{}", one_line(text, 100));
        }
        let kinds = format!("{transport:<8}{era:<8}");
        writeln!(out, "{}{}{}", label.cyan(), kinds.dimmed(), said.trim_end())?;
    }
    let words = if rows.is_empty() {
        "there is no MCP server: describe one in `[mcp.NAME]` of `haft.toml` (`haft init` shows how)"
    } else {
        "`haft mcp test` says whether they work, `haft mcp tools NAME` shows the tools of one"
    };
    for note in &servers.config.mcp_notes {
        writeln!(io::stderr(), "note: {}", one_line(note, 400))?;
    }
    writeln!(io::stderr(), "\n{words}")?;
    Ok(ExitCode::SUCCESS)
}

/// One server, as far as it is known.
struct Row {
    label: Label,
    transport: &'static str,
    era: Option<&'static str>,
    tools: Option<usize>,
    held: usize,
    description: Option<String>,
    problem: Option<String>,
    from: String,
}

fn row(servers: &Servers, label: &Label) -> Row {
    let configured = servers.config.mcp.iter().find(|it| it.label == *label);
    let server = servers.pool.server(label.as_str());
    let waiting = servers.pool.pins().and_then(|it| {
        // What cannot be read is told when it is used.
        it.waiting(label.as_str()).ok()
    });
    let problem = servers.unusable.iter().find(|it| it.0 == *label);
    Row {
        label: label.clone(),
        transport: server.as_ref().map_or("–", |it| transport_of(it)),
        era: server.as_ref().and_then(|it| it.known_era()).map(era_text),
        tools: server
            .as_ref()
            .and_then(|it| it.known_tools())
            .map(|it| it.tools.len()),
        held: waiting.map_or(0, |it| it.len()),
        description: server
            .as_ref()
            .and_then(|it| it.settings().description.clone()),
        problem: problem.map(|(_, error)| error.to_string()),
        from: configured.map_or_else(String::new, |it| it.from.clone()),
    }
}

pub(super) fn era_text(era: haft_mcp::Era) -> &'static str {
    match era {
        haft_mcp::Era::Legacy => "legacy",
        haft_mcp::Era::Modern => "modern",
    }
}

pub(super) fn transport_of(server: &Server) -> &'static str {
    match (&server.settings().transport, server.state()) {
        (_, State::Connected { transport, .. }) => match transport {
            haft_mcp::TransportKind::Stdio => "stdio",
            haft_mcp::TransportKind::Sse => "sse",
            haft_mcp::TransportKind::Http => "http",
            _ => "custom",
        },
        (TransportSettings::Stdio(_), _) => "stdio",
        (TransportSettings::Http(http), _) if http.kind == HttpKind::Sse => "sse",
        (TransportSettings::Http(_), _) => "http",
        _ => "custom",
    }
}

impl Row {
    fn state(&self) -> String {
        if let Some(problem) = &self.problem {
            return format!("cannot be used: {}", one_line(problem, 200));
        }
        let mut text = match self.tools {
            Some(count) => counted(count as u64, "tool"),
            None => String::from("not seen yet"),
        };
        if self.held > 0 {
            text = format!("{text}, {} held back", self.held);
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "name": self.label.as_str(),
            "transport": self.transport,
            "state": match (&self.problem, self.tools) {
                (Some(_), _) => "unusable",
                (None, Some(_)) => "known",
                (None, None) => "configured",
            },
            "era": self.era,
            "tools": self.tools,
            "held": self.held,
            "description": self.description,
            "problem": self.problem,
            "from": self.from,
        })
    }
}
