//! `haft tools call`, and every other call by hand.

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use haft::{
    ApprovalRequest, CallRecord, CallStatus, Cancel, Catalog, Decision, EventKind, LoopOptions,
    ToolCall, ToolContext, ToolDefinition, ToolProgress, execute_in, json,
};
use haft_mcp::{Asker, AskerSlot, CallLog};
use tokio::sync::Notify;

use super::{Toolbox, arguments};
use crate::MISTAKEN;
use crate::arguments::CallToolArguments;
use crate::failure::Failure;
use crate::inquiry::AtTerminal;
use crate::terminal::{Spinner, confirm, print_json};
use crate::text::{one_line, printable};

/// What a process ends with that Ctrl-C has stopped.
const INTERRUPTED: u8 = 130;

pub(super) async fn call(written: CallToolArguments) -> Result<ExitCode, Box<dyn Error>> {
    let toolbox = Toolbox::open(&written.from, &written.scripts).await?;
    let toolbox = toolbox.with_tools_of(Some(&written.name)).await?;
    let tool = toolbox.find(&written.name)?;
    let by_hand = ByHand {
        catalog: toolbox.catalog(),
        help: format!("`haft tools show {}` shows what it takes", tool.name()),
        tool,
        arguments: &written.arguments,
        options: toolbox.options.clone(),
        is_allowed: written.yes,
        is_json: written.json,
    };
    let called = by_hand.call().await;
    toolbox.close().await;
    called
}

/// A call that a person makes.
pub(crate) struct ByHand<'c> {
    pub(crate) catalog: &'c Catalog,
    pub(crate) tool: Arc<ToolDefinition>,
    /// As they were written.
    pub(crate) arguments: &'c [String],
    pub(crate) options: LoopOptions,
    /// Whether it may run without asking.
    pub(crate) is_allowed: bool,
    pub(crate) is_json: bool,
    /// What to do about wrong arguments.
    pub(crate) help: String,
}

impl ByHand<'_> {
    /// Calls the tool and shows what came of it; the code says it, too. Ctrl-C cancels the call, once it
    /// runs.
    pub(crate) async fn call(self) -> Result<ExitCode, Box<dyn Error>> {
        let raw = arguments::read(self.arguments, &self.tool, io::stdin().lock())?;
        let call = ToolCall::new(self.tool.name().as_str(), raw);
        let spinner = Spinner::new(&format!("running `{}`", self.tool.name()));
        let progress = spinner.clone();
        let is_allowed = self.is_allowed;
        let cancel = Cancel::new();
        let log = Arc::new(CallLog::default());
        let person = Arc::new(AtTerminal::new(spinner.clone()));
        let context = ToolContext::builder()
            .shared(Arc::clone(&log))
            .state(AskerSlot(Arc::clone(&person) as Arc<dyn Asker>))
            .build();
        let started = Arc::new(Notify::new());
        let record = execute_in(self.catalog, call, |run| {
            let started = Arc::clone(&started);
            run.options(self.options.clone())
                .context(context)
                .cancel(cancel.clone())
                .approver(move |request: &ApprovalRequest| judge(request, is_allowed))
                .on_event(move |event| match &event.kind {
                    EventKind::ToolStarted { .. } => started.notify_one(),
                    EventKind::ToolProgress { progress: said, .. } => tell(&progress, said),
                    _ => {}
                })
        });
        let interrupted = async {
            // Before it runs, somebody may be asked about it, and can leave.
            started.notified().await;
            loop {
                if tokio::signal::ctrl_c().await.is_err() {
                    std::future::pending::<()>().await;
                }
                // At a question of the server it is an answer.
                if !person.interrupt() {
                    break;
                }
            }
        };
        let called = async {
            tokio::pin!(record);
            tokio::select! {
                record = &mut record => (record, false),
                () = interrupted => {
                    cancel.cancel();
                    (record.await, true)
                }
            }
        };
        let (record, is_interrupted) = spinner.during(called).await;
        let record = record?.ok_or_else(|| Failure::new("the tool is gone"))?;
        let of_server = log.take(&record.call_id);
        if self.is_json {
            print_json(&to_json(&record, of_server))?;
        } else {
            self.print(&record, of_server)?;
        }
        Ok(match record.status {
            _ if is_interrupted => ExitCode::from(INTERRUPTED),
            CallStatus::Succeeded => ExitCode::SUCCESS,
            CallStatus::Refused | CallStatus::Unknown => ExitCode::from(MISTAKEN),
            _ => ExitCode::FAILURE,
        })
    }

    /// Prints the output. A failure of an MCP server comes with its exit status and what it wrote to standard error,
    /// which a model does not read.
    fn print(
        &self,
        record: &CallRecord,
        of_server: Option<haft_mcp::CallRecord>,
    ) -> io::Result<()> {
        let output = match of_server {
            Some(haft_mcp::CallRecord::Failed(error)) => printable(&error.to_string()),
            _ => printable(record.output()),
        };
        match record.status {
            CallStatus::Succeeded => writeln!(io::stdout(), "{output}"),
            CallStatus::Refused => {
                writeln!(io::stderr(), "haft: {output}\n  = help: {}", self.help)
            }
            _ => writeln!(io::stderr(), "haft: {output}"),
        }
    }
}

/// Says how far a call is: in the line that moves, or in lines of their own where nothing can move.
fn tell(spinner: &Spinner, progress: &ToolProgress) {
    let how_far = match (progress.progress, progress.total) {
        (Some(done), Some(total)) => Some(format!("{done} of {total}")),
        (Some(done), None) => Some(done.to_string()),
        (None, _) => None,
    };
    let words = how_far.into_iter().chain(progress.message.clone());
    let words = words.collect::<Vec<_>>().join(": ");
    if words.is_empty() {
        return;
    }
    spinner.say(&words);
    if !io::stderr().is_terminal() {
        // Whether somebody reads along changes nothing.
        let _ = writeln!(io::stderr(), "progress: {}", one_line(&words, 200));
    }
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

/// The call for programs; a call of an MCP server with the whole result.
fn to_json(record: &CallRecord, of_server: Option<haft_mcp::CallRecord>) -> haft::Value {
    let mut json = json!({
        "name": record.tool_name,
        "status": record.status,
        "output": record.output(),
        "value": record.value,
        "errors": record.errors,
        "repaired": record.provenance.repaired,
        "duration_ms": record.duration_ms,
    });
    match of_server {
        Some(haft_mcp::CallRecord::Answered(outcome)) => json["result"] = (*outcome.raw).clone(),
        Some(haft_mcp::CallRecord::Failed(error)) => {
            json["server_error"] = json!({
                "phase": error.phase.to_string(),
                "cause": error.cause.to_string(),
                "stderr": error.stderr,
            });
        }
        _ => {}
    }
    json
}
