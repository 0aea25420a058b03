//! Property names of few characters.

use std::collections::{BTreeMap, BTreeSet};

use haft_core::subschemas_mut;
use serde_json::{Map, Value};

const MAX_KEY_CHARS: usize = 64;

fn is_legal(key: &str) -> bool {
    (1..=MAX_KEY_CHARS).contains(&key.len())
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Renames the properties that `^[a-zA-Z0-9_.-]{1,64}$` does not match, the same name to the same
/// wherever it stands. Returns new names with what they stand for.
pub(super) fn rename(schema: &mut Value) -> BTreeMap<String, String> {
    let mut names = Vec::new();
    collect(schema, &mut names);
    let mut taken: BTreeSet<String> = names
        .iter()
        .filter(|name| is_legal(name))
        .cloned()
        .collect();
    let mut renamed = BTreeMap::new();
    for name in names {
        if !is_legal(&name) && !renamed.contains_key(&name) {
            let new = free_name(&name, &taken);
            taken.insert(new.clone());
            renamed.insert(name, new);
        }
    }
    if !renamed.is_empty() {
        replace(schema, &renamed);
    }
    renamed.into_iter().map(|(old, new)| (new, old)).collect()
}

fn free_name(name: &str, taken: &BTreeSet<String>) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let base: String = name
        .chars()
        .map(|c| if legal(c) { c } else { '_' })
        .take(MAX_KEY_CHARS - 6)
        .collect();
    let base = if base.is_empty() {
        String::from("_")
    } else {
        base
    };
    let mut candidate = base.clone();
    let mut number = 1_u32;
    while taken.contains(&candidate) {
        number += 1;
        candidate = format!("{base}_{number}");
    }
    candidate
}

fn collect(schema: &Value, names: &mut Vec<String>) {
    if let Some(Value::Object(properties)) = schema.get("properties") {
        names.extend(properties.keys().cloned());
    }
    haft_core::subschemas(schema, |_, sub| collect(sub, names));
}

fn replace(schema: &mut Value, renamed: &BTreeMap<String, String>) {
    let new = |name: &str| renamed.get(name).cloned();
    if let Some(members) = schema.as_object_mut() {
        for keyword in [
            "properties",
            "dependentRequired",
            "dependentSchemas",
            "dependencies",
        ] {
            if let Some(Value::Object(named)) = members.get_mut(keyword) {
                let old = std::mem::take(named);
                let rename = |(name, value): (String, Value)| (new(&name).unwrap_or(name), value);
                *named = old.into_iter().map(rename).collect::<Map<_, _>>();
                if keyword != "properties" {
                    named
                        .values_mut()
                        .for_each(|names| replace_in_list(names, renamed));
                }
            }
        }
        if let Some(required) = members.get_mut("required") {
            replace_in_list(required, renamed);
        }
    }
    subschemas_mut(schema, |_, sub| replace(sub, renamed));
}

fn replace_in_list(names: &mut Value, renamed: &BTreeMap<String, String>) {
    for name in names.as_array_mut().into_iter().flatten() {
        if let Some(new) = name.as_str().and_then(|name| renamed.get(name)) {
            *name = Value::String(new.clone());
        }
    }
}
