//! Arguments as a person writes them.

use std::io::Read;

use haft::{RawArguments, ToolDefinition, Value};

use crate::failure::Failure;
use crate::text::{nearest, one_line};

/// How much is read of standard input; no call is longer.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// What they mean: the text of one JSON value, or names and values.
pub(super) fn read(
    written: &[String],
    tool: &ToolDefinition,
    input: impl Read,
) -> Result<RawArguments, Failure> {
    match written {
        [] => Ok(RawArguments::Text(String::from("{}"))),
        [only] if only == "-" => piped(input).map(RawArguments::Text),
        // Whatever is wrong with it is told as for any call.
        [only] if only.trim_start().starts_with('{') => Ok(RawArguments::Text(only.clone())),
        pairs => named(pairs, tool),
    }
}

fn piped(input: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    let read = input.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| {
        Failure::mistake(format!("standard input cannot be read: {error}"))
            .remedy("write one JSON object in UTF-8")
    })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Failure::mistake("standard input is too long for arguments"));
    }
    Ok(text)
}

fn named(pairs: &[String], tool: &ToolDefinition) -> Result<RawArguments, Failure> {
    let members = tool
        .parameters()
        .and_then(|it| it["properties"].as_object());
    let mut arguments = serde_json::Map::new();
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let shown = one_line(pair, 64);
            return Err(Failure::mistake(format!("`{shown}` is no argument"))
                .remedy("write `KEY=VALUE` for each, or one JSON object for all"));
        };
        let schema = members.and_then(|members| members.get(name));
        if schema.is_none() {
            let names = members
                .into_iter()
                .flat_map(|it| it.keys().map(String::as_str));
            // The schema decides whether it is refused; that it is a slip is most likely.
            if let Some(near) = nearest(name, names) {
                let shown = one_line(name, 64);
                return Err(Failure::mistake(format!("there is no argument `{shown}`"))
                    .remedy(format!("did you mean `{near}`?")));
            }
        }
        if arguments
            .insert(name.to_owned(), valued(value, schema))
            .is_some()
        {
            let shown = one_line(name, 64);
            return Err(Failure::mistake(format!("`{shown}` is given twice"))
                .remedy("give every argument once; a list is written as JSON: `KEY='[1, 2]'`"));
        }
    }
    Ok(RawArguments::Json(Value::Object(arguments)))
}

/// Text where the schema wants text, else JSON if it is some.
fn valued(text: &str, schema: Option<&Value>) -> Value {
    let kinds = schema.map(|schema| &schema["type"]);
    let wants_text = match kinds {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|it| it == "string"),
        _ => false,
    };
    if wants_text {
        return text.into();
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft::json;

    fn arguments(written: &[&str], input: &str) -> Result<Value, String> {
        let tool = ToolDefinition::builder("find").parameters(json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "zone": {"type": ["string", "null"]},
                "limit": {"type": "integer"},
                "deep": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        }));
        let written: Vec<String> = written.iter().map(|it| (*it).to_owned()).collect();
        let read = read(&written, &tool.build().unwrap(), input.as_bytes());
        match read.map_err(|failure| failure.to_string())? {
            RawArguments::Text(text) => Ok(text.into()),
            RawArguments::Json(value) => Ok(value),
        }
    }

    #[test]
    fn values_are_what_the_schema_wants() {
        let written = [
            "query=7",
            "zone=null",
            "limit=3",
            "deep=true",
            "tags=[\"a\"]",
        ];
        let expected =
            json!({"query": "7", "zone": "null", "limit": 3, "deep": true, "tags": ["a"]});
        assert_eq!(arguments(&written, ""), Ok(expected));
        // What does not fit is left to the checks of the call.
        assert_eq!(arguments(&["limit=many"], ""), Ok(json!({"limit": "many"})));
        assert_eq!(arguments(&["query=a=b"], ""), Ok(json!({"query": "a=b"})));
        assert_eq!(arguments(&["other=1"], ""), Ok(json!({"other": 1})));
    }

    #[test]
    fn json_is_taken_as_it_is() {
        assert_eq!(arguments(&[], ""), Ok("{}".into()));
        assert_eq!(
            arguments(&[" {\"limit\": "], ""),
            Ok(" {\"limit\": ".into())
        );
        assert_eq!(arguments(&["-"], "{\"a\": 1}\n"), Ok("{\"a\": 1}\n".into()));
    }

    #[test]
    fn slips_are_told_with_what_was_meant() {
        for (written, words) in [
            (&["qeury=a"][..], "did you mean `query`?"),
            (&["limit=1", "limit=2"], "`limit` is given twice"),
            (&["hello"], "write `KEY=VALUE`"),
            (&["=1"], "write `KEY=VALUE`"),
        ] {
            let failure = arguments(written, "").unwrap_err();
            assert!(failure.contains(words), "{failure}");
        }
    }
}
