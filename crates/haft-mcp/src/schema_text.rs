//! Texts inside of schemas.
//!
//! A schema has prose, which a person and a model read, and data: names of properties, values of `enum`,
//! `const` and `default`, patterns, references. Characters that deceive are removed from prose. Data keeps
//! its bytes, because the model, the validator and the server must mean the same value; deceptive characters
//! in it are reported.

use haft_core::cut;
use serde_json::Value;

use crate::text::visible;

/// How deep a schema may be for its texts to be read.
const MAX_DEPTH: usize = 128;

/// How many deceptive names and values of one schema are reported.
const MAX_NOTES: usize = 3;

/// Keywords whose values are data.
const DATA: [&str; 18] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "$ref",
    "$schema",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "enum",
    "examples",
    "format",
    "pattern",
    "required",
    "type",
];

/// Keywords whose value holds schemas by name, so that its keys are data.
const NAMED: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Removes deceptive characters from the prose of a schema, and reports those in its data.
pub(crate) fn clean_schema(schema: &mut Value, notes: &mut Vec<String>) -> Result<(), String> {
    let mut found = Vec::new();
    clean(schema, 0, &mut found)?;
    found.dedup();
    let more = found.len().saturating_sub(MAX_NOTES);
    notes.extend(found.into_iter().take(MAX_NOTES));
    if more > 0 {
        notes.push(format!(
            "{more} more values in its schema have invisible characters"
        ));
    }
    Ok(())
}

fn clean(schema: &mut Value, depth: usize, notes: &mut Vec<String>) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("its schema is deeper than {MAX_DEPTH}"));
    }
    match schema {
        Value::Object(object) => {
            for (keyword, value) in object {
                report(keyword, "keyword", notes);
                match value {
                    _ if DATA.contains(&keyword.as_str()) => data(value, depth + 1, notes)?,
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        for (name, schema) in named {
                            report(name, "name", notes);
                            clean(schema, depth + 2, notes)?;
                        }
                    }
                    _ => clean(value, depth + 1, notes)?,
                }
            }
            Ok(())
        }
        Value::Array(values) => values
            .iter_mut()
            .try_for_each(|value| clean(value, depth + 1, notes)),
        Value::String(text) => {
            let clean = visible(text);
            if clean != *text {
                *text = clean;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn data(value: &Value, depth: usize, notes: &mut Vec<String>) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("its schema is deeper than {MAX_DEPTH}"));
    }
    match value {
        Value::String(text) => report(text, "value", notes),
        Value::Array(values) => {
            for value in values {
                data(value, depth + 1, notes)?;
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                report(key, "value", notes);
                data(value, depth + 1, notes)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn report(text: &str, what: &str, notes: &mut Vec<String>) {
    let clean = visible(text);
    // Line ends are no disguise.
    if clean.len() != text.len() && clean != text.replace('\r', "") {
        notes.push(format!(
            "a {what} in its schema has invisible characters, which are kept: `{}`",
            cut(&clean)
        ));
    }
}
