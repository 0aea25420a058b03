//! `haft check` and `haft compile`.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use super::diagnostics;
use super::project::{IR, Models, Project, SOURCE, Warnings, shown};
use super::write::replace;
use crate::arguments::{CheckArguments, CompileArguments};
use crate::failure::Failure;

/// Says what is wrong.
pub(super) fn check(arguments: &CheckArguments) -> Result<ExitCode, Box<dyn Error>> {
    let project = Project::open(&arguments.program)?;
    project.note_manifest(Warnings::Shown);
    let Some(checked) = project.check(Models::of(arguments.mock))? else {
        return Ok(ExitCode::SUCCESS);
    };
    diagnostics::show(&checked, Warnings::Shown)?;
    Ok(if checked.has_errors() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Writes the IR, unless something is wrong.
pub(super) fn compile(arguments: &CompileArguments) -> Result<ExitCode, Box<dyn Error>> {
    let project = Project::open(&arguments.program)?;
    if project.is_compiled() {
        let text = format!("`{}` is compiled already", project.name());
        let remedy = "`haft check` says whether it can be loaded";
        return Err(Failure::mistake(text).remedy(remedy).into());
    }
    let warnings = Warnings::unless(arguments.quiet);
    let Some(ir) = project.compile(Models::of(arguments.mock), warnings)? else {
        return Ok(ExitCode::FAILURE);
    };
    let mut json = ir.to_json();
    if !json.ends_with('\n') {
        json.push('\n');
    }
    if arguments.emit_ir {
        let mut out = io::stdout().lock();
        out.write_all(json.as_bytes())?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let beside = project.file.with_extension(IR);
    let path: &Path = arguments.output.as_deref().unwrap_or(&beside);
    if path.extension().is_some_and(|it| it == SOURCE) {
        let text = format!("`{}` would be overwritten with IR", shown(path));
        let remedy = format!("sources end in `.{SOURCE}`: write to a file that ends in `.{IR}`");
        return Err(Failure::mistake(text).remedy(remedy).into());
    }
    replace(path, json.as_bytes())?;
    if !arguments.quiet {
        writeln!(io::stderr(), "wrote {}", shown(path))?;
    }
    Ok(ExitCode::SUCCESS)
}
