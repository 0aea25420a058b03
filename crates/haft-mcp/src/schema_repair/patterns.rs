//! Patterns of ECMA-262 that the validator reads differently, or not at all.

use std::fmt::Write as _;

use haft_hydrate::pattern_cost;
use serde_json::json;

/// The same pattern in syntax that both ECMA-262 and the validator have; none if there is none.
pub(super) fn translated(pattern: &str) -> Option<String> {
    if compiles(pattern) {
        return Some(pattern.to_owned());
    }
    let rewritten = rewritten(pattern)?;
    compiles(&rewritten).then_some(rewritten)
}

fn compiles(pattern: &str) -> bool {
    let schema = json!({ "pattern": pattern });
    pattern_cost(&schema).is_ok()
        && haft_core::ValidatorFactory::compile(&haft_hydrate::JsonSchemaFactory, &schema).is_ok()
}

/// Rewrites character by character what has an exact equivalent.
fn rewritten(pattern: &str) -> Option<String> {
    let names = group_names(pattern);
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        match character {
            // Any character, and none at all.
            '[' if !in_class && after.starts_with("^]") => {
                out.push_str(r"[\s\S]");
                rest = &after[2..];
                continue;
            }
            '[' if !in_class && after.starts_with(']') => {
                out.push_str(r"[^\s\S]");
                rest = &after[1..];
                continue;
            }
            '[' => {
                if in_class {
                    out.push('\\');
                }
                in_class = true;
                out.push('[');
            }
            ']' => {
                // Outside of a class it stands for itself.
                if !in_class {
                    out.push('\\');
                }
                in_class = false;
                out.push(']');
            }
            '\\' => {
                rest = escape(after, in_class, &names, &mut out)?;
                continue;
            }
            // A brace that repeats nothing stands for itself.
            '{' if !in_class && !is_repetition(after) => out.push_str(r"\{"),
            '}' if !in_class && !ends_repetition(&out) => out.push_str(r"\}"),
            other => out.push(other),
        }
        rest = after;
    }
    Some(out)
}

/// Writes one escape, whose backslash is taken already, and returns what follows it.
fn escape<'p>(after: &'p str, in_class: bool, names: &[&str], out: &mut String) -> Option<&'p str> {
    let kind = after.chars().next()?;
    let rest = &after[kind.len_utf8()..];
    match kind {
        // A back-reference by name is one by number.
        'k' if !in_class && rest.starts_with('<') => {
            let end = rest.find('>')?;
            let index = names.iter().position(|name| *name == &rest[1..end])?;
            let rest = &rest[end + 1..];
            // A digit behind it would belong to the number.
            if rest.starts_with(|next: char| next.is_ascii_digit()) {
                return None;
            }
            // Writing to a `String` cannot fail.
            let _ = write!(out, "\\{}", index + 1);
            return Some(rest);
        }
        'u' => {
            let (code, rest) = code_point(rest)?;
            push_literal(out, char::from_u32(code)?);
            return Some(rest);
        }
        'x' => {
            let digits = rest.get(..2)?;
            let code = u32::from_str_radix(digits, 16).ok()?;
            push_literal(out, char::from_u32(code)?);
            return Some(&rest[2..]);
        }
        '0' if !rest.starts_with(|next: char| next.is_ascii_digit()) => push_literal(out, '\0'),
        // A backspace in a class, a word boundary elsewhere.
        'b' if in_class => push_literal(out, '\u{8}'),
        // An escape that stands for the character itself.
        _ if !kind.is_ascii_alphanumeric() => push_literal(out, kind),
        _ => {
            out.push('\\');
            out.push(kind);
        }
    }
    Some(rest)
}

/// The code point of `\uXXXX`, of two of them that are one character, or of `\u{X…}`.
fn code_point(rest: &str) -> Option<(u32, &str)> {
    if let Some(braced) = rest.strip_prefix('{') {
        let end = braced.find('}')?;
        let code = u32::from_str_radix(&braced[..end], 16).ok()?;
        return Some((code, &braced[end + 1..]));
    }
    let code = u32::from_str_radix(rest.get(..4)?, 16).ok()?;
    let rest = &rest[4..];
    if (0xd800..0xdc00).contains(&code) {
        let low = rest.strip_prefix("\\u")?;
        let low_code = u32::from_str_radix(low.get(..4)?, 16).ok()?;
        let is_low = (0xdc00..0xe000).contains(&low_code);
        let joined = 0x1_0000 + ((code - 0xd800) << 10) + low_code.checked_sub(0xdc00)?;
        return is_low.then_some((joined, &low[4..]));
    }
    Some((code, rest))
}

/// A character that stands for itself, in syntax that both dialects read.
fn push_literal(out: &mut String, character: char) {
    if character.is_ascii_control() {
        let _ = write!(out, "\\x{:02x}", u32::from(character));
    } else {
        // `/` and the like need no escape, and the validator refuses one before letters only.
        if r"\^$.*+?()[]{}|-/&~#".contains(character) && character != '/' {
            out.push('\\');
        }
        out.push(character);
    }
}

/// The names of all groups that capture, in order; empty for those without a name.
fn group_names(pattern: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut in_class = false;
    let mut is_escaped = false;
    for (at, character) in pattern.char_indices() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match character {
            '\\' => is_escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let after = &pattern[at + 1..];
                let name = after.strip_prefix("?<");
                let name = name.filter(|it| !it.starts_with(['=', '!']));
                match name.and_then(|it| it.split_once('>')) {
                    Some((name, _)) => names.push(name),
                    None if after.starts_with('?') => {}
                    None => names.push(""),
                }
            }
            _ => {}
        }
    }
    names
}

fn is_repetition(after: &str) -> bool {
    let Some((inside, _)) = after.split_once('}') else {
        return false;
    };
    let mut numbers = inside.splitn(2, ',');
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    numbers.next().is_some_and(is_number)
        && numbers
            .next()
            .is_none_or(|it| it.is_empty() || is_number(it))
}

/// Whether what was written ends in a repetition that is still open.
fn ends_repetition(out: &str) -> bool {
    let Some(at) = out.rfind('{') else {
        return false;
    };
    let is_escaped = out[..at].ends_with('\\');
    !is_escaped
        && out[at + 1..]
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b',')
}
