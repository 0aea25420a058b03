//! What is wrong with a program, on standard error.

use std::io::{self, Write};

use haft_concerto::Compiled;
use haft_concerto::diagnostic::Diagnostic;
use haft_concerto::source::SourceMap;
use owo_colors::OwoColorize;

use super::project::Warnings;
use crate::text::printable;

/// Shows what a compiler found.
pub(super) fn show(compiled: &Compiled, warnings: Warnings) -> io::Result<()> {
    show_all(&compiled.diagnostics, &compiled.sources, warnings)
}

/// Shows these.
pub(super) fn show_all(
    diagnostics: &[Diagnostic],
    sources: &SourceMap,
    warnings: Warnings,
) -> io::Result<()> {
    let mut out = anstream::stderr().lock();
    for diagnostic in diagnostics {
        if !diagnostic.is_warning() || warnings == Warnings::Shown {
            write_one(&mut out, diagnostic, sources)?;
        }
    }
    Ok(())
}

/// The words are the language's own; here they only get their colours.
fn write_one(out: &mut impl Write, diagnostic: &Diagnostic, sources: &SourceMap) -> io::Result<()> {
    let text = diagnostic.render(sources);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let word = if diagnostic.is_warning() {
        "warning["
    } else {
        "error["
    };
    // The code ends with the first bracket behind the word.
    let at = first.find(word).unwrap_or(0);
    let end = first[at..].find(']').map_or(at, |end| at + end + 1);
    let (place, code, rest) = (&first[..at], &first[at..end], &first[end..]);
    if diagnostic.is_warning() {
        writeln!(out, "{place}{}{}", code.yellow().bold(), rest.bold())?;
    } else {
        writeln!(out, "{place}{}{}", code.red().bold(), rest.bold())?;
    }
    for line in lines {
        match line.split_once(" | ") {
            Some((margin, marks)) if marks.trim().chars().all(|it| it == '^') => {
                writeln!(
                    out,
                    "{}{}",
                    format!("{margin} | ").dimmed(),
                    marks.red().bold()
                )?;
            }
            Some((margin, code)) => writeln!(out, "{}{code}", format!("{margin} | ").dimmed())?,
            None => writeln!(out, "{}", line.cyan())?,
        }
    }
    Ok(())
}

/// Says something that keeps nobody from going on.
pub(super) fn warn(text: &str) {
    // Whether somebody reads along changes nothing.
    let _ = writeln!(
        anstream::stderr(),
        "{} {}",
        "warning:".yellow().bold(),
        printable(text)
    );
}
