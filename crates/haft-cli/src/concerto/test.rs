//! `haft test`.

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use haft_concerto::host::{EmitFormat, Host, TestOutcome};
use haft_concerto::vm::Output as _;

use super::output::{Silent, is_closed};
use super::project::{Models, Project, Warnings};
use super::run::{INTERRUPTED, printer_for, until_interrupted, unwritten};
use super::surroundings::Surroundings;
use crate::arguments::TestArguments;
use crate::text::printable;

/// Runs the tests, each on a machine of its own.
pub(super) async fn test(arguments: TestArguments) -> Result<ExitCode, Box<dyn Error>> {
    let project = Project::open(&arguments.program)?;
    let models = if arguments.live {
        Models::of(false)
    } else {
        Models::Mocked
    };
    let warnings = Warnings::unless(arguments.quiet);
    let Some(ir) = project.compile(models, warnings)? else {
        return Ok(ExitCode::FAILURE);
    };
    let program = haft_concerto::load::load(ir).map_err(|error| project.unloadable(&error))?;
    let all = program
        .ir()
        .tests
        .iter()
        .map(|test| test.description.clone());
    let filter = arguments.filter.as_deref().unwrap_or_default();
    let mut chosen: Vec<(usize, String)> = all.enumerate().collect();
    let has_any = !chosen.is_empty();
    chosen.retain(|(_, name)| name.contains(filter));
    if chosen.is_empty() {
        let words = if has_any {
            "no tests matching filter"
        } else {
            "no tests found"
        };
        writeln!(io::stderr(), "{words}")?;
        return Ok(ExitCode::FAILURE);
    }
    let emits = if arguments.debug {
        EmitFormat::Text
    } else {
        EmitFormat::Hidden
    };
    let surroundings =
        Surroundings::of(&project, models, &arguments.permissions, arguments.limits)?.emits(emits);
    let host = Host::new(program, surroundings.setup.clone());
    let (ended, is_interrupted) =
        until_interrupted(&host, run_all(&host, &chosen, &arguments)).await;
    host.close().await;
    surroundings.close().await;
    match ended {
        Err(error) if is_closed(&error) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(unwritten(&error).into()),
        Ok(_) if is_interrupted => Ok(ExitCode::from(INTERRUPTED)),
        Ok(code) => Ok(code),
    }
}

async fn run_all(
    host: &Host,
    chosen: &[(usize, String)],
    arguments: &TestArguments,
) -> io::Result<ExitCode> {
    let mut out = printer_for(host);
    let is_shown = !arguments.quiet;
    // Programs read the lines of the language's reference; people want to know where.
    let shows_places = arguments.debug || io::stdout().is_terminal();
    if is_shown {
        out.print(&format!("running {} tests\n\n", chosen.len()));
    }
    let mut failures = Vec::new();
    for (place, name) in chosen {
        let words = if arguments.debug {
            out.boxed()
        } else {
            Box::new(Silent)
        };
        let outcome = host.test(*place, words).await;
        let name = printable(name);
        let line = match outcome {
            TestOutcome::Passed(false) => format!("  PASS  {name}\n"),
            TestOutcome::Passed(true) => format!("  PASS  {name} (expected failure)\n"),
            TestOutcome::Failed(said, place) => {
                let mut failure = format!("  {name} -- {said}\n");
                if let Some(place) = place.filter(|_| shows_places) {
                    failure = format!("{failure}      at {}\n", printable(&place.to_string()));
                }
                failures.push(failure);
                format!("  FAIL  {name}\n")
            }
        };
        if is_shown {
            out.print(&line);
        }
    }
    let failed = failures.len();
    let passed = chosen.len() - failed;
    let gap = if is_shown { "\n" } else { "" };
    let word = if failed == 0 { "ok" } else { "FAILED" };
    out.print(&format!(
        "{gap}test result: {word}. {passed} passed, {failed} failed\n"
    ));
    if failed == 0 {
        return out.finish().map(|()| ExitCode::SUCCESS);
    }
    out.print(&format!("\nfailures:\n{}", failures.concat()));
    out.finish().map(|()| ExitCode::FAILURE)
}
