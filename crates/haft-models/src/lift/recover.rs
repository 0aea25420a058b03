//! Calls that a model wrote as text.
//!
//! A model whose template does not fit writes its call as JSON into the text: bare, in a fence, or
//! between tags. Only objects with the members of a call and no others count, and only for tools that
//! were shown; otherwise everything stays text.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire;

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The text around it.
    pub(super) prose: String,
    pub(super) calls: Vec<FoundCall>,
}

/// One call, its arguments byte for byte.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundCall {
    pub(super) name: String,
    pub(super) arguments: String,
    /// Whether it was written as `name` and `arguments` (Llama: `parameters`), an object, and nothing
    /// else.
    pub(super) is_plain: bool,
}

const MARKS: [(&str, &str); 2] = [("<tool_call>", "</tool_call>"), ("```", "```")];

/// Finds the calls in a text, if it holds any.
pub(super) fn recovered(text: &str, is_shown: impl Fn(&str) -> bool) -> Option<Found> {
    let mut prose = String::new();
    let mut calls = Vec::new();
    let mut rest = text.trim();
    if rest.starts_with(['{', '[']) {
        calls = read(rest)?;
    } else {
        while let Some((before, inner, after)) = next_block(rest) {
            prose.push_str(before);
            calls.extend(read(inner)?);
            rest = after;
        }
        prose.push_str(rest);
    }
    let all_shown = calls.iter().all(|call| is_shown(&call.name));
    (!calls.is_empty() && all_shown).then(|| Found {
        prose: prose.trim().to_owned(),
        calls,
    })
}

/// Whether a text that is not at its end can still become one call and nothing else: `{"name": …`, bare, in a fence or
/// between tags.
pub(super) fn may_become_call(text: &str) -> bool {
    const TAG: &str = "<tool_call>";
    const FENCES: [&str; 3] = ["```json", "```tool_call", "```"];
    let text = text.trim_start();
    let begins = |whole: &str| text.len() < whole.len() && whole.starts_with(text);
    if begins(TAG) || FENCES.iter().any(|fence| begins(fence)) {
        return true;
    }
    let mut marks = [TAG].into_iter().chain(FENCES);
    let inner = marks.find_map(|mark| text.strip_prefix(mark));
    let inner = inner.unwrap_or(text).trim_start();
    let Some(object) = inner.strip_prefix('{') else {
        return inner.is_empty();
    };
    let object = object.trim_start();
    let name = "\"name\"";
    object.starts_with(name) || name.starts_with(object)
}

/// The text before the next marked block, the block, and the text after it.
fn next_block(text: &str) -> Option<(&str, &str, &str)> {
    let (at, (open, close)) = MARKS
        .into_iter()
        .filter_map(|marks| Some((text.find(marks.0)?, marks)))
        .min_by_key(|(at, _)| *at)?;
    let inside = &text[at + open.len()..];
    let end = inside.find(close)?;
    let inner = inside[..end].trim();
    // A fence may name its language.
    let inner = match inner.split_once('\n') {
        Some((language, code)) if language.bytes().all(|byte| byte.is_ascii_alphabetic()) => code,
        _ => inner,
    };
    Some((&text[..at], inner.trim(), &inside[end + close.len()..]))
}

/// Reads one call, or a list of calls.
fn read(json: &str) -> Option<Vec<FoundCall>> {
    // An object with other members is more likely an answer, or an example that the model explains.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wire<'a> {
        #[serde(borrow, default)]
        name: Option<&'a RawValue>,
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
        #[serde(borrow, default)]
        parameters: Option<&'a RawValue>,
        #[serde(borrow, default)]
        function: Option<&'a RawValue>,
        #[serde(borrow, default)]
        tool_calls: Option<&'a RawValue>,
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "type")]
        kind: Option<&'a RawValue>,
    }
    if json.starts_with('[') {
        let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        let calls: Option<Vec<_>> = list.into_iter().map(|raw| read(raw.get())).collect();
        return Some(calls?.into_iter().flatten().collect());
    }
    let wire: Wire<'_> = serde_json::from_str(json).ok()?;
    if let Some(inner) = wire
        .tool_calls
        .or(wire.function)
        .filter(|raw| !raw.get().starts_with('"'))
    {
        let mut calls = read(inner.get())?;
        for call in &mut calls {
            call.is_plain = false;
        }
        return Some(calls);
    }
    let name = wire::text(wire.name).or_else(|| wire::text(wire.function))?;
    // Something with a name and no arguments is more likely an answer.
    let ((Some(written), None) | (None, Some(written))) = (wire.arguments, wire.parameters) else {
        return None;
    };
    let has_others = wire.function.is_some() || wire.id.is_some() || wire.kind.is_some();
    Some(vec![FoundCall {
        name,
        arguments: wire::arguments(Some(written))?,
        is_plain: written.get().starts_with('{') && !has_others,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(String, Vec<(String, String)>)> {
        let found = recovered(text, |name| name == "ping")?;
        let calls = found
            .calls
            .into_iter()
            .map(|call| (call.name, call.arguments));
        Some((found.prose, calls.collect()))
    }

    #[test]
    fn calls_in_all_their_clothes_are_found() {
        let ping = |arguments: &str| vec![("ping".to_owned(), arguments.to_owned())];
        for (text, prose, arguments) in [
            (r#"{"name":"ping","arguments":{"a" :1}}"#, "", r#"{"a" :1}"#),
            (r#" {"name":"ping","parameters":{}} "#, "", "{}"),
            (
                r#"{"function":{"name":"ping","arguments":"{\"a\":1}"}}"#,
                "",
                r#"{"a":1}"#,
            ),
            (r#"{"function":"ping","arguments":{}}"#, "", "{}"),
            (
                r#"{"tool_calls":[{"type":"function","function":{"name":"ping","arguments":{}}}]}"#,
                "",
                "{}",
            ),
            (
                "Sure:\n```json\n{\"name\":\"ping\",\"arguments\":{}}\n```\nDone.",
                "Sure:\n\nDone.",
                "{}",
            ),
            ("```\n{\"name\":\"ping\",\"arguments\":{}}\n```", "", "{}"),
            (
                "<tool_call>\n{\"name\":\"ping\",\"arguments\":{}}\n</tool_call>",
                "",
                "{}",
            ),
        ] {
            assert_eq!(
                found(text),
                Some((prose.to_owned(), ping(arguments))),
                "{text}"
            );
        }
        let two = r#"[{"name":"ping","arguments":{}},{"name":"ping","arguments":{"a":2}}]"#;
        assert_eq!(found(two).unwrap().1.len(), 2);
    }

    #[test]
    fn text_is_held_back_only_while_it_can_become_a_call() {
        for text in [
            r#"{"name":"ping","arguments":{}}"#,
            "\n{ \"name\" : \"ping\", \"arguments\": {}}",
            "```json\n{\"name\":\"ping\",\"arguments\":{}}\n```",
            "```\n{\"name\":\"ping\",\"arguments\":{}}\n```",
            "<tool_call>\n{\"name\":\"ping\",\"arguments\":{}}\n</tool_call>",
        ] {
            for (at, _) in text.char_indices() {
                assert!(may_become_call(&text[..at]), "{}", &text[..at]);
            }
            let found = recovered(text, |name| name == "ping").unwrap();
            assert!(found.prose.is_empty() && found.calls.len() == 1, "{text}");
        }
        for text in [
            "The",
            "{\"answer\"",
            "{\"names",
            "```rust",
            "```json\n[",
            "<b>",
            "[",
            "`x`",
        ] {
            assert!(!may_become_call(text), "{text}");
        }
    }

    #[test]
    fn only_name_and_an_object_of_arguments_are_a_plain_call() {
        let is_plain = |text| recovered(text, |_| true).unwrap().calls[0].is_plain;
        for text in [
            r#"{"name":"ping","arguments":{}}"#,
            r#"{"name":"ping","parameters":{}}"#,
        ] {
            assert!(is_plain(text), "{text}");
        }
        for text in [
            r#"{"name":"ping","arguments":"{}"}"#,
            r#"{"name":"ping","arguments":[]}"#,
            r#"{"type":"function","name":"ping","arguments":{}}"#,
            r#"{"name":"ping","id":"c","arguments":{}}"#,
            r#"{"function":"ping","arguments":{}}"#,
            r#"{"function":{"name":"ping","arguments":{}}}"#,
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }

    #[test]
    fn everything_else_stays_text() {
        for text in [
            "",
            r#"{"name":"ping","arguments":{},"note":"an example"}"#,
            r#"{"name":"ping","arguments":{},"parameters":{}}"#,
            r#"{"name":"pong","name":"ping","arguments":{}}"#,
            "no call here",
            r#"{"name":"pong","arguments":{}}"#,
            r#"{"name":"ping"}"#,
            r#"{"name":"ping","arguments":{"#,
            "```json\n{\"name\":\"ping\",\"arguments\":{}}",
            "```rust\nfn main() {}\n```",
            "[]",
            "[1,2]",
            r#"[{"name":"ping","arguments":{}},{"name":"rm","arguments":{}}]"#,
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
