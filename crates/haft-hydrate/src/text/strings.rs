//! Strings: where they end, and what inside them has to be escaped.
//!
//! A quote ends its string only if what follows it may follow a value (or, for a key, a colon);
//! any other quote belongs to the content. That rule alone would also read
//! `["hello, "world"]` as one string, so the inner quotes of a string must come in pairs that look
//! like pairs; otherwise a border is missing somewhere and arguments are refused.

use std::ops::Range;

use haft_core::RepairKind;

use super::chars::{Quote, is_blank, is_line_end, is_literal, next_solid, word_end};
use super::parse::{Outcome, Parser, Place};

/// How many characters a key that is looked for ahead may have.
const MAX_KEY_AHEAD: usize = 256;

/// What a quote inside a string is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Close,
    Inner,
    /// It belongs to another string: one border between the two is missing.
    Border,
    /// It ends the string if what follows is a comment, but the comment holds a quote as well: the
    /// mark may as likely be content, as in `"echo "# Title""`.
    Commented,
}

/// A string that has been read up to its end.
struct Body {
    content: Range<usize>,
    /// The closing quote; empty if it is missing.
    close: Range<usize>,
    quote: Quote,
}

/// What was seen inside the string so far.
pub(super) struct Scan {
    place: Place,
    quote: Quote,
    start: usize,
    mark: usize,
    inner: usize,
    paired: bool,
    first_inner: usize,
    inner_end: usize,
    pub(super) lone_backslash: bool,
    pub(super) other_escape: bool,
}

impl Scan {
    /// Whether the inner quotes can only be quotes within the text.
    fn is_evident(&self, close: usize) -> bool {
        let doubled = self.first_inner == self.start && self.inner_end == close;
        self.inner == 0 || (self.inner.is_multiple_of(2) && self.paired && !doubled)
    }
}

impl Parser<'_> {
    /// Reads a key.
    pub(super) fn string(&mut self, place: Place) -> Outcome<Range<usize>> {
        let body = self.quoted(place)?;
        self.requote(body.close.clone(), body.quote)?;
        Ok(body.content)
    }

    /// Reads a string value, with the literals joined to it by `+`.
    pub(super) fn string_value(&mut self, place: Place) -> Outcome<Range<usize>> {
        let mut body = self.quoted(place)?;
        let start = body.content.start;
        while let Some((next, quote, length)) = self.concatenated(&body) {
            self.delete(RepairKind::Concatenation, body.close.start..next + length)?;
            self.pos = next + length;
            body = self.body(place, quote, self.text.len())?;
        }
        self.requote(body.close.clone(), body.quote)?;
        Ok(start..body.content.end)
    }

    fn quoted(&mut self, place: Place) -> Outcome<Body> {
        let first = self.char_at(self.pos).unwrap_or('"');
        let quote = Quote::opened_by(first).unwrap_or(Quote::Double);
        let open = self.pos..self.pos + first.len_utf8();
        self.pos = open.end;
        self.plain_strings |= quote == Quote::Double;
        self.requote(open, quote)?;
        self.body(place, quote, self.text.len())
    }

    /// Writes a delimiter as JSON wants it.
    fn requote(&mut self, range: Range<usize>, quote: Quote) -> Outcome {
        if range.is_empty() {
            return Ok(());
        }
        match quote {
            Quote::Double => Ok(()),
            Quote::Single | Quote::Tick => self.edit(RepairKind::SingleQuotes, range, "\""),
            Quote::CurlyDouble | Quote::CurlySingle => {
                self.edit(RepairKind::SmartQuotes, range, "\"")
            }
        }
    }

    /// The literal that a `+` joins to the one just read.
    fn concatenated(&self, body: &Body) -> Option<(usize, Quote, usize)> {
        // Only complete literals are joined; a border that was guessed ends the value.
        if body.close.is_empty() {
            return None;
        }
        let (plus, c) = self.solid_behind(body.close.end)?;
        let (next, first) = (c == '+').then(|| self.solid_behind(plus + 1))??;
        let quote = Quote::opened_by(first)?;
        Some((next, quote, first.len_utf8()))
    }

    /// The next character behind blanks and comments.
    pub(super) fn solid_behind(&self, from: usize) -> Option<(usize, char)> {
        let (mut at, mut c) = next_solid(self.text, from).0?;
        while c == '/' && self.text[at..].starts_with("/*") {
            let length = self.text[at..].find("*/")?;
            (at, c) = next_solid(self.text, at + length + 2).0?;
        }
        Some((at, c))
    }

    /// Reads the content from the current position up to and including the closing quote.
    fn body(&mut self, place: Place, quote: Quote, stop: usize) -> Outcome<Body> {
        let forced = stop < self.text.len();
        let mut scan = Scan {
            place,
            quote,
            start: self.pos,
            mark: self.edits.mark(),
            inner: 0,
            paired: true,
            first_inner: 0,
            inner_end: 0,
            lone_backslash: false,
            other_escape: false,
        };
        loop {
            self.pos = special(self.text.as_bytes(), self.pos, quote);
            if self.pos >= stop {
                return if forced {
                    self.close_forced(&scan, stop)
                } else {
                    self.cut_string(&scan)
                };
            }
            let c = self.char_at(self.pos).unwrap_or_default();
            let end = self.pos + c.len_utf8();
            match c {
                '\\' => self.escape(&mut scan)?,
                '\0'..='\x1f' => self.control(c)?,
                _ if quote.closed_by(c) && !forced && !self.is_apostrophe(quote, end) => {
                    match self.verdict(&scan, end) {
                        Verdict::Close => return self.close_string(&scan, end),
                        Verdict::Border => {
                            self.edits.admit(RepairKind::MissingQuote, self.pos)?;
                            return self.close_string(&scan, end);
                        }
                        Verdict::Commented => {
                            self.edits.admit(RepairKind::GuessedQuote, self.pos)?;
                            return self.close_string(&scan, end);
                        }
                        Verdict::Inner => {
                            if let Some(border) = self.border_before(&scan) {
                                return self.rescan(&scan, border);
                            }
                            self.inner_quote(&mut scan, c)?;
                        }
                    }
                }
                '"' => {
                    self.insert(RepairKind::InnerQuote, self.pos, "\\")?;
                    self.pos = end;
                }
                _ => self.pos = end,
            }
        }
    }

    /// `it's`: a single quote between two letters.
    fn is_apostrophe(&self, quote: Quote, end: usize) -> bool {
        self.apostrophe_at(quote, self.pos, end)
    }

    fn apostrophe_at(&self, quote: Quote, at: usize, end: usize) -> bool {
        let before = self.text[..at].chars().next_back();
        let after = self.char_at(end);
        quote.is_apostrophe()
            && before.is_some_and(char::is_alphanumeric)
            && after.is_some_and(char::is_alphanumeric)
    }

    fn inner_quote(&mut self, scan: &mut Scan, c: char) -> Outcome {
        let at = self.pos;
        self.pos += c.len_utf8();
        let before = self.text[scan.start..at].chars().next_back();
        let after = self.char_at(self.pos);
        let looks_right = if scan.inner.is_multiple_of(2) {
            !before.is_some_and(char::is_alphanumeric) && after.is_some_and(|c| !is_blank(c))
        } else {
            // Two quotes side by side may as well be the borders of two strings.
            before.is_some_and(|c| !is_blank(c))
                && !after.is_some_and(char::is_alphanumeric)
                && scan.inner_end != at
        };
        if scan.inner == 0 {
            scan.first_inner = at;
        }
        scan.paired &= looks_right;
        scan.inner += 1;
        scan.inner_end = self.pos;
        if c == '"' {
            self.insert(RepairKind::InnerQuote, at, "\\")?;
        }
        Ok(())
    }

    fn control(&mut self, c: char) -> Outcome {
        if self.is_fence_line(c) {
            return self.truncated();
        }
        let after = match c {
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            _ => return self.unreadable("text without control characters"),
        };
        let range = self.pos..self.pos + 1;
        self.pos += 1;
        self.edit(RepairKind::RawControl, range, after)
    }

    /// A line break, and behind it what closes the fence around the document: either the string
    /// holds a fence of its own, or it was cut off and runs on into the prose behind.
    fn is_fence_line(&self, c: char) -> bool {
        let line = self.text[self.pos + 1..].trim_start_matches([' ', '\t']);
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        c == '\n' && self.enclosure.fence && is_fence && !self.is_preview()
    }

    // ---- the end of a string -------------------------------------------------------------------

    fn close_string(&mut self, scan: &Scan, end: usize) -> Outcome<Body> {
        let close = self.pos..end;
        if !scan.is_evident(close.start) {
            self.edits
                .admit(RepairKind::GuessedQuote, scan.first_inner)?;
            self.edits
                .retag(scan.mark, RepairKind::InnerQuote, RepairKind::GuessedQuote);
        }
        self.settle_backslashes(scan)?;
        self.pos = end;
        let next = next_solid(self.text, end).0;
        self.apostrophe_end = scan.quote.is_apostrophe().then_some(end);
        self.commented = next.map(|(at, _)| at).filter(|at| self.comments(*at));
        Ok(Body {
            content: scan.start..close.start,
            close,
            quote: scan.quote,
        })
    }

    /// A string with both `\d` and `\n` in it may mean a line end or a folder named `n…`.
    fn settle_backslashes(&mut self, scan: &Scan) -> Outcome {
        if scan.lone_backslash && scan.other_escape {
            self.edits.admit(RepairKind::GuessedBackslash, scan.start)?;
            let (from, to) = (RepairKind::LoneBackslash, RepairKind::GuessedBackslash);
            self.edits.retag(scan.mark, from, to);
        }
        Ok(())
    }

    /// The text ended inside the string.
    fn cut_string(&mut self, scan: &Scan) -> Outcome<Body> {
        let end = self.text.trim_end_matches(is_blank).len().max(scan.start);
        let dangling = self.text[scan.start..end].ends_with([',', ']', '}', '+']);
        if self.is_preview() && dangling && self.rescans_left > 0 {
            let content = &self.text[scan.start..];
            let border = content.find([',', '[', ']', '{', '}', '\n', '+']);
            return self.rescan(scan, scan.start + border.unwrap_or(content.len()));
        }
        self.pos = self.text.len();
        self.truncated()?;
        self.settle_backslashes(scan)?;
        self.insert(RepairKind::CutString, self.pos, "\"")?;
        let at = self.pos;
        Ok(Body {
            content: scan.start..at,
            close: at..at,
            quote: scan.quote,
        })
    }

    /// Where a missing quote would belong if this one opened the next string (preview only).
    fn border_before(&self, scan: &Scan) -> Option<usize> {
        if !self.is_preview() || self.rescans_left == 0 {
            return None;
        }
        let before = self.text[scan.start..self.pos].trim_end_matches(is_blank);
        before.ends_with(',').then(|| scan.start + before.len() - 1)
    }

    /// Reads the string again, up to a border that had to be guessed.
    fn rescan(&mut self, scan: &Scan, border: usize) -> Outcome<Body> {
        self.edits.admit(RepairKind::MissingQuote, border)?;
        self.rescans_left = self.rescans_left.saturating_sub(1);
        self.edits.rewind(scan.mark);
        self.pos = scan.start;
        self.body(scan.place, scan.quote, border)
    }

    fn close_forced(&mut self, scan: &Scan, stop: usize) -> Outcome<Body> {
        self.settle_backslashes(scan)?;
        let content = self.text[scan.start..stop].trim_end_matches(is_blank);
        let at = scan.start + content.len();
        self.pos = at;
        // The raw blanks between content and border may have been escaped on the way.
        self.edits.rewind_to(at);
        self.insert(RepairKind::MissingQuote, at, "\"")?;
        Ok(Body {
            content: scan.start..at,
            close: at..at,
            quote: scan.quote,
        })
    }

    // ---- what a quote means --------------------------------------------------------------------

    /// Judges the quote that ends at `end` by what follows it. Looks no further than the next
    /// quote, so that all judgements together stay linear.
    fn verdict(&self, scan: &Scan, end: usize) -> Verdict {
        let (next, newline) = next_solid(self.text, end);
        let Some((at, c)) = next else {
            return Verdict::Close;
        };
        match scan.place {
            _ if c == '+' && self.is_quoted_plus(scan, at) => Verdict::Border,
            _ if self.comments(at) && self.quote_in_comment(at, scan.quote) => Verdict::Commented,
            Place::Key => self.key_verdict(at, c),
            Place::Root => self.root_verdict(at, c),
            Place::Member => self.member_verdict(at, c, newline),
            Place::Element => self.element_verdict(at, c, newline),
        }
    }

    fn key_verdict(&self, at: usize, c: char) -> Verdict {
        let closes = match c {
            ':' | '=' | ',' | '}' | ']' | '{' | '[' | '-' | '0'..='9' => true,
            '/' => self.is_comment(at),
            _ if Quote::opened_by(c).is_some() => !self.string_before_colon(at, c),
            _ => {
                let word = &self.text[at..word_end(self.text, at)];
                matches!(word, "true" | "false" | "null" | "True" | "False" | "None")
            }
        };
        if closes {
            Verdict::Close
        } else {
            Verdict::Inner
        }
    }

    fn root_verdict(&self, at: usize, c: char) -> Verdict {
        let closes = match c {
            ',' | ';' => true,
            ')' => self.enclosure.call,
            _ => self.ends_value(at, c),
        };
        if closes {
            Verdict::Close
        } else {
            Verdict::Inner
        }
    }

    fn member_verdict(&self, at: usize, c: char, newline: bool) -> Verdict {
        let closes = match c {
            ',' | '}' | ']' => true,
            ':' => return Verdict::Border,
            _ if self.ends_value(at, c) => true,
            _ if Quote::opened_by(c).is_some() => newline || self.string_before_colon(at, c),
            _ => newline && self.word_before_colon(at),
        };
        if closes {
            Verdict::Close
        } else {
            Verdict::Inner
        }
    }

    fn element_verdict(&self, at: usize, c: char, newline: bool) -> Verdict {
        let closes = match c {
            ',' | ']' | '}' | ':' => true,
            '{' | '[' | '0'..='9' | '-' => newline || self.is_preview(),
            _ if self.ends_value(at, c) => true,
            _ => newline && (Quote::opened_by(c).is_some() || self.is_literal_line(at)),
        };
        if closes {
            Verdict::Close
        } else {
            Verdict::Inner
        }
    }

    /// What may follow a value wherever it stands: a comment, another literal to be joined, the
    /// end of what encloses the document.
    fn ends_value(&self, at: usize, c: char) -> bool {
        let rest = &self.text[at..];
        match c {
            '/' | '#' => self.comments(at),
            '+' => self.joins(at),
            '`' => self.enclosure.fence && rest.starts_with("```"),
            '~' => self.enclosure.fence && rest.starts_with("~~~"),
            '<' => self.enclosure.tag && rest.starts_with("</"),
            ')' => self.enclosure.call && self.stack.len() == 1,
            _ => false,
        }
    }

    fn is_comment(&self, at: usize) -> bool {
        matches!(self.byte(at + 1), Some(b'/' | b'*'))
    }

    /// Whether a comment behind a value starts here.
    fn comments(&self, at: usize) -> bool {
        match self.byte(at) {
            Some(b'/') => self.is_comment(at),
            Some(b'#') => self.text[at + 1..].starts_with(is_blank),
            _ => false,
        }
    }

    /// Whether a quote of the family stands in the comment that starts here. Looks no further than
    /// that quote.
    fn quote_in_comment(&self, at: usize, quote: Quote) -> bool {
        let block = self.text[at..].starts_with("/*");
        let inside = at + if block { 2 } else { 1 };
        for (length, c) in self.text[inside..].char_indices() {
            let at = inside + length;
            let ends = if block {
                self.text[at..].starts_with("*/")
            } else {
                is_line_end(c)
            };
            if ends {
                return false;
            }
            if quote.closed_by(c) && !self.apostrophe_at(quote, at, at + c.len_utf8()) {
                return true;
            }
        }
        false
    }

    /// Whether the `+` joins two literals. A comment is not looked through here: many quotes before
    /// one long comment would cost its length each.
    fn joins(&self, plus: usize) -> bool {
        let next = next_solid(self.text, plus + 1).0;
        next.is_some_and(|(at, c)| {
            Quote::opened_by(c).is_some() || (c == '/' && self.is_comment(at))
        })
    }

    /// `"C "+" D"`, `"" + "x"`: a quoted plus within a text as likely as two literals.
    fn is_quoted_plus(&self, scan: &Scan, plus: usize) -> bool {
        let Some((second, c)) = next_solid(self.text, plus + 1).0 else {
            return false;
        };
        if c == '/' && self.is_comment(second) {
            return self.quote_in_comment(second, scan.quote);
        }
        let Some(quote) = Quote::opened_by(c) else {
            return false;
        };
        let behind = self.char_at(second + c.len_utf8());
        let empty = self.pos == scan.start || behind.is_some_and(|c| quote.closed_by(c));
        let before = self.text[scan.start..self.pos].chars().next_back();
        let touching = self.text[self.pos..plus].chars().count() == 1 && second == plus + 1;
        empty
            || (touching
                && !before.is_some_and(char::is_alphanumeric)
                && !behind.is_some_and(char::is_alphanumeric))
    }

    /// Whether the string that starts at `at` is a key: its next quote stands before a colon.
    fn string_before_colon(&self, at: usize, c: char) -> bool {
        let quote = Quote::opened_by(c).unwrap_or(Quote::Double);
        let start = at + c.len_utf8();
        let mut ahead = self.text[start..].char_indices().take(MAX_KEY_AHEAD);
        let Some((length, close)) = ahead.find(|(_, c)| quote.closed_by(*c)) else {
            return false;
        };
        let (next, _) = next_solid(self.text, start + length + close.len_utf8());
        matches!(next, Some((_, ':')))
    }

    /// Whether a literal stands here with nothing but punctuation behind it in its line.
    fn is_literal_line(&self, at: usize) -> bool {
        let end = word_end(self.text, at);
        let behind = self.text[end..].trim_start_matches([' ', '\t']);
        is_literal(&self.text[at..end])
            && (behind.is_empty() || behind.starts_with([',', ']', '}', '\n', '\r', '/', '#']))
    }

    fn word_before_colon(&self, at: usize) -> bool {
        let end = word_end(self.text, at);
        end > at && matches!(next_solid(self.text, end).0, Some((_, ':')))
    }
}

/// The next byte at or after `from` that may matter in a string of this family.
fn special(bytes: &[u8], from: usize, quote: Quote) -> usize {
    let matters = |byte: u8| match byte {
        b'"' | b'\\' | 0..=0x1f => true,
        b'\'' => quote.is_apostrophe(),
        b'`' | 0xc2 => quote == Quote::Tick,
        0xe2 => matches!(quote, Quote::CurlyDouble | Quote::CurlySingle),
        _ => false,
    };
    let rest = bytes.get(from..).unwrap_or_default();
    let length = rest.iter().position(|byte| matters(*byte));
    from + length.unwrap_or(rest.len())
}
