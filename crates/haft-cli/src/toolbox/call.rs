//! `haft tools call`.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft::{
    ApprovalRequest, CallRecord, CallStatus, Decision, EventKind, ToolCall, execute_in, json,
};

use super::{Toolbox, arguments};
use crate::MISTAKEN;
use crate::arguments::CallToolArguments;
use crate::failure::Failure;
use crate::terminal::{Spinner, confirm, print_json};
use crate::text::{one_line, printable};

pub(super) async fn call(written: CallToolArguments) -> Result<ExitCode, Box<dyn Error>> {
    let toolbox = Toolbox::open(&written.from)?;
    let tool = toolbox.find(&written.name)?;
    let raw = arguments::read(&written.arguments, &tool, io::stdin().lock())?;
    let call = ToolCall::new(tool.name().as_str(), raw);
    let spinner = Spinner::new(&format!("running `{}`", tool.name()));
    let progress = spinner.clone();
    let is_allowed = written.yes;
    let record = execute_in(toolbox.catalog(), call, |run| {
        run.options(toolbox.options.clone())
            .approver(move |request: &ApprovalRequest| judge(request, is_allowed))
            .on_event(move |event| {
                if let EventKind::ToolProgress { progress: said, .. } = &event.kind
                    && let Some(words) = &said.message
                {
                    progress.say(words);
                }
            })
    });
    let record = spinner.during(record).await?;
    let record = record.ok_or_else(|| Failure::new("the tool is gone"))?;
    if written.json {
        print_json(&told(&record))?;
    } else {
        print(&record)?;
    }
    Ok(match record.status {
        CallStatus::Succeeded => ExitCode::SUCCESS,
        CallStatus::Refused | CallStatus::Unknown => ExitCode::from(MISTAKEN),
        _ => ExitCode::FAILURE,
    })
}

/// Asks whoever is there about a call that must not run unasked.
fn judge(request: &ApprovalRequest, is_allowed: bool) -> Decision {
    if is_allowed {
        return Decision::Allow;
    }
    let name = request.definition.name();
    let arguments = one_line(&request.arguments.to_string(), 1000);
    let reason = one_line(&request.reason, 400);
    match confirm(&format!("run `{name}` with {arguments}, although {reason}")) {
        Ok(true) => Decision::Allow,
        Ok(false) => Decision::Deny(None),
        Err(failure) => Decision::Deny(Some(failure.to_string())),
    }
}

/// The call for programs.
fn told(record: &CallRecord) -> haft::Value {
    json!({
        "name": record.tool_name,
        "status": record.status,
        "output": record.output(),
        "value": record.value,
        "errors": record.errors,
        "repaired": record.provenance.repaired,
        "duration_ms": record.duration_ms,
    })
}

fn print(record: &CallRecord) -> io::Result<()> {
    let output = printable(record.output());
    match record.status {
        CallStatus::Succeeded => writeln!(io::stdout(), "{output}"),
        CallStatus::Refused => {
            let name = &record.tool_name;
            let help = format!("`haft tools show {name}` shows what it takes");
            writeln!(io::stderr(), "haft: {output}\n  = help: {help}")
        }
        _ => writeln!(io::stderr(), "haft: {output}"),
    }
}
