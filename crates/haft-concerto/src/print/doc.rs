//! Text that knows where it may be broken into lines.

/// How wide a line may be.
const WIDTH: usize = 100;

/// How far a nested line is moved to the right.
const INDENT: usize = 4;

/// A piece of text.
#[derive(Debug)]
pub(super) struct Doc {
    kind: Kind,
    /// Whether a line surely ends in it.
    pub(super) hard: bool,
}

#[derive(Debug)]
enum Kind {
    Text(String),
    /// Nothing, or the end of a line if what is around is broken.
    Soft,
    /// A blank, or the end of a line if what is around is broken.
    Line,
    /// The end of a line.
    Hard,
    /// An empty line before the next.
    Blank,
    /// Only if what is around is broken.
    IfBroken(&'static str),
    Nest(Box<Doc>),
    Concat(Vec<Doc>),
    /// On one line if it fits.
    Group(Box<Doc>),
}

impl Doc {
    fn plain(kind: Kind) -> Self {
        Self { kind, hard: false }
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::plain(Kind::Text(text.into()))
    }

    pub(super) fn nothing() -> Self {
        Self::plain(Kind::Concat(Vec::new()))
    }

    pub(super) fn soft() -> Self {
        Self::plain(Kind::Soft)
    }

    pub(super) fn line() -> Self {
        Self::plain(Kind::Line)
    }

    pub(super) fn hard() -> Self {
        Self {
            kind: Kind::Hard,
            hard: true,
        }
    }

    pub(super) fn blank() -> Self {
        Self {
            kind: Kind::Blank,
            hard: true,
        }
    }

    /// Breaks what is around it and is nothing itself.
    pub(super) fn breaking() -> Self {
        Self {
            kind: Kind::Concat(Vec::new()),
            hard: true,
        }
    }

    pub(super) fn if_broken(text: &'static str) -> Self {
        Self::plain(Kind::IfBroken(text))
    }

    pub(super) fn concat(parts: Vec<Self>) -> Self {
        let hard = parts.iter().any(|it| it.hard);
        let kind = Kind::Concat(parts);
        Self { kind, hard }
    }

    pub(super) fn nest(inner: Self) -> Self {
        let hard = inner.hard;
        let kind = Kind::Nest(Box::new(inner));
        Self { kind, hard }
    }

    pub(super) fn group(inner: Self) -> Self {
        let hard = inner.hard;
        let kind = Kind::Group(Box::new(inner));
        Self { kind, hard }
    }

    /// The text, broken into lines.
    pub(super) fn layout(&self) -> String {
        let mut out = Out {
            text: String::new(),
            column: 0,
            pending: None,
        };
        let mut stack = vec![(0, false, self)];
        while let Some((indent, flat, doc)) = stack.pop() {
            match &doc.kind {
                Kind::Text(text) => out.text(text),
                Kind::Soft if flat => {}
                Kind::Line if flat => out.text(" "),
                Kind::Soft | Kind::Line | Kind::Hard => out.end_line(indent),
                Kind::Blank => out.text.push('\n'),
                Kind::IfBroken(text) => {
                    if !flat {
                        out.text(text);
                    }
                }
                Kind::Nest(inner) => stack.push((indent + INDENT, flat, inner)),
                Kind::Concat(parts) => {
                    stack.extend(parts.iter().rev().map(|part| (indent, flat, part)));
                }
                Kind::Group(inner) => {
                    let flat = flat || (!inner.hard && out.fits(inner, &stack));
                    stack.push((indent, flat, inner));
                }
            }
        }
        out.text
    }
}

struct Out {
    text: String,
    column: usize,
    /// How far the next text is moved, if a line has just begun.
    pending: Option<usize>,
}

impl Out {
    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(indent) = self.pending.take() {
            self.text.extend(std::iter::repeat_n(' ', indent));
            self.column = indent;
        }
        self.text.push_str(text);
        match text.rfind('\n') {
            Some(at) => self.column = text[at + 1..].chars().count(),
            None => self.column += text.chars().count(),
        }
    }

    fn end_line(&mut self, indent: usize) {
        self.text.push('\n');
        self.pending = Some(indent);
    }

    /// Whether this and what follows it on its line fit the line.
    fn fits(&self, doc: &Doc, after: &[(usize, bool, &Doc)]) -> bool {
        let mut left = WIDTH.saturating_sub(self.pending.unwrap_or(self.column));
        let mut stack = vec![(true, doc)];
        let mut rest = after.iter().rev();
        loop {
            let (flat, doc) = match stack.pop() {
                Some(next) => next,
                None => match rest.next() {
                    Some((_, flat, doc)) => (*flat, *doc),
                    None => return true,
                },
            };
            let width = match &doc.kind {
                Kind::Text(text) => match text.find('\n') {
                    Some(at) => return text[..at].chars().count() <= left,
                    None => text.chars().count(),
                },
                Kind::Line if flat => 1,
                Kind::Soft if flat => 0,
                Kind::Line | Kind::Soft | Kind::Hard | Kind::Blank => return true,
                Kind::IfBroken(text) if !flat => text.len(),
                Kind::IfBroken(_) => 0,
                Kind::Nest(inner) => {
                    stack.push((flat, inner));
                    0
                }
                // What follows a group may be broken by itself.
                Kind::Group(inner) => {
                    stack.push((flat && !inner.hard, inner));
                    0
                }
                Kind::Concat(parts) => {
                    stack.extend(parts.iter().rev().map(|part| (flat, part)));
                    0
                }
            };
            match left.checked_sub(width) {
                Some(now) => left = now,
                None => return false,
            }
        }
    }
}
