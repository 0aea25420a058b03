//! Objects and arrays: what separates their items, and what closes them.

use std::ops::Range;

use haft_core::{FinishReason, RepairKind};

use super::TextRefusal;
use super::chars::{Quote, is_blank, is_line_end, is_literal, next_solid, word_end};
use super::edits::Edit;
use super::parse::{Frame, Outcome, Parser, Place, Shape, Slot, Step};
use crate::parse::MAX_DEPTH;

impl Shape {
    fn closed_by(byte: u8) -> Self {
        if byte == b'}' {
            Self::Object
        } else {
            Self::Array
        }
    }

    fn closer(self) -> &'static str {
        match self {
            Self::Object => "}",
            Self::Array => "]",
        }
    }
}

impl Parser<'_> {
    /// Whether the document ends here: end of text, or the counterpart of what encloses it.
    pub(super) fn at_end(&self) -> bool {
        match self.byte(self.pos) {
            None => true,
            Some(b'`') => self.enclosure.fence && self.text[self.pos..].starts_with("```"),
            Some(b'~') => self.enclosure.fence && self.text[self.pos..].starts_with("~~~"),
            Some(b'<') => self.enclosure.tag && self.byte(self.pos + 1) == Some(b'/'),
            Some(b')') => self.enclosure.call,
            Some(_) => false,
        }
    }

    /// Reads one whole value at the current position.
    pub(super) fn document(&mut self) -> Outcome {
        self.value(Place::Root)?;
        while !self.stack.is_empty() {
            self.step()?;
        }
        Ok(())
    }

    /// Reads the next thing inside the innermost bracket.
    fn step(&mut self) -> Outcome {
        self.skip_blanks()?;
        let Some(frame) = self.stack.last() else {
            return Ok(());
        };
        if frame.bare {
            return self.end_bare_object();
        }
        let shape = frame.shape;
        if self.at_end() {
            return self.close_at_end();
        }
        match self.byte(self.pos) {
            Some(b',') => self.comma(),
            Some(byte @ (b'}' | b']')) => self.close(byte),
            _ if self.ellipsis()? => Ok(()),
            _ => {
                if self.unclosed_sibling()? {
                    return Ok(());
                }
                self.separate()?;
                match shape {
                    Shape::Object => self.member(),
                    Shape::Array => self.element(),
                }
            }
        }
    }

    fn slot(&self) -> Slot {
        self.stack.last().map_or(Slot::Item, |frame| frame.slot)
    }

    fn set_slot(&mut self, slot: Slot) {
        if let Some(frame) = self.stack.last_mut() {
            frame.slot = slot;
        }
    }

    fn comma(&mut self) -> Outcome {
        let at = self.pos;
        self.pos += 1;
        let object = self
            .stack
            .last()
            .is_some_and(|frame| frame.shape == Shape::Object);
        match self.slot() {
            Slot::Item => {
                self.set_slot(Slot::Comma(at));
                Ok(())
            }
            Slot::Opener => self.delete(RepairKind::SurplusComma, at..at + 1),
            Slot::Comma(_) if object => self.delete(RepairKind::SurplusComma, at..at + 1),
            // Two commas in an array may stand around an element that was left out.
            Slot::Comma(_) => self.delete(RepairKind::Reinterpreted, at..at + 1),
        }
    }

    /// Puts the comma between two items if it is missing, and names the next item.
    fn separate(&mut self) -> Outcome {
        if self.slot() == Slot::Item {
            if self.number_end.is_some() && self.splits_a_number() {
                self.edits.admit(RepairKind::Reinterpreted, self.pos)?;
            }
            // `"echo "# Title⏎text" > x"`: what looks like a comment may be the rest of a string.
            let before = self.text[..self.pos].trim_end_matches([' ', '\t']);
            let on_its_own = self.opens_string(self.pos) && before.ends_with(is_line_end);
            if self.commented.is_some() && !on_its_own {
                self.edits.admit(RepairKind::GuessedQuote, self.pos)?;
            }
            self.insert(RepairKind::MissingComma, self.pos, ",")?;
        }
        self.commented = None;
        let opener = self.slot() == Slot::Opener;
        if let Some(frame) = self.stack.last_mut() {
            frame.slot = Slot::Item;
            frame.step = match (frame.shape, &frame.step) {
                (Shape::Object, _) => Step::None,
                (Shape::Array, Step::Index(index)) if !opener => Step::Index(index + 1),
                (Shape::Array, _) => Step::Index(0),
            };
        }
        Ok(())
    }

    /// `1 000`, `12 34`, `1'000`: two numbers on one line may be one, with its digits in groups.
    fn splits_a_number(&self) -> bool {
        let Some(end) = self.number_end else {
            return false;
        };
        let (next, newline) = next_solid(self.text, end);
        let numeric = matches!(self.byte(self.pos), Some(b'0'..=b'9' | b'-' | b'+' | b'.'));
        let adjacent = end == self.pos && self.opens_string(self.pos);
        let neighbours = next.is_some_and(|(at, _)| at == self.pos);
        adjacent || (numeric && neighbours && !newline)
    }

    fn member(&mut self) -> Outcome {
        let key = if self.opens_string(self.pos) {
            self.string(Place::Key)?
        } else {
            self.bare_key()?
        };
        if let Some(frame) = self.stack.last_mut() {
            frame.step = Step::Key(key);
        }
        self.colon()
    }

    /// Reads the colon and the value of a member whose key has been read.
    fn colon(&mut self) -> Outcome {
        self.skip_blanks()?;
        if self.at_end() {
            self.truncated()?;
            return self.insert(RepairKind::InventedValue, self.pos, ":null");
        }
        match self.byte(self.pos) {
            Some(b':') => self.pos += 1,
            Some(b',' | b'}' | b']') => return self.unreadable("a colon"),
            _ if self.starts_value() => self.insert(RepairKind::MissingColon, self.pos, ":")?,
            _ => return self.unreadable("a colon"),
        }
        self.skip_blanks()?;
        if self.at_end() {
            self.truncated()?;
            return self.insert(RepairKind::InventedValue, self.pos, "null");
        }
        match self.byte(self.pos) {
            Some(b',' | b'}' | b']') => self.insert(RepairKind::InventedValue, self.pos, "null"),
            _ => self.value(Place::Member),
        }
    }

    /// Whether a value other than bare text starts here.
    pub(super) fn starts_value(&self) -> bool {
        let Some(c) = self.char_at(self.pos) else {
            return false;
        };
        let word = &self.text[self.pos..word_end(self.text, self.pos)];
        matches!(c, '{' | '[' | '-' | '0'..='9') || self.opens_string(self.pos) || is_literal(word)
    }

    fn element(&mut self) -> Outcome {
        let start = self.pos;
        let only = matches!(
            self.stack.last(),
            Some(Frame {
                step: Step::Index(0),
                ..
            })
        );
        if !self.opens_string(start) {
            return self.value(Place::Element);
        }
        let span = self.string_value(Place::Element)?;
        self.skip_blanks()?;
        if self.byte(self.pos) != Some(b':') {
            return Ok(());
        }
        if !only {
            return self.unreadable("a comma or a closing bracket");
        }
        // A member directly in an array: the object around it is the only thing it can be.
        let path = self.path()?;
        let edit = Edit {
            kind: RepairKind::MissingBraces,
            range: start..start,
            after: "{".into(),
            path,
        };
        self.edits.push_before(edit)?;
        self.open(Shape::Object)?;
        if let Some(frame) = self.stack.last_mut() {
            *frame = Frame {
                slot: Slot::Item,
                step: Step::Key(span),
                bare: true,
                ..*frame
            };
        }
        self.colon()
    }

    fn end_bare_object(&mut self) -> Outcome {
        if self.byte(self.pos) != Some(b']') {
            return self.unreadable("the end of the array");
        }
        self.stack.pop();
        self.insert(RepairKind::MissingBraces, self.pos, "}")
    }

    fn open(&mut self, shape: Shape) -> Outcome {
        if self.stack.len() >= MAX_DEPTH {
            return Err(TextRefusal::TooDeep {
                offset: self.pos,
                limit: MAX_DEPTH,
            });
        }
        self.stack.push(Frame {
            shape,
            slot: Slot::Opener,
            step: Step::None,
            bare: false,
        });
        Ok(())
    }

    /// Reads a scalar or enters a bracket.
    pub(super) fn value(&mut self, place: Place) -> Outcome {
        let shape = match self.byte(self.pos) {
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            _ if self.opens_string(self.pos) => return self.string_value(place).map(drop),
            _ => return self.bare_value(place),
        };
        self.open(shape)?;
        self.pos += 1;
        Ok(())
    }

    // ---- closing brackets ----------------------------------------------------------------------

    fn close(&mut self, byte: u8) -> Outcome {
        let written = Shape::closed_by(byte);
        let shape = self.stack.last().map_or(written, |frame| frame.shape);
        if let Slot::Comma(at) = self.slot() {
            self.delete(RepairKind::TrailingComma, at..at + 1)?;
        }
        if written != shape {
            return self.close_mismatched(written, shape);
        }
        self.stack.pop();
        self.pos += 1;
        Ok(())
    }

    /// A closing bracket of the wrong shape. If it fits the bracket around, the inner one was left
    /// open; if it fits nothing, it is the wrong character. Either way the rest must balance.
    fn close_mismatched(&mut self, written: Shape, shape: Shape) -> Outcome {
        if self.mismatch.is_some() {
            self.edits.admit(RepairKind::Reinterpreted, self.pos)?;
        }
        self.mismatch = Some(self.pos);
        let outer = self.stack.iter().rev().nth(1).map(|frame| frame.shape);
        let fits_outer = outer == Some(written) && !(self.stack.len() == 2 && self.comma_behind());
        if fits_outer {
            self.insert(RepairKind::MismatchedClose, self.pos, shape.closer())?;
            self.stack.pop();
            return Ok(());
        }
        if self.slot() == Slot::Opener {
            // `[}`: nothing says which of the two was meant.
            self.edits.admit(RepairKind::Reinterpreted, self.pos)?;
        }
        let range = self.pos..self.pos + 1;
        self.edit(RepairKind::MismatchedClose, range, shape.closer())?;
        self.stack.pop();
        self.pos += 1;
        Ok(())
    }

    /// Whether a comma follows the closing bracket at the current position.
    fn comma_behind(&self) -> bool {
        let rest = self.text[self.pos + 1..].trim_start();
        rest.starts_with(',') && !rest[1..].trim_start().is_empty()
    }

    /// `[{"i": 1 {"i": 2}]`: an object where a key must stand (preview only).
    fn unclosed_sibling(&mut self) -> Outcome<bool> {
        let object = self
            .stack
            .last()
            .is_some_and(|frame| frame.shape == Shape::Object);
        if !object || self.byte(self.pos) != Some(b'{') {
            return Ok(false);
        }
        let outer = self.stack.iter().rev().nth(1).map(|frame| frame.shape);
        if outer != Some(Shape::Array) {
            return self.unreadable("a key");
        }
        if let Slot::Comma(at) = self.slot() {
            self.delete(RepairKind::Reinterpreted, at..at + 1)?;
        }
        self.insert(RepairKind::Reinterpreted, self.pos, "}")?;
        self.stack.pop();
        Ok(true)
    }

    /// The document ended with brackets open (hydration.md §4.2).
    fn close_at_end(&mut self) -> Outcome {
        self.cut = true;
        if self.finish != FinishReason::Normal {
            self.truncated()?;
        }
        let object = self
            .stack
            .last()
            .is_some_and(|frame| frame.shape == Shape::Object);
        match self.slot() {
            Slot::Opener => self.truncated()?,
            Slot::Comma(at) => {
                // The next element of an array is never missed by validation, a member may be.
                if !object {
                    self.truncated()?;
                }
                self.delete(RepairKind::TrailingComma, at..at + 1)?;
            }
            Slot::Item if self.number_end == Some(self.text.len()) => {
                self.insert(RepairKind::NumberAtEnd, self.pos, "")?;
            }
            // `'I don'`: the text may have been cut within `don't`.
            Slot::Item if self.apostrophe_end == Some(self.text.len()) => self.truncated()?,
            Slot::Item => {}
        }
        if self.mismatch.is_some() {
            self.edits.admit(RepairKind::Reinterpreted, self.pos)?;
        }
        let closers: String = self
            .stack
            .iter()
            .rev()
            .map(|frame| frame.shape.closer())
            .collect();
        self.stack.clear();
        self.edit(RepairKind::MissingClose, self.pos..self.pos, closers)
    }

    // ---- odds and ends -------------------------------------------------------------------------

    /// Drops an ellipsis that stands for items left out, with the comma behind it.
    fn ellipsis(&mut self) -> Outcome<bool> {
        let rest = &self.text[self.pos..];
        let length = match rest.chars().next() {
            Some('\u{2026}') => '\u{2026}'.len_utf8(),
            Some('.') if rest.starts_with("...") => 3,
            _ => return Ok(false),
        };
        self.delete(RepairKind::Ellipsis, self.pos..self.pos + length)?;
        self.pos += length;
        self.skip_blanks()?;
        if self.byte(self.pos) == Some(b',') && self.slot() != Slot::Item {
            self.delete(RepairKind::Ellipsis, self.pos..self.pos + 1)?;
            self.pos += 1;
        }
        Ok(true)
    }

    /// Notes that the text is escaped one level, if what stands here says so: a backslash never
    /// stands between the tokens of a plain document.
    pub(super) fn note_escaped(&mut self) {
        let rest = &self.text[self.pos..];
        let escaped = ["\\\"", "\\n", "\\r", "\\t"]
            .iter()
            .any(|mark| rest.starts_with(mark));
        self.meets_escaped = escaped && !self.plain_strings;
    }

    /// An unquoted key: a word directly before a colon.
    fn bare_key(&mut self) -> Outcome<Range<usize>> {
        let start = self.pos;
        let end = word_end(self.text, start);
        self.pos = end;
        if start == end {
            self.note_escaped();
            return self.unreadable("a key");
        }
        if end == self.text.len() {
            self.truncated()?;
        }
        if self.byte(end) == Some(b'"') && self.is_preview() {
            self.insert(RepairKind::MissingQuote, start, "\"")?;
            self.pos += 1;
            return Ok(start..end);
        }
        let solid = self.text[end..].trim_start_matches(is_blank);
        let quoted = solid.chars().next().and_then(Quote::opened_by).is_some();
        if !(solid.starts_with([':', '/']) || quoted || self.is_preview()) {
            return self.unreadable("a colon after the key");
        }
        let quoted = format!("\"{}\"", &self.text[start..end]);
        self.edit(RepairKind::UnquotedKey, start..end, quoted)?;
        Ok(start..end)
    }
}
