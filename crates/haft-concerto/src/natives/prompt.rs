//! `std::prompt`.

use super::builtins::int;
use super::{Native, give, text_of, wrong};
use crate::value::{Map, Value};
use crate::vm::{Meter, Outcome};

pub(super) const ALL: &[Native] = &[
    Native::new("std::prompt::template", (2, 2), |context, a| {
        let text = context.read("template", &a[0])?;
        give(fill(context.meter(), text, Some(map_of(&a[1])?))?)
    }),
    Native::new("std::prompt::from_file", (1, 2), |context, a| {
        let map = a.get(1).map(map_of).transpose()?;
        let path = context
            .machine
            .permissions
            .path(text_of("from_file", &a[0])?);
        let meter = context.meter();
        let text = match path {
            Ok(path) => super::files::read(meter, &path)?,
            Err(denied) => Err(denied),
        };
        let text = match text {
            Ok(text) => text,
            Err(error) => return give(Value::result(Err(error))),
        };
        give(Value::ok(fill(meter, &text, map)?.into()))
    }),
    Native::new("std::prompt::count_tokens", (1, 1), |context, a| {
        let text = text_of("count_tokens", &a[0])?;
        context.meter().work(text.len() / 4)?;
        let words = text.split_whitespace().count();
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
fn fill(meter: &mut Meter, text: &str, map: Option<&Map>) -> Outcome<String> {
    meter.text(|out| {
        let mut rest = text;
        while let Some(map) = map
            && let Some(start) = rest.find("${")
        {
            let (before, after) = rest.split_at(start);
            out.push(before)?;
            let Some(end) = after.find('}') else {
                return out.push(after);
            };
            match map.get(after[2..end].trim()) {
                Some(value) => out.show(value)?,
                None => out.push(&after[..=end])?,
            }
            rest = &after[end + 1..];
        }
        out.push(rest)
    })
}
