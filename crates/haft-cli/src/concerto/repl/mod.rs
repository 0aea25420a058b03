//! `haft repl`: a program that is written while it runs.

mod input;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use haft_concerto::host::Host;
use haft_concerto::load::load;
use haft_concerto::repl::{Reading, Ready, Repl};
use haft_concerto::vm::{Legacy, Output as _};

use self::input::{Input, Typed};
use super::diagnostics;
use super::output::{Printer, is_closed};
use super::project::{Beside, Models, Project, Warnings};
use super::run::{INTERRUPTED, tell, told_to_stop, until_interrupted, unwritten};
use super::surroundings::Surroundings;
use crate::arguments::ReplArguments;
use crate::config::for_programs;
use crate::failure::Failure;
use crate::text::printable;

const WELCOME: &str = "Concerto. `:help` shows the commands, `:quit` or Ctrl-D leaves.\n";

const HELP: &str = "\
:help         this
:type VALUE   what the value of an expression is; it is computed for that
:reset        forget everything
:quit         leave, as Ctrl-D does

Write declarations, statements and expressions; the value of an expression is shown, unless a semicolon
ends it. What is open goes on in the next line; Ctrl-C drops it, or stops what runs.
";

/// Reads and runs pieces until somebody leaves.
pub(super) async fn repl(arguments: ReplArguments) -> Result<ExitCode, Box<dyn Error>> {
    let beside = for_programs(arguments.from.config.as_deref())?;
    let project = Project::without_program(std::path::Path::new(""), beside)?;
    let said = &arguments.surroundings;
    let models = Models::of(said.mock);
    project.note_manifest(Warnings::Shown);
    let surroundings = Surroundings::of(&project, models, &said.permissions, said.limits)?;
    let current: Current = Arc::default();
    let stopped = Arc::clone(&current);
    let mut session = Session {
        repl: Repl::new(project.options(models)),
        legacy: Legacy::default(),
        printer: Printer::new(move || {
            if let Some(host) = &*lock(&stopped) {
                host.cancel();
            }
        }),
        surroundings,
        project,
        models,
        current,
        host: None,
    };
    let mut input = Input::open()?;
    let is_typed = input.is_terminal();
    if is_typed {
        session.printer.print(WELCOME);
    }
    let mut has_failed = false;
    let ended = loop {
        if let Err(error) = session.printer.finish() {
            break if is_closed(&error) {
                Ok(ExitCode::SUCCESS)
            } else {
                Err(unwritten(&error).into())
            };
        }
        let typed = tokio::select! {
            typed = input.next() => typed?,
            () = told_to_stop() => break Ok(ExitCode::from(INTERRUPTED)),
        };
        let text = match typed {
            Typed::Piece(text) => text,
            Typed::Dropped => continue,
            Typed::End => {
                let is_bad = has_failed && !is_typed;
                break Ok(ExitCode::from(u8::from(is_bad)));
            }
        };
        match session.perform(&text).await {
            Ok(Came::Well) => {}
            Ok(Came::Badly) => has_failed = true,
            Ok(Came::Interrupted) if is_typed => writeln!(io::stderr(), "interrupted")?,
            Ok(Came::Interrupted) => break Ok(ExitCode::from(INTERRUPTED)),
            Ok(Came::Over) => break Ok(ExitCode::SUCCESS),
            Err(error) => break Err(error),
        }
    };
    if let Some(host) = &session.host {
        host.close().await;
    }
    session.surroundings.close().await;
    ended
}

/// The host of what runs now.
type Current = Arc<Mutex<Option<Host>>>;

fn lock(current: &Current) -> std::sync::MutexGuard<'_, Option<Host>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What became of what was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Well,
    Badly,
    Interrupted,
    Over,
}

struct Session {
    repl: Repl,
    legacy: Legacy,
    printer: Printer,
    surroundings: Surroundings,
    project: Project,
    models: Models,
    current: Current,
    /// That of the last piece: what it started is kept for the next.
    host: Option<Host>,
}

impl Session {
    async fn perform(&mut self, text: &str) -> Result<Came, Box<dyn Error>> {
        let Some(command) = text.trim().strip_prefix(':') else {
            return self.piece(text).await;
        };
        let (name, rest) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        match name {
            "help" | "h" => self.printer.print(HELP),
            "quit" | "q" | "exit" => return Ok(Came::Over),
            "reset" => {
                self.repl = Repl::new(self.project.options(self.models));
                self.legacy = Legacy::default();
                if let Some(host) = self.host.take() {
                    host.close().await;
                }
            }
            "type" | "t" if !rest.trim().is_empty() => {
                let rest = rest.trim().trim_end_matches(';');
                return self.piece(&format!("typeof({rest})")).await;
            }
            "type" | "t" => return refused("`:type` wants an expression, such as `:type 1 + 2`"),
            other => {
                let other = printable(other);
                return refused(&format!(
                    "there is no command `:{other}`: `:help` shows them"
                ));
            }
        }
        Ok(Came::Well)
    }

    async fn piece(&mut self, text: &str) -> Result<Came, Box<dyn Error>> {
        let more = Beside::default();
        let reading = self.repl.read(text, &more);
        more.tell();
        match reading {
            Reading::Empty => Ok(Came::Well),
            Reading::Wrong(wrong) => {
                diagnostics::show_all(&wrong, self.repl.sources(), Warnings::Shown)?;
                Ok(Came::Badly)
            }
            // The end of the input came before the end of what was written.
            Reading::Unfinished => refused("what was written is not finished"),
            Reading::Ready(ready) => self.run(*ready).await,
        }
    }

    async fn run(&mut self, ready: Ready) -> Result<Came, Box<dyn Error>> {
        diagnostics::show_all(&ready.warnings, self.repl.sources(), Warnings::Shown)?;
        let program = load(ready.ir.clone());
        let program = program.map_err(|error| Failure::new(error.to_string()))?;
        let host = match self.host.take() {
            Some(before) => before.followed_by(program).await,
            None => Host::new(program, self.surroundings.setup.clone()),
        };
        *lock(&self.current) = Some(host.clone());
        let legacy = ready.legacy(std::mem::take(&mut self.legacy));
        let output = self.printer.boxed();
        let work = host.piece(&ready, legacy, output);
        let (ended, is_interrupted) = until_interrupted(&host, work).await;
        lock(&self.current).take();
        self.host = Some(host);
        let (ended, legacy) = ended;
        self.legacy = legacy;
        if is_interrupted {
            return Ok(Came::Interrupted);
        }
        let value = match ended {
            Ok(value) => value,
            Err(failure) => {
                self.printer.flush();
                if !failure.is_cancelled {
                    // What a piece is called is nobody's concern.
                    let place = failure.place.as_ref();
                    let is_named = place.is_some_and(|it| !it.function.starts_with('$'));
                    tell(&failure, is_named)?;
                }
                return Ok(Came::Badly);
            }
        };
        let taken = self.repl.take(ready, &value);
        if let Some(value) = taken.value {
            self.printer.print(&format!("{value}\n"));
        }
        if !taken.forgotten.is_empty() {
            let names = taken.forgotten.join("`, `");
            diagnostics::warn(&format!(
                "`{names}` held functions of what was declared anew: make it again"
            ));
        }
        Ok(Came::Well)
    }
}

fn refused(text: &str) -> Result<Came, Box<dyn Error>> {
    writeln!(io::stderr(), "{text}")?;
    Ok(Came::Badly)
}
