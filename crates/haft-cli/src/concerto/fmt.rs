//! `haft fmt`: programs in their usual form.

use std::error::Error;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use haft_concerto::print::FormatError;
use haft_concerto::source::{MAX_FILE_BYTES, SourceMap};

use super::diagnostics;
use super::project::{SOURCE, Warnings, read, shown};
use super::write::replace;
use crate::arguments::FmtArguments;
use crate::failure::Failure;

/// What stands for standard input.
const STDIN: &str = "-";

/// What standard input is called in diagnostics.
const STDIN_NAME: &str = "<stdin>";

/// Folders in which nobody looks for programs.
const SKIPPED: [&str; 2] = ["target", "node_modules"];

/// What became of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Became {
    /// It was as it should be.
    Same,
    /// It is now, or would be.
    Changed,
    /// It cannot be read as a program, which was told.
    Refused,
}

/// Brings files into their usual form, or says which are not.
pub(super) fn fmt(arguments: &FmtArguments) -> Result<ExitCode, Box<dyn Error>> {
    let is_stdin = |path: &PathBuf| path.as_os_str() == STDIN;
    if arguments.files.iter().any(is_stdin) {
        if arguments.files.len() > 1 {
            let text = "standard input is formatted alone";
            return Err(Failure::mistake(text).remedy("write `haft fmt -`").into());
        }
        return of_stdin(arguments.check);
    }
    let mut code = ExitCode::SUCCESS;
    for file in files(&arguments.files)? {
        let became = of_file(&file, arguments.check)?;
        match became {
            Became::Same => {}
            Became::Changed if arguments.check => {
                writeln!(io::stdout(), "{}", shown(&file))?;
                code = ExitCode::FAILURE;
            }
            Became::Changed => writeln!(io::stderr(), "formatted {}", shown(&file))?,
            Became::Refused => code = ExitCode::FAILURE,
        }
    }
    Ok(code)
}

fn of_stdin(is_checked: bool) -> Result<ExitCode, Box<dyn Error>> {
    let mut bytes = Vec::new();
    let most = MAX_FILE_BYTES as u64 + 1;
    io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new("standard input is not UTF-8").remedy("write it as UTF-8"))?;
    let Some(usual) = usual_form(STDIN_NAME, &text)? else {
        return Ok(ExitCode::FAILURE);
    };
    if is_checked {
        return Ok(if usual == text {
            ExitCode::SUCCESS
        } else {
            writeln!(io::stdout(), "{STDIN_NAME}")?;
            ExitCode::FAILURE
        });
    }
    let mut out = io::stdout().lock();
    out.write_all(usual.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn of_file(file: &Path, is_checked: bool) -> Result<Became, Box<dyn Error>> {
    let text = read(file, MAX_FILE_BYTES + 1)?;
    let Some(usual) = usual_form(&file.to_string_lossy(), &text)? else {
        return Ok(Became::Refused);
    };
    if usual == text {
        return Ok(Became::Same);
    }
    if !is_checked {
        replace(file, usual.as_bytes())?;
    }
    Ok(Became::Changed)
}

/// The usual form, or nothing once it was told why there is none.
fn usual_form(name: &str, text: &str) -> Result<Option<String>, Box<dyn Error>> {
    match haft_concerto::format(text) {
        Ok(usual) => Ok(Some(usual)),
        Err(FormatError::Syntax(found)) => {
            let mut sources = SourceMap::new();
            // It was not too long before.
            sources.add(name, text.to_owned())?;
            diagnostics::show_all(&found, &sources, Warnings::Hidden)?;
            Ok(None)
        }
        Err(FormatError::Source(_)) => {
            let text = format!("`{name}` is too long: a file may have {MAX_FILE_BYTES} bytes");
            Err(Failure::new(text).into())
        }
    }
}

/// The files that are meant, each once, in a fixed order.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let here = [PathBuf::from(".")];
    let named = if named.is_empty() { &here } else { named };
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            below(path, &mut files)?;
        } else if path.extension().is_some_and(|it| it == SOURCE) {
            files.push(path.clone());
        } else if path.exists() {
            let text = format!("`{}` is no Concerto program", shown(path));
            return Err(Failure::mistake(text).remedy("programs end in `.conc`"));
        } else {
            return Err(Failure::mistake(format!(
                "there is no file `{}`",
                shown(path)
            )));
        }
    }
    files.dedup();
    Ok(files)
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::new(format!("cannot read `{}`: {error}", shown(folder)));
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Links are not followed: they may lead around in a circle.
        entries.push((entry.path(), entry.file_type().map_err(failed)?));
    }
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    for (path, kind) in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if kind.is_dir() {
            if !name.starts_with('.') && !SKIPPED.contains(&&*name) {
                below(&path, files)?;
            }
        } else if kind.is_file() && path.extension().is_some_and(|it| it == SOURCE) {
            files.push(path.strip_prefix(".").map_or(path.clone(), Path::to_owned));
        }
    }
    Ok(())
}
