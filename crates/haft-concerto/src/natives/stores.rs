//! Stores: what a program shares by name (§8, §18).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::Context;
use super::builtins::int;
use super::ledger::LedgerStore;
use super::map::{key, keys, values};
use super::methods::argument;
use crate::ir;
use crate::load::Method;
use crate::value::{Items, Map, Sizer, Value};
use crate::vm::{Each, Machine, Meter, Outcome, Reply};

/// A message of a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// `user`, `assistant`, `system`, or whatever the program says.
    pub role: String,
    /// The text.
    pub content: String,
}

/// A memory of messages.
#[derive(Debug, Default)]
struct MemoryStore {
    messages: VecDeque<Message>,
    most: Option<usize>,
}

/// All stores of a machine.
#[derive(Debug, Default)]
pub struct Stores {
    hashmaps: HashMap<Arc<str>, Map>,
    memories: HashMap<Arc<str>, MemoryStore>,
    pub(super) ledgers: HashMap<Arc<str>, LedgerStore>,
}

impl Stores {
    pub(crate) fn new(ir: &ir::Module) -> Self {
        let memories = ir.memories.iter().map(|memory| {
            let most = memory
                .max_messages
                .and_then(|most| usize::try_from(most).ok());
            (
                Arc::from(memory.name.as_str()),
                MemoryStore {
                    most,
                    ..MemoryStore::default()
                },
            )
        });
        Self {
            memories: memories.collect(),
            ..Self::default()
        }
    }

    /// Takes over what others hold; how much a memory keeps is said here.
    pub(crate) fn inherit(&mut self, others: Self) {
        self.hashmaps.extend(others.hashmaps);
        self.ledgers.extend(others.ledgers);
        for (name, other) in others.memories {
            let store = self.memories.entry(name).or_default();
            store.messages = other.messages;
            while store.most.is_some_and(|most| store.messages.len() > most) {
                store.messages.pop_front();
            }
        }
    }

    /// Forgets a store, with its scopes.
    pub(crate) fn forget(&mut self, name: &str) {
        self.hashmaps.remove(name);
        self.memories.remove(name);
        self.ledgers.remove(name);
    }

    /// Keeps those values only.
    pub(crate) fn retain_values(&mut self, stays: impl Fn(&Value) -> bool) {
        for map in self.hashmaps.values_mut() {
            if map.iter().any(|(_, value)| !stays(value)) {
                let kept = map.iter().filter(|(_, value)| stays(value));
                *map = kept
                    .map(|(key, value)| (key.as_str(), value.clone()))
                    .collect();
            }
        }
        for ledger in self.ledgers.values_mut() {
            ledger.retain_values(&stays);
        }
    }

    /// Appends to a memory; the oldest messages go when there are too many.
    pub fn append(&mut self, memory: &str, role: &str, content: &str) {
        let store = match self.memories.get_mut(memory) {
            Some(store) => store,
            None => self.memories.entry(Arc::from(memory)).or_default(),
        };
        store.messages.push_back(Message {
            role: role.to_owned(),
            content: content.to_owned(),
        });
        while store.most.is_some_and(|most| store.messages.len() > most) {
            store.messages.pop_front();
        }
    }

    /// The messages of a memory.
    pub fn messages(&self, memory: &str) -> impl ExactSizeIterator<Item = &Message> {
        static EMPTY: VecDeque<Message> = VecDeque::new();
        self.memories
            .get(memory)
            .map_or(&EMPTY, |store| &store.messages)
            .iter()
    }

    pub(crate) fn measure(&self, sizer: &mut Sizer) {
        for map in self.hashmaps.values() {
            sizer.bytes(64 * map.capacity());
            sizer.texts(map.iter().map(|(key, _)| key));
            sizer.add(map.iter().map(|(_, value)| value));
        }
        for memory in self.memories.values() {
            let bytes = memory
                .messages
                .iter()
                .map(|m| 64 + m.role.len() + m.content.len());
            sizer.bytes(bytes.sum());
        }
        for (name, ledger) in &self.ledgers {
            sizer.bytes(64 + name.len());
            ledger.measure(sizer);
        }
    }
}

pub(super) fn call_hashmap(
    context: &mut Context<'_>,
    name: &Arc<str>,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let Machine { stores, meter, .. } = &mut *context.machine;
    let store = stores.hashmaps.entry(name.clone()).or_default();
    let value = match method {
        Method::Set => {
            let key = key(argument(arguments, 0, "set")?, meter)?;
            let value = argument(arguments, 1, "set")?.clone();
            meter.ask_stored(&value, store.growth().saturating_add(key.len()))?;
            store.insert(key, value);
            Value::Nil
        }
        Method::Get => {
            let key = key(argument(arguments, 0, "get")?, meter)?;
            Value::option(store.get(&key).cloned())
        }
        Method::Has => Value::Bool(store.contains(&key(argument(arguments, 0, "has")?, meter)?)),
        Method::Delete | Method::Remove => {
            let key = key(argument(arguments, 0, "delete")?, meter)?;
            // Those behind it move up.
            meter.work(store.len() / 4)?;
            store.remove(&key);
            Value::Nil
        }
        Method::Len => int(store.len()),
        Method::IsEmpty => Value::Bool(store.is_empty()),
        Method::Keys => keys(store, meter)?,
        Method::Values => values(store, meter)?,
        Method::Clear => {
            store.clear();
            Value::Nil
        }
        Method::Query => {
            let function = argument(arguments, 0, "query")?.clone();
            // Keys and values.
            meter.copy(2 * store.len())?;
            let (keys, values) = store
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .unzip();
            return Ok(Some(Each::begin(Method::Query, function, values, keys)));
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

fn message(message: &Message) -> Value {
    Value::record(
        "Message",
        vec![
            ("role", Value::from(message.role.as_str())),
            ("content", Value::from(message.content.as_str())),
        ],
    )
}

/// Messages as an array; each is copied.
fn messages<'m>(
    all: impl ExactSizeIterator<Item = &'m Message>,
    meter: &mut Meter,
) -> Outcome<Value> {
    let mut items = Items::with_room(meter, all.len())?;
    for one in all {
        // With a shape of its own.
        let bytes = 320 + one.role.len() + one.content.len();
        items.push(message(one), bytes)?;
    }
    items.array()
}

pub(super) fn call_memory(
    context: &mut Context<'_>,
    name: &Arc<str>,
    method: Method,
    arguments: &mut [Value],
) -> Outcome<Option<Reply>> {
    let Machine { stores, meter, .. } = &mut *context.machine;
    let value = match method {
        Method::Append => {
            let role = meter.shown(argument(arguments, 0, "append")?)?;
            let message = meter.shown(argument(arguments, 1, "append")?)?;
            let size = 64 + role.len() + message.len();
            meter.ask_stored(&Value::Nil, size)?;
            meter.read(size)?;
            stores.append(name, &role, &message);
            Value::Nil
        }
        Method::Messages => messages(stores.messages(name), meter)?,
        Method::Last => {
            let count = super::count_of("last", argument(arguments, 0, "last")?)?;
            let skip = stores.messages(name).len().saturating_sub(count);
            messages(stores.messages(name).skip(skip), meter)?
        }
        Method::Len => int(stores.messages(name).len()),
        Method::IsEmpty => Value::Bool(stores.messages(name).len() == 0),
        Method::Clear => {
            if let Some(store) = stores.memories.get_mut(name) {
                store.messages.clear();
            }
            Value::Nil
        }
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}
