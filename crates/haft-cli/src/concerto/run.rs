//! `haft run`.

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use haft_concerto::host::{EmitFormat, Host, RunFailure};
use haft_concerto::load::Program;

use super::output::{Printer, is_closed};
use super::project::{Models, Project, Warnings};
use super::surroundings::Surroundings;
use crate::arguments::{EmitForm, RunArguments};
use crate::failure::Failure;
use crate::text::printable;

/// What a process ends with that Ctrl-C has stopped.
pub(super) const INTERRUPTED: u8 = 130;

/// Runs the program.
pub(super) async fn run(arguments: RunArguments) -> Result<ExitCode, Box<dyn Error>> {
    let project = Project::open(&arguments.program)?;
    let said = &arguments.surroundings;
    let models = Models::of(said.mock);
    let warnings = Warnings::unless(arguments.quiet);
    let Some(ir) = project.compile(models, warnings)? else {
        return Ok(ExitCode::FAILURE);
    };
    let program = haft_concerto::load::load(ir).map_err(|error| project.unloadable(&error))?;
    if let Some(failure) = nothing_to_run(&project, &program) {
        return Err(failure.into());
    }
    let surroundings = Surroundings::of(&project, models, &said.permissions, said.limits)?.emits(
        match (arguments.quiet, arguments.emit) {
            (true, _) => EmitFormat::Hidden,
            (false, EmitForm::Text) => EmitFormat::Text,
            (false, EmitForm::Json) => EmitFormat::Json,
        },
    );
    let host = Host::new(program, surroundings.setup.clone());
    let printer = printer_for(&host);
    let (ended, is_interrupted) = until_interrupted(&host, host.run(printer.boxed())).await;
    let written = printer.finish();
    host.close().await;
    surroundings.close().await;
    match (written, ended) {
        // Whoever read has seen enough.
        (Err(error), _) if is_closed(&error) => Ok(ExitCode::SUCCESS),
        (Err(error), _) => Err(unwritten(&error).into()),
        (Ok(()), _) if is_interrupted => Ok(ExitCode::from(INTERRUPTED)),
        (Ok(()), Ok(_)) => Ok(ExitCode::SUCCESS),
        (Ok(()), Err(failure)) => {
            tell(&failure, arguments.debug)?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What to do with a program that has no entry.
fn nothing_to_run(project: &Project, program: &Program) -> Option<Failure> {
    let ir = program.ir();
    let entry = &ir.metadata.entry_point;
    if ir.functions.iter().any(|it| it.name == *entry) {
        return None;
    }
    let name = project.name();
    let text = format!("`{name}` has nothing to run: no `fn {entry}` and no statements");
    let remedy = if !ir.tests.is_empty() {
        format!("run its tests with `haft test {name}`")
    } else if !ir.tools.is_empty() {
        format!("serve its tools with `haft serve --concerto {name}`")
    } else {
        format!("write `fn {entry}() {{ … }}`")
    };
    Some(Failure::new(text).remedy(&*remedy))
}

/// Where a program's words go. If nobody reads them any more, it is stopped.
pub(super) fn printer_for(host: &Host) -> Printer {
    let host = host.clone();
    Printer::new(move || host.cancel())
}

/// Works until it is done, and whether Ctrl-C came first. Then it is stopped, and waited for, unless Ctrl-C
/// comes again: a single step of a program can take long.
pub(super) async fn until_interrupted<T>(host: &Host, work: impl Future<Output = T>) -> (T, bool) {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => (done, false),
        () = told_to_stop() => {
            host.cancel();
            tokio::select! {
                done = &mut work => (done, true),
                () = told_to_stop() => std::process::exit(i32::from(INTERRUPTED)),
            }
        }
    }
}

/// Done when somebody wants it to end.
pub(super) async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        if let Ok(mut signal) = signal(SignalKind::terminate())
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        caught = tokio::signal::ctrl_c() => {
            if caught.is_err() {
                // It cannot be caught here: the system ends the process.
                std::future::pending::<()>().await;
            }
        }
        () = terminated => {}
    }
}

/// Says how a program ended before its end.
pub(super) fn tell(failure: &RunFailure, is_debugged: bool) -> io::Result<()> {
    let mut out = io::stderr().lock();
    writeln!(out, "runtime error: {}", printable(&failure.to_string()))?;
    // Programs read the one line of the language's reference; people want to know where.
    if let (true, Some(place)) = (is_debugged || out.is_terminal(), &failure.place) {
        writeln!(out, "  at {}", printable(&place.to_string()))?;
    }
    Ok(())
}

/// Nothing more can be printed.
pub(super) fn unwritten(error: &io::Error) -> Failure {
    Failure::new(format!("cannot write to standard output: {error}"))
}
