//! Tools of programs in a catalogue, beside haft's own: the shortest way to add one.

use std::collections::HashSet;
use std::error::Error;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use haft::{Catalog, RegisterError, Registration, ToolName};
use haft_concerto::host::{EmitFormat, Host};
use haft_concerto::load::load;
use haft_concerto::natives::GrantedBy;
use haft_concerto::vm::Output;

use super::project::{Models, Project};
use super::surroundings::Surroundings;
use crate::arguments::{LimitArguments, PermissionArguments, ScriptArguments};
use crate::config::{ConcertoConfig, ForPrograms, for_programs};
use crate::failure::Failure;
use crate::text::printable;

/// Where the words of programs go: standard output may be a protocol's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// To the log.
    Log,
    /// To standard error.
    Aside,
}

/// Programs whose tools are in a catalogue.
#[derive(Default)]
pub(crate) struct Scripts {
    running: Vec<(Host, Surroundings)>,
    /// The names of their tools, in the order of files and sources.
    pub(crate) names: Vec<ToolName>,
}

/// Which programs, what they may do, and whose configuration knows their connections.
pub(crate) struct Wanted<'w> {
    pub(crate) flags: &'w ScriptArguments,
    pub(crate) said: &'w ConcertoConfig,
    pub(crate) config: Option<&'w Path>,
}

impl Wanted<'_> {
    /// The programs, each once, and where more is allowed to them.
    fn files(&self) -> Vec<(&Path, GrantedBy)> {
        let said = self.said.files.iter();
        let said = said.map(|file| (&**file, GrantedBy::Configuration));
        let named = self.flags.scripts.iter();
        let named = named.map(|file| (&**file, GrantedBy::Flags));
        let mut files: Vec<(&Path, GrantedBy)> = Vec::new();
        let mut seen = HashSet::new();
        for (file, granted_by) in said.chain(named) {
            let real = std::fs::canonicalize(file);
            if seen.insert(real.unwrap_or_else(|_| file.to_owned())) {
                files.push((file, granted_by));
            }
        }
        files
    }

    fn permissions(&self) -> PermissionArguments {
        let (flags, said) = (&self.flags.permissions, self.said);
        let both = |one: &[String], other: &[String]| [one, other].concat();
        PermissionArguments {
            allow_fs: both(&flags.allow_fs, &said.allow_fs),
            allow_net: both(&flags.allow_net, &said.allow_net),
            allow_env: both(&flags.allow_env, &said.allow_env),
            allow_process: flags.allow_process || said.allow_process,
        }
    }
}

impl Scripts {
    /// Compiles the programs and puts their tools into the catalogue. What is wrong with one is shown, and
    /// nothing goes on.
    pub(crate) async fn open(
        wanted: &Wanted<'_>,
        catalog: &Catalog,
        words: Words,
    ) -> Result<Self, Box<dyn Error>> {
        let mut scripts = Self::default();
        let files = wanted.files();
        if files.is_empty() {
            return Ok(scripts);
        }
        let beside = for_programs(wanted.config)?;
        for file in files {
            if let Err(error) = scripts.add(file, wanted, &beside, catalog, words).await {
                scripts.close().await;
                return Err(error);
            }
        }
        Ok(scripts)
    }

    async fn add(
        &mut self,
        (file, granted_by): (&Path, GrantedBy),
        wanted: &Wanted<'_>,
        beside: &ForPrograms,
        catalog: &Catalog,
        words: Words,
    ) -> Result<(), Box<dyn Error>> {
        let project = Project::find(file, beside.clone())?;
        let name = project.name();
        let models = Models::of(false);
        let Some(ir) = project.compile_tools(models)? else {
            return Err(has_errors(&project).into());
        };
        let program = load(ir).map_err(|error| project.unloadable(&error))?;
        let permissions = wanted.permissions();
        let limits = LimitArguments::default();
        let surroundings = Surroundings::of(&project, models, &permissions, limits)?;
        let mut surroundings = surroundings.emits(EmitFormat::Text);
        surroundings.setup.permissions.granted_by = granted_by;
        surroundings.setup.limits.memory = wanted.said.max_memory;
        surroundings.setup.call_limit = wanted.said.call_limit;
        surroundings.setup.tool_timeout = beside.loop_options.tool_timeout;
        let host = Host::new(program, surroundings.setup.clone());
        let tools = host.tools(Box::new(Lines::new(&name, words))).await;
        self.running.push((host, surroundings));
        let tools =
            tools.map_err(|failure| Failure::new(format!("`{name}`: runtime error: {failure}")))?;
        if tools.is_empty() {
            let text = format!("`{name}` has no tool that could be offered");
            let remedy = "a `pub fn` of a `tool` with `@describe` is one";
            return Err(Failure::new(text).remedy(remedy).into());
        }
        let origin = format!("`{name}`");
        let registrations = tools
            .into_iter()
            .map(|tool| Registration::new(tool).from_origin(origin.clone()));
        let report = catalog.add_all(registrations);
        if let Some(rejection) = report.rejected.first() {
            return Err(refused(&rejection.error).into());
        }
        self.names.extend(report.registered);
        Ok(())
    }

    /// Ends what they started.
    pub(crate) async fn close(&self) {
        for (host, surroundings) in &self.running {
            host.cancel();
            host.close().await;
            surroundings.close().await;
        }
    }
}

/// The programs of a configuration and how many tools each has. What is wrong with one is shown; nothing is
/// started.
pub(crate) fn checked(
    said: &ConcertoConfig,
    config: Option<&Path>,
) -> Result<Vec<(String, usize)>, Box<dyn Error>> {
    if said.files.is_empty() {
        return Ok(Vec::new());
    }
    let beside = for_programs(config)?;
    let mut programs = Vec::new();
    for file in &said.files {
        let project = Project::find(file, beside.clone());
        let project = project
            .map_err(|error| Failure::mistake(format!("`files` of `[concerto]`: {error}")))?;
        let ir = project.compile_tools(Models::of(false))?;
        let ir = ir.ok_or_else(|| has_errors(&project))?;
        let tools = ir.tools.iter().map(|tool| tool.tool_schemas.len()).sum();
        programs.push((project.name(), tools));
    }
    Ok(programs)
}

fn has_errors(project: &Project) -> Failure {
    let name = project.name();
    Failure::new(format!("`{name}` has errors: its tools cannot be offered"))
}

/// Why tools of a program cannot be offered.
fn refused(error: &RegisterError) -> Failure {
    match error {
        RegisterError::DuplicateTool {
            name,
            first,
            second,
        } => Failure::new(format!(
            "two tools are named `{name}`: of {first} and of {second}"
        ))
        .remedy("rename the function or its tool in the program"),
        error => Failure::new(error.to_string()),
    }
}

/// What programs print and log, line by line.
struct Lines {
    program: String,
    words: Words,
    begun: String,
    rate: LogRate,
}

/// A line that does not end is cut here.
const LONGEST: usize = 16 * 1024;

impl Lines {
    fn new(program: &str, words: Words) -> Self {
        Self {
            program: program.to_owned(),
            words,
            begun: String::new(),
            rate: LogRate::default(),
        }
    }

    fn line(&mut self, line: &str) {
        match self.words {
            // Callers from outside decide how often a tool prints.
            Words::Log => {
                let admission = self.rate.admit(line.len(), Instant::now());
                if admission.suppressed > 0 {
                    tracing::warn!(
                        program = self.program,
                        lines = admission.suppressed,
                        "output of the program was not logged: more than {LINES_PER_SECOND} lines or \
                         {BYTES_PER_SECOND} bytes per second"
                    );
                }
                if admission.is_logged {
                    tracing::info!(program = self.program, "{}", printable(line));
                }
            }
            Words::Aside => {
                // Whether somebody reads along changes nothing.
                let _ = writeln!(io::stderr(), "{}", printable(line));
            }
        }
    }
}

/// How much of a program's output is logged in one second.
const LINES_PER_SECOND: usize = 100;
const BYTES_PER_SECOND: usize = 64 * 1024;

/// Limits what a program writes to the log, second by second.
#[derive(Default)]
struct LogRate {
    /// When the current second began.
    since: Option<Instant>,
    lines: usize,
    bytes: usize,
    suppressed: usize,
}

/// What becomes of one line.
struct Admission {
    is_logged: bool,
    /// How many lines of the second before were not logged.
    suppressed: usize,
}

impl LogRate {
    fn admit(&mut self, bytes: usize, now: Instant) -> Admission {
        let is_over = |since: Instant| now.duration_since(since) >= Duration::from_secs(1);
        let mut suppressed = 0;
        if self.since.is_none_or(is_over) {
            suppressed = self.suppressed;
            *self = Self {
                since: Some(now),
                ..Self::default()
            };
        }
        self.lines += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let is_logged = self.lines <= LINES_PER_SECOND && self.bytes <= BYTES_PER_SECOND;
        self.suppressed += usize::from(!is_logged);
        Admission {
            is_logged,
            suppressed,
        }
    }
}

impl Output for Lines {
    fn print(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.begun.push_str(piece);
            if self.begun.ends_with('\n') || self.begun.len() > LONGEST {
                let line = std::mem::take(&mut self.begun);
                self.line(line.trim_end_matches('\n'));
            }
        }
    }

    fn log(&mut self, line: &str) {
        self.line(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_past_the_rate_are_counted_and_reported_with_the_next_second() {
        let (mut rate, start) = (LogRate::default(), Instant::now());
        let logged = (0..5 * LINES_PER_SECOND).filter(|_| rate.admit(1, start).is_logged);
        assert_eq!(logged.count(), LINES_PER_SECOND);
        let next = rate.admit(1, start + Duration::from_secs(1));
        assert_eq!(
            (next.is_logged, next.suppressed),
            (true, 4 * LINES_PER_SECOND)
        );
        let after = rate.admit(1, start + Duration::from_secs(1));
        assert_eq!((after.is_logged, after.suppressed), (true, 0));
    }

    #[test]
    fn long_lines_count_by_their_bytes() {
        let (mut rate, now) = (LogRate::default(), Instant::now());
        assert!(rate.admit(BYTES_PER_SECOND, now).is_logged);
        assert!(!rate.admit(1, now).is_logged);
    }
}
