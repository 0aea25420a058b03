//! The supervisor: a process between haft and an MCP server that runs as a child, which ends everything
//! that the server started when haft is gone, even after SIGKILL.
//!
//! haft starts it in a process group of its own. It passes its pipes to the server and keeps none of them.
//! All processes that the server starts, in its group or outside, are descendants of the supervisor, which
//! on Linux adopts every descendant that loses its parent (`PR_SET_CHILD_SUBREAPER`). It exits when no
//! descendant is left. haft sends it SIGTERM to end the server, or SIGUSR2 to kill all descendants at once,
//! and never kills the supervisor itself.
//!
//! One runs for each server, so its own memory counts: most of it is pages of the executable that all haft
//! processes share, and the rest is what the dynamic linker writes when it relocates the executable.

use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as Caught, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

use super::descendants::tell;
use crate::arguments::SuperviseArguments;

/// How often the parent is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// How long everybody has who was told to end. Shorter than the patience of haft, which has all servers
/// to end within five seconds.
const GRACE: Duration = Duration::from_secs(1);

/// The same for what a server left behind that ended by itself.
const GRACE_AFTERWARDS: Duration = Duration::from_millis(500);

/// How long killed processes may take to be gone, and how often they are looked for.
const GONE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(20);

/// What a shell says of a program that is not there, and of one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Reads the command line that haft starts a supervisor with. It does what the parser of the other commands
/// does, whose description of all commands alone takes half a megabyte. `None` for any other command line,
/// and for one with a mistake, which that parser reports.
pub(crate) fn supervisor_arguments(
    arguments: impl IntoIterator<Item = OsString>,
) -> Option<SuperviseArguments> {
    let mut arguments = arguments.into_iter().skip(1);
    for expected in ["mcp", "supervise", "--parent"] {
        arguments.next().filter(|it| it == expected)?;
    }
    let parent = arguments.next()?.to_str()?.parse().ok()?;
    arguments.next().filter(|it| it == "--")?;
    let command: Vec<OsString> = arguments.collect();
    (!command.is_empty()).then_some(SuperviseArguments { parent, command })
}

/// Supervises in a process that has done nothing else.
pub(crate) fn run_supervisor(arguments: &SuperviseArguments) -> ExitCode {
    let runtime = Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(supervise(arguments)),
        Err(error) => Err(error.into()),
    };
    result.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "haft: {error}");
        ExitCode::FAILURE
    })
}

/// Starts the program, and ends with its code.
pub(super) async fn supervise(arguments: &SuperviseArguments) -> Result<ExitCode, Box<dyn Error>> {
    let mut signals = Signals::listen()?;
    let parent = i32::try_from(arguments.parent).ok().and_then(Pid::from_raw);
    let is_orphan = || rustix::process::getppid() != parent;
    prepare();
    if is_orphan() {
        return Ok(ExitCode::FAILURE);
    }
    let server = match start(&arguments.command) {
        Ok(server) => server,
        Err((error, code)) => {
            let program = arguments.command[0].display();
            let _ = writeln!(io::stderr(), "haft: cannot start `{program}`: {error}");
            return Ok(ExitCode::from(code));
        }
    };
    let mut deadline = None;
    let (grace, code) = loop {
        if let Some(status) = reap(server) {
            break (GRACE_AFTERWARDS, code_of(status));
        }
        if is_orphan() {
            break (GRACE, ExitCode::FAILURE);
        }
        let killed = || (Duration::ZERO, code_of_signal(Signal::KILL.as_raw()));
        tokio::select! {
            event = signals.next() => match event {
                Event::Look => {}
                Event::End => break killed(),
                Event::PassOn(signal) => {
                    // It may have had it already, with the group; twice does no harm.
                    let _ = kill_process(server, signal);
                    if signal == Signal::TERM {
                        deadline.get_or_insert_with(|| Instant::now() + GRACE);
                    }
                }
            },
            () = sleep(LOOK) => {}
            () = due(deadline) => break killed(),
        }
    };
    end_everybody(grace, &mut signals).await;
    Ok(code)
}

async fn due(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Makes this process what it must be. What the system does not have is done without: the parent is
/// looked for every second anyway.
fn prepare() {
    if rustix::process::getpgrp() != rustix::process::getpid() {
        let _ = rustix::process::setpgid(None, None);
    }
    #[cfg(target_os = "linux")]
    {
        // Sent when the thread ends that started this process, which need not be the end of haft: so not
        // the signal that means an end, but one that means to look.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::USR1));
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

/// Starts the server with the pipes of this process, which then has none of them any more: when the
/// server closes one, haft sees it.
fn start(command: &[OsString]) -> Result<Pid, (io::Error, u8)> {
    let (program, arguments) = command.split_first().unwrap_or((&command[0], &[]));
    let child = Command::new(program).args(arguments).spawn();
    let child = child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => (error, NOT_FOUND),
        _ => (error, NOT_RUN),
    })?;
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    id.ok_or_else(|| (io::Error::other("it has no number"), NOT_RUN))
}

/// Takes in everybody who has ended; how the server did, if it is one of them.
fn reap(server: Pid) -> Option<WaitStatus> {
    let mut ended = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == server {
            ended = Some(status);
        }
    }
    ended
}

/// Asks everybody below this process to end, then makes them, until there is nobody. Only the system can
/// say that: whoever loses a parent is a child of this process from that moment on, while any list of
/// processes has changed before it is read to the end.
async fn end_everybody(grace: Duration, signals: &mut Signals) {
    let begin = Instant::now();
    if !has_children() {
        return;
    }
    if !grace.is_zero() {
        tell(Signal::TERM);
    }
    let mut is_asked_only = true;
    while has_children() && begin.elapsed() < grace + GONE {
        is_asked_only = is_asked_only && begin.elapsed() < grace;
        if !is_asked_only {
            // Nobody can be killed too often, and somebody may have been started meanwhile.
            tell(Signal::KILL);
        }
        tokio::select! {
            event = signals.next() => is_asked_only = is_asked_only && event != Event::End,
            () = sleep(GLANCE) => {}
        }
    }
}

/// Takes in everybody who has ended; whether anybody is left.
fn has_children() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn code_of(status: WaitStatus) -> ExitCode {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => code_of_signal(signal),
        (None, None) => ExitCode::FAILURE,
    }
}

/// As a shell has it.
fn code_of_signal(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// What happened.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// Somebody has ended, perhaps the parent.
    Look,
    /// Everybody is to be killed.
    End,
    /// Somebody wants the server to have this.
    PassOn(Signal),
}

/// The signals that this process hears.
struct Signals {
    child: Caught,
    parent: Caught,
    end: Caught,
    passed_on: [(Caught, Signal); 4],
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            parent: signal(SignalKind::user_defined1())?,
            end: signal(SignalKind::user_defined2())?,
            passed_on: [
                (signal(SignalKind::terminate())?, Signal::TERM),
                (signal(SignalKind::interrupt())?, Signal::INT),
                (signal(SignalKind::hangup())?, Signal::HUP),
                (signal(SignalKind::quit())?, Signal::QUIT),
            ],
        })
    }

    async fn next(&mut self) -> Event {
        let [terminate, interrupt, hangup, quit] = &mut self.passed_on;
        tokio::select! {
            _ = self.child.recv() => Event::Look,
            _ = self.parent.recv() => Event::Look,
            _ = self.end.recv() => Event::End,
            _ = terminate.0.recv() => Event::PassOn(terminate.1),
            _ = interrupt.0.recv() => Event::PassOn(interrupt.1),
            _ = hangup.0.recv() => Event::PassOn(hangup.1),
            _ = quit.0.recv() => Event::PassOn(quit.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Option<(u32, Vec<OsString>)> {
        let arguments = supervisor_arguments(line.iter().map(OsString::from))?;
        Some((arguments.parent, arguments.command))
    }

    #[test]
    fn only_the_command_line_of_a_supervisor_is_read_early() {
        let command = ["npx", "--", "-y"].map(OsString::from).to_vec();
        let line = [
            "haft",
            "mcp",
            "supervise",
            "--parent",
            "7",
            "--",
            "npx",
            "--",
            "-y",
        ];
        assert_eq!(read(&line), Some((7, command)));
        for other in [
            &["haft"][..],
            &["haft", "mcp", "serve"],
            &["haft", "mcp", "supervise", "--help"],
            &["haft", "mcp", "supervise", "--parent", "x", "--", "npx"],
            &["haft", "mcp", "supervise", "--parent", "7", "npx"],
            &["haft", "mcp", "supervise", "--parent", "7", "--"],
        ] {
            assert_eq!(read(other), None, "{other:?}");
        }
    }
}
