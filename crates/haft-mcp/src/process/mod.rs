//! A server as a child process: started in a group of its own, with little around it, and ended with
//! everything that it started.

mod environment;
mod program;
mod stderr;

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use self::environment::environment;
use self::stderr::LastWords;
use crate::error::Cause;
use crate::settings::StdioSettings;

/// How often a group is looked at that shall end.
const LOOK: Duration = Duration::from_millis(20);

/// How long a killed child may take to be gone.
const REAP: Duration = Duration::from_millis(500);

/// How long is waited for the end of a child whose pipe closed, to tell how it ended.
const EXIT: Duration = Duration::from_millis(500);

/// How servers are started: as they are, or through a program that watches over them.
///
/// When haft itself is killed nobody is left to end its children. A supervisor in front of them can
/// notice that and end them; without one they get only what the library can do while it runs.
///
/// ```
/// use haft_mcp::Launcher;
/// let watched = Launcher::through(["/usr/bin/haft", "mcp", "supervise", "--"]);
/// assert_ne!(watched, Launcher::default());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launcher {
    prefix: Vec<OsString>,
}

impl Launcher {
    /// Puts this program and its arguments in front of every command. It must pass on what comes
    /// through its pipes, end when its standard input ends or its group is told to, and return the
    /// exit code of what it starts.
    pub fn through(prefix: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            prefix: prefix.into_iter().map(Into::into).collect(),
        }
    }

    /// Starts a server.
    pub(crate) fn start(&self, settings: &StdioSettings) -> Result<(Process, Pipes), Cause> {
        let own = std::iter::once(&settings.command).chain(&settings.args);
        let mut words = self.prefix.iter().cloned().chain(own.map(OsString::from));
        // The command itself is always there.
        let program = words.next().unwrap_or_default();
        let variables = environment(&settings.env);
        let mut command = Command::new(program);
        command
            .args(words)
            .env_clear()
            .envs(&variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        if let Some(cwd) = &settings.cwd {
            command.current_dir(cwd);
        }
        let not_started = |reason: String| Cause::NotStarted {
            command: settings.command.clone(),
            reason,
        };
        if let Some(cwd) = settings.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            // Otherwise the system's words would blame the program.
            return Err(not_started(format!(
                "its directory `{}` does not exist",
                cwd.display()
            )));
        }
        if !self.prefix.is_empty()
            && let Some(reason) =
                program::why_not(&settings.command, settings.cwd.as_deref(), &variables)
        {
            // What stands in front can be started, so that nobody else would notice.
            return Err(not_started(reason.into()));
        }
        let mut child = command
            .spawn()
            .map_err(|error| not_started(error.to_string()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(not_started("it has no pipes".into()));
        };
        let process = Process {
            group: Group::of(&child),
            child: Mutex::new(child),
            words: Mutex::new(LastWords::of(stderr)),
        };
        Ok((process, Pipes { stdin, stdout }))
    }
}

/// Where the protocol is spoken.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// A running child and all that it started. Dropping it kills them.
#[derive(Debug)]
pub(crate) struct Process {
    // The group is killed before the child is let go, while its number is still its own.
    group: Group,
    child: Mutex<Child>,
    words: Mutex<LastWords>,
}

impl Process {
    /// Ends the child, whose standard input must be closed already: waits, asks, then forces. Each
    /// step takes at most this long.
    pub(crate) async fn stop(&self, step: Duration) {
        let mut child = self.child.lock().await;
        let _ = tokio::time::timeout(step, child.wait()).await;
        if self.group.lives() {
            self.group.ask();
            let gone = async {
                let _ = child.wait().await;
                while self.group.lives() {
                    tokio::time::sleep(LOOK).await;
                }
            };
            let _ = tokio::time::timeout(step, gone).await;
        }
        self.group.kill();
        let _ = child.start_kill();
        let _ = tokio::time::timeout(REAP, child.wait()).await;
    }

    /// How the child ended, if it does so presently.
    pub(crate) async fn end(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock().await;
        let status = tokio::time::timeout(EXIT, child.wait()).await.ok()?.ok()?;
        let mut words = self.words.lock().await;
        // Grandchildren may hold the pipe open.
        let _ = tokio::time::timeout(LOOK, words.finished()).await;
        Some(status)
    }

    /// The last lines that the child wrote to its standard error.
    pub(crate) async fn last_words(&self) -> String {
        self.words.lock().await.shown()
    }
}

/// The group of a child, by the child's number.
#[derive(Debug)]
struct Group {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
    is_gone: AtomicBool,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            id: id.and_then(rustix::process::Pid::from_raw),
            is_gone: AtomicBool::new(false),
        }
    }

    /// Whether anybody is left. Once nobody is, the number may become somebody else's, so that it is
    /// not used again.
    fn lives(&self) -> bool {
        let Some(id) = self.id.filter(|_| !self.is_gone.load(Ordering::Relaxed)) else {
            return false;
        };
        let nobody = rustix::process::test_kill_process_group(id) == Err(rustix::io::Errno::SRCH);
        self.is_gone.fetch_or(nobody, Ordering::Relaxed);
        !nobody
    }

    fn ask(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(id) = self.id.filter(|_| self.lives()) {
            // That nobody is left is no failure.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }
}

/// Without process groups only the child itself can be ended, by whoever holds it.
#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self {
            is_gone: AtomicBool::new(false),
        }
    }

    fn lives(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    fn ask(&self) {}

    fn kill(&self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
