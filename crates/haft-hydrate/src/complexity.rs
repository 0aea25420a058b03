//! Schemas that would cost more than they tell: endless or exploding in one place.
//!
//! Schemas come from strangers (MCP servers, requests). A schema that refers to itself without
//! descending into the value never ends; one that doubles itself in `allOf` thirty times over never
//! ends in practice. Both are refused before anything is validated against them.

use std::collections::HashMap;

use haft_core::SchemaError;
use serde_json::Value;

use crate::local_ref::resolve;

/// How many schemas may apply to one and the same value.
const MAX_IN_PLACE: u64 = 20_000;

/// Refuses a schema whose subschemas for one value are endless or too many.
pub(crate) fn check_in_place(root: &Value) -> Result<(), SchemaError> {
    let mut costs = Costs {
        root,
        known: HashMap::new(),
    };
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        costs.of(schema)?;
        haft_core::subschemas(schema, |_, sub| open.push(sub));
    }
    Ok(())
}

struct Costs<'s> {
    root: &'s Value,
    /// By address within the document; `None` while the schema is being counted.
    known: HashMap<usize, Option<u64>>,
}

impl<'s> Costs<'s> {
    /// Counts the schemas that apply in place, with a stack of its own: chains of references may
    /// be as long as the document.
    fn of(&mut self, schema: &'s Value) -> Result<(), SchemaError> {
        let mut stack = vec![(schema, None)];
        while let Some((schema, parts)) = stack.pop() {
            match parts {
                None if self.known.contains_key(&address(schema)) => {
                    if self.known[&address(schema)].is_none() {
                        return Err(refused("it refers to itself without end"));
                    }
                }
                None => {
                    self.known.insert(address(schema), None);
                    let parts = self.in_place(schema);
                    stack.push((schema, Some(parts.clone())));
                    stack.extend(
                        parts
                            .into_iter()
                            .filter(|part| {
                                self.known.get(&address(part)).is_none_or(Option::is_none)
                            })
                            .map(|part| (part, None)),
                    );
                }
                Some(parts) => {
                    let cost = parts
                        .iter()
                        .filter_map(|part| self.known.get(&address(part)).copied().flatten())
                        .fold(1, u64::saturating_add);
                    if cost > MAX_IN_PLACE {
                        return Err(refused("too many of its subschemas apply to one value"));
                    }
                    self.known.insert(address(schema), Some(cost));
                }
            }
        }
        Ok(())
    }

    /// The schemas that apply to the same value as `schema`.
    fn in_place(&self, schema: &'s Value) -> Vec<&'s Value> {
        let mut parts = Vec::new();
        haft_core::subschemas(schema, |keyword, sub| {
            if matches!(
                keyword,
                "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
            ) {
                parts.push(sub);
            }
        });
        if let Some(Value::String(reference)) = schema.get("$ref") {
            parts.extend(resolve(self.root, reference));
        }
        parts
    }
}

fn address(schema: &Value) -> usize {
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
            assert!(check_in_place(&schema).is_err(), "{schema}");
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
            assert_eq!(check_in_place(&schema), Ok(()), "{schema}");
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
        assert!(check_in_place(&schema).is_err());
    }
}
