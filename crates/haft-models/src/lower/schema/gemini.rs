//! Gemini's subset of `OpenAPI`.

use haft_core::subschemas_mut;
use serde_json::{Map, Value, json};

use super::flatten;
use super::plain::complete;
use super::strict::describe;

/// Words that the subset knows.
const KNOWN: [&str; 18] = [
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

const FORMATS: [&str; 6] = ["date-time", "double", "enum", "float", "int32", "int64"];

/// Words that are worth a mention in the description where they are lost.
const MENTIONED: [&str; 6] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "multipleOf",
    "maxProperties",
    "minProperties",
    "uniqueItems",
];

pub(super) fn lower(schema: &mut Value, notes: &mut Vec<String>) {
    place(schema, notes);
    complete(schema);
}

fn place(schema: &mut Value, notes: &mut Vec<String>) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    let mut aside = Vec::new();
    flatten::all_of(members);
    one_of_as_any_of(members);
    one_value(members);
    one_type(members);
    only_text_listed(members, &mut aside);
    for keyword in MENTIONED {
        if let Some(value) = members.get(keyword) {
            aside.push(format!("{keyword}: {value}"));
        }
    }
    if let Some(format) = members.get("format").and_then(Value::as_str)
        && !FORMATS.contains(&format)
    {
        aside.push(format!("format: {format}"));
        members.shift_remove("format");
    }
    for keyword in members
        .keys()
        .filter(|keyword| !KNOWN.contains(&keyword.as_str()))
    {
        let note = format!("`{keyword}` left out");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    members.retain(|keyword, _| KNOWN.contains(&keyword.as_str()));
    if members.contains_key("properties") && !members.contains_key("type") {
        members.insert("type".into(), json!("object"));
    }
    only_known_required(members);
    describe(members, &aside);
    subschemas_mut(schema, |_, sub| place(sub, notes));
}

fn one_of_as_any_of(members: &mut Map<String, Value>) {
    if let Some(variants) = members.shift_remove("oneOf") {
        members.entry("anyOf").or_insert(variants);
    }
    let Some(Value::Array(variants)) = members.get_mut("anyOf") else {
        return;
    };
    let before = variants.len();
    variants.retain(|variant| variant.get("type") != Some(&json!("null")));
    let has_null = variants.len() < before;
    if variants.len() == 1
        && let Some(Value::Object(only)) = variants.pop()
    {
        members.shift_remove("anyOf");
        for (keyword, value) in only {
            members.entry(keyword).or_insert(value);
        }
    } else if variants.is_empty() {
        members.shift_remove("anyOf");
    }
    if has_null {
        members.insert("nullable".into(), json!(true));
    }
}

fn one_value(members: &mut Map<String, Value>) {
    if let Some(value) = members.shift_remove("const") {
        members.entry("enum").or_insert_with(|| json!([value]));
    }
}

fn one_type(members: &mut Map<String, Value>) {
    let Some(Value::Array(names)) = members.get("type") else {
        if members.get("type") == Some(&json!("null")) {
            members.shift_remove("type");
            members.insert("nullable".into(), json!(true));
        }
        return;
    };
    let mut names = names.clone();
    let before = names.len();
    names.retain(|name| name != "null");
    if names.len() < before {
        members.insert("nullable".into(), json!(true));
    }
    members.shift_remove("type");
    match names.len() {
        0 => {}
        1 => {
            members.insert("type".into(), names.remove(0));
        }
        _ => {
            let variants: Vec<_> = names
                .into_iter()
                .map(|name| json!({"type": name}))
                .collect();
            members.entry("anyOf").or_insert(Value::Array(variants));
        }
    }
}

fn only_text_listed(members: &mut Map<String, Value>, aside: &mut Vec<String>) {
    let Some(Value::Array(values)) = members.get_mut("enum") else {
        return;
    };
    let before = values.len();
    values.retain(|value| !value.is_null());
    let has_null = values.len() < before;
    let all_text = values.iter().all(Value::is_string);
    if !all_text || values.is_empty() {
        if !values.is_empty() {
            aside.push(format!("one of {}", Value::Array(values.clone())));
        }
        members.shift_remove("enum");
    } else if !members.contains_key("type") {
        members.insert("type".into(), json!("string"));
    }
    if has_null {
        members.insert("nullable".into(), json!(true));
    }
}

/// Gemini refuses the names of properties that are not there.
fn only_known_required(members: &mut Map<String, Value>) {
    let known: Vec<_> = match members.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    };
    if let Some(Value::Array(names)) = members.get_mut("required") {
        names.retain(|name| {
            name.as_str()
                .is_some_and(|name| known.iter().any(|k| k == name))
        });
        if names.is_empty() {
            members.shift_remove("required");
        }
    }
}
