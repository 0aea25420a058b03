//! Descriptions: without characters that nobody sees, and not too long.

use haft_core::subschemas_mut;
use serde_json::Value;

/// How large a tool may be before its descriptions are cut.
pub const MAX_TOOL_BYTES: usize = 16 * 1024;

/// Words whose values are no schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Descriptions are never cut shorter than this.
const MIN_BYTES: usize = 40;

/// A text without control, zero-width, bidirectional and tag characters. Line breaks and tabs stay.
///
/// ```
/// use haft_models::lower::schema::clean_text;
/// assert_eq!(clean_text("a\u{200b}b\u{202e}\u{e0041}\u{7}\nc"), "ab\nc");
/// ```
pub fn clean_text(text: &str) -> String {
    text.chars().filter(|c| is_visible(*c)).collect()
}

fn is_visible(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => false,
        c => !c.is_control(),
    }
}

/// Cleans all descriptions and titles.
pub(super) fn clean(schema: &mut Value) {
    for keyword in ["description", "title"] {
        if let Some(Value::String(text)) = schema.get_mut(keyword)
            && !text.chars().all(is_visible)
        {
            *text = clean_text(text);
        }
    }
    subschemas_mut(schema, |_, sub| clean(sub));
}

/// All descriptions of a schema.
pub(super) fn descriptions(schema: &mut Value) -> Vec<&mut String> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        match schema {
            Value::Object(members) => {
                for (keyword, value) in members.iter_mut() {
                    // Data, which may look like anything.
                    if DATA.contains(&keyword.as_str()) {
                        continue;
                    }
                    if keyword == "description" && value.is_string() {
                        if let Value::String(text) = value {
                            found.push(text);
                        }
                    } else {
                        open.push(value);
                    }
                }
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

/// Cuts the longest texts until the whole, now `size` bytes, has at most [`MAX_TOOL_BYTES`], as far
/// as that goes.
pub fn shorten(mut texts: Vec<&mut String>, size: usize) {
    let mut excess = size.saturating_sub(MAX_TOOL_BYTES);
    if excess == 0 {
        return;
    }
    // Each cut text gets a mark of three bytes.
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let lengths: Vec<_> = texts.iter().map(|text| text.len()).collect();
    let won = |limit: usize| -> usize {
        lengths
            .iter()
            .map(|length| length.saturating_sub(limit + 3))
            .sum()
    };
    let (mut low, mut high) = (MIN_BYTES, lengths.first().copied().unwrap_or_default());
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if won(middle) >= excess {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    for text in texts {
        if excess == 0 || text.len() <= low + 3 {
            return;
        }
        let before = text.len();
        text.truncate(text.floor_char_boundary(low));
        text.push('…');
        excess = excess.saturating_sub(before - text.len());
    }
}
