//! What a validation would cost, counted before it is paid.
//!
//! A recursive schema with unions visits a value over and over, look-around patterns are quadratic
//! in the text, and thousands of patterns meet thousands of members. The library bounds none of
//! that, and a thread that validates cannot be stopped. So schemas that can explode are marked when
//! they are compiled, and their calls are counted first: the same walk over schema and value, with
//! every pair visited once and remembered.

use std::collections::HashMap;

use serde_json::Value;

use crate::in_place::{InPlace, address, in_place};

/// Schemas below these marks cannot explode, and their calls are not counted.
const HARMLESS: InPlace = InPlace {
    count: 64,
    chain: 16,
};
const HARMLESS_PATTERNS: usize = 32;
const HARMLESS_OPTIONS: usize = 256;

/// How many pairs of schema and value the counting itself may visit.
const MAX_PAIRS: usize = 300_000;

/// How deep schemas may nest over one call: what the validator's stack holds with room to spare.
const MAX_NESTING: usize = 512;

/// What one call costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Visits, each pair once: what a yes or no costs.
    pub(crate) verdict: u64,
    /// Visits, over and over: what a list of errors costs.
    pub(crate) explanation: u64,
}

/// Whether calls against this schema must be counted.
pub(crate) fn can_explode(root: &Value, in_place: InPlace) -> bool {
    if in_place.count > HARMLESS.count || in_place.chain > HARMLESS.chain {
        return true;
    }
    let mut patterns = 0;
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        let refers_back = ["$ref", "$dynamicRef", "$recursiveRef"]
            .iter()
            .any(|keyword| schema.get(keyword).is_some());
        let pattern = schema.get("pattern").and_then(Value::as_str);
        let named = schema.get("patternProperties").and_then(Value::as_object);
        patterns += named.map_or(0, serde_json::Map::len);
        let backtracks = pattern.is_some_and(is_backtracking)
            || named.is_some_and(|named| named.keys().any(|pattern| is_backtracking(pattern)));
        let options = schema
            .get("enum")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        if refers_back || backtracks || patterns > HARMLESS_PATTERNS || options > HARMLESS_OPTIONS {
            return true;
        }
        haft_core::subschemas(schema, |_, sub| open.push(sub));
    }
    false
}

/// Whether a pattern may need the backtracking engine: look-around, back-references, atomic groups.
fn is_backtracking(pattern: &str) -> bool {
    let refers_back = |(at, _): (usize, &str)| {
        pattern[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == 'k' || c == 'g')
    };
    ["(?=", "(?!", "(?<", "(?>", "(?("]
        .iter()
        .any(|mark| pattern.contains(mark))
        || pattern.match_indices('\\').any(refers_back)
}

/// Counts a call; `None` if even counting is too much.
pub(crate) fn count(root: &Value, value: &Value) -> Option<Cost> {
    let mut counting = Counting {
        root,
        known: HashMap::new(),
        verdict: 0,
    };
    let explanation = counting.visit(root, value, 0)?;
    Some(Cost {
        verdict: counting.verdict,
        explanation,
    })
}

struct Counting<'s> {
    root: &'s Value,
    known: HashMap<(usize, usize), u64>,
    verdict: u64,
}

impl<'s> Counting<'s> {
    fn visit(&mut self, schema: &'s Value, value: &Value, nesting: usize) -> Option<u64> {
        let pair = (address(schema), address(value));
        if let Some(total) = self.known.get(&pair) {
            return Some(*total);
        }
        if nesting > MAX_NESTING || self.known.len() >= MAX_PAIRS {
            return None;
        }
        let here = weight(schema, value);
        self.verdict = self.verdict.saturating_add(here);
        let mut total = here;
        for part in in_place(self.root, schema) {
            total = total.saturating_add(self.visit(part, value, nesting + 1)?);
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    for part in member_schemas(schema, name) {
                        total = total.saturating_add(self.visit(part, member, nesting + 1)?);
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    for part in item_schemas(schema, at) {
                        total = total.saturating_add(self.visit(part, item, nesting + 1)?);
                    }
                }
            }
            _ => {}
        }
        self.known.insert(pair, total);
        Some(total)
    }
}

/// What one schema does with one value by itself.
fn weight(schema: &Value, value: &Value) -> u64 {
    let own = match (schema.get("pattern"), value) {
        (Some(Value::String(pattern)), Value::String(text)) => matching(pattern, text.len()),
        _ => 0,
    };
    let named = match (schema.get("patternProperties"), value) {
        (Some(Value::Object(patterns)), Value::Object(members)) => {
            // Every pattern meets every name; the longest name stands for all.
            let longest = members.keys().map(String::len).max().unwrap_or_default();
            patterns
                .keys()
                .map(|pattern| matching(pattern, longest))
                .fold(0, u64::saturating_add)
                .saturating_mul(as_u64(members.len()))
        }
        _ => 0,
    };
    let options = schema
        .get("enum")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    1 + own + named + as_u64(options / 4)
}

fn matching(pattern: &str, bytes: usize) -> u64 {
    let bytes = as_u64(bytes);
    // A backtracking engine starts anew at every position of the text.
    let steps = if is_backtracking(pattern) {
        bytes.saturating_mul(bytes)
    } else {
        bytes
    };
    1 + steps / 256
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The schemas that may apply to a member, rather one too many.
fn member_schemas<'s>(schema: &'s Value, name: &str) -> Vec<&'s Value> {
    let mut schemas = Vec::new();
    schemas.extend(schema.get("properties").and_then(|all| all.get(name)));
    if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
        schemas.extend(patterns.values());
    }
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        schemas.extend(schema.get(keyword).filter(|rest| rest.is_object()));
    }
    schemas
}

fn item_schemas(schema: &Value, at: usize) -> Vec<&Value> {
    let mut schemas = Vec::new();
    for keyword in ["items", "prefixItems"] {
        match schema.get(keyword) {
            Some(Value::Array(tuple)) => schemas.extend(tuple.get(at)),
            Some(every) if every.is_object() => schemas.push(every),
            _ => {}
        }
    }
    for keyword in ["contains", "additionalItems", "unevaluatedItems"] {
        schemas.extend(schema.get(keyword).filter(|rest| rest.is_object()));
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_place::measure;
    use serde_json::json;

    fn explodes(schema: &Value) -> bool {
        can_explode(schema, measure(schema).unwrap())
    }

    #[test]
    fn ordinary_schemas_are_not_counted() {
        assert!(!explodes(&json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "pattern": "^[a-z]+$"},
                "mode": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}
            }
        })));
    }

    #[test]
    fn recursion_and_look_around_are_counted() {
        assert!(explodes(&json!({"properties": {"child": {"$ref": "#"}}})));
        assert!(explodes(&json!({"pattern": "^(?=.*[0-9]).+$"})));
        assert!(explodes(&json!({"pattern": r"(a)\1"})));
    }

    #[test]
    fn a_recursive_union_costs_an_explanation_more_than_a_verdict() {
        let branch =
            |kind: u8| json!({"properties": {"child": {"$ref": "#"}, "kind": {"const": kind}}});
        let schema = json!({"anyOf": [branch(1), branch(2)]});
        let mut value = json!({"kind": 3});
        for _ in 0..30 {
            value = json!({"kind": 1, "child": value});
        }
        let cost = count(&schema, &value).unwrap();
        assert!(cost.verdict < 1_000, "{cost:?}");
        assert!(cost.explanation > 1_000_000_000, "{cost:?}");
    }

    #[test]
    fn counting_itself_is_bounded() {
        let schema = json!({"items": {"$ref": "#"}, "allOf": [{}, {}, {}, {}]});
        let wide = Value::Array(vec![json!([]); 200_000]);
        assert_eq!(count(&schema, &wide), None);
    }
}
