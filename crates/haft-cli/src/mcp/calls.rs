//! `haft mcp calls`: the last calls through the gateway, from the record in the data folder.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft_server::{CallJournal, CallQuery};
use owo_colors::OwoColorize;

use crate::arguments::McpCallsArguments;
use crate::config::without_models;
use crate::failure::Failure;
use crate::terminal::print_json;
use crate::text::{moment, one_line};

pub(super) fn calls(arguments: &McpCallsArguments) -> Result<ExitCode, Box<dyn Error>> {
    let config = without_models(arguments.from.config.as_deref())?;
    let folder = arguments.from.data_dir.as_ref();
    let folder = folder.unwrap_or(&config.data_dir);
    let query = CallQuery {
        caller: None,
        server: arguments.server.clone(),
        tool: arguments.tool.clone(),
        only_errors: arguments.errors,
        limit: arguments.limit,
    };
    let entries = CallJournal::read(folder, &query).map_err(|error| {
        let folder = folder.display();
        Failure::new(format!(
            "failed to read the record of calls in `{folder}`: {error}"
        ))
    })?;
    if arguments.json {
        print_json(&entries)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    // The newest is the last line, as in a log.
    for entry in entries.iter().rev() {
        #[allow(clippy::cast_possible_truncation, reason = "seconds since the epoch")]
        let time = moment(entry.started_at as i64);
        let server = entry.server.as_deref().unwrap_or("haft");
        let tool = one_line(&format!("{server}/{}", entry.tool), 60);
        let mut outcome = entry.outcome.clone();
        if let Some(error) = &entry.error {
            outcome = format!("{outcome}: {}", one_line(error, 200));
        }
        let (ms, sizes) = (entry.duration_ms, (entry.bytes_in, entry.bytes_out));
        writeln!(
            out,
            "{}  {:<32} {:>8.1} ms  {:>7} → {:<8} {}  {}",
            time.dimmed(),
            tool.cyan(),
            ms,
            sizes.0,
            sizes.1,
            one_line(&entry.caller, 32),
            outcome
        )?;
    }
    if entries.is_empty() {
        writeln!(
            io::stderr(),
            "no calls are recorded in `{}`",
            folder.display()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
