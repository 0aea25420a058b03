//! References replaced by what they refer to.

use haft_core::{cut, resolve_local_ref, subschemas_mut};
use serde_json::{Map, Value, json};

use super::bounds::{MAX_BYTES, MAX_DEPTH, MAX_SUBSCHEMAS, too_deep, too_long, too_many};
use super::merge::merge;
use super::{Dropped, bounds};

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Words about the document, which no provider needs.
const ABOUT_THE_DOCUMENT: [&str; 10] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "definitions",
    "id",
];

/// How often a schema may occur inside itself before it becomes an open one. Fewer rounds are tried
/// where more would be too large.
const ROUNDS: [usize; 3] = [4, 2, 1];

/// The schema without references and without words about the document.
pub(super) fn unfold(root: &Value, notes: &mut Vec<String>) -> Result<Value, Dropped> {
    let mut failure = None;
    for rounds in ROUNDS {
        let mut unfolding = Unfolding {
            root,
            rounds,
            path: Vec::new(),
            count: 0,
            has_cycle: false,
            failure: None,
        };
        let mut schema = root.clone();
        unfolding.walk(&mut schema, root, 1);
        if unfolding.failure.is_none() && schema.to_string().len() > MAX_BYTES {
            unfolding.failure = Some(too_long());
        }
        match unfolding.failure {
            None => {
                if unfolding.has_cycle {
                    notes.push(format!("it contains itself: open after {rounds} rounds"));
                }
                return Ok(schema);
            }
            // Only a cycle gets smaller with fewer rounds.
            Some(reason) if !unfolding.has_cycle => return Err(reason),
            Some(reason) => failure = Some(reason),
        }
    }
    Err(failure.unwrap_or_else(bounds::too_many))
}

struct Unfolding<'s> {
    root: &'s Value,
    rounds: usize,
    path: Vec<*const Value>,
    count: usize,
    has_cycle: bool,
    failure: Option<Dropped>,
}

impl<'s> Unfolding<'s> {
    /// Unfolds what stands at `schema`. `base` is the document, or the part of it with an `$id` of
    /// its own, that references are relative to.
    fn walk(&mut self, schema: &mut Value, base: &'s Value, depth: usize) {
        self.count += 1;
        if depth > MAX_DEPTH {
            self.failure.get_or_insert_with(too_deep);
        }
        if self.count > MAX_SUBSCHEMAS {
            self.failure.get_or_insert_with(too_many);
        }
        if self.failure.is_some() {
            return;
        }
        let on_path = self.path.len();
        let base = self.follow(schema, base);
        if let Some(members) = schema.as_object_mut() {
            members.retain(|keyword, value| keep(keyword, value));
        }
        subschemas_mut(schema, |_, sub| self.walk(sub, base, depth + 1));
        self.path.truncate(on_path);
    }

    /// Puts the targets of all references at one place into it. Returns the base from there on.
    fn follow(&mut self, schema: &mut Value, mut base: &'s Value) -> &'s Value {
        while let Some((reference, members)) = take_reference(schema) {
            let target = resolve_local_ref(base, &reference)
                .or_else(|| resolve_local_ref(self.root, &reference));
            let Some(target) = target else {
                let shown = cut(&reference);
                self.failure.get_or_insert_with(|| {
                    Dropped::because(format_args!(
                        "it refers to `{shown}`, which it does not hold; nothing is fetched"
                    ))
                });
                return base;
            };
            let at: *const Value = target;
            let rounds = self.path.iter().filter(|seen| **seen == at).count();
            if rounds >= self.rounds {
                self.has_cycle = true;
                *schema = Value::Object(members);
                return base;
            }
            self.path.push(at);
            if target.get("$id").is_some_and(Value::is_string) {
                base = target;
            }
            let mut whole = match target {
                Value::Object(target) => target.clone(),
                Value::Bool(false) => never(),
                _ => Map::new(),
            };
            for keyword in ABOUT_THE_DOCUMENT {
                if whole
                    .get(keyword)
                    .is_some_and(|value| !keep(keyword, value))
                {
                    whole.shift_remove(keyword);
                }
            }
            merge(&mut whole, members);
            *schema = Value::Object(whole);
        }
        base
    }
}

/// Takes a reference out of a schema, with the rest of it.
fn take_reference(schema: &mut Value) -> Option<(String, Map<String, Value>)> {
    let members = schema.as_object_mut()?;
    let keyword = REFERENCES
        .into_iter()
        .find(|keyword| members.get(*keyword).is_some_and(Value::is_string))?;
    match members.shift_remove(keyword)? {
        Value::String(reference) => Some((reference, std::mem::take(members))),
        _ => None,
    }
}

fn keep(keyword: &str, value: &Value) -> bool {
    match keyword {
        // The older drafts' `$id`; anything but text is a property that somebody misplaced.
        "id" => !value.is_string(),
        _ => !ABOUT_THE_DOCUMENT.contains(&keyword) && !keyword.starts_with("x-"),
    }
}

fn never() -> Map<String, Value> {
    let mut never = Map::new();
    never.insert("not".into(), json!({}));
    never
}
