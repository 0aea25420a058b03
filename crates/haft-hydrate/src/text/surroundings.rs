//! What stands around the document: prose, labels, tags, fences, calls.
//!
//! Nothing here knows a wording. A *candidate* is an opening bracket followed by what a document
//! would go on with; prose is any text around the only candidate, and it is refused as soon as it
//! looks like a piece of JSON itself, because then something would be thrown away.

use std::borrow::Cow;
use std::ops::Range;

use haft_core::RepairKind;

use super::chars::{Quote, is_blank, is_key_char, is_literal, next_solid, word_end};
use super::edits::Edit;
use super::parse::{Outcome, Parser, is_word};
use super::{Root, TextRefusal};

/// Where the document starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) at: usize,
    /// Whether its quotes are escaped.
    pub(super) escaped: bool,
}

impl Start {
    fn plain(at: usize) -> Self {
        Self { at, escaped: false }
    }
}

/// What an opening bracket announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    Nothing,
    Document,
    Escaped,
}

impl Parser<'_> {
    /// Finds the document in the text; blanks and comments before it have been passed over.
    pub(super) fn locate(&self, wanted: Root) -> Outcome<Start> {
        let from = self.pos;
        let Some(first) = self.char_at(from) else {
            return Err(TextRefusal::NoJson);
        };
        let bracket = matches!(first, '{' | '[');
        if bracket {
            match promise(self.text, from) {
                Promise::Nothing => {}
                kept => {
                    return Ok(Start {
                        at: from,
                        escaped: kept == Promise::Escaped,
                    });
                }
            }
        }
        if wanted == Root::Any {
            if self.text[from..].starts_with("\\\"") {
                return Ok(Start {
                    at: from,
                    escaped: true,
                });
            }
            if self.starts_scalar(first) {
                return Ok(Start::plain(from));
            }
        }
        if let Some(start) = candidate(self.text, from) {
            return Ok(start);
        }
        match wanted {
            _ if bracket => Ok(Start::plain(from)),
            Root::Any => Ok(Start::plain(self.called_scalar().unwrap_or(from))),
            Root::Object => Err(TextRefusal::NoJson),
        }
    }

    fn starts_scalar(&self, first: char) -> bool {
        matches!(first, '.' | '+') || (self.starts_value() && !matches!(first, '{' | '['))
    }

    /// `callback(2)`: where the argument starts.
    fn called_scalar(&self) -> Option<usize> {
        let name = word_end(self.text, self.pos);
        let (bracket, _) = next_solid(self.text, name).0.filter(|(_, c)| *c == '(')?;
        let (inside, _) = next_solid(self.text, bracket + 1).0?;
        (name > self.pos).then_some(inside)
    }

    // ---- before the document -------------------------------------------------------------------

    /// Drops what stands between the current position and the document.
    pub(super) fn leave_prefix(&mut self, start: usize, wanted: Root) -> Outcome {
        let range = self.pos..start;
        let prefix = &self.text[range.clone()];
        self.pos = start;
        let trimmed = prefix.trim_end_matches(is_blank);
        if trimmed.is_empty() {
            return Ok(());
        }
        let fence = fence_in(prefix);
        self.enclosure.fence = fence.is_some();
        self.enclosure.call = trimmed.ends_with('(');
        self.enclosure.tag = prefix.contains('<');
        if let Some(fence) = fence {
            let (prose, marks) = (range.start..range.start + fence, range.start + fence..start);
            self.check_prose(range)?;
            self.check_members(prose.clone(), true)?;
            let first_line = self.text[marks.clone()].find(['\n', '\r']);
            let inside = marks.start + first_line.unwrap_or(0);
            if first_line.is_some() {
                self.check_members(inside..marks.end, true)?;
            }
            if !self.text[prose.clone()].trim().is_empty() {
                self.drop_prose(prose, wanted)?;
            }
            return self.delete(RepairKind::CodeFence, marks);
        }
        let kind = self.prefix_kind(trimmed, &prefix[trimmed.len()..])?;
        if kind == RepairKind::Prose {
            self.check_prose(range.clone())?;
            self.check_members(range.clone(), true)?;
            return self.drop_prose(range, wanted);
        }
        self.delete(kind, range)
    }

    /// Drops prose. Where any value is legal the prose itself may be the value, so that taking the
    /// object out of it is a guess.
    fn drop_prose(&mut self, range: Range<usize>, wanted: Root) -> Outcome {
        if wanted == Root::Any {
            self.edits.admit(RepairKind::Reinterpreted, range.start)?;
        }
        self.delete(RepairKind::Prose, range)
    }

    fn prefix_kind(&self, trimmed: &str, blanks: &str) -> Outcome<RepairKind> {
        if trimmed == "\"" {
            return Ok(RepairKind::Unescaped);
        }
        let word_before = |mark: &[char]| {
            let word = trimmed.strip_suffix(mark);
            word.is_some_and(|word| is_word(word.trim_end_matches(is_blank)))
        };
        if word_before(&['(']) {
            return Ok(RepairKind::CallWrapper);
        }
        if word_before(&[':', '=']) {
            return Ok(RepairKind::Label);
        }
        if is_word(trimmed) {
            // `callback {}` is neither a label nor a call.
            if !blanks.contains(['\n', '\r']) {
                return self.unreadable("a label with `:` or `=`, or a line of its own");
            }
            return Ok(RepairKind::Label);
        }
        if opens_call_with_more(trimmed) {
            return self.unreadable("a call with a single argument");
        }
        Ok(RepairKind::Prose)
    }

    // ---- behind the document -------------------------------------------------------------------

    /// Drops what stands behind the document, or refuses it.
    pub(super) fn leave_suffix(&mut self, scalar: bool, wanted: Root) -> Outcome {
        self.closing_marks()?;
        if self.pos >= self.text.len() {
            return Ok(());
        }
        let rest = self.pos..self.text.len();
        let first = self.char_at(self.pos).unwrap_or_default();
        let before = self.text[..self.pos]
            .chars()
            .next_back()
            .unwrap_or_default();
        let starts_word = first.is_alphanumeric() || matches!(first, '_' | '$');
        let adjacent = starts_word && !is_blank(before) && !matches!(before, '`' | '~' | ')');
        if scalar || adjacent || matches!(first, ',' | ':' | '=' | '+') {
            return self.many_or_unreadable();
        }
        self.check_prose(rest.clone())?;
        self.check_members(rest.clone(), false)?;
        self.pos = rest.end;
        if self.text[rest.clone()].trim_matches(is_blank) == "\"" {
            return self.delete(RepairKind::Unescaped, rest);
        }
        self.drop_prose(rest, wanted)
    }

    fn many_or_unreadable<T>(&self) -> Outcome<T> {
        let rest = self.text[self.pos..].trim_start_matches([',', ' ', '\n', '\r', '\t']);
        if rest.starts_with(['{', '[', '"']) || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(TextRefusal::ManyValues {
                offset: self.text.len() - rest.len(),
            });
        }
        self.unreadable("the end of the text")
    }

    /// Punctuation that may stand directly behind the document.
    fn closing_marks(&mut self) -> Outcome {
        loop {
            self.skip_blanks()?;
            let at = self.pos;
            let rest = &self.text[at..];
            let (kind, length) = match rest.as_bytes() {
                [b'}' | b']', ..] => (RepairKind::SurplusClose, 1),
                [b')', ..] if self.enclosure.call => (RepairKind::CallWrapper, 1),
                [b';', ..] => (RepairKind::Label, 1),
                [b',', behind @ ..] if behind.iter().all(u8::is_ascii_whitespace) => {
                    (RepairKind::TrailingComma, 1)
                }
                [b'`', b'`', b'`', ..] | [b'~', b'~', b'~', ..] => {
                    let marks = rest.trim_start_matches(char::from(rest.as_bytes()[0]));
                    (RepairKind::CodeFence, rest.len() - marks.len())
                }
                _ => return Ok(()),
            };
            if kind == RepairKind::SurplusClose && self.mismatch.is_some() {
                self.edits.admit(RepairKind::Reinterpreted, at)?;
            }
            self.pos += length;
            self.delete(kind, at..at + length)?;
        }
    }

    /// Reads the values that follow the first one into one array (preview only).
    pub(super) fn further_documents(&mut self, start: usize, scalar: bool) -> Outcome {
        let mut many = false;
        while self.next_document(scalar)? {
            if !many {
                let (kind, after) = (RepairKind::ManyRoots, Cow::Borrowed("["));
                let edit = Edit {
                    kind,
                    range: start..start,
                    after,
                    path: String::new(),
                };
                self.edits.push_before(edit)?;
                many = true;
            }
            self.document()?;
        }
        if many {
            self.insert(RepairKind::ManyRoots, self.pos, "]")?;
        }
        Ok(())
    }

    /// Whether another document follows on a line of its own or behind a comma (preview only);
    /// if so, reads up to it.
    fn next_document(&mut self, scalar: bool) -> Outcome<bool> {
        if !self.is_preview() {
            return Ok(false);
        }
        let end = self.pos;
        self.skip_blanks()?;
        let at = self.pos;
        let comma = self.byte(at) == Some(b',');
        let newline = self.text[end..at].contains(['\n', '\r']);
        let starts = self
            .solid_behind(at + usize::from(comma))
            .is_some_and(|(_, c)| {
                matches!(c, '{' | '[')
                    || (scalar && !matches!(c, '}' | ']' | ')' | ';' | '`' | '~'))
            });
        if !starts || !(comma || newline) {
            return Ok(false);
        }
        if comma {
            self.pos += 1;
            self.skip_blanks()?;
        } else {
            self.insert(RepairKind::ManyRoots, at, ",")?;
        }
        Ok(true)
    }

    // ---- prose ---------------------------------------------------------------------------------

    /// Refuses prose that holds names with values: parts of the arguments may stand there. With
    /// `labels`, the last name may be the label of the document that follows.
    fn check_members(&self, range: Range<usize>, labels: bool) -> Outcome {
        match member_in_prose(&self.text[range.clone()], labels) {
            Some(at) if !self.is_preview() => Err(TextRefusal::Unreadable {
                offset: range.start + at,
                expected: "prose without names and values",
            }),
            _ => Ok(()),
        }
    }

    /// Refuses prose that holds another document or a piece of one.
    fn check_prose(&self, range: Range<usize>) -> Outcome {
        if let Some(other) = candidate(&self.text[..range.end], range.start) {
            return Err(TextRefusal::ManyValues { offset: other.at });
        }
        match piece_of_json(&self.text[range.clone()]) {
            None => Ok(()),
            Some(at) => Err(TextRefusal::Unreadable {
                offset: range.start + at,
                expected: "prose without pieces of JSON",
            }),
        }
    }
}

/// Where prose stops being prose: at a closing bracket that nothing opened, or at the colon of a
/// `"key":` that no word leads up to.
fn piece_of_json(prose: &str) -> Option<usize> {
    let (mut braces, mut brackets) = (0usize, 0usize);
    let mut before = None;
    // What stood before the last two quotes.
    let mut quoted = [None, None];
    for (at, c) in prose.char_indices().filter(|(_, c)| !is_blank(*c)) {
        match c {
            '{' => braces += 1,
            '[' => brackets += 1,
            '}' if braces == 0 => return Some(at),
            ']' if brackets == 0 => return Some(at),
            '}' => braces -= 1,
            ']' => brackets -= 1,
            '"' => quoted = [quoted[1], before],
            ':' if before == Some('"') && !quoted[0].is_some_and(char::is_alphanumeric) => {
                return Some(at);
            }
            _ => {}
        }
        before = Some(c);
    }
    None
}

/// Where prose holds a member: `name=value` (also the attribute of a tag), a quoted name before a
/// colon, or a single word before a colon at the start of a line or clause. The label directly
/// before the document has nothing but a quote, emphasis or an arrow behind it.
fn member_in_prose(prose: &str, labels: bool) -> Option<usize> {
    let end = prose.trim_end_matches(is_blank);
    // One quote may open a string around the document; two are an empty value.
    let tail = end
        .strip_suffix(|c| Quote::opened_by(c).is_some())
        .unwrap_or(end)
        .trim_end_matches(|c| {
            is_blank(c) || matches!(c, '*' | '_' | '>' | '=' | ':' | '\u{ff1a}' | '(')
        })
        .len();
    let mut clause = 0;
    // One pass; the words of a clause are looked at once, at its first colon.
    for (at, c) in prose.char_indices() {
        match c {
            '\n' | '\r' | ',' | ';' | '.' | '!' | '?' | '(' | '{' | '[' | '|' | '>' => {
                clause = at + c.len_utf8();
            }
            '=' | ':' | '\u{ff1a}' => {
                let before = prose[..at].trim_end_matches([' ', '\t']);
                let last = before.chars().next_back();
                let url = prose[at..].starts_with("://");
                let label = labels && at >= tail;
                let quoted = last.is_some_and(|c| Quote::opened_by(c).is_some());
                let named =
                    quoted || last.is_some_and(|c| is_key_char(c) || matches!(c, ')' | ']'));
                let words = prose[clause.min(before.len())..before.len()].trim_matches(is_mark);
                let member = match c {
                    '=' => named,
                    _ if url => false,
                    // `the "x": {…}` names what follows; `"x": {…}` is a member already.
                    _ if quoted => !label || !words.contains(is_blank),
                    _ => !label && is_word(words),
                };
                if member && (quoted || !label) {
                    return Some(at);
                }
                clause = at + c.len_utf8();
            }
            _ => {}
        }
    }
    None
}

/// Marks that decorate a word of prose: those of lists, headings and emphasis, and quotes.
fn is_mark(c: char) -> bool {
    is_blank(c)
        || matches!(c, '*' | '_' | '-' | '#' | '>' | '\u{2022}' | '+')
        || Quote::opened_by(c).is_some()
}

/// The first candidate at or after `from`.
fn candidate(text: &str, from: usize) -> Option<Start> {
    let brackets = text[from..].match_indices(['{', '[']);
    brackets
        .map(|(length, _)| from + length)
        .find_map(|at| match prose_promise(text, at) {
            Promise::Nothing => None,
            kept => Some(Start {
                at,
                escaped: kept == Promise::Escaped,
            }),
        })
}

/// What a bracket amid prose announces: `[1]` and `[note]` are references there, not documents.
fn prose_promise(text: &str, at: usize) -> Promise {
    let next = next_solid(text, at + 1).0.map(|(_, c)| c);
    let array = text[at..].starts_with('[');
    let telling =
        next.is_some_and(|c| matches!(c, '{' | '[' | '\\') || Quote::opened_by(c).is_some());
    let before = text[..at].trim_end_matches([' ', '\t']);
    let on_its_own = before.ends_with(['\n', '\r', '`', '~']);
    if array && !telling && !on_its_own {
        Promise::Nothing
    } else {
        promise(text, at)
    }
}

/// What an opening bracket announces, judged by what follows it.
fn promise(text: &str, at: usize) -> Promise {
    let array = text[at..].starts_with('[');
    let rest = text[at + 1..].trim_start_matches(is_blank);
    let inside = skip_escaped_blanks(rest);
    // A backslash never stands between the tokens of a document that is not escaped itself.
    if inside.len() < rest.len() {
        return Promise::Escaped;
    }
    let Some(c) = inside.chars().next() else {
        return Promise::Document;
    };
    if inside.starts_with("```") || inside.starts_with("~~~") {
        return Promise::Nothing;
    }
    if inside.starts_with("\\\"") {
        return Promise::Escaped;
    }
    if array && matches!(c, '{' | '[') {
        // The brackets that open at once share one fate; look at the first thing inside them.
        let inner = inside.trim_start_matches(|c: char| is_blank(c) || matches!(c, '{' | '['));
        let escaped = skip_escaped_blanks(inner).starts_with("\\\"");
        return if escaped {
            Promise::Escaped
        } else {
            Promise::Document
        };
    }
    let word = &inside[..word_end(inside, 0)];
    let solid = inside[word.len()..]
        .trim_start_matches(is_blank)
        .chars()
        .next();
    let document = match c {
        '{' | '}' | ']' | ',' | '/' | '#' | '\u{2026}' => true,
        '.' => inside.starts_with("...") || array,
        _ if Quote::opened_by(c).is_some() => true,
        '0'..='9' | '-' if array => true,
        _ if array => word.is_empty() || is_literal(word),
        _ => solid == Some(':') || solid.and_then(Quote::opened_by).is_some(),
    };
    if document {
        Promise::Document
    } else {
        Promise::Nothing
    }
}

/// Passes over `\n` and its like, as an escaped document has them between its tokens.
fn skip_escaped_blanks(mut text: &str) -> &str {
    loop {
        let rest = text.trim_start_matches(is_blank);
        let stripped = ["\\n", "\\r", "\\t"]
            .iter()
            .find_map(|blank| rest.strip_prefix(blank));
        match stripped {
            Some(stripped) => text = stripped,
            None => return rest,
        }
    }
}

/// Where the last fence of the prefix starts, if one is open there.
fn fence_in(prefix: &str) -> Option<usize> {
    let at = prefix.rfind("```").or_else(|| prefix.rfind("~~~"))?;
    let mark = &prefix[at..=at];
    Some(prefix[..at].trim_end_matches(mark).len())
}

/// `f(5, {…})`, `f(x={…})`: taking the document alone would drop the rest of the call.
fn opens_call_with_more(prefix: &str) -> bool {
    let mut depth = 0usize;
    for (at, c) in prefix.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth > 0 => depth -= 1,
            '(' => {
                let called = prefix[..at].ends_with(is_key_char);
                return called && !prefix[at + 1..].trim().is_empty();
            }
            _ => {}
        }
    }
    false
}
