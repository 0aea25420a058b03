//! A server as a child process: started in a group of its own, with little around it, and ended with
//! everything that it started.

mod environment;
mod family;
mod group;
mod program;
mod stderr;

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use self::environment::{environment, why_nested};
use self::family::{Family, Watch};
use self::stderr::LastWords;
use crate::error::Cause;
use crate::settings::StdioSettings;

/// How long is waited for a pipe to end whose child has.
const PIPE: Duration = Duration::from_millis(20);

/// How long killed processes may take to be gone: at the end, and before others take their place.
const REAP: Duration = Duration::from_millis(500);
const PLACE: Duration = Duration::from_secs(3);

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
    /// Puts this program and its arguments in front of every command: a supervisor. It must give its
    /// pipes to what it starts, end when that ends or when its group gets SIGTERM, return the exit code of
    /// what it started, and see to it that nobody else whom that started is left before it ends itself.
    /// At SIGUSR2 it must kill them all at once. It is not killed itself as long as it does that.
    pub fn through(prefix: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            prefix: prefix.into_iter().map(Into::into).collect(),
        }
    }

    /// Starts a server: in a group of its own, with the few variables that every child gets and those of
    /// the settings. Needs a runtime.
    pub fn start(&self, settings: &StdioSettings) -> Result<(Process, Pipes), Cause> {
        let own = std::iter::once(&settings.command).chain(&settings.args);
        let mut words = self.prefix.iter().cloned().chain(own.map(OsString::from));
        // The command itself is always there.
        let program = words.next().unwrap_or_default();
        let watch = if cfg!(unix) && !self.prefix.is_empty() {
            Watch::Supervisor
        } else {
            Watch::Group
        };
        if let Some(reason) = why_nested() {
            return Err(Cause::NotStarted {
                command: settings.command.clone(),
                reason: reason.into(),
            });
        }
        let variables = environment(&settings.env);
        let mut command = Command::new(program);
        command
            .args(words)
            .env_clear()
            .envs(&variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(watch == Watch::Group);
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
            family: Mutex::new(Some(Family::of(child, watch))),
            words: Mutex::new(LastWords::of(stderr)),
        };
        Ok((process, Pipes { stdin, stdout }))
    }
}

/// Where the protocol is spoken.
#[derive(Debug)]
pub struct Pipes {
    /// What the child reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
}

/// A running child and all that it started. Dropping it kills them.
#[derive(Debug)]
pub struct Process {
    // Taken out only to be dropped.
    family: Mutex<Option<Family>>,
    words: Mutex<LastWords>,
}

impl Process {
    /// Ends the child, whose standard input must be closed already: waits, asks, then forces. Each
    /// step takes at most this long. A supervisor that needs longer goes on by itself.
    pub async fn stop(&self, step: Duration) {
        let mut family = self.family.lock().await;
        let Some(family) = family.as_mut() else {
            return;
        };
        let _ = tokio::time::timeout(step, family.child().wait()).await;
        if family.lives() {
            family.ask();
            let _ = tokio::time::timeout(step, family.gone()).await;
        }
        family.force();
        let _ = tokio::time::timeout(REAP, family.gone()).await;
    }

    /// Ends everybody at once, before others take their place.
    pub async fn kill(&self) {
        if let Some(family) = self.family.lock().await.as_mut() {
            family.force();
            let _ = tokio::time::timeout(PLACE, family.gone()).await;
        }
    }

    /// How the child ended, if it does so presently.
    pub async fn end(&self) -> Option<ExitStatus> {
        let mut family = self.family.lock().await;
        let child = family.as_mut()?.child();
        let status = tokio::time::timeout(EXIT, child.wait()).await.ok()?.ok()?;
        let mut words = self.words.lock().await;
        // Grandchildren may hold the pipe open.
        let _ = tokio::time::timeout(PIPE, words.finished()).await;
        Some(status)
    }

    /// The last lines that the child wrote to its standard error.
    pub async fn last_words(&self) -> String {
        self.words.lock().await.shown()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut family) = self.family.get_mut().take() else {
            return;
        };
        family.force();
        if family.watch() == Watch::Supervisor
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(family.see_out());
        }
    }
}
