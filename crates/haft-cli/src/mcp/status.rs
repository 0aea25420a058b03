//! `haft mcp status`: the state of each server, from a running `haft serve` or from the data folder.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft::models::process_environment;
use haft::{Value, json};
use haft_mcp::{Questions, ServerState, ServerStatus};
use haft_server::{CallEntry, CallJournal, CallQuery};
use owo_colors::OwoColorize;

use super::list::{era_text, transport_of};
use super::servers::{Folder, Servers};
use crate::arguments::{McpFrom, McpStatusArguments};
use crate::remote::Remote;
use crate::terminal::{Spinner, print_json};
use crate::text::{ago, now, one_line};

/// So many of the last calls make the figures where no server runs.
const RECENT_CALLS: usize = 10_000;

pub(super) async fn status(arguments: McpStatusArguments) -> Result<ExitCode, Box<dyn Error>> {
    let is_named = arguments.remote.is_named(&process_environment);
    let (servers, source) = match ask(&arguments).await {
        Ok(found) => found,
        Err(error) if is_named => return Err(error),
        Err(error) => {
            let reason = one_line(&error.to_string(), 200);
            let note = format!("no running server ({reason}): this is what the data folder knows");
            (from_folder(&arguments)?, note)
        }
    };
    if arguments.json {
        print_json(&servers)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&servers)?;
    writeln!(io::stderr(), "\n{source}")?;
    Ok(ExitCode::SUCCESS)
}

/// What a running server says.
async fn ask(arguments: &McpStatusArguments) -> Result<(Vec<Value>, String), Box<dyn Error>> {
    let remote = Remote::connect(&arguments.remote)?;
    let spinner = Spinner::new("asking the server");
    let mut answer = spinner.during(remote.get(&["haft", "mcp"], &[])).await?;
    let servers = match answer["data"].take() {
        Value::Array(servers) => servers,
        _ => Vec::new(),
    };
    Ok((servers, format!("from the server at {}", remote.base())))
}

/// What saved lists, pinned definitions and the record of calls say.
fn from_folder(arguments: &McpStatusArguments) -> Result<Vec<Value>, Box<dyn Error>> {
    let from = McpFrom {
        config: arguments.remote.config.clone(),
        data_dir: arguments.data_dir.clone(),
    };
    let servers = Servers::configured(&from, Folder::AsItIs, Questions::PerCall)?;
    let query = CallQuery {
        limit: RECENT_CALLS,
        ..CallQuery::default()
    };
    // A record that cannot be read costs the figures.
    let calls = CallJournal::read(&servers.config.data_dir, &query).unwrap_or_default();
    let mut rows = Vec::new();
    for server in servers.pool.servers() {
        let mut status = server.status();
        if let Some(pins) = servers.pool.pins() {
            let waiting = pins.waiting(&status.label).unwrap_or_default();
            status.held = waiting.into_iter().map(|(name, _)| name).collect();
        }
        rows.push(row(&status, transport_of(&server), &calls));
    }
    let unusable = servers.unusable_status();
    rows.extend(unusable.iter().map(|status| row(status, "–", &calls)));
    Ok(rows)
}

fn row(status: &ServerStatus, transport: &str, calls: &[CallEntry]) -> Value {
    let own = || {
        calls
            .iter()
            .filter(|it| it.server.as_deref() == Some(&status.label))
    };
    let mut durations: Vec<f64> = own().map(|it| it.duration_ms).collect();
    durations.sort_by(f64::total_cmp);
    let errors = own().filter(|it| !matches!(it.outcome.as_str(), "succeeded" | "cancelled"));
    let last_failure = own().find(|it| it.outcome == "failed");
    let reason = match &status.state {
        ServerState::Unavailable { detail, .. } => Some(detail.clone()),
        _ => last_failure.map(|it| {
            #[allow(clippy::cast_possible_truncation, reason = "seconds since the epoch")]
            let ago = ago(it.started_at as i64, now());
            let error = it.error.as_deref().unwrap_or("no answer");
            format!("last failed call {ago}: {error}")
        }),
    };
    json!({
        "object": "mcp_server",
        "name": status.label,
        "description": status.description,
        "transport": transport,
        "era": status.era.map(era_text),
        "state": status.state.as_str(),
        "reason": reason,
        "retry_in_seconds": null,
        "tools": status.tools,
        "held": status.held,
        "list_age_seconds": null,
        "connections": null,
        "calls": durations.len(),
        "errors": errors.count(),
        "p50_ms": durations.get(durations.len() / 2),
        "last_used_at": own().next().map(|it| it.started_at),
    })
}

const TITLES: [&str; 9] = [
    "SERVER",
    "TRANSPORT",
    "STATE",
    "TOOLS",
    "HELD",
    "CALLS",
    "ERRORS",
    "P50",
    "LAST USED",
];

fn print(servers: &[Value]) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let rows: Vec<[String; 9]> = servers.iter().map(cells).collect();
    let mut widths = TITLES.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String; 9]| {
        let cells = cells.iter().zip(widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    writeln!(out, "{}", line(&TITLES.map(str::to_owned)).dimmed())?;
    for (row, server) in rows.iter().zip(servers) {
        writeln!(out, "{}", line(row))?;
        if let Some(reason) = server["reason"].as_str() {
            let retry = server["retry_in_seconds"].as_f64();
            let retry = retry.map(|seconds| format!("; next attempt in {seconds:.0} s"));
            let text = one_line(reason, 300);
            writeln!(out, "  {}{}", text.yellow(), retry.unwrap_or_default())?;
        }
        let held = server["held"].as_array().into_iter().flatten();
        let held: Vec<_> = held
            .filter_map(Value::as_str)
            .map(|it| one_line(it, 60))
            .collect();
        if !held.is_empty() {
            let name = server["name"].as_str().unwrap_or_default();
            let names = held.join(", ");
            let advice = format!("held back until `haft mcp accept {}`", one_line(name, 64));
            writeln!(out, "  {advice}: {}", names.yellow())?;
        }
    }
    Ok(())
}

fn cells(server: &Value) -> [String; 9] {
    let text = |key: &str| one_line(server[key].as_str().unwrap_or("–"), 64);
    let number = |key: &str| server[key].as_u64().map_or("–".into(), |it| it.to_string());
    let held = server["held"].as_array().map_or(0, Vec::len);
    let p50 = server["p50_ms"].as_f64();
    let last_used = server["last_used_at"].as_f64();
    [
        text("name"),
        text("transport"),
        text("state").replace('_', " "),
        number("tools"),
        held.to_string(),
        number("calls"),
        number("errors"),
        p50.map_or("–".into(), |ms| format!("{ms:.1} ms")),
        last_used.map_or("–".into(), |at| {
            #[allow(clippy::cast_possible_truncation, reason = "seconds since the epoch")]
            let at = at as i64;
            ago(at, now())
        }),
    ]
}
