//! Text repair.

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

use haft_core::{FinishReason, RepairEvent};

use self::chars::is_blank;
use self::edits::Edit;
use self::parse::Parser;
use self::surroundings::Start;
use self::unescape::Unescaped;

pub use self::refusal::TextRefusal;

/// The most bytes of text that are looked at (hydration.md §5).
pub const MAX_TEXT: usize = 1 << 20;
/// The most brackets that may be open at once; one more than `serde_json` reads would be useless.
pub const MAX_DEPTH: usize = 127;
/// The most edits of one repair; a text that needs more is not nearly JSON.
pub const MAX_EVENTS: usize = 4096;
/// How often a preview may look for a lost border of a string, each time costing a second look.
const MAX_RESCANS: usize = 64;

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
    let edits = find_edits(input, finish, policy, wanted)?.edits;
    Ok(apply(input, edits))
}

/// Whether a text that does not parse was cut off: it ends inside a token, after a comma or colon,
/// or with brackets open.
pub fn is_truncated(input: &str) -> bool {
    match find_edits(input, FinishReason::Normal, TextPolicy::Preview, Root::Any) {
        Ok(found) => found.cut,
        Err(refusal) => matches!(refusal, TextRefusal::Truncated { .. }),
    }
}

struct Found {
    edits: Vec<Edit>,
    cut: bool,
}

fn find_edits(
    input: &str,
    finish: FinishReason,
    policy: TextPolicy,
    wanted: Root,
) -> Result<Found, TextRefusal> {
    if input.len() > MAX_TEXT {
        return Err(TextRefusal::TooLarge {
            length: input.len(),
            limit: MAX_TEXT,
        });
    }
    let mut parser = Parser::new(input, finish, policy);
    parser.skip_blanks()?;
    let mut start = parser.locate(wanted)?;
    if !start.escaped {
        let found = read(&mut parser, start, wanted);
        if !parser.meets_escaped {
            return found;
        }
        start.escaped = true;
    }
    let unescaped = Unescaped::of(input, start.at, escaped_end(input, start.at));
    let mut parser = Parser::new(&unescaped.text, finish, policy);
    let found = parser
        .skip_blanks()
        .and_then(|()| read(&mut parser, start, wanted))
        .map_err(|refusal| refusal.moved(|offset| unescaped.origin(offset)))?;
    let edits = unescaped.compose(found.edits);
    if edits.len() > MAX_EVENTS {
        return Err(TextRefusal::TooManyEdits { limit: MAX_EVENTS });
    }
    Ok(Found { edits, ..found })
}

/// Reads the document at `start` and what surrounds it.
fn read(parser: &mut Parser<'_>, start: Start, wanted: Root) -> Result<Found, TextRefusal> {
    // Taking off the escapes may have turned `\n` before the document into a blank.
    let start = start.at.max(parser.pos);
    parser.leave_prefix(start, wanted)?;
    let scalar = !parser.text[start..].starts_with(['{', '[']);
    parser.document()?;
    parser.further_documents(start, scalar)?;
    parser.leave_suffix(scalar, wanted)?;
    Ok(Found {
        cut: parser.cut,
        edits: parser.edits.take(),
    })
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
