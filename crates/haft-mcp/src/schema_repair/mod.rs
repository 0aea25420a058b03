//! Repairs the schemas of MCP tools.
//!
//! Servers in the field send schemas that no validator accepts: `"properties": []`, `"type": "int"`,
//! `"description": null`. A schema that is valid as it is stays as it is. Of one that is not, each
//! invalid keyword is normalised to its evident meaning or removed, and each repair is reported.
//! A repair never adds a constraint that the author did not write, and what remains is still validated.
//! What cannot be repaired (a reference to another document, a schema that is too large) is an error,
//! which costs that tool or that output schema.

mod keywords;
mod patterns;
mod references;
#[cfg(test)]
mod tests;
mod values;

use haft_core::{ValidatorFactory as _, caught, check_parameters, cut};
use haft_hydrate::JsonSchemaFactory;
use serde_json::{Map, Value, json};

use self::keywords::{Draft, Repairer};
use crate::text::visible;

/// How many repairs of one schema are reported one by one.
const MAX_NOTES: usize = 8;

/// The input schema of a tool, as the protocol demands it: an object schema that compiles. `notes`
/// receives what was repaired.
pub(crate) fn input_schema(mut schema: Value, notes: &mut Vec<String>) -> Result<Value, String> {
    let mut repairs = Vec::new();
    set_root_type(&mut schema, &mut repairs)?;
    let mut schema = usable(schema, &mut repairs, |schema| {
        check_parameters("", schema).map_err(|error| reason_of(&error))
    })?;
    set_root_properties(&mut schema, &mut repairs);
    report(repairs, notes);
    Ok(schema)
}

/// The output schema of a tool, if it compiles, after repairs if need be.
pub(crate) fn output_schema(schema: Value, notes: &mut Vec<String>) -> Result<Value, String> {
    if !schema.is_object() {
        return Err("it is not an object".into());
    }
    let mut repairs = Vec::new();
    // The bounds and the references are those of input schemas; the type of the root is free.
    let schema = usable(schema, &mut repairs, |schema| {
        let mut typed = schema.clone();
        typed["type"] = "object".into();
        check_parameters("", &typed).map_err(|error| reason_of(&error))
    })?;
    report(repairs, notes);
    Ok(schema)
}

fn report(repairs: Vec<String>, notes: &mut Vec<String>) {
    let more = repairs.len().saturating_sub(MAX_NOTES);
    notes.extend(repairs.into_iter().take(MAX_NOTES));
    if more > 0 {
        notes.push(format!("{more} more repairs of its schema"));
    }
}

/// The schema as it is if it compiles, else repaired.
fn usable(
    schema: Value,
    repairs: &mut Vec<String>,
    check: impl Fn(&Value) -> Result<(), String>,
) -> Result<Value, String> {
    let compiles = |schema: &Value| {
        check(schema)?;
        match caught(|| JsonSchemaFactory.compile(schema)) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.reason),
            Err(panic) => Err(panic),
        }
    };
    if compiles(&schema).is_ok() {
        return Ok(schema);
    }
    // First by the rules of the draft that it names, then by those of the newest.
    let mut reason = String::new();
    for keeps_draft in [true, false] {
        let mut repaired = schema.clone();
        let mut own = Vec::new();
        if let Value::Object(root) = &mut repaired {
            set_draft(root, keeps_draft, &mut own);
        }
        Repairer::new(Draft::of(&repaired), &mut own).repair(&mut repaired);
        references::repair(&mut repaired, &mut own);
        match compiles(&repaired) {
            Ok(()) => {
                repairs.append(&mut own);
                return Ok(repaired);
            }
            Err(error) => reason = error,
        }
        if repaired.get("$schema").is_none() {
            break;
        }
    }
    Err(format!(
        "its schema cannot be used: {}",
        cut(&visible(&reason))
    ))
}

/// Removes a `$schema` that names no known draft.
fn set_draft(root: &mut Map<String, Value>, keeps_known: bool, repairs: &mut Vec<String>) {
    let Some(named) = root.get("$schema") else {
        return;
    };
    let is_known = named.as_str().is_some_and(|it| Draft::named(it).is_some());
    if !is_known {
        repairs.push(format!(
            "`$schema` names no known draft and is ignored: `{}`",
            shown(named)
        ));
        root.shift_remove("$schema");
    } else if !keeps_known {
        repairs.push("the schema does not fit its `$schema` and is read as draft 2020-12".into());
        root.shift_remove("$schema");
    }
}

/// The root is of type `object`, written as one word: clients of the protocol accept nothing else.
fn set_root_type(schema: &mut Value, repairs: &mut Vec<String>) -> Result<(), String> {
    match schema {
        Value::Bool(true) => {
            repairs.push("`inputSchema` is `true`, read as any object".into());
            *schema = json!({"type": "object"});
        }
        // How PHP writes an empty object.
        Value::Array(items) if items.is_empty() => {
            repairs.push("`inputSchema` is `[]`, read as any object".into());
            *schema = json!({"type": "object"});
        }
        Value::String(text) => match serde_json::from_str(text) {
            Ok(parsed @ Value::Object(_)) => {
                repairs.push("`inputSchema` is a string, read as the JSON in it".into());
                *schema = parsed;
            }
            _ => return Err("`inputSchema` is not a schema".into()),
        },
        _ => {}
    }
    let Value::Object(root) = schema else {
        return Err("`inputSchema` is not a schema".into());
    };
    let Some(kind) = root.get("type") else {
        // The type comes first, where a reader looks for it.
        root.shift_insert(0, "type".into(), "object".into());
        return Ok(());
    };
    if kind == "object" {
        return Ok(());
    }
    let admits_objects = match values::type_of(kind) {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    };
    if !admits_objects {
        return Err(format!(
            "`inputSchema` is not of type `object` but `{}`",
            shown(kind)
        ));
    }
    repairs.push(format!(
        "`type` of `inputSchema` is `{}`, read as `object`",
        shown(kind)
    ));
    root.insert("type".into(), "object".into());
    Ok(())
}

/// Schemas of properties are objects: the official TypeScript client accepts no booleans there.
fn set_root_properties(schema: &mut Value, repairs: &mut Vec<String>) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        let Value::Bool(accepts) = *property else {
            continue;
        };
        *property = if accepts {
            json!({})
        } else {
            json!({"not": {}})
        };
        repairs.push(format!(
            "the schema of property `{}` is `{accepts}`, written as an object",
            cut(&visible(name))
        ));
    }
}

/// The reason without the name of the tool, which the diagnostic has.
fn reason_of(error: &haft_core::DefinitionError) -> String {
    match error {
        haft_core::DefinitionError::InvalidSchema { reason, .. } => reason.clone(),
        haft_core::DefinitionError::RemoteRef { reference, .. } => {
            format!("it refers to `{reference}`, which is outside of it and is never fetched")
        }
        other => other.to_string(),
    }
}

/// A value as it is shown in a message.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    cut(&visible(&text))
}
