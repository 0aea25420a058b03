//! `std::prompt`.

use super::builtins::int;
use super::{Native, give, text_of, wrong};
use crate::value::{Map, Value};
use crate::vm::Outcome;

pub(super) const ALL: &[Native] = &[
    Native::new("std::prompt::template", (2, 2), |_, a| {
        give(fill(text_of("template", &a[0])?, Some(map_of(&a[1])?)))
    }),
    Native::new("std::prompt::from_file", (1, 2), |context, a| {
        let map = a.get(1).map(map_of).transpose()?;
        let path = context
            .machine
            .permissions
            .path(text_of("from_file", &a[0])?);
        let limit = context.machine.limits.memory.saturating_mul(1 << 20) as u64;
        let text = path.and_then(|path| super::files::read(&path, limit));
        give(Value::result(
            text.map(|text| Value::text(fill(&text, map))),
        ))
    }),
    Native::new("std::prompt::count_tokens", (1, 1), |_, a| {
        let words = text_of("count_tokens", &a[0])?.split_whitespace().count();
        give(int((words * 4).div_ceil(3)))
    }),
];

fn map_of(value: &Value) -> Outcome<&Map> {
    match value {
        Value::Map(map) => Ok(map),
        other => Err(wrong("template", "Map", other)),
    }
}

/// Replaces `${key}`; what is put in is not looked at again.
fn fill(text: &str, map: Option<&Map>) -> String {
    let Some(map) = map else {
        return text.to_owned();
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = after.find('}') else {
            out.push_str(after);
            return out;
        };
        match map.get(after[2..end].trim()) {
            Some(value) => value.display_into(&mut out),
            None => out.push_str(&after[..=end]),
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    out
}
