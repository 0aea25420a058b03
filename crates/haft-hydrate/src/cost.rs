//! What a validation costs, counted before it is paid.
//!
//! A recursive schema with unions visits a value over and over, and thousands of patterns meet
//! thousands of members. The library bounds none of that, and a thread that validates cannot be
//! stopped. So schemas that can explode are marked when they are compiled, and their values are
//! counted first: the same walk over schema and value, with every pair visited once and remembered.

use std::collections::{HashMap, HashSet};

use haft_core::{SchemaError, resolve_local_ref};
use serde_json::Value;

use crate::in_place::{InPlace, address, has_embedded_resources, in_place, references};
use crate::pattern::{Pattern, TooCostly};

/// Schemas below these marks cannot explode, and their values are not counted.
const HARMLESS: InPlace = InPlace {
    count: 64,
    chain: 16,
};
const HARMLESS_OPTIONS: usize = 256;

/// What matching may cost, in steps of a pattern, before it is counted: some milliseconds at worst.
const HARMLESS_MATCHING: u64 = 400_000;

/// What matching may cost over one value, in steps of a pattern: half a second at worst.
const MAX_MATCHING: u64 = 50_000_000;

/// What compiling the patterns of one schema may cost, in microseconds at worst.
const MAX_COMPILE_COST: u64 = 500_000;

/// How many pairs of schema and value the counting itself may visit.
const MAX_PAIRS: usize = 300_000;

/// How deep schemas may nest over one value: what the validator's stack holds with room to spare.
const MAX_NESTING: usize = 512;

/// How often the library may visit a pair that it could remember: it remembers results only from this
/// many visits on.
const FORGETFUL: u64 = 16;

/// What one validation costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Visits, each pair once: what a yes or no costs.
    pub(crate) verdict: u64,
    /// Visits, over and over: what a list of errors costs.
    pub(crate) explanation: u64,
    /// Steps of patterns, over and over.
    pub(crate) matching: u64,
}

impl Cost {
    /// Whether the patterns may be matched as often as a list of errors needs.
    pub(crate) fn can_match_again(&self) -> bool {
        self.matching <= MAX_MATCHING
    }
}

/// The patterns of one schema.
pub(crate) struct Patterns {
    by_text: HashMap<String, Pattern>,
    /// Whether the schema is compiled for the backtracking engine.
    is_backtracking: bool,
    /// The size of all of them.
    size: u64,
}

impl Patterns {
    /// Collects the patterns of a schema; refuses those that cost too much.
    pub(crate) fn of(root: &Value) -> Result<Self, SchemaError> {
        let mut by_text: HashMap<String, Pattern> = HashMap::new();
        let mut size = 0_u64;
        let mut cost = 0_u64;
        let mut is_backtracking = false;
        for schema in all_schemas(root) {
            for text in patterns_of(schema) {
                if let Some(known) = by_text.get(text) {
                    size = size.saturating_add(known.size());
                    continue;
                }
                let pattern = Pattern::new(text)?;
                is_backtracking |= pattern.needs_backtracking();
                size = size.saturating_add(pattern.size());
                cost = cost.saturating_add(pattern.compile_cost());
                if cost > MAX_COMPILE_COST {
                    return Err(SchemaError {
                        reason: "its patterns are too many or too large".to_owned(),
                    });
                }
                by_text.insert(text.to_owned(), pattern);
            }
        }
        Ok(Self {
            by_text,
            is_backtracking,
            size,
        })
    }

    /// Whether one of them has look-around or back-references.
    pub(crate) fn need_backtracking(&self) -> bool {
        self.is_backtracking
    }

    /// What compiling them costs, in microseconds at worst.
    pub(crate) fn compile_cost(&self) -> u64 {
        let costs = self.by_text.values().map(Pattern::compile_cost);
        costs.fold(0, u64::saturating_add)
    }

    /// Whether matching a value with so many bytes of text must be counted.
    pub(crate) fn can_be_slow(&self, bytes: usize) -> bool {
        self.is_backtracking || self.size.saturating_mul(as_u64(bytes)) > HARMLESS_MATCHING
    }
}

/// All schemas of a document: those in the places for schemas and those that references lead to. Where a
/// reference cannot be followed it may lead anywhere, so that every object counts as a schema.
fn all_schemas(root: &Value) -> Vec<&Value> {
    let mut known = HashSet::new();
    let mut schemas = Vec::new();
    let mut is_everywhere = has_embedded_resources(root);
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        if is_everywhere {
            break;
        }
        if !known.insert(address(schema)) {
            continue;
        }
        schemas.push(schema);
        haft_core::subschemas(schema, |_, sub| open.push(sub));
        for reference in references(schema) {
            match resolve_local_ref(root, reference) {
                Some(target) => open.push(target),
                None => is_everywhere = true,
            }
        }
    }
    if is_everywhere {
        schemas.clear();
        open = vec![root];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(members) => {
                    schemas.push(value);
                    open.extend(members.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
    }
    schemas
}

/// The regular expressions that a schema itself has.
fn patterns_of(schema: &Value) -> impl Iterator<Item = &str> {
    let own = schema.get("pattern").and_then(Value::as_str);
    let named = schema.get("patternProperties").and_then(Value::as_object);
    let named = named.into_iter().flat_map(serde_json::Map::keys);
    own.into_iter().chain(named.map(String::as_str))
}

/// Whether values must be counted against this schema, whatever they are.
pub(crate) fn can_explode(root: &Value, in_place: InPlace) -> bool {
    if in_place.count > HARMLESS.count || in_place.chain > HARMLESS.chain {
        return true;
    }
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        let repeats = [
            "$ref",
            "$dynamicRef",
            "$recursiveRef",
            "unevaluatedItems",
            "unevaluatedProperties",
        ]
        .iter()
        .any(|keyword| schema.get(keyword).is_some());
        let options = schema
            .get("enum")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        if repeats || options > HARMLESS_OPTIONS {
            return true;
        }
        haft_core::subschemas(schema, |_, sub| open.push(sub));
    }
    false
}

/// How many values a JSON value consists of, itself included.
pub(crate) fn node_count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(node_count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(node_count).sum::<usize>(),
        _ => 1,
    }
}

/// How many bytes of text a value holds, names of members included.
pub(crate) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| name.len() + text_bytes(member))
            .sum(),
        _ => 0,
    }
}

/// Counts a validation.
pub(crate) fn count(root: &Value, patterns: &Patterns, value: &Value) -> Result<Cost, TooCostly> {
    let mut counting = Counting {
        root,
        patterns,
        known: HashMap::new(),
        verdict: 0,
        matching: 0,
        repeats_all: false,
    };
    let total = counting.visit(root, value, 0)?;
    // The library remembers results of references; without it every visit is a visit again.
    let matching = if counting.repeats_all {
        total.matching
    } else {
        total
            .matching
            .min(counting.matching.saturating_mul(FORGETFUL))
    };
    let verdict = if counting.repeats_all {
        total.visits
    } else {
        counting.verdict
    };
    if matching > MAX_MATCHING {
        return Err(TooCostly::Size);
    }
    Ok(Cost {
        verdict,
        explanation: total.visits,
        matching: total.matching,
    })
}

struct Counting<'s> {
    root: &'s Value,
    patterns: &'s Patterns,
    known: HashMap<(usize, usize), Total>,
    verdict: u64,
    matching: u64,
    /// Whether a schema looks at its value again to see what is evaluated: that is not remembered.
    repeats_all: bool,
}

/// What visiting a pair costs, with everything below it.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    visits: u64,
    matching: u64,
}

impl Total {
    fn add(&mut self, other: Self) {
        self.visits = self.visits.saturating_add(other.visits);
        self.matching = self.matching.saturating_add(other.matching);
    }
}

impl<'s> Counting<'s> {
    fn visit(
        &mut self,
        schema: &'s Value,
        value: &Value,
        nesting: usize,
    ) -> Result<Total, TooCostly> {
        let pair = (address(schema), address(value));
        if let Some(total) = self.known.get(&pair) {
            return Ok(*total);
        }
        if nesting > MAX_NESTING || self.known.len() >= MAX_PAIRS {
            return Err(TooCostly::Size);
        }
        let here = Total {
            visits: weight(schema),
            matching: self.matching_of(schema, value)?,
        };
        self.verdict = self.verdict.saturating_add(here.visits);
        let mut total = here;
        for part in in_place(self.root, schema) {
            total.add(self.visit(part, value, nesting + 1)?);
        }
        match value {
            Value::Object(members) => {
                let names = schema
                    .get("propertyNames")
                    .filter(|names| names.is_object());
                for (name, member) in members {
                    for part in member_schemas(schema, name) {
                        total.add(self.visit(part, member, nesting + 1)?);
                    }
                    if let Some(names) = names {
                        total.add(self.visit_name(names, name, nesting + 1)?);
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    for part in item_schemas(schema, at) {
                        total.add(self.visit(part, item, nesting + 1)?);
                    }
                }
            }
            _ => {}
        }
        if ["unevaluatedItems", "unevaluatedProperties"]
            .iter()
            .any(|keyword| schema.get(keyword).is_some())
        {
            self.repeats_all = true;
            // What is in place is evaluated once more, to find out what it has looked at.
            total.add(total);
        }
        self.known.insert(pair, total);
        Ok(total)
    }

    /// The name of a member against `propertyNames`. It is no value of the document, so it has no address
    /// to be remembered by: what is remembered meanwhile is forgotten.
    fn visit_name(
        &mut self,
        schema: &'s Value,
        name: &str,
        nesting: usize,
    ) -> Result<Total, TooCostly> {
        let name = Value::String(name.to_owned());
        let mut apart = Counting {
            root: self.root,
            patterns: self.patterns,
            known: HashMap::new(),
            verdict: self.verdict,
            matching: self.matching,
            repeats_all: self.repeats_all,
        };
        let total = apart.visit(schema, &name, nesting)?;
        self.verdict = apart.verdict;
        self.matching = apart.matching;
        self.repeats_all = apart.repeats_all;
        if self.verdict > as_u64(MAX_PAIRS) * 4 {
            return Err(TooCostly::Size);
        }
        Ok(total)
    }

    /// What the patterns of one schema cost on one value.
    fn matching_of(&mut self, schema: &Value, value: &Value) -> Result<u64, TooCostly> {
        let before = self.matching;
        if let (Some(Value::String(pattern)), Value::String(text)) = (schema.get("pattern"), value)
        {
            self.pay_match(pattern, text)?;
        }
        if let (Some(Value::Object(named)), Value::Object(members)) =
            (schema.get("patternProperties"), value)
        {
            for pattern in named.keys() {
                for name in members.keys() {
                    self.pay_match(pattern, name)?;
                }
            }
        }
        Ok(self.matching - before)
    }

    fn pay_match(&mut self, pattern: &str, text: &str) -> Result<(), TooCostly> {
        let Some(pattern) = self.patterns.by_text.get(pattern) else {
            return Ok(());
        };
        let left = MAX_MATCHING.saturating_sub(self.matching);
        let is_backtracking = self.patterns.is_backtracking;
        // Never past what is left, so the sum cannot overflow.
        self.matching += pattern.match_cost(text, left, is_backtracking)?;
        Ok(())
    }
}

/// What one schema does with one value by itself, patterns apart.
fn weight(schema: &Value) -> u64 {
    let options = schema
        .get("enum")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    1 + as_u64(options / 4)
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
#[path = "cost_tests.rs"]
mod tests;
