//! How much memory values hold, for the limit.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Map, Text, Value};
use crate::vm::Iter;

/// Adds up what values hold; what is shared counts once.
#[derive(Debug, Default)]
pub struct Sizer {
    seen: HashSet<usize>,
    total: usize,
    /// How many values were looked at.
    looks: usize,
}

impl Sizer {
    /// The sum so far, in bytes.
    pub fn total(&self) -> usize {
        self.total
    }

    /// How many values were looked at, those that hold nothing aside.
    pub(crate) fn looks(&self) -> usize {
        self.looks
    }

    /// Adds values and all that they hold.
    pub fn add<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) {
        let mut open: Vec<&Value> = Vec::new();
        for value in values {
            self.one(value, &mut open);
            while let Some(value) = open.pop() {
                self.one(value, &mut open);
            }
        }
    }

    /// Adds texts that are no values.
    pub(crate) fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a Text>) {
        for (place, size) in texts.into_iter().filter_map(Text::heap) {
            self.first(place as usize, size);
        }
    }

    /// Adds bytes that are not behind a value.
    pub fn bytes(&mut self, bytes: usize) {
        self.total = self.total.saturating_add(bytes);
    }

    #[allow(clippy::collapsible_match)] // the test adds what it tests
    fn one<'a>(&mut self, value: &'a Value, open: &mut Vec<&'a Value>) {
        self.looks += 1;
        match value {
            Value::Text(text) => {
                if let Some((place, size)) = text.heap() {
                    self.first(place as usize, size);
                }
            }
            Value::Array(array) => {
                if self.shared(array, 40 + 16 * array.items().len()) {
                    self.list(array.items(), open);
                }
            }
            Value::Map(map) => self.map(map, open),
            Value::Struct(object) => {
                if self.shared(object, 48 + 16 * object.values().len()) {
                    self.list(object.values(), open);
                }
            }
            Value::Enum(object) => {
                if self.shared(object, 48 + 16 * object.values().len()) {
                    self.list(object.values(), open);
                }
            }
            Value::Ok(inner) | Value::Err(inner) | Value::Some(inner) => {
                if self.shared(inner, 32) {
                    open.push(inner.get());
                }
            }
            Value::Function(closure) => {
                if self.shared(closure, 64 + 16 * closure.captures.len()) {
                    self.list(&closure.captures, open);
                }
            }
            Value::Ref(reference) => {
                self.shared(reference, 48 + reference.name.len());
            }
            Value::Builder(builder) => {
                if self.shared(builder, 96 + 8 * builder.tools.len()) {
                    open.extend(&builder.context);
                }
            }
            Value::Iter(iter) => {
                self.bytes(48);
                self.course(iter, open);
            }
            _ => {}
        }
    }

    /// What a loop goes over, which may be nobody else's any more.
    fn course<'a>(&mut self, iter: &'a Iter, open: &mut Vec<&'a Value>) {
        match iter {
            Iter::Range(..) => {}
            Iter::Array(array, _) => {
                if self.shared(array, 40 + 16 * array.items().len()) {
                    self.list(array.items(), open);
                }
            }
            Iter::Map(map, _) => self.map(map, open),
            Iter::Text(text, _) => {
                if let Some((place, size)) = text.heap() {
                    self.first(place as usize, size);
                }
            }
        }
    }

    fn map<'a>(&mut self, map: &'a Arc<Map>, open: &mut Vec<&'a Value>) {
        if self.shared(map, 80 + 48 * map.capacity()) {
            for (key, value) in map.iter() {
                if let Some((place, size)) = key.heap() {
                    self.first(place as usize, size);
                }
                open.push(value);
            }
        }
    }

    /// What is flat is added at once: the list of open values grows only with what is nested.
    fn list<'a>(&mut self, values: &'a [Value], open: &mut Vec<&'a Value>) {
        for value in values {
            match value {
                Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
                Value::Text(_) => self.one(value, open),
                _ => open.push(value),
            }
        }
    }

    /// Adds what is behind a count; false if it was added before.
    fn shared<T>(&mut self, value: &Arc<T>, size: usize) -> bool {
        if Arc::strong_count(value) == 1 {
            self.bytes(size);
            true
        } else {
            self.first(Arc::as_ptr(value).cast::<u8>() as usize, size)
        }
    }

    fn first(&mut self, place: usize, size: usize) -> bool {
        let new = self.seen.insert(place);
        if new {
            self.bytes(size);
        }
        new
    }
}
