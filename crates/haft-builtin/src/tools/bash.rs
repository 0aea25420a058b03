//! `bash`: a command, its output as it comes, and nothing left behind.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use haft_core::{
    Annotations, ToolContext, ToolDefinition, ToolError, ToolOutput, dynamic_tool, read_arguments,
    schema_of,
};
use rustix::process::{Pid, Signal, kill_process_group};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};

use super::Built;
use crate::refusal::{Refusal, output};
use crate::workspace::Workspace;

/// How long a command may take unless it says otherwise.
const TIMEOUT_MS: u64 = 30_000;

/// How long a command may take at most.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// How much output is kept, in bytes: with the last line it stays below the limit of a result.
const KEPT_BYTES: usize = 1024 * 1024 - 1024;

/// How long output is waited for that nobody alive in the group can still write.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The command, run with `bash -c` in the workspace's directory.
    #[schemars(length(min = 1))]
    command: String,
    /// How long it may take, in milliseconds; 30000 if not given.
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: Option<u64>,
}

pub(crate) fn bash(workspace: &Workspace) -> Built {
    let mut annotations = Annotations {
        destructive: true,
        open_world: true,
        // The command's own limit comes first, and keeps what was written until then.
        timeout_ms: Some(MAX_TIMEOUT_MS + 10_000),
        ..Annotations::default()
    };
    for key in ["x-needs-approval", "x-shell"] {
        annotations.extra.insert(key.into(), json!(true));
    }
    let definition = ToolDefinition::builder("bash")
        .description(
            "Run a command in the workspace's directory. Gives what it writes, standard output \
             and errors together. Processes that it leaves in the background are ended with it.",
        )
        .annotations(annotations)
        .parameters(schema_of::<Arguments>())
        .build()?;
    let workspace = workspace.clone();
    Ok(dynamic_tool(definition, move |arguments, context| {
        let workspace = workspace.clone();
        async move {
            let arguments: Arguments = read_arguments(&arguments)?;
            run(&workspace, &arguments, &context).await
        }
    }))
}

async fn run(
    workspace: &Workspace,
    arguments: &Arguments,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let root = match workspace.open() {
        Ok(root) => root,
        Err(refusal) => return output(Err(refusal)),
    };
    let (mut group, pipe) = start(workspace, root.real(), &arguments.command)
        .map_err(|error| ToolError::new(format!("the command could not be started: {error}")))?;
    let mut transcript = Transcript::new(context, pipe);
    let limit = arguments.timeout_ms.unwrap_or(TIMEOUT_MS);
    let limit = Duration::from_millis(limit.min(MAX_TIMEOUT_MS));
    let end = tokio::select! {
        status = wait(&mut group, &mut transcript) => End::Exited(status?),
        () = tokio::time::sleep(limit) => End::TimedOut(limit),
        () = context.cancel().cancelled() => End::Cancelled,
    };
    group.kill();
    // What is still in the pipe; a process that left the group may hold it open for ever.
    let _ = tokio::time::timeout(LAST_OUTPUT, transcript.read_to_end()).await;
    output(end.tell(transcript.finish()))
}

/// Starts the command in a process group of its own, both its outputs on one pipe.
fn start(workspace: &Workspace, root: &Path, command: &str) -> io::Result<(Group, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let mut shell = Command::new("bash");
    shell
        .arg("-c")
        .arg(command)
        .current_dir(root)
        .env_clear()
        .envs(workspace.environment())
        .env("PWD", root)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .kill_on_drop(true);
    let child = shell.spawn()?;
    // The command holds this process's ends of the pipe.
    drop(shell);
    let group = Group::of(child);
    Ok((group, Receiver::from_owned_fd(OwnedFd::from(reader))?))
}

/// Reads until the command has ended.
async fn wait(group: &mut Group, transcript: &mut Transcript<'_>) -> io::Result<ExitStatus> {
    let mut exited = std::pin::pin!(group.child.wait());
    loop {
        tokio::select! {
            biased;
            more = transcript.read() => {
                // Closed, or broken: only the end is left to wait for.
                if !more {
                    return exited.await;
                }
            }
            status = &mut exited => return status,
        }
    }
}

/// A command and all its children. They end with it, also when the call is dropped.
struct Group {
    child: Child,
    id: Option<Pid>,
}

impl Group {
    fn of(child: Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            id: id.and_then(Pid::from_raw),
            child,
        }
    }

    /// Ends whatever is left of the group, once.
    fn kill(&mut self) {
        if let Some(id) = self.id.take() {
            // Nobody left to end is the usual case.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What the command writes: shown as it comes, kept as far as there is room.
struct Transcript<'a> {
    context: &'a ToolContext,
    pipe: Receiver,
    kept: Vec<u8>,
    total: usize,
    /// The beginning of a character whose rest has not come yet.
    broken: Vec<u8>,
}

impl<'a> Transcript<'a> {
    fn new(context: &'a ToolContext, pipe: Receiver) -> Self {
        Self {
            context,
            pipe,
            kept: Vec::new(),
            total: 0,
            broken: Vec::new(),
        }
    }

    /// Takes the next piece; whether there may be more.
    async fn read(&mut self) -> bool {
        let mut buffer = [0; 8192];
        let Ok(count @ 1..) = self.pipe.read(&mut buffer).await else {
            return false;
        };
        let bytes = &buffer[..count];
        self.total += count;
        let room = KEPT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&bytes[..count.min(room)]);
        self.show(bytes);
        true
    }

    async fn read_to_end(&mut self) {
        while self.read().await {}
    }

    fn show(&mut self, bytes: &[u8]) {
        self.broken.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.broken) {
            // Cut within a character; anything else that is wrong is shown as such.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.broken.len(),
        };
        let rest = self.broken.split_off(whole);
        let shown = std::mem::replace(&mut self.broken, rest);
        if !shown.is_empty() {
            self.context.output_chunk(String::from_utf8_lossy(&shown));
        }
    }

    fn finish(self) -> String {
        let mut text = String::from_utf8_lossy(&self.kept).into_owned();
        // Replacement characters may be longer than what they stand for.
        let cut_off = self.total > self.kept.len() || text.len() > KEPT_BYTES;
        text.truncate(text.floor_char_boundary(KEPT_BYTES));
        if cut_off {
            end_line(&mut text);
            let note = format!("[output cut off: {} bytes in total]", self.total);
            text.push_str(&note);
        }
        text
    }
}

enum End {
    Exited(ExitStatus),
    TimedOut(Duration),
    Cancelled,
}

impl End {
    fn tell(self, mut text: String) -> Result<String, Refusal> {
        let how = match self {
            Self::Exited(status) if status.success() => return Ok(text),
            Self::Exited(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("[exit code {code}]"),
                (None, Some(signal)) => format!("[ended by signal {signal}]"),
                (None, None) => "[ended]".to_owned(),
            },
            Self::TimedOut(limit) => format!("[timed out after {limit:?}]"),
            Self::Cancelled => "[cancelled]".to_owned(),
        };
        end_line(&mut text);
        Err(Refusal::Told(text + &how))
    }
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
