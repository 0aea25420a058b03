//! What is different between two definitions, for people to look at.

use std::fmt;

use serde_json::Value;

/// More differences than this are not told one by one.
const MAX_DIFFERENCES: usize = 50;

/// How much of a value is shown.
const MAX_SHOWN: usize = 2000;

/// One place where two definitions differ.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// Where, as a JSON pointer: `/inputSchema/properties/path`. Empty for the whole.
    pub path: String,
    /// What was there; none if nothing was.
    pub before: Option<Value>,
    /// What is there now; none if nothing is.
    pub after: Option<Value>,
}

impl fmt::Display for Difference {
    /// Two lines, as in a patch. Text is shown so that nothing in it can hide or act on a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() {
            "all of it"
        } else {
            &self.path
        };
        write!(f, "{}", visible(place))?;
        for (sign, value) in [('-', &self.before), ('+', &self.after)] {
            if let Some(value) = value {
                write!(f, "\n  {sign} {}", shown(value))?;
            }
        }
        Ok(())
    }
}

fn shown(value: &Value) -> String {
    let text = visible(&value.to_string());
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// Characters that cannot be seen, or that move others about, as their numbers.
fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            visible.extend(character.escape_unicode());
        } else {
            visible.push(character);
        }
    }
    visible
}

/// Whether it is nothing to see, or moves others about. What the standard library does not print counts
/// as well.
fn is_hidden(character: char) -> bool {
    is_invisible(character) || (!character.is_ascii() && character.escape_debug().len() > 1)
}

fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{00}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Where two values differ, from the outside in: objects member by member, everything else as a whole.
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect(before, after, &mut String::new(), &mut found);
    found
}

fn collect(before: &Value, after: &Value, path: &mut String, found: &mut Vec<Difference>) {
    if before == after || found.len() >= MAX_DIFFERENCES {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        let there = |value: &Value| (!value.is_null()).then(|| value.clone());
        found.push(Difference {
            path: path.clone(),
            before: there(before),
            after: there(after),
        });
        return;
    };
    let added = new.keys().filter(|key| !old.contains_key(*key));
    for key in old.keys().chain(added) {
        let length = path.len();
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        let member = |members: &serde_json::Map<String, Value>| members.get(key).cloned();
        match (member(old), member(new)) {
            (Some(old), Some(new)) => collect(&old, &new, path, found),
            (before, after) if found.len() < MAX_DIFFERENCES => found.push(Difference {
                path: path.clone(),
                before,
                after,
            }),
            _ => {}
        }
        path.truncate(length);
    }
}
