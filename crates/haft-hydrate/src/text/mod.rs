//! From the text that a model wrote as arguments to valid JSON text and an audited list of edits,
//! or a refusal (hydration.md §1, §3, §4).
//!
//! A repair may restore what the model evidently wrote; it never decides what the model meant. So
//! the repairer is no parser of values but a tolerant reader that copies its input and notes
//! **edits**, each a byte range of the input and its replacement. Every edit has a kind, every
//! kind a class, and under [`TextPolicy::Arguments`] the first edit whose class is not admissible
//! refuses the whole text. The result is the input with the edits applied, which is what
//! [`replay`] does again from the events; the caller parses it strictly.
//!
//! ```
//! use haft_core::{FinishReason, RepairKind};
//! use haft_hydrate::text::{Root, TextPolicy, TextRefusal, repair_text};
//!
//! let written = "Sure, here it is: {city: 'Oslo', \"days\": [1, 2,]}";
//! let repaired = repair_text(written, FinishReason::Normal, TextPolicy::Arguments, Root::Object)?;
//! assert_eq!(repaired.text, r#"{"city": "Oslo", "days": [1, 2]}"#);
//! assert_eq!(repaired.events[0].kind, RepairKind::Prose);
//!
//! let cut = r#"{"city": "Osl"#;
//! let refused = repair_text(cut, FinishReason::Normal, TextPolicy::Arguments, Root::Object);
//! assert_eq!(refused, Err(TextRefusal::Truncated { offset: 13 }));
//! # Ok::<(), TextRefusal>(())
//! ```
//!
//! # How it reads
//!
//! One pass over the text, an explicit stack of brackets, no second reading. Three things bound
//! the work: lookahead never goes past the next quote (or a constant), a text that turns out to be
//! escaped is unescaped and read once more, and a preview may look again for a lost border of a
//! string a few times.
//!
//! 1. `surroundings` finds the one document: the only opening bracket that goes on like one.
//!    Prose, labels, tags, fences and calls are told apart for the record only; no wording is
//!    known. A second candidate, or prose that holds a piece of JSON, refuses.
//! 2. `structure` walks objects and arrays, `strings` and `escapes` read strings, `bare` the rest.
//! 3. `unescape` takes one level of escaping off a text whose quotes are all escaped, and carries
//!    the edits made behind it back to the input.
//!
//! # Decisions
//!
//! - **Comment marks** behind a quote (`"echo "# Title""`) end a string only if the comment holds no
//!   further quote of the family; otherwise it may be content, and arguments are refused.
//! - **Where a string ends.** A quote ends its string if what follows may follow there: `,` `}`
//!   `]`, the end, a comment, a joining `+`; for a key the colon or a value; on a new line also the
//!   next key or element. Any other quote is content. Because a missing border would be swallowed
//!   by that rule, inner quotes must come in pairs that look like pairs (opening after a
//!   non-letter, closing before one); an odd one, a doubled pair around the whole, or a quote
//!   before a colon inside a value refuses. So `"a 24" screen"` is refused although most readers
//!   would agree on it: so would `["x, "y"]`.
//! - **Backslashes.** `\d` means a backslash if the string has no other escapes than `\"`; beside
//!   `\n`, `\\` or `\u00e9` it is a guess, as are `\x41` and a backslash before a line end.
//! - **Truncation** follows §4.2. An opening bracket as last token counts as cut off. A trailing
//!   comma at the end is accepted in an object with a normal finish, never in an array, whose
//!   missing elements no validation would notice. A line comment that runs into the end while
//!   brackets are open refuses if it may hold brackets or members.
//! - **Closing brackets.** A wrong one is corrected once, and only if all brackets balance from
//!   there on.
//! - **Prose with names and values** (`city: Oslo`, `city=Oslo`, a tag with attributes) may hold a
//!   part of the arguments and is refused, except for the label directly before the document.
//! - **Closers** are appended after a normal finish only, and never after a `'` at the very end,
//!   which may be the apostrophe of a word that was cut.
//! - **Missing commas** between strings or numbers in an array need a line end: `1 000` may be one.
//!   A second comma is dropped in an object; in an array it may mark a lost element.
//! - **Numbers** are those of JSON plus a missing leading zero. `007`, `+5`, `1_000`, `0x1f` and
//!   `2.` are refused, as is any text without quotes.
//! - **One word before the document** on the same line (`callback {}`) is neither label nor prose.
//! - **Any root.** Where the schema allows any value, prose might be the value, so that only
//!   labels, fences, calls and comments are dropped.
//! - **Duplicate keys** pass through untouched, for the strict parser to refuse.

mod bare;
mod chars;
mod edits;
mod escapes;
mod parse;
mod refusal;
mod strings;
mod structure;
mod surroundings;
mod unescape;

use haft_core::{FinishReason, RepairEvent, RepairKind};

use self::chars::is_blank;
use self::edits::Edit;
use self::parse::Parser;
use self::surroundings::Start;
use self::unescape::Unescaped;
use crate::parse::MAX_BYTES;

pub use self::refusal::TextRefusal;

/// The most edits of one repair; a text that needs more is not nearly JSON.
pub const MAX_EVENTS: usize = 4096;
/// The most bytes that the paths of all edits of one repair may have together.
const MAX_PATH_BYTES: usize = 256 * 1024;
/// How often a preview may look for a lost border of a string, each time costing a second look.
const MAX_RESCANS: usize = 4;
/// The same for the question whether a text was cut off.
const MAX_RESCANS_OF_CUT: usize = 2;

/// What a repair may take upon itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TextPolicy {
    /// For values that will be executed: lossless edits only.
    #[default]
    Arguments,
    /// For display only: every class of edit.
    Preview,
}

/// Which values may be the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Root {
    /// Arguments of a tool: an object, or an array that the schema stage may unwrap.
    #[default]
    Object,
    /// Any value, scalars included.
    Any,
}

/// A text made valid, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRepair {
    /// JSON text.
    pub text: String,
    /// The edits that lead from the input to `text`, in order; empty if nothing was wrong.
    pub events: Vec<RepairEvent>,
}

/// Makes JSON of the text that a model wrote, or says why not.
pub fn repair_text(
    input: &str,
    finish: FinishReason,
    policy: TextPolicy,
    wanted: Root,
) -> Result<TextRepair, TextRefusal> {
    let reading = find_edits(input, finish, policy, wanted, MAX_RESCANS);
    reading.end?;
    Ok(apply(input, reading.edits))
}

/// The edits that were made until a text was refused, for the record.
pub(crate) fn edits_until_refused(
    input: &str,
    finish: FinishReason,
    policy: TextPolicy,
    wanted: Root,
) -> Vec<RepairEvent> {
    let reading = find_edits(input, finish, policy, wanted, MAX_RESCANS);
    apply(input, reading.edits).events
}

/// Whether a text that does not parse was cut off: it ends inside a token, after a comma or colon,
/// or with brackets open.
pub fn is_truncated(input: &str) -> bool {
    // A lone string may be cut off; lone words are prose.
    let quoted = input.trim_start_matches(is_blank).starts_with(['"', '\\']);
    let wanted = if quoted { Root::Any } else { Root::Object };
    let (finish, policy) = (FinishReason::Normal, TextPolicy::Preview);
    match find_edits(input, finish, policy, wanted, MAX_RESCANS_OF_CUT).end {
        Ok(End { cut }) => cut,
        Err(refusal) => matches!(refusal, TextRefusal::Truncated { .. }),
    }
}

/// How far a text was read.
struct Reading {
    edits: Vec<Edit>,
    end: Result<End, TextRefusal>,
}

/// A document that was read to its end.
struct End {
    cut: bool,
}

fn find_edits(
    input: &str,
    finish: FinishReason,
    policy: TextPolicy,
    wanted: Root,
    rescans: usize,
) -> Reading {
    if input.len() > MAX_BYTES {
        return Reading {
            edits: Vec::new(),
            end: Err(TextRefusal::TooLarge {
                length: input.len(),
                limit: MAX_BYTES,
            }),
        };
    }
    let mut parser = Parser::new(input, finish, policy);
    parser.rescans_left = rescans;
    let located = parser.skip_blanks().and_then(|()| parser.locate(wanted));
    let mut start = match located {
        Ok(start) => start,
        Err(refusal) => {
            return Reading {
                edits: parser.edits.take(),
                end: Err(refusal),
            };
        }
    };
    if !start.escaped {
        let end = read(&mut parser, start, wanted);
        if !parser.meets_escaped {
            return Reading {
                edits: parser.edits.take(),
                end,
            };
        }
        start.escaped = true;
    }
    let unescaped = Unescaped::of(input, start.at, escaped_end(input, start.at));
    let mut parser = Parser::new(&unescaped.text, finish, policy);
    parser.rescans_left = rescans;
    let end = parser
        .skip_blanks()
        .and_then(|()| read(&mut parser, start, wanted))
        .map_err(|refusal| refusal.moved(|offset| unescaped.origin(offset)));
    let mut edits = unescaped.compose(parser.edits.take());
    if edits.len() > MAX_EVENTS {
        edits.truncate(MAX_EVENTS);
        let end = Err(TextRefusal::TooManyEdits { limit: MAX_EVENTS });
        return Reading { edits, end };
    }
    Reading { edits, end }
}

/// Reads the document at `start` and what surrounds it.
fn read(parser: &mut Parser<'_>, start: Start, wanted: Root) -> Result<End, TextRefusal> {
    let escaped = start.escaped;
    // Taking off the escapes may have turned `\n` before the document into a blank.
    let start = start.at.max(parser.pos);
    parser.leave_prefix(start, wanted)?;
    let scalar = !parser.text[start..].starts_with(['{', '[']);
    parser.document()?;
    // In `"{'p': 'C:\\dir'}"` a backslash may belong to the inner string or to the one around it.
    let around = parser.text[..start].trim_end_matches(is_blank);
    if !escaped && !scalar && around.ends_with(['"', '\'']) {
        let document = &parser.text[start..parser.pos];
        if let Some(length) = document.find('\\') {
            let kind = RepairKind::GuessedBackslash;
            parser.edits.admit(kind, start + length)?;
        }
    }
    parser.further_documents(start, scalar)?;
    parser.leave_suffix(scalar, wanted)?;
    Ok(End { cut: parser.cut })
}

/// Where the escaped part of the text ends: before the quote that closes the one around it.
fn escaped_end(input: &str, start: usize) -> usize {
    let wrapped = input[..start].trim_end_matches(is_blank).ends_with('"');
    let end = input.trim_end_matches(is_blank).len();
    let closed =
        wrapped && input[start..end].ends_with('"') && !input[start..end].ends_with("\\\"");
    if closed { end - 1 } else { input.len() }
}

fn apply(input: &str, edits: Vec<Edit>) -> TextRepair {
    let mut text = String::with_capacity(input.len() + edits.len());
    let mut events = Vec::with_capacity(edits.len());
    let mut done = 0;
    for edit in edits {
        text.push_str(&input[done..edit.range.start]);
        text.push_str(&edit.after);
        done = edit.range.end;
        events.push(RepairEvent {
            kind: edit.kind,
            path: edit.path,
            offset: Some(edit.range.start),
            before: input[edit.range].to_owned(),
            after: edit.after.into_owned(),
        });
    }
    text.push_str(&input[done..]);
    TextRepair { text, events }
}

/// Applies the events of a repair to its input; `None` if they do not belong to it.
///
/// ```
/// use haft_core::FinishReason;
/// use haft_hydrate::text::{Root, TextPolicy, TextRefusal, repair_text, replay};
/// let input = "{'city': 'Oslo',}";
/// let repaired = repair_text(input, FinishReason::Normal, TextPolicy::Arguments, Root::Object)?;
/// assert_eq!(replay(input, &repaired.events), Some(repaired.text));
/// # Ok::<(), TextRefusal>(())
/// ```
pub fn replay(input: &str, events: &[RepairEvent]) -> Option<String> {
    let mut text = String::with_capacity(input.len());
    let mut done = 0;
    for event in events {
        let offset = event.offset?;
        text.push_str(input.get(done..offset)?);
        if !input.get(offset..)?.starts_with(&event.before) {
            return None;
        }
        text.push_str(&event.after);
        done = offset + event.before.len();
    }
    text.push_str(input.get(done..)?);
    Some(text)
}
