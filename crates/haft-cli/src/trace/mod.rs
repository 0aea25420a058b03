//! `haft trace`: how the run of a response went, as a tree.
//!
//! What comes in: an id. What goes out: turns, calls, what was made of their arguments, times and
//! tokens, as the server wrote them down; never content, of which the server writes nothing down.

mod tree;

use std::error::Error;
use std::process::ExitCode;

use haft_server::RunTrace;

use crate::arguments::TraceArguments;
use crate::failure::Failure;
use crate::remote::Remote;
use crate::terminal::{Spinner, print_json};

/// Shows it.
pub(crate) async fn trace(arguments: &TraceArguments) -> Result<ExitCode, Box<dyn Error>> {
    let remote = Remote::connect(&arguments.remote)?;
    let spinner = Spinner::new("asking how it went");
    let path = ["responses", arguments.id.as_str(), "trace"];
    let trace = spinner.during(remote.get(&path, &[])).await?;
    if arguments.json {
        print_json(&trace)?;
        return Ok(ExitCode::SUCCESS);
    }
    let trace: RunTrace = serde_json::from_value(trace).map_err(|error| {
        Failure::new(format!("what the server says cannot be read: {error}"))
            .remedy("is it of another version? `--json` shows what it says")
    })?;
    tree::print(&mut anstream::stdout().lock(), &trace)?;
    Ok(ExitCode::SUCCESS)
}
