//! Arbitrary schemas: mostly plausible, sometimes absurd.

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};

const TYPES: [&str; 8] = [
    "object", "array", "string", "integer", "number", "boolean", "null", "bogus",
];
const NAMES: [&str; 6] = ["a", "b", "name", "arguments", "$ref", "ä/~"];
const PATTERNS: [&str; 5] = ["^a+$", "(?=.*[0-9])", "(a+)+b", "[", r"(a)\1"];
const REFERENCES: [&str; 8] = [
    "#",
    "#/$defs/a",
    "#/$defs/b",
    "#/properties/a",
    "#x",
    "urn:x",
    "urn:x#/$defs/a",
    "other.json",
];

/// The schema of a tool: an object at its root, or anything at all.
pub(crate) fn any(bytes: &mut Unstructured<'_>) -> Result<Value> {
    let mut schema = subschema(bytes, 4)?;
    if bytes.ratio(15, 16)?
        && let Value::Object(members) = &mut schema
    {
        members.insert("type".into(), json!("object"));
        if bytes.arbitrary()? {
            let definitions = json!({"a": subschema(bytes, 2)?, "b": subschema(bytes, 2)?});
            members.insert("$defs".into(), definitions);
        }
    }
    Ok(schema)
}

fn subschema(bytes: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    if depth == 0 || bytes.ratio(1, 16)? {
        return Ok(if bytes.arbitrary()? { json!(true) } else { json!({}) });
    }
    let mut members = Map::new();
    for _ in 0..bytes.int_in_range(1..=4)? {
        let (keyword, value) = keyword(bytes, depth - 1)?;
        members.insert(keyword.to_owned(), value);
    }
    Ok(Value::Object(members))
}

fn keyword(bytes: &mut Unstructured<'_>, depth: usize) -> Result<(&'static str, Value)> {
    Ok(match bytes.int_in_range(0..=22)? {
        0..=2 => ("type", json!(bytes.choose(&TYPES)?)),
        3 => ("type", json!([bytes.choose(&TYPES)?, "null"])),
        4..=6 => ("properties", named(bytes, depth)?),
        7 => ("required", json!([bytes.choose(&NAMES)?])),
        8 => ("additionalProperties", subschema(bytes, depth)?),
        9 => ("items", subschema(bytes, depth)?),
        10 => ("anyOf", list(bytes, depth)?),
        11 => ("oneOf", list(bytes, depth)?),
        12 => ("allOf", list(bytes, depth)?),
        13 => ("enum", json!(["A", "a", "b", 1, 2.5, true, null])),
        14 => ("pattern", json!(bytes.choose(&PATTERNS)?)),
        15 => ("patternProperties", json!({*bytes.choose(&PATTERNS)?: subschema(bytes, depth)?})),
        16 => ("$ref", json!(bytes.choose(&REFERENCES)?)),
        17 => ("$dynamicRef", json!(bytes.choose(&REFERENCES)?)),
        18 => ("$dynamicAnchor", json!("x")),
        19 => ("$id", json!("urn:x")),
        20 => ("dependencies", named(bytes, depth)?),
        21 => ("unevaluatedProperties", subschema(bytes, depth)?),
        _ => ("minimum", json!(bytes.int_in_range(-2..=2)?)),
    })
}

fn named(bytes: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let mut members = Map::new();
    for _ in 0..bytes.int_in_range(1..=3)? {
        let name = (*bytes.choose(&NAMES)?).to_owned();
        members.insert(name, subschema(bytes, depth)?);
    }
    Ok(Value::Object(members))
}

fn list(bytes: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let branches = [subschema(bytes, depth)?, subschema(bytes, depth)?];
    Ok(json!(branches))
}
