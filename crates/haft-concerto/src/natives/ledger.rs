//! Ledgers (§18): entries under identifiers, found by words and keys.

use std::sync::Arc;

use super::builtins::int;
use super::methods::argument;
use super::{Context, array_of};
use crate::load::Method;
use crate::value::{Items, Reference, Sizer, Value};
use crate::vm::{Machine, Meter, Outcome, Reply};

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
            sizer.bytes(80 + entry.bytes());
            sizer.add([&entry.value]);
        }
    }

    pub(super) fn retain_values(&mut self, stays: impl Fn(&Value) -> bool) {
        self.entries.retain(|entry| stays(&entry.value));
    }

    fn find(&mut self, identifier: &str, meter: &mut Meter) -> Outcome<Option<&mut Entry>> {
        meter.work(self.entries.len())?;
        Ok(self
            .entries
            .iter_mut()
            .find(|entry| entry.identifier == identifier))
    }

    /// The entries that fit; what each comparison costs is for `fits` to charge.
    fn select(
        &self,
        meter: &mut Meter,
        mut fits: impl FnMut(&Entry, &mut Meter) -> Outcome<bool>,
    ) -> Outcome<Value> {
        let mut found = Vec::new();
        for entry in &self.entries {
            meter.work(1)?;
            if fits(entry, meter)? {
                found.push(entry);
            }
        }
        let mut items = Items::with_room(meter, found.len())?;
        for entry in found {
            // With a shape of its own.
            items.push(record(entry), 400 + entry.bytes())?;
        }
        items.array()
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|key| 24 + key.len()).sum();
        self.identifier.len() + keys
    }

    /// Its keys in the form in which they are compared.
    fn lowered(&self, wanted: &[String], meter: &mut Meter) -> Outcome<Vec<String>> {
        meter.work(self.bytes() / 2 + wanted.len().saturating_mul(self.keys.len()))?;
        Ok(self.keys.iter().map(|key| key.to_lowercase()).collect())
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

fn keys_of(function: &str, value: &Value, meter: &mut Meter) -> Outcome<Vec<String>> {
    let mut keys = Vec::new();
    for key in array_of(function, value)? {
        let key = meter.shown(key)?;
        meter.ask(24 + key.len())?;
        keys.push(key.into());
    }
    Ok(keys)
}

/// Keys that are looked for, in the form in which they are compared.
fn wanted_keys(function: &str, value: &Value, meter: &mut Meter) -> Outcome<Vec<String>> {
    let keys = keys_of(function, value, meter)?;
    meter.work(keys.iter().map(|key| key.len() / 2).sum())?;
    Ok(keys.iter().map(|key| key.to_lowercase()).collect())
}

pub(super) fn call(
    context: &mut Context<'_>,
    reference: &Arc<Reference>,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let Machine { stores, meter, .. } = &mut *context.machine;
    let store = stores.ledgers.entry(reference.name.clone()).or_default();
    let text = |place: usize, name: &str, meter: &mut Meter| -> Outcome<String> {
        Ok(meter.shown(argument(arguments, place, name)?)?.into())
    };
    let value = match method {
        Method::Insert => {
            let identifier = text(0, "insert", meter)?;
            let keys = keys_of("insert", argument(arguments, 1, "insert")?, meter)?;
            let value = argument(arguments, 2, "insert")?.clone();
            let entry = Entry {
                identifier,
                keys,
                value,
            };
            meter.ask_stored(&entry.value, 128 + entry.bytes())?;
            match store.find(&entry.identifier, meter)? {
                Some(old) => *old = entry,
                None => store.entries.push(entry),
            }
            Value::Nil
        }
        Method::Delete | Method::Remove => {
            let identifier = text(0, "delete", meter)?;
            let before = store.entries.len();
            meter.work(before)?;
            store.entries.retain(|entry| entry.identifier != identifier);
            Value::Bool(store.entries.len() < before)
        }
        Method::Update => {
            let value = argument(arguments, 1, "update")?.clone();
            meter.ask_stored(&value, 0)?;
            let found = store.find(&text(0, "update", meter)?, meter)?;
            Value::Bool(found.map(|entry| entry.value = value).is_some())
        }
        Method::UpdateKeys => {
            let keys = argument(arguments, 1, "update_keys")?;
            let keys = keys_of("update_keys", keys, meter)?;
            meter.ask_stored(&Value::Nil, keys.iter().map(|key| 24 + key.len()).sum())?;
            let found = store.find(&text(0, "update_keys", meter)?, meter)?;
            Value::Bool(found.map(|entry| entry.keys = keys).is_some())
        }
        Method::Len => int(store.entries.len()),
        Method::IsEmpty => Value::Bool(store.entries.is_empty()),
        Method::Clear => {
            store.entries.clear();
            Value::Nil
        }
        Method::Scope => {
            let scope = text(0, "scope", meter)?;
            meter.ask(2 * (reference.name.len() + scope.len()))?;
            let name = format!("{}\0{scope}", reference.name);
            Value::Ref(Arc::new(Reference {
                kind: reference.kind,
                name: Arc::from(name),
            }))
        }
        Method::Query => Value::Ref(reference.clone()),
        method => return search(store, method, arguments, meter),
    };
    Ok(Some(value.into()))
}

/// Methods that look at all entries.
fn search(
    store: &LedgerStore,
    method: Method,
    arguments: &[Value],
    meter: &mut Meter,
) -> Outcome<Option<Reply>> {
    let value = match method {
        Method::Entries => store.select(meter, |_, _| Ok(true))?,
        Method::Identifiers => {
            let mut items = Items::with_room(meter, store.entries.len())?;
            for entry in &store.entries {
                items.push_text(&entry.identifier)?;
            }
            items.array()?
        }
        Method::FromIdentifier => {
            let wanted = meter.shown(argument(arguments, 0, "from_identifier")?)?;
            meter.work(wanted.len())?;
            let wanted = words(&wanted);
            store.select(meter, |entry, meter| {
                meter.work(entry.identifier.len())?;
                let there = words(&entry.identifier);
                meter.work(wanted.len().saturating_mul(there.len()))?;
                Ok(!wanted.is_empty() && wanted.iter().all(|word| there.contains(word)))
            })?
        }
        Method::FromKey => {
            let wanted = meter.shown(argument(arguments, 0, "from_key")?)?;
            meter.work(wanted.len() / 2)?;
            let wanted = [wanted.to_lowercase()];
            store.select(meter, |entry, meter| {
                Ok(entry.lowered(&wanted, meter)?.contains(&wanted[0]))
            })?
        }
        Method::FromAnyKeys => {
            let wanted = argument(arguments, 0, "from_any_keys")?;
            let wanted = wanted_keys("from_any_keys", wanted, meter)?;
            store.select(meter, |entry, meter| {
                let keys = entry.lowered(&wanted, meter)?;
                Ok(wanted.iter().any(|wanted| keys.contains(wanted)))
            })?
        }
        Method::FromExactKeys => {
            let wanted = argument(arguments, 0, "from_exact_keys")?;
            let wanted = wanted_keys("from_exact_keys", wanted, meter)?;
            store.select(meter, |entry, meter| {
                let keys = entry.lowered(&wanted, meter)?;
                Ok(wanted.iter().all(|wanted| keys.contains(wanted)))
            })?
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}
