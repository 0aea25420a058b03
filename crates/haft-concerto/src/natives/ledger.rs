//! Ledgers (§18): entries under identifiers, found by words and keys.

use std::sync::Arc;

use super::builtins::int;
use super::methods::argument;
use super::{Context, array_of};
use crate::load::Method;
use crate::value::{Reference, Sizer, Value};
use crate::vm::{Outcome, Reply};

#[derive(Debug, Clone)]
struct Entry {
    identifier: String,
    keys: Vec<String>,
    value: Value,
}

/// Entries in the order they were put in.
#[derive(Debug, Default)]
pub(super) struct LedgerStore {
    entries: Vec<Entry>,
}

impl LedgerStore {
    pub(super) fn measure(&self, sizer: &mut Sizer) {
        for entry in &self.entries {
            let keys: usize = entry.keys.iter().map(|key| 24 + key.len()).sum();
            sizer.bytes(80 + entry.identifier.len() + keys);
            sizer.add([&entry.value]);
        }
    }

    pub(super) fn retain_values(&mut self, stays: impl Fn(&Value) -> bool) {
        self.entries.retain(|entry| stays(&entry.value));
    }

    fn find(&mut self, identifier: &str) -> Option<&mut Entry> {
        self.entries
            .iter_mut()
            .find(|entry| entry.identifier == identifier)
    }

    fn select(&self, fits: impl Fn(&Entry) -> bool) -> Value {
        Value::array(
            self.entries
                .iter()
                .filter(|entry| fits(entry))
                .map(record)
                .collect(),
        )
    }
}

fn record(entry: &Entry) -> Value {
    let keys = entry
        .keys
        .iter()
        .map(|key| Value::from(key.as_str()))
        .collect();
    Value::record(
        "LedgerEntry",
        vec![
            ("identifier", Value::from(entry.identifier.as_str())),
            ("keys", Value::array(keys)),
            ("value", entry.value.clone()),
        ],
    )
}

/// The words of a text: lower case, without punctuation except `_` and `-`.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(|word| {
            word.chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
                .flat_map(char::to_lowercase)
                .collect::<String>()
        })
        .filter(|word| !word.is_empty())
        .collect()
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

fn keys_of(function: &str, value: &Value) -> Outcome<Vec<String>> {
    Ok(array_of(function, value)?
        .iter()
        .map(Value::to_string)
        .collect())
}

pub(super) fn call(
    context: &mut Context<'_>,
    reference: &Arc<Reference>,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let store = context
        .machine
        .stores
        .ledgers
        .entry(reference.name.clone())
        .or_default();
    let text = |place: usize, name: &str| -> Outcome<String> {
        Ok(argument(arguments, place, name)?.to_string())
    };
    let value = match method {
        Method::Insert => {
            let identifier = text(0, "insert")?;
            let keys = keys_of("insert", argument(arguments, 1, "insert")?)?;
            let value = argument(arguments, 2, "insert")?.clone();
            let entry = Entry {
                identifier,
                keys,
                value,
            };
            match store.find(&entry.identifier) {
                Some(old) => *old = entry,
                None => store.entries.push(entry),
            }
            context.machine.heap.charge(128)?;
            Value::Nil
        }
        Method::Delete | Method::Remove => {
            let identifier = text(0, "delete")?;
            let before = store.entries.len();
            store.entries.retain(|entry| entry.identifier != identifier);
            Value::Bool(store.entries.len() < before)
        }
        Method::Update => {
            let value = argument(arguments, 1, "update")?.clone();
            let found = store.find(&text(0, "update")?);
            Value::Bool(found.map(|entry| entry.value = value).is_some())
        }
        Method::UpdateKeys => {
            let keys = keys_of("update_keys", argument(arguments, 1, "update_keys")?)?;
            let found = store.find(&text(0, "update_keys")?);
            Value::Bool(found.map(|entry| entry.keys = keys).is_some())
        }
        Method::Len => int(store.entries.len()),
        Method::IsEmpty => Value::Bool(store.entries.is_empty()),
        Method::Clear => {
            store.entries.clear();
            Value::Nil
        }
        Method::Entries => store.select(|_| true),
        Method::Identifiers => Value::array(
            store
                .entries
                .iter()
                .map(|entry| Value::from(entry.identifier.as_str()))
                .collect(),
        ),
        Method::Scope => {
            let name = format!("{}\0{}", reference.name, text(0, "scope")?);
            Value::Ref(Arc::new(Reference {
                kind: reference.kind,
                name: Arc::from(name),
            }))
        }
        Method::Query => Value::Ref(reference.clone()),
        Method::FromIdentifier => {
            let wanted = words(&text(0, "from_identifier")?);
            store.select(|entry| {
                let there = words(&entry.identifier);
                !wanted.is_empty() && wanted.iter().all(|word| there.contains(word))
            })
        }
        Method::FromKey => {
            let wanted = text(0, "from_key")?;
            store.select(|entry| entry.keys.iter().any(|key| same(key, &wanted)))
        }
        Method::FromAnyKeys => {
            let wanted = keys_of("from_any_keys", argument(arguments, 0, "from_any_keys")?)?;
            store.select(|entry| {
                wanted
                    .iter()
                    .any(|wanted| entry.keys.iter().any(|key| same(key, wanted)))
            })
        }
        Method::FromExactKeys => {
            let wanted = keys_of(
                "from_exact_keys",
                argument(arguments, 0, "from_exact_keys")?,
            )?;
            store.select(|entry| {
                wanted
                    .iter()
                    .all(|wanted| entry.keys.iter().any(|key| same(key, wanted)))
            })
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}
