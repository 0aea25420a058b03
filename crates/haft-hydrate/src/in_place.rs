//! Schemas that would cost more than they tell: endless or exploding in one place.
//!
//! Schemas come from strangers (MCP servers, requests). A schema that refers to itself without
//! descending into the value never ends; one that doubles itself in `allOf` thirty times over never
//! ends in practice. Both are refused before anything is validated against them.

use std::collections::HashMap;

use haft_core::{SchemaError, resolve_local_ref};
use serde_json::Value;

/// How many schemas may apply to one and the same value.
const MAX_IN_PLACE: u64 = 20_000;

/// How many references may lead where they cannot be followed: what cannot be counted must be few.
const MAX_UNFOLLOWED: usize = 12;

/// How much of a schema applies in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InPlace {
    /// How many schemas apply to one value, at most.
    pub(crate) count: u64,
    /// How long the longest chain of schemas is that refer to one another for one value.
    pub(crate) chain: usize,
}

/// Measures a schema; refuses one whose subschemas for one value are endless or too many.
pub(crate) fn measure(root: &Value) -> Result<InPlace, SchemaError> {
    let mut measure = Measure {
        root,
        known: HashMap::new(),
    };
    let mut most = InPlace::default();
    let doubtful = has_embedded_resources(root);
    let mut unfollowed = 0;
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        unfollowed += references(schema)
            .filter(|reference| doubtful || resolve_local_ref(root, reference).is_none())
            .count();
        if unfollowed > MAX_UNFOLLOWED {
            return Err(refused("too many of its references cannot be followed"));
        }
        let this = measure.of(schema)?;
        most.count = most.count.max(this.count);
        most.chain = most.chain.max(this.chain);
        haft_core::subschemas(schema, |_, sub| open.push(sub));
    }
    Ok(most)
}

/// The schemas that apply to the same value as `schema`.
pub(crate) fn in_place<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let mut parts = Vec::new();
    haft_core::subschemas(schema, |keyword, sub| {
        if matches!(
            keyword,
            "allOf"
                | "anyOf"
                | "oneOf"
                | "not"
                | "if"
                | "then"
                | "else"
                | "dependentSchemas"
                | "dependencies"
        ) {
            parts.push(sub);
        }
    });
    parts.extend(references(schema).filter_map(|reference| resolve_local_ref(root, reference)));
    parts
}

/// Whether a subschema has an address of its own: `#/…` below it may mean another place than it says.
pub(crate) fn has_embedded_resources(root: &Value) -> bool {
    let mut open = Vec::new();
    haft_core::subschemas(root, |_, sub| open.push(sub));
    while let Some(schema) = open.pop() {
        if schema
            .get("$id")
            .and_then(Value::as_str)
            .is_some_and(|id| !id.starts_with('#'))
        {
            return true;
        }
        haft_core::subschemas(schema, |_, sub| open.push(sub));
    }
    false
}

pub(crate) fn references(schema: &Value) -> impl Iterator<Item = &str> {
    ["$ref", "$dynamicRef", "$recursiveRef"]
        .iter()
        .filter_map(|keyword| schema.get(keyword)?.as_str())
}

struct Measure<'s> {
    root: &'s Value,
    /// By address within the document; `None` while the schema is being measured.
    known: HashMap<usize, Option<InPlace>>,
}

impl<'s> Measure<'s> {
    /// Works with a stack of its own: chains of references may be as long as the document.
    fn of(&mut self, schema: &'s Value) -> Result<InPlace, SchemaError> {
        let mut stack = vec![(schema, None)];
        while let Some((schema, parts)) = stack.pop() {
            match parts {
                None => match self.known.get(&address(schema)) {
                    Some(Some(_)) => {}
                    Some(None) => return Err(refused("it refers to itself without end")),
                    None => {
                        self.known.insert(address(schema), None);
                        let parts = in_place(self.root, schema);
                        stack.push((schema, Some(parts.clone())));
                        stack.extend(parts.into_iter().map(|part| (part, None)));
                    }
                },
                Some(parts) => {
                    let measured = self.sum(&parts);
                    if measured.count > MAX_IN_PLACE {
                        return Err(refused("too many of its subschemas apply to one value"));
                    }
                    self.known.insert(address(schema), Some(measured));
                }
            }
        }
        Ok(self
            .known
            .get(&address(schema))
            .copied()
            .flatten()
            .unwrap_or_default())
    }

    fn sum(&self, parts: &[&Value]) -> InPlace {
        let mut sum = InPlace { count: 1, chain: 1 };
        for part in parts {
            if let Some(Some(part)) = self.known.get(&address(part)) {
                sum.count = sum.count.saturating_add(part.count);
                sum.chain = sum.chain.max(part.chain + 1);
            }
        }
        sum
    }
}

pub(crate) fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

fn refused(reason: &str) -> SchemaError {
    SchemaError {
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_that_refers_to_itself_in_place_is_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}),
            json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        ] {
            assert!(measure(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn recursion_that_descends_is_fine() {
        for schema in [
            json!({"properties": {"child": {"$ref": "#"}}}),
            json!({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}}),
            json!({"$defs": {"node": {"anyOf": [
                {"type": "null"},
                {"properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}}}
            ]}}, "$ref": "#/$defs/node"}),
        ] {
            assert_eq!(measure(&schema).map(|_| ()), Ok(()), "{schema}");
        }
    }

    #[test]
    fn a_schema_that_doubles_itself_thirty_times_is_refused() {
        let mut definitions = serde_json::Map::new();
        for n in 0..30 {
            let next = json!({"$ref": format!("#/$defs/n{}", n + 1)});
            definitions.insert(format!("n{n}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("n30".into(), json!({}));
        let schema = json!({"$ref": "#/$defs/n0", "$defs": definitions});
        assert!(measure(&schema).is_err());
    }
}
