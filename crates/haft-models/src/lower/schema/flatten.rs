//! A root without alternatives.

use serde_json::{Map, Value, json};

use super::merge::{absorb, merge};
use super::plain::simplify;

/// Replaces `allOf`, `anyOf` and `oneOf` at the root by their properties, and removes what else
/// providers refuse there. What is required by some variants only is required no more.
pub(super) fn root(schema: &mut Value, notes: &mut Vec<String>) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    // Parts may hold alternatives of their own. Each round takes one level away.
    loop {
        if all_of(members) {
            notes.push("`allOf` at the root merged".into());
        } else if let Some((keyword, variants)) = ["anyOf", "oneOf"]
            .into_iter()
            .find_map(|keyword| Some((keyword, take_list(members, keyword)?)))
        {
            add_variants(members, variants);
            notes.push(format!(
                "`{keyword}` at the root merged: its variants are now optional"
            ));
        } else {
            break;
        }
    }
    for keyword in ["enum", "const", "not"] {
        if members.shift_remove(keyword).is_some() {
            notes.push(format!("`{keyword}` at the root left out"));
        }
    }
    members.entry("properties").or_insert_with(|| json!({}));
}

/// Merges the parts of `allOf` into the schema around it. Of what contradicts, the first counts.
/// Tells whether there were any.
pub(super) fn all_of(members: &mut Map<String, Value>) -> bool {
    let mut any = false;
    while let Some(parts) = take_list(members, "allOf") {
        any = true;
        for part in parts {
            absorb(members, into_map(part));
        }
    }
    any
}

fn take_list(members: &mut Map<String, Value>, keyword: &str) -> Option<Vec<Value>> {
    match members.shift_remove(keyword)? {
        Value::Array(list) => Some(list),
        single => Some(vec![single]),
    }
}

fn into_map(schema: Value) -> Map<String, Value> {
    let mut schema = schema;
    simplify(&mut schema);
    match schema {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn add_variants(members: &mut Map<String, Value>, variants: Vec<Value>) {
    let mut properties = match members.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let given: Vec<_> = properties.keys().cloned().collect();
    let mut required: Option<Vec<Value>> = None;
    for variant in variants {
        let mut variant = Value::Object(into_map(variant));
        root(&mut variant, &mut Vec::new());
        let mut variant = into_map(variant);
        let names = match variant.shift_remove("required") {
            Some(Value::Array(names)) => names,
            _ => Vec::new(),
        };
        required = Some(match required {
            None => names,
            Some(known) => known
                .into_iter()
                .filter(|name| names.contains(name))
                .collect(),
        });
        if let Some(Value::Object(more)) = variant.shift_remove("properties") {
            for (name, schema) in more {
                // What the root itself says holds for every variant.
                if !given.contains(&name) {
                    add_alternative(&mut properties, name, schema);
                }
            }
        }
    }
    members.insert("properties".into(), Value::Object(properties));
    let mut common = Map::new();
    if let Some(required) = required.filter(|required| !required.is_empty()) {
        common.insert("required".into(), Value::Array(required));
    }
    merge(members, common);
}

fn add_alternative(properties: &mut Map<String, Value>, name: String, schema: Value) {
    match properties.get_mut(&name) {
        None => {
            properties.insert(name, schema);
        }
        Some(known) if *known == schema => {}
        Some(known) => {
            // A list made here has no other member.
            let made_here = known.as_object().is_some_and(|known| known.len() == 1);
            match known.get_mut("anyOf").and_then(Value::as_array_mut) {
                Some(list) if made_here => {
                    if !list.contains(&schema) {
                        list.push(schema);
                    }
                }
                _ => *known = json!({"anyOf": [known.take(), schema]}),
            }
        }
    }
}
