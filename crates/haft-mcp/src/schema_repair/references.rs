//! References inside a schema that lead nowhere.

use haft_core::{resolve_local_ref, subschemas_mut};
use serde_json::Value;

use super::shown;

/// How many references are followed before they count as endless.
const MAX_STEPS: usize = 64;

const KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Where a reference leads.
enum Target {
    /// Where it says, or outside of the schema, which is not decided here.
    Found,
    /// To a definition that stands elsewhere under the same name.
    Moved(String),
    /// Nowhere, or back to itself.
    Nowhere,
}

/// Points references at the definition that they evidently mean, and removes those that mean none.
pub(super) fn repair(schema: &mut Value, repairs: &mut Vec<String>) {
    let document = schema.clone();
    let definitions = definitions(&document);
    visit(schema, &mut |object| {
        for keyword in KEYWORDS {
            let Some(Value::String(reference)) = object.get(keyword) else {
                continue;
            };
            let shown = shown(&reference.as_str().into());
            match target(&document, &definitions, reference) {
                Target::Found => {}
                Target::Moved(pointer) => {
                    repairs.push(format!("`{keyword}` to `{shown}` is read as `{pointer}`"));
                    object[keyword] = pointer.into();
                }
                Target::Nowhere => {
                    repairs.push(format!(
                        "`{keyword}` to `{shown}` leads nowhere and is removed"
                    ));
                    if let Some(object) = object.as_object_mut() {
                        object.shift_remove(keyword);
                    }
                }
            }
        }
    });
}

fn visit(schema: &mut Value, change: &mut impl FnMut(&mut Value)) {
    change(schema);
    subschemas_mut(schema, |_, sub| visit(sub, change));
}

fn target(document: &Value, definitions: &[(String, String)], reference: &str) -> Target {
    if !reference.starts_with('#') {
        return Target::Found;
    }
    if resolve_local_ref(document, reference).is_some_and(is_schema) {
        return if is_endless(document, reference) {
            Target::Nowhere
        } else {
            Target::Found
        };
    }
    let name = reference.rsplit(['/', '#']).next().unwrap_or_default();
    let mut named = definitions.iter().filter(|(other, _)| other == name);
    match (named.next(), named.next()) {
        (Some((_, pointer)), None) => Target::Moved(pointer.clone()),
        _ => Target::Nowhere,
    }
}

fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Bool(_))
}

/// Whether a reference leads only to other references, without end.
fn is_endless(document: &Value, reference: &str) -> bool {
    let mut next = Some(reference);
    for _ in 0..MAX_STEPS {
        let Some(reference) = next else {
            return false;
        };
        let target = resolve_local_ref(document, reference);
        next = target.and_then(|it| it.get("$ref")?.as_str());
    }
    true
}

/// All definitions below `$defs` and `definitions`, wherever these stand: name and pointer.
fn definitions(document: &Value) -> Vec<(String, String)> {
    fn collect(schema: &Value, path: &str, found: &mut Vec<(String, String)>) {
        for keyword in ["$defs", "definitions"] {
            let named = schema.get(keyword).and_then(Value::as_object);
            for name in named.into_iter().flatten().map(|(name, _)| name) {
                found.push((name.clone(), format!("{path}/{keyword}/{}", escaped(name))));
            }
        }
        let object = schema.as_object().into_iter().flatten();
        for (keyword, value) in object {
            // Data is not a schema.
            if matches!(keyword.as_str(), "enum" | "const" | "default" | "examples") {
                continue;
            }
            let step = format!("{path}/{}", escaped(keyword));
            match value {
                Value::Object(named) if is_named(keyword) => {
                    for (name, sub) in named {
                        collect(sub, &format!("{step}/{}", escaped(name)), found);
                    }
                }
                Value::Array(items) => {
                    for (index, sub) in items.iter().enumerate() {
                        collect(sub, &format!("{step}/{index}"), found);
                    }
                }
                sub => collect(sub, &step, found),
            }
        }
    }
    let mut found = Vec::new();
    collect(document, "#", &mut found);
    found
}

fn is_named(keyword: &str) -> bool {
    matches!(
        keyword,
        "$defs"
            | "definitions"
            | "dependencies"
            | "dependentSchemas"
            | "patternProperties"
            | "properties"
    )
}

/// A name as a step of a JSON pointer in a fragment.
fn escaped(name: &str) -> String {
    name.replace('~', "~0")
        .replace('/', "~1")
        .replace('%', "%25")
}
