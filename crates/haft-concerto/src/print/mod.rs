//! A program in its usual form: `haft fmt`. Comments stay, and so does what the program means.
//!
//! Literals and strings are copied as they are written. What stood on one line stays there if it
//! fits; an empty line between two things stays, several become one.

mod doc;
mod expr;
mod item;
mod stmt;

use doc::Doc;

use crate::ast::{Part, Path, Type, TypeKind};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lex::{Comment, lex};
use crate::parse::parse;
use crate::source::{SourceError, SourceFile, SourceMap, Span};

/// Why a text has no usual form.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// It cannot be read as a program.
    #[error("the program has syntax errors; `haft check` shows them")]
    Syntax(Vec<Diagnostic>),
    /// It is too long.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// The usual form of a program.
///
/// ```
/// let pretty = haft_concerto::format("let  a=1 ; // one\nprintln( a );")?;
/// assert_eq!(pretty, "let a = 1; // one\nprintln(a);\n");
/// # Ok::<(), haft_concerto::print::FormatError>(())
/// ```
pub fn format(text: &str) -> Result<String, FormatError> {
    let mut map = SourceMap::new();
    let file = map.add("", text.to_owned())?;
    let mut diagnostics = Diagnostics::default();
    let mut lexed = lex(file, &mut diagnostics);
    let comments = std::mem::take(&mut lexed.comments);
    let program = parse(file, lexed, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(FormatError::Syntax(diagnostics.into_sorted()));
    }
    let mut printer = Printer {
        file,
        comments,
        next: 0,
    };
    let spans: Vec<Span> = program
        .parts
        .iter()
        .map(|part| match part {
            Part::Item(item) => item.span,
            Part::Stmt(stmt) => stmt.span,
        })
        .collect();
    let last = program.parts.len().saturating_sub(1);
    let whole = Sequence {
        spans: &spans,
        close: file.end() + 1,
        flat: false,
    };
    let doc = printer.sequence(
        &whole,
        |_| false,
        |printer, index| match &program.parts[index] {
            Part::Item(item) => printer.item(item),
            Part::Stmt(stmt) => printer.stmt(stmt, index < last),
        },
    );
    let mut text = doc.layout();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

struct Printer<'a> {
    file: &'a SourceFile,
    comments: Vec<Comment>,
    /// The first comment that was not printed yet.
    next: usize,
}

/// Things one after the other.
struct Sequence<'s> {
    /// Where they stand in the source.
    spans: &'s [Span],
    /// Where the bracket stands that closes them.
    close: u32,
    /// Whether they may stand on one line.
    flat: bool,
}

impl Printer<'_> {
    fn source(&self, span: Span) -> &str {
        self.file.slice(span)
    }

    fn comment(&self, comment: Comment) -> Doc {
        Doc::text(self.source(comment.span))
    }

    /// The next comment, if it begins before there.
    fn comment_before(&mut self, limit: u32) -> Option<Comment> {
        let comment = *self.comments.get(self.next)?;
        if comment.span.start >= limit {
            return None;
        }
        self.next += 1;
        Some(comment)
    }

    fn comments_within(&self, span: Span) -> bool {
        let next = self.comments.get(self.next);
        next.is_some_and(|it| it.span.start < span.end)
    }

    /// Whether something stood on one line.
    fn one_line(&self, span: Span) -> bool {
        !self.source(span).contains('\n')
    }

    fn blank_between(&self, from: u32, to: u32) -> bool {
        let between = self.source(Span::new(from, to.max(from)));
        between.bytes().filter(|byte| *byte == b'\n').count() > 1
    }

    /// Things with their comments. `comma` says behind which a comma stands.
    fn sequence(
        &mut self,
        sequence: &Sequence<'_>,
        comma: impl Fn(usize) -> bool,
        mut one: impl FnMut(&mut Self, usize) -> Doc,
    ) -> Doc {
        let Sequence { spans, close, flat } = *sequence;
        let mut parts = Vec::new();
        let mut last_end = None;
        for (index, span) in spans.iter().enumerate() {
            if index > 0 {
                parts.push(if flat { Doc::line() } else { Doc::hard() });
            }
            while let Some(comment) = self.comment_before(span.start) {
                self.gap(&mut parts, last_end, comment.span.start);
                parts.push(self.comment(comment));
                parts.push(Doc::hard());
                last_end = Some(comment.span.end);
            }
            self.gap(&mut parts, last_end, span.start);
            parts.push(one(self, index));
            if comma(index) {
                let is_last = flat && index + 1 == spans.len();
                parts.push(if is_last {
                    Doc::if_broken(",")
                } else {
                    Doc::text(",")
                });
            }
            let limit = spans.get(index + 1).map_or(close, |it| it.start);
            last_end = Some(self.trailing(&mut parts, span.end, limit));
        }
        while let Some(comment) = self.comment_before(close) {
            if last_end.is_some() {
                parts.push(Doc::hard());
            }
            self.gap(&mut parts, last_end, comment.span.start);
            parts.push(self.comment(comment));
            parts.push(Doc::breaking());
            last_end = Some(comment.span.end);
        }
        Doc::concat(parts)
    }

    /// An empty line where the source has one.
    fn gap(&self, parts: &mut Vec<Doc>, from: Option<u32>, to: u32) {
        if from.is_some_and(|from| self.blank_between(from, to)) {
            // The line that was begun is the empty one.
            parts.push(Doc::blank());
        }
    }

    /// Comments in a thing that had no place there, and those behind it on its line. Where they end.
    fn trailing(&mut self, parts: &mut Vec<Doc>, end: u32, limit: u32) -> u32 {
        let mut last = end;
        let mut first = true;
        while let Some(comment) = self.comments.get(self.next).copied() {
            let inside = comment.span.start < end;
            let between = Span::new(last.max(end), comment.span.start.max(end));
            let behind = comment.span.start < limit && !self.source(between).contains('\n');
            if !inside && (!behind || comment.own_line) {
                break;
            }
            self.next += 1;
            parts.push(if first { Doc::text(" ") } else { Doc::hard() });
            parts.push(self.comment(comment));
            if comment.to_line_end {
                parts.push(Doc::breaking());
            }
            first = false;
            last = comment.span.end.max(end);
        }
        last
    }

    /// Things in brackets: on one line, or one below the other.
    fn bracketed(
        &mut self,
        brackets: (&'static str, &'static str),
        padded: bool,
        sequence: &Sequence<'_>,
        one: impl FnMut(&mut Self, usize) -> Doc,
    ) -> Doc {
        let (open, close) = brackets;
        let inside = self.sequence(sequence, |_| true, one);
        if sequence.spans.is_empty() && !inside.hard {
            return Doc::text(format!("{open}{close}"));
        }
        let edge = |padded: bool, flat: bool| match (padded, flat) {
            (_, false) => Doc::hard(),
            (true, true) => Doc::line(),
            (false, true) => Doc::soft(),
        };
        let flat = sequence.flat;
        let inside = Doc::nest(Doc::concat(vec![edge(padded, flat), inside]));
        Doc::group(Doc::concat(vec![
            Doc::text(open),
            inside,
            edge(padded, flat),
            Doc::text(close),
        ]))
    }
}

fn path(path: &Path) -> Doc {
    Doc::text(path.text())
}

/// A text as a string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            '"' | '\\' => out.extend(['\\', c]),
            '$' if rest.peek() == Some(&'{') => out.push_str("\\$"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn type_text(ty: &Type) -> String {
    let list = |types: &[Type]| types.iter().map(type_text).collect::<Vec<_>>().join(", ");
    match &ty.kind {
        TypeKind::Union(options) => {
            let options: Vec<_> = options.iter().map(|it| quoted(it)).collect();
            options.join(" | ")
        }
        TypeKind::Named { path, arguments } if arguments.is_empty() => path.text(),
        TypeKind::Named { path, arguments } => format!("{}<{}>", path.text(), list(arguments)),
        TypeKind::Tuple(types) => format!("({})", list(types)),
        TypeKind::Function { parameters, result } => {
            let result = result.as_deref().map(|it| format!(" -> {}", type_text(it)));
            format!("fn({}){}", list(parameters), result.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests;
