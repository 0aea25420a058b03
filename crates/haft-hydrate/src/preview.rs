//! A look at arguments that are still being written.

use haft_core::FinishReason;
use serde_json::Value;

use crate::parse::parse_strict;
use crate::text::{Root, TextPolicy, repair_text};

/// What a partial text shows so far, for display only.
///
/// Strings may be cut, values guessed, members missing. A preview must never reach a tool, a log
/// of arguments or a stored item: what is executed is computed from the complete text.
///
/// ```
/// use haft_hydrate::preview;
/// assert_eq!(preview(r#"{"city": "Os"#), Some(serde_json::json!({"city": "Os"})));
/// ```
pub fn preview(text: &str) -> Option<Value> {
    parse_strict(text).ok().or_else(|| {
        let repaired =
            repair_text(text, FinishReason::Normal, TextPolicy::Preview, Root::Any).ok()?;
        parse_strict(&repaired.text).ok()
    })
}
