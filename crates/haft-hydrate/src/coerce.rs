//! Schema-guided repair: a value brought to the one type that its schema admits.
//!
//! Top-down, one pass, no search. A value is touched only where the schema fixes a single wanted
//! type and the value does not have it; where two readings are possible it is left alone, and the
//! validation that follows refuses it. Nothing is dropped but a `null` that stands for "not given".

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::{RepairEvent, RepairKind, Validator, ValidatorFactory, resolve_local_ref};
use serde_json::{Map, Value, json};

use crate::parse::parse_strict;
use crate::unwrap::unwrapped;

/// More coercions than this make a call too unlike what was asked for.
const MAX_COERCIONS: usize = 16;

/// Bounds on hostile schemas: how many places are looked at, how deep, how many branches compiled.
const MAX_STEPS: usize = 20_000;
const MAX_DEPTH: usize = 256;
const MAX_BRANCHES: usize = 16;

/// Brings `value` to what `schema` wants, as far as there is one reading. `None` past the bounds.
pub(crate) fn coerce(
    value: &Value,
    schema: &Value,
    tool: &str,
    factory: &dyn ValidatorFactory,
) -> Option<(Value, Vec<RepairEvent>)> {
    let mut coercion = Coercion {
        root: schema,
        factory,
        path: Vec::new(),
        events: Vec::new(),
        steps: 0,
        branches: HashMap::new(),
        patterns: HashMap::new(),
    };
    let value = match unwrapped(value, schema, tool) {
        Some(inner) => {
            coercion.record(RepairKind::Unwrapped, value, Some(&inner));
            inner
        }
        None => value.clone(),
    };
    let value = coercion.fit(value, schema, 0);
    (!coercion.is_over()).then_some((value, coercion.events))
}

struct Coercion<'s> {
    root: &'s Value,
    factory: &'s dyn ValidatorFactory,
    /// Reference tokens of where we are, already escaped.
    path: Vec<String>,
    events: Vec<RepairEvent>,
    steps: usize,
    /// Validators of union branches, by the branch's address in the schema.
    branches: HashMap<usize, Option<Arc<dyn Validator>>>,
    /// Validators that refuse every member whose name matches a pattern.
    patterns: HashMap<&'s str, Option<Arc<dyn Validator>>>,
}

impl<'s> Coercion<'s> {
    /// Whether there is nothing more to win: the outcome will be refused as too much.
    fn is_over(&self) -> bool {
        self.steps >= MAX_STEPS || self.events.len() > MAX_COERCIONS
    }

    fn fit(&mut self, value: Value, schema: &'s Value, depth: usize) -> Value {
        self.steps += 1;
        if self.is_over() || depth > MAX_DEPTH || !schema.is_object() {
            return value;
        }
        let mut value = value;
        if let Some(Value::String(reference)) = schema.get("$ref")
            && let Some(target) = resolve_local_ref(self.root, reference)
        {
            value = self.fit(value, target, depth + 1);
        }
        value = self.fit_type(value, schema);
        value = self.fit_enum(value, schema);
        value = match value {
            Value::Object(members) => self.fit_members(members, schema, depth),
            Value::Array(items) => self.fit_items(items, schema, depth),
            scalar => scalar,
        };
        for part in list(schema, "allOf") {
            value = self.fit(value, part, depth + 1);
        }
        for union in ["anyOf", "oneOf"] {
            value = self.fit_union(value, list(schema, union), depth);
        }
        value
    }

    /// decode → literal → wrap: the first that applies.
    fn fit_type(&mut self, value: Value, schema: &'s Value) -> Value {
        let Some(wanted) = wanted_type(schema, &value) else {
            return value;
        };
        let decoded = value.as_str().and_then(|text| decoded(text, wanted));
        if let Some((kind, decoded)) = decoded {
            self.record(kind, &value, Some(&decoded));
            return decoded;
        }
        if wanted == "array" && is_wrappable(&value) {
            let wrapped = Value::Array(vec![value.clone()]);
            self.record(RepairKind::WrappedScalar, &value, Some(&wrapped));
            return wrapped;
        }
        value
    }

    fn fit_enum(&mut self, value: Value, schema: &Value) -> Value {
        let (Some(text), Some(Value::Array(options))) = (value.as_str(), schema.get("enum")) else {
            return value;
        };
        self.steps += options.len() / 64;
        if self.is_over() || options.contains(&value) {
            return value;
        }
        let names = || options.iter().filter_map(Value::as_str);
        let trimmed = text.trim();
        let (kind, member) = if names().any(|name| name == trimmed) {
            (RepairKind::EnumBlanks, trimmed)
        } else {
            let folded = trimmed.to_lowercase();
            let mut equal = names().filter(|name| name.to_lowercase() == folded);
            match (equal.next(), equal.next()) {
                (Some(name), None) => (RepairKind::EnumCase, name),
                _ => return value,
            }
        };
        let member = Value::from(member);
        self.record(kind, &value, Some(&member));
        member
    }

    fn fit_members(
        &mut self,
        members: Map<String, Value>,
        schema: &'s Value,
        depth: usize,
    ) -> Value {
        let required = list(schema, "required");
        let mut fitted = Map::with_capacity(members.len());
        for (name, member) in members {
            let schemas = self.schemas_of(schema, &name);
            self.path.push(name.replace('~', "~0").replace('/', "~1"));
            let declared = schema.get("properties").and_then(|all| all.get(&name));
            let droppable = member.is_null()
                && !required.iter().any(|key| *key == name.as_str())
                && declared.is_some_and(|schema| !self.admits_null(schema, 0));
            if droppable {
                self.record(RepairKind::DroppedNull, &member, None);
            } else {
                let member = schemas
                    .into_iter()
                    .fold(member, |member, schema| self.fit(member, schema, depth + 1));
                fitted.insert(name, member);
            }
            self.path.pop();
        }
        Value::Object(fitted)
    }

    fn fit_items(&mut self, items: Vec<Value>, schema: &'s Value, depth: usize) -> Value {
        let tuple = match schema.get("items") {
            Some(Value::Array(tuple)) => tuple.as_slice(),
            _ => list(schema, "prefixItems"),
        };
        let rest = schema.get("items").filter(|items| items.is_object());
        let fitted = items.into_iter().enumerate().map(|(at, item)| {
            let Some(schema) = tuple.get(at).or(rest) else {
                return item;
            };
            self.path.push(at.to_string());
            let item = self.fit(item, schema, depth + 1);
            self.path.pop();
            item
        });
        Value::Array(fitted.collect())
    }

    /// A branch that takes the value as it is leaves it alone; otherwise the value becomes what the
    /// only branch makes of it that then accepts it.
    fn fit_union(&mut self, value: Value, branches: &'s [Value], depth: usize) -> Value {
        if branches.is_empty() || branches.iter().any(|branch| self.accepts(branch, &value)) {
            return value;
        }
        let before = self.events.len();
        let mut found: Option<(Value, Vec<RepairEvent>)> = None;
        for branch in branches {
            let fitted = self.fit(value.clone(), branch, depth + 1);
            let events = self.events.split_off(before);
            if events.is_empty() || !self.accepts(branch, &fitted) {
                continue;
            }
            match &found {
                Some((other, _)) if *other != fitted => return value,
                Some(_) => {}
                None => found = Some((fitted, events)),
            }
        }
        match found {
            Some((fitted, events)) => {
                self.events.extend(events);
                fitted
            }
            None => value,
        }
    }

    fn accepts(&mut self, branch: &Value, value: &Value) -> bool {
        let key = std::ptr::from_ref(branch).addr();
        if !self.branches.contains_key(&key) && self.branches.len() >= MAX_BRANCHES {
            // Past the bound no union is judged any more; the final validation decides.
            self.steps = MAX_STEPS;
            return true;
        }
        let (root, factory) = (self.root, self.factory);
        let compiled = self
            .branches
            .entry(key)
            .or_insert_with(|| factory.compile(&standing_alone(branch, root)).ok());
        compiled
            .as_ref()
            .is_some_and(|validator| validator.is_valid(value))
    }

    /// The schemas that apply to a member.
    fn schemas_of(&mut self, schema: &'s Value, name: &str) -> Vec<&'s Value> {
        let mut schemas = Vec::new();
        if let Some(property) = schema.get("properties").and_then(|all| all.get(name)) {
            schemas.push(property);
        }
        if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
            for (pattern, property) in patterns {
                if self.matches_pattern(pattern, name) {
                    schemas.push(property);
                }
            }
        }
        if schemas.is_empty() {
            schemas.extend(
                schema
                    .get("additionalProperties")
                    .filter(|rest| rest.is_object()),
            );
        }
        schemas
    }

    /// Asks the validator, so that the pattern means what it means in validation.
    fn matches_pattern(&mut self, pattern: &'s str, name: &str) -> bool {
        self.steps += 1;
        if self.is_over() {
            return false;
        }
        let factory = self.factory;
        let forbidding = self.patterns.entry(pattern).or_insert_with(|| {
            let schema = json!({"patternProperties": {pattern: false}});
            factory.compile(&schema).ok()
        });
        forbidding
            .as_ref()
            .is_some_and(|validator| !validator.is_valid(&json!({name: null})))
    }

    fn admits_null(&self, schema: &Value, depth: usize) -> bool {
        if depth > 16 {
            return true;
        }
        let by_type = match schema.get("type") {
            Some(Value::String(kind)) => kind == "null",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
            _ => true,
        };
        let by_enum = match schema.get("enum") {
            Some(Value::Array(options)) => options.contains(&Value::Null),
            _ => true,
        };
        let by_const = schema.get("const").is_none_or(Value::is_null);
        let by_reference = match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => resolve_local_ref(self.root, reference)
                .is_none_or(|target| self.admits_null(target, depth + 1)),
            None => true,
        };
        let by_union = ["anyOf", "oneOf"].iter().all(|union| {
            let branches = list(schema, union);
            branches.is_empty()
                || branches
                    .iter()
                    .any(|branch| self.admits_null(branch, depth + 1))
        });
        by_type && by_enum && by_const && by_reference && by_union
    }

    fn record(&mut self, kind: RepairKind, before: &Value, after: Option<&Value>) {
        if self.is_over() {
            return;
        }
        let path: String = self.path.iter().flat_map(|token| ["/", token]).collect();
        self.events.push(RepairEvent {
            kind,
            path,
            offset: None,
            before: before.to_string(),
            after: after.map(Value::to_string).unwrap_or_default(),
        });
    }
}

/// The one type that `schema` wants and `value` does not have.
fn wanted_type<'s>(schema: &'s Value, value: &Value) -> Option<&'s str> {
    let kinds: Vec<&str> = match schema.get("type")? {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    if kinds.iter().any(|kind| has_type(value, kind)) {
        return None;
    }
    let mut wanted = kinds.into_iter().filter(|kind| *kind != "null");
    match (wanted.next(), wanted.next()) {
        (Some(kind), None) => Some(kind),
        _ => None,
    }
}

fn has_type(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
        Value::Number(number) => {
            kind == "number"
                || kind == "integer" && number.as_f64().is_none_or(|float| float.fract() == 0.0)
        }
    }
}

/// A string that is exactly one JSON document or literal of the wanted type.
fn decoded(text: &str, wanted: &str) -> Option<(RepairKind, Value)> {
    match wanted {
        "object" | "array" => {
            let value = parse_strict(text.trim()).ok()?;
            has_type(&value, wanted).then_some((RepairKind::DecodedJson, value))
        }
        "integer" | "number" => {
            // Without blanks: `parse_strict` would take them.
            let is_bare = text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
                && text.ends_with(|c: char| c.is_ascii_digit())
                && (wanted == "number" || is_integer_literal(text));
            let value = is_bare.then(|| parse_strict(text).ok()).flatten()?;
            has_type(&value, wanted).then_some((RepairKind::ParsedLiteral, value))
        }
        "boolean" => {
            let value = match text {
                "true" | "True" => true,
                "false" | "False" => false,
                _ => return None,
            };
            Some((RepairKind::ParsedLiteral, value.into()))
        }
        _ => None,
    }
}

/// `12`, `-3`, `5.0`: an integer as written, not one that rounding makes.
fn is_integer_literal(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    digits.bytes().all(|byte| byte.is_ascii_digit()) && fraction.bytes().all(|byte| byte == b'0')
}

/// A scalar that can only be the one element meant. Text that opens a square bracket is rather a
/// list that was written as text and did not decode: which elements it has would be a guess.
fn is_wrappable(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim_start().starts_with('['),
        Value::Number(_) | Value::Bool(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// A branch as a document of its own, with the definitions it may refer to.
fn standing_alone(branch: &Value, root: &Value) -> Value {
    let Value::Object(branch) = branch else {
        return branch.clone();
    };
    let mut document = branch.clone();
    if !refers_elsewhere(branch) {
        return Value::Object(document);
    }
    for keyword in ["$schema", "$defs", "definitions"] {
        if let (Some(shared), false) = (root.get(keyword), document.contains_key(keyword)) {
            document.insert(keyword.into(), shared.clone());
        }
    }
    Value::Object(document)
}

fn refers_elsewhere(branch: &Map<String, Value>) -> bool {
    branch.iter().any(|(keyword, value)| {
        keyword == "$ref"
            || match value {
                Value::Object(members) => refers_elsewhere(members),
                Value::Array(items) => items
                    .iter()
                    .any(|item| item.as_object().is_some_and(refers_elsewhere)),
                _ => false,
            }
    })
}

fn list<'s>(schema: &'s Value, keyword: &str) -> &'s [Value] {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}
