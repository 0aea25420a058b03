//! Answers that must have a schema (§8).

use std::sync::Arc;

use serde_json::Value as Json;

use crate::ir::Schema;
use crate::value::{Struct, StructDef, Value};
use crate::vm::{Failure, Machine, Outcome};

/// Why an answer is no value.
#[derive(Debug)]
pub enum Unfit {
    /// It does not have the schema: what is wrong with it.
    Invalid(Vec<String>),
    /// A default of the schema failed.
    Failed(Box<Failure>),
}

/// The struct that an answer is, or why it is none.
pub fn read_answer(machine: &mut Machine, schema: &str, text: &str) -> Result<Value, Unfit> {
    let program = Arc::clone(machine.program());
    let json: Json = serde_json::from_str(text.trim())
        .map_err(|error| Unfit::Invalid(vec![format!("invalid JSON: {error}")]))?;
    let Some(declared) = program
        .ir()
        .schemas
        .iter()
        .find(|declared| declared.name == schema)
    else {
        return Err(Unfit::Invalid(vec![format!("unknown schema `{schema}`")]));
    };
    let mut errors = Vec::new();
    check(&declared.json_schema, &json, "", 0, &mut errors);
    if !errors.is_empty() {
        return Err(Unfit::Invalid(errors));
    }
    build(machine, declared, &json).map_err(Unfit::Failed)
}

/// The errors of a value against the part of JSON Schema that schemas are lowered to. Names of Concerto
/// types, which files of upstream have, mean the same.
fn check(schema: &Json, value: &Json, path: &str, depth: usize, errors: &mut Vec<String>) {
    if depth > 64 {
        errors.push(format!("{}: nested too deep", shown(path)));
        return;
    }
    if let Some(options) = schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Json::as_array)
    {
        let fits = options.iter().any(|option| {
            let mut inner = Vec::new();
            check(option, value, path, depth + 1, &mut inner);
            inner.is_empty()
        });
        if !fits {
            errors.push(format!("{}: fits none of the allowed forms", shown(path)));
        }
        return;
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind, value)) {
        errors.push(format!(
            "{}: expected {}, got {}",
            shown(path),
            kinds.join(" or "),
            kind_of(value)
        ));
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Json::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Json::to_string).collect();
        errors.push(format!(
            "{}: must be one of {}",
            shown(path),
            allowed.join(", ")
        ));
    }
    match value {
        Json::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (place, item) in items.iter().enumerate() {
                    check(schema, item, &format!("{path}[{place}]"), depth + 1, errors);
                }
            }
        }
        Json::Object(members) => {
            let required = schema.get("required").and_then(Json::as_array);
            for name in required.into_iter().flatten().filter_map(Json::as_str) {
                if !members.contains_key(name) {
                    errors.push(format!("{}: is missing", shown(&join(path, name))));
                }
            }
            if let Some(Json::Object(properties)) = schema.get("properties") {
                for (name, property) in properties {
                    if let Some(member) = members.get(name) {
                        check(property, member, &join(path, name), depth + 1, errors);
                    }
                }
            }
        }
        _ => {}
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "answer" } else { path }
}

fn is(kind: &str, value: &Json) -> bool {
    match kind {
        "string" | "String" => value.is_string(),
        "integer" | "Int" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|v| v.fract() == 0.0)
        }
        "number" | "Float" => value.is_number(),
        "boolean" | "Bool" => value.is_boolean(),
        "null" | "Nil" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other if other.starts_with("Array") => value.is_array(),
        other if other.starts_with("Map") => value.is_object(),
        _ => true,
    }
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// The struct of a valid answer: declared fields in their order; absent ones read as nil. Members that
/// nobody declared are left out.
fn build(machine: &mut Machine, declared: &Schema, json: &Json) -> Outcome<Value> {
    let (name, schema) = (&declared.name, &declared.json_schema);
    let program = Arc::clone(machine.program());
    let Json::Object(members) = json else {
        return Ok(Value::from_json(json));
    };
    let properties = schema.get("properties").and_then(Json::as_object);
    let shape = program
        .types
        .get(name.as_str())
        .filter(|def| !def.fields.is_empty());
    let mut def = shape.map_or_else(
        || {
            let names = properties.into_iter().flatten();
            StructDef::new(
                name,
                names.map(|(name, _)| Arc::from(name.as_str())).collect(),
            )
        },
        |def| StructDef::clone(def),
    );
    // What is not in the answer reads as nil.
    def.optional = vec![true; def.fields.len()];
    let def = Arc::new(def);
    let values: Outcome<Vec<Value>> = def
        .fields
        .iter()
        .map(|field| {
            let property = properties.and_then(|properties| properties.get(&**field));
            let own = declared.fields.iter().find(|own| *own.name == **field);
            let default = own.and_then(|own| own.default_fn.as_deref());
            Ok(match (members.get(&**field), default) {
                (Some(Json::Null), _) => Value::Nil,
                (Some(member), _) => typed(member, property),
                (None, Some(default)) => machine.default_value(default)?,
                (None, None) => Value::Absent,
            })
        })
        .collect();
    Ok(Value::Struct(Arc::new(Struct::new(def, values?))))
}

/// A member, with whole numbers as doubles where the schema says number, and back.
fn typed(json: &Json, schema: Option<&Json>) -> Value {
    let inner = |name: &str| schema.and_then(|schema| schema.get(name));
    if let Some(options) = inner("anyOf").and_then(Json::as_array) {
        let mut fitting = options.iter().filter(|option| {
            let mut errors = Vec::new();
            check(option, json, "", 0, &mut errors);
            errors.is_empty()
        });
        return typed(json, fitting.next());
    }
    match (json, inner("type").and_then(Json::as_str)) {
        (Json::Array(items), _) => {
            let schema = inner("items");
            Value::array(items.iter().map(|item| typed(item, schema)).collect())
        }
        (Json::Object(members), _) => {
            let properties = inner("properties");
            let members = members.iter().map(|(name, member)| {
                let schema = properties.and_then(|properties| properties.get(name));
                (name.as_str(), typed(member, schema))
            });
            Value::map(members.collect())
        }
        (Json::Number(_), Some(kind)) => match (Value::from_json(json), kind) {
            #[allow(clippy::cast_precision_loss)] // the nearest double
            (Value::Int(value), "number" | "Float") => Value::Float(value as f64),
            #[allow(clippy::cast_possible_truncation)] // whole: it was checked
            (Value::Float(value), "integer" | "Int") => Value::Int(value as i64),
            (value, _) => value,
        },
        _ => Value::from_json(json),
    }
}
