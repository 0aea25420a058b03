//! What is wrong with a program, where, and what to do about it.

use std::fmt::{self, Write as _};

use crate::source::{SourceMap, Span};

/// The rule that a program breaks (concerto.md §3). `E…` are errors, `W…` warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[rustfmt::skip]
#[expect(missing_docs, reason = "the names are the codes of the language's reference")]
pub enum Code {
    E001, E002,
    E010, E011, E012, E013, E014, E015, E016, E017, E018, E019,
    E020, E021, E022, E023, E024, E025, E026, E027, E028, E029,
    E030, E031, E032, E033, E034, E035, E036,
    W001, W002, W003, W004, W005, W006, W007, W008, W009, W010, W011,
}

impl Code {
    /// Whether the program can run nevertheless.
    pub fn is_warning(self) -> bool {
        self >= Self::W001
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which rule.
    pub code: Code,
    /// Where.
    pub span: Span,
    /// What.
    pub text: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Something that is wrong here.
    pub fn new(code: Code, span: Span, text: impl Into<String>) -> Self {
        Self {
            code,
            span,
            text: text.into(),
            help: None,
        }
    }

    /// With what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether the program can run nevertheless.
    pub fn is_warning(&self) -> bool {
        self.code.is_warning()
    }

    /// `file:line:col: error[E010]: text`, the line concerned with a mark below it, and the help.
    pub fn render(&self, sources: &SourceMap) -> String {
        let kind = if self.is_warning() {
            "warning"
        } else {
            "error"
        };
        let Self { code, text, .. } = self;
        let Some(file) = sources.file(self.span.start) else {
            return format!("{kind}[{code}]: {}\n", printable(text));
        };
        let position = file.position(self.span.start);
        let (line, column) = (position.line, position.column);
        let path = printable(&file.path);
        let mut out = format!(
            "{path}:{line}:{column}: {kind}[{code}]: {}\n",
            printable(&shortened(text))
        );
        excerpt(
            &mut out,
            file.line(line),
            line,
            column,
            file.slice(self.span),
        );
        if let Some(help) = &self.help {
            // Writing to a string does not fail.
            let _ = writeln!(out, "  = help: {}", printable(help));
        }
        out
    }
}

/// The longest line that is shown. What a mark in the middle of a longer one means, nobody sees.
const MAX_SHOWN: usize = 200;

fn excerpt(out: &mut String, line: &str, number: u32, column: u32, marked: &str) {
    let column = column as usize - 1;
    if line.chars().count() > MAX_SHOWN || line.trim().is_empty() {
        return;
    }
    let margin = " ".repeat(number.to_string().len());
    let lead: String = line
        .chars()
        .take(column)
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let first = marked.lines().next().unwrap_or_default();
    let marks = "^".repeat(first.trim_end().chars().count().max(1));
    // Writing to a string does not fail.
    let _ = writeln!(out, " {number} | {}", printable(line));
    let _ = writeln!(out, " {margin} | {lead}{marks}");
}

/// The longest message. Names are of any length; nobody reads them to their end.
const MAX_TEXT: usize = 600;

fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{} …", &text[..end]).into(),
        None => text.into(),
    }
}

/// Text of a stranger as a terminal may get it: characters that steer one are shown as `\u{..}`.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Everything that is wrong with a program, in the order in which it was found.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: bool,
}

/// How many are kept. Whoever has more mends these first.
const MAX_KEPT: usize = 200;

impl Diagnostics {
    /// Takes one more in.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let error = !diagnostic.is_warning();
        if self.list.len() < MAX_KEPT || (error && !self.errors) {
            self.list.push(diagnostic);
        }
        self.errors |= error;
    }

    /// Whether there are so many that no more are kept: what they say need not be found out.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MAX_KEPT && self.has_errors()
    }

    /// Whether another warning would be kept.
    pub fn takes_warnings(&self) -> bool {
        self.list.len() < MAX_KEPT
    }

    /// Whether there is an error among them.
    pub fn has_errors(&self) -> bool {
        self.errors
    }

    /// All of them, by their place in the program, each once.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|it| (it.span.start, it.code));
        self.list.dedup();
        self.list
    }
}

/// The one of these names that was probably meant by a name that does not exist.
pub fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = |name: &&str| {
        let allowed = 1 + wrong.chars().count().min(name.chars().count()) / 4;
        let length = wrong.len().abs_diff(name.len());
        // Any two short names are near to each other: half of the letters must be there.
        let longest = wrong.len().max(name.len());
        let far = |distance: usize| distance > allowed || distance * 2 > longest;
        length <= allowed && !far(strsim::damerau_levenshtein(wrong, name))
    };
    names
        .into_iter()
        .filter(|name| *name != wrong)
        .filter(close)
        .min_by_key(|name| (strsim::damerau_levenshtein(wrong, name), *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_where_and_the_next_ones_show_it() {
        let mut sources = SourceMap::new();
        let text = "let a = 1;\n\tprint(bb);\n".to_owned();
        sources.add("app.conc", text).unwrap();
        let wrong = Diagnostic::new(Code::E010, Span::new(18, 20), "`bb` is not defined");
        let shown = wrong.help("did you mean `b`?").render(&sources);
        let expected = "app.conc:2:8: error[E010]: `bb` is not defined\n \
                        2 | \tprint(bb);\n   | \t      ^^\n  = help: did you mean `b`?\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn text_of_a_program_does_not_steer_a_terminal() {
        let mut sources = SourceMap::new();
        sources.add("a.conc", "\u{1b}[2J".to_owned()).unwrap();
        let wrong = Diagnostic::new(Code::E001, Span::new(0, 1), "`\u{1b}` is no token");
        assert!(!wrong.render(&sources).contains('\u{1b}'));
    }

    #[test]
    fn a_name_without_end_has_one() {
        let mut sources = SourceMap::new();
        sources.add("a.conc", "x".repeat(1000)).unwrap();
        let text = format!("`{}` is not defined", "ä".repeat(1000));
        let shown = Diagnostic::new(Code::E010, Span::new(0, 1), text).render(&sources);
        assert_eq!(
            shown.chars().count(),
            600 + "a.conc:1:1: error[E010]:  …\n".chars().count()
        );
    }

    #[test]
    fn near_names_are_proposed_and_far_ones_are_not() {
        let names = ["restock", "band", "main"];
        assert_eq!(did_you_mean("restok", names), Some("restock"));
        assert_eq!(did_you_mean("zebra", names), None);
        assert_eq!(did_you_mean("y", ["x"]), None);
    }
}
