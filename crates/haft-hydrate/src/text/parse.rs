//! The tolerant parser: an explicit stack of open brackets, one step per token.
//!
//! It never builds a value. It walks over the text and notes what has to change for a strict
//! parser to read it; strings are read in [`super::strings`], bare words in [`super::bare`], what
//! surrounds the document in [`super::surroundings`].

use std::borrow::Cow;
use std::ops::Range;

use haft_core::{FinishReason, RepairKind};

use super::chars::{Quote, is_blank, is_json_blank, is_key_char, is_line_end, is_special_blank};
use super::edits::{Edit, Edits};
use super::{TextPolicy, TextRefusal};

/// Where in the document a value stands; it decides what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    Key,
    Member,
    Element,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    Array,
}

/// What stands before the next item of a bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Opener,
    Item,
    Comma(usize),
}

/// The step of the JSON pointer that leads into a bracket's current item.
#[derive(Debug, Clone)]
pub(super) enum Step {
    None,
    Key(Range<usize>),
    Index(usize),
}

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    pub(super) slot: Slot,
    pub(super) step: Step,
    /// An object whose braces were never written: `["a": 1]`.
    pub(super) bare: bool,
}

/// Which marks behind the document end it, because their counterpart stands before it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Enclosure {
    pub(super) fence: bool,
    pub(super) tag: bool,
    pub(super) call: bool,
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) pos: usize,
    pub(super) edits: Edits,
    pub(super) policy: TextPolicy,
    pub(super) finish: FinishReason,
    pub(super) enclosure: Enclosure,
    pub(super) stack: Vec<Frame>,
    /// Where the last number ended.
    pub(super) number_end: Option<usize>,
    /// Where the last string ended, if its quote may also be an apostrophe.
    pub(super) apostrophe_end: Option<usize>,
    /// Where a comment starts directly behind the last string.
    pub(super) commented: Option<usize>,
    /// Where a closing bracket of the wrong shape was met: from then on the brackets must balance.
    pub(super) mismatch: Option<usize>,
    /// Whether the text ended within the document.
    pub(super) cut: bool,
    /// Whether a string in plain double quotes has been read.
    pub(super) plain_strings: bool,
    /// Whether an escaped quote was met where a string must start.
    pub(super) meets_escaped: bool,
    /// How often a string border may be looked for again (preview only).
    pub(super) rescans_left: usize,
}

pub(super) type Outcome<T = ()> = Result<T, TextRefusal>;

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, finish: FinishReason, policy: TextPolicy) -> Self {
        Self {
            text,
            pos: 0,
            edits: Edits::new(policy),
            policy,
            finish,
            enclosure: Enclosure::default(),
            stack: Vec::new(),
            number_end: None,
            apostrophe_end: None,
            commented: None,
            mismatch: None,
            cut: false,
            plain_strings: false,
            meets_escaped: false,
            rescans_left: 0,
        }
    }

    pub(super) fn is_preview(&self) -> bool {
        self.policy == TextPolicy::Preview
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    pub(super) fn char_at(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    /// Whether a string opens here; three back-ticks are a fence, not an empty string and more.
    pub(super) fn opens_string(&self, at: usize) -> bool {
        let opens = self.char_at(at).and_then(Quote::opened_by).is_some();
        opens && !self.text[at..].starts_with("```")
    }

    /// Records a replacement at the current path.
    pub(super) fn edit(
        &mut self,
        kind: RepairKind,
        range: Range<usize>,
        after: impl Into<Cow<'static, str>>,
    ) -> Outcome {
        self.edits.admit(kind, range.start)?;
        let after = after.into();
        if self.edits.merge(kind, &range, &after) {
            return Ok(());
        }
        let path = self.path()?;
        self.edits.push(Edit {
            kind,
            range,
            after,
            path,
        })
    }

    pub(super) fn insert(&mut self, kind: RepairKind, at: usize, after: &'static str) -> Outcome {
        self.edit(kind, at..at, after)
    }

    pub(super) fn delete(&mut self, kind: RepairKind, range: Range<usize>) -> Outcome {
        self.edit(kind, range, "")
    }

    pub(super) fn unreadable<T>(&self, expected: &'static str) -> Outcome<T> {
        Err(TextRefusal::Unreadable {
            offset: self.pos,
            expected,
        })
    }

    /// The text ended too early. Arguments are refused; a preview goes on with the given edit.
    pub(super) fn truncated(&mut self) -> Outcome {
        self.cut = true;
        if self.is_preview() {
            return Ok(());
        }
        Err(TextRefusal::Truncated { offset: self.pos })
    }

    /// The path of the current item, for one edit; refuses before it is built if the paths of all
    /// edits would become too long.
    pub(super) fn path(&mut self) -> Outcome<String> {
        let lengths = self.stack.iter().map(|frame| match &frame.step {
            Step::None => 0,
            Step::Index(_) => 8,
            Step::Key(range) => 1 + range.len(),
        });
        self.edits.reserve_path(lengths.sum())?;
        let mut path = String::new();
        for frame in &self.stack {
            match &frame.step {
                Step::None => {}
                Step::Index(index) => {
                    path.push('/');
                    path.push_str(&index.to_string());
                }
                Step::Key(range) => {
                    path.push('/');
                    push_pointer_token(&mut path, &self.text[range.clone()]);
                }
            }
        }
        Ok(path)
    }

    // ---- blanks and comments -------------------------------------------------------------------

    /// Passes over blanks and comments between tokens.
    pub(super) fn skip_blanks(&mut self) -> Outcome {
        while let Some(byte) = self.byte(self.pos) {
            match byte {
                _ if is_json_blank(byte) => self.pos += 1,
                b'/' | b'#' => {
                    let Some(end) = self.comment_end() else { break };
                    let range = self.pos..end;
                    // Behind an odd quote a comment may be the rest of a string.
                    let quotes = self.text[range.clone()].matches('"').count();
                    if !self.stack.is_empty() && !quotes.is_multiple_of(2) {
                        self.edits.admit(RepairKind::GuessedQuote, self.pos)?;
                    }
                    self.pos = end;
                    self.delete(RepairKind::Comment, range)?;
                }
                b'\x0b' | b'\x0c' | 0x80.. => {
                    let Some(c) = self.char_at(self.pos).filter(|c| is_special_blank(*c)) else {
                        break;
                    };
                    let (kind, after) = match (self.pos, c) {
                        (0, '\u{feff}') => (RepairKind::ByteOrderMark, ""),
                        _ => (RepairKind::SpecialBlank, " "),
                    };
                    let range = self.pos..self.pos + c.len_utf8();
                    self.pos = range.end;
                    self.edit(kind, range, after)?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Where the comment at the current position ends, if one starts there.
    ///
    /// A line comment that runs to the end of the text while brackets are open may have swallowed
    /// members or closing brackets. Unless its words exclude that, it is left for the reader of
    /// the next token to refuse.
    fn comment_end(&self) -> Option<usize> {
        let rest = &self.text[self.pos..];
        let open = !self.stack.is_empty();
        if let Some(comment) = rest.strip_prefix("/*") {
            return match comment.find("*/") {
                Some(length) => Some(self.pos + length + 4),
                None if open => None,
                None => Some(self.text.len()),
            };
        }
        let hash = rest.starts_with('#')
            && rest[1..]
                .chars()
                .next()
                .is_none_or(|c| is_blank(c) || c == '#');
        if rest.starts_with("//") || hash {
            return match rest.find(is_line_end) {
                Some(length) => Some(self.pos + length),
                None if open && !self.is_preview() && rest.contains(['{', '}', '[', ']', ':']) => {
                    None
                }
                None => Some(self.text.len()),
            };
        }
        None
    }
}

/// Appends a reference token of a JSON pointer: the key as it reads once decoded.
fn push_pointer_token(path: &mut String, raw: &str) {
    let mut key = Cow::Borrowed(raw);
    if raw.contains('\\')
        && let Ok(decoded) = serde_json::from_str::<String>(&format!("\"{raw}\""))
    {
        key = Cow::Owned(decoded);
    }
    if key.contains(['~', '/']) {
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
    } else {
        path.push_str(&key);
    }
}

/// Whether a word starts here that could be a label or a call's name.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_key_char)
}
