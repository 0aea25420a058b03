//! Tables of what is refused: one line each, `JSON => code param`.

use haft_core::cut;
use serde_json::Value;

use super::Read;

/// The lines of a table.
pub(crate) fn rows(table: &str) -> impl Iterator<Item = (Value, &str, &str)> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (json, expected) = line.rsplit_once(" => ").unwrap();
        let (code, param) = expected.split_once(' ').unwrap();
        (long_texts(serde_json::from_str(json).unwrap()), code, param)
    })
}

/// Puts 65 letters in place of the text `x×65`.
fn long_texts(value: Value) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix("x×") {
            Some(count) => "x".repeat(count.parse().unwrap()).into(),
            None => text.into(),
        },
        Value::Array(entries) => entries.into_iter().map(long_texts).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| (key, long_texts(value)))
            .collect(),
        other => other,
    }
}

/// Checks that something was refused by this code, and that the message names the field.
#[track_caller]
pub(crate) fn check_refused<T>(read: Read<T>, given: &Value, code: &str, param: &str) {
    let given = cut(&given.to_string());
    let Err(error) = read else {
        panic!("accepted: {given}");
    };
    assert_eq!(
        (error.code.as_str(), error.param.as_deref()),
        (code, Some(param)),
        "{given}: {error}"
    );
    assert!(error.message.contains('`'), "{error}");
}
