//! Finding equal values among many without comparing each with each.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

use super::{Value, equal};
use crate::vm::{Meter, Outcome};

/// How many parts of a value decide its hash, from the innermost that count to the outermost: equal
/// values must have equal hashes, unequal ones need not differ.
const PARTS: [usize; 5] = [0, 4, 8, 16, 64];

/// Keys come from models and servers: the hash is seeded anew in each process.
type State = foldhash::fast::RandomState;

/// Values of which no two are equal, in the order they were put in.
#[derive(Default)]
pub(crate) struct Unique {
    items: Vec<Value>,
    places: HashMap<u64, Vec<u32>, State>,
    state: State,
}

impl Unique {
    /// All of these, but of equal ones only the first.
    pub(crate) fn of<'v>(
        values: impl IntoIterator<Item = &'v Value>,
        meter: &mut Meter,
    ) -> Outcome<Self> {
        let mut unique = Self::default();
        for value in values {
            unique.add(value, meter)?;
        }
        Ok(unique)
    }

    fn add(&mut self, value: &Value, meter: &mut Meter) -> Outcome<()> {
        let hash = self.hash(value, meter)?;
        if self.find(hash, value, meter)? {
            return Ok(());
        }
        // The value, and its place in the table.
        meter.ask(if self.items.len() == self.items.capacity() {
            64 + 96 * self.items.len()
        } else {
            0
        })?;
        // More than the limit of memory allows does not fit.
        let place = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.places.entry(hash).or_default().push(place);
        self.items.push(value.clone());
        Ok(())
    }

    /// Whether an equal value is there.
    pub(crate) fn contains(&self, value: &Value, meter: &mut Meter) -> Outcome<bool> {
        let hash = self.hash(value, meter)?;
        self.find(hash, value, meter)
    }

    pub(crate) fn into_items(self) -> Vec<Value> {
        self.items
    }

    fn find(&self, hash: u64, value: &Value, meter: &mut Meter) -> Outcome<bool> {
        for place in self.places.get(&hash).into_iter().flatten() {
            if equal(&self.items[*place as usize], value, meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn hash(&self, value: &Value, meter: &mut Meter) -> Outcome<u64> {
        let mut work = 8;
        let hash = self.hash_to(value, PARTS.len() - 1, &mut work);
        meter.work(work)?;
        Ok(hash)
    }

    /// The hash of a value down to a depth.
    fn hash_to(&self, value: &Value, depth: usize, work: &mut usize) -> u64 {
        *work += 2;
        let mut hasher = self.state.build_hasher();
        match value {
            // Ints and Floats may be equal.
            Value::Int(number) => (1, number).hash(&mut hasher),
            Value::Float(number) => hash_float(*number, &mut hasher),
            Value::Bool(value) => (2, value).hash(&mut hasher),
            Value::Text(text) => {
                *work += text.len() / 16;
                (3, text.as_bytes()).hash(&mut hasher);
            }
            Value::Array(array) => self.hash_list(4, array.items(), depth, &mut hasher, work),
            Value::Map(map) => {
                let parts = map.iter().map(|(key, value)| (key.as_str(), value));
                (5, map.len()).hash(&mut hasher);
                self.hash_members(parts, map.len(), depth, &mut hasher, work);
            }
            Value::Struct(object) => {
                let count = object.fields().count();
                let parts = object.fields().map(|(name, value)| (&**name, value));
                (6, &object.def().name, count).hash(&mut hasher);
                self.hash_members(parts, count, depth, &mut hasher, work);
            }
            Value::Enum(object) => {
                object.def().name.hash(&mut hasher);
                self.hash_list(7, object.values(), depth, &mut hasher, work);
            }
            Value::Ok(inner) => self.hash_list(8, one(inner.get()), depth, &mut hasher, work),
            Value::Err(inner) => self.hash_list(9, one(inner.get()), depth, &mut hasher, work),
            Value::Some(inner) => self.hash_list(10, one(inner.get()), depth, &mut hasher, work),
            Value::Range(range) => {
                (11, range.from, range.to, range.inclusive).hash(&mut hasher);
            }
            Value::Function(closure) => (12, closure.function).hash(&mut hasher),
            Value::Ref(reference) => (13, reference.kind, &reference.name).hash(&mut hasher),
            Value::Native(native) => (14, native.name).hash(&mut hasher),
            Value::Nil => 15.hash(&mut hasher),
            Value::None => 16.hash(&mut hasher),
            Value::Builder(_) | Value::Iter(_) | Value::Absent => 17.hash(&mut hasher),
        }
        hasher.finish()
    }

    fn hash_list(
        &self,
        tag: u8,
        items: &[Value],
        depth: usize,
        hasher: &mut impl Hasher,
        work: &mut usize,
    ) {
        (tag, items.len()).hash(hasher);
        // Long lists are often the same at their beginning.
        let first = items.len().min(PARTS[depth]);
        let (first, rest) = items.split_at(first);
        let last = &rest[rest.len() - rest.len().min(PARTS[depth] / 8)..];
        for item in first.iter().chain(last) {
            self.hash_to(item, depth - 1, work).hash(hasher);
        }
    }

    /// The order of members does not matter, so that either all count or none.
    fn hash_members<'v>(
        &self,
        members: impl Iterator<Item = (&'v str, &'v Value)>,
        count: usize,
        depth: usize,
        hasher: &mut impl Hasher,
        work: &mut usize,
    ) {
        if count > PARTS[depth] {
            return;
        }
        let mut sum = 0_u64;
        for (name, value) in members {
            *work += name.len() / 16;
            let member = (name, self.hash_to(value, depth - 1, work));
            sum = sum.wrapping_add(self.state.hash_one(member));
        }
        sum.hash(hasher);
    }
}

fn one(value: &Value) -> &[Value] {
    std::slice::from_ref(value)
}

/// A Float that equals an Int has the Int's hash.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp
)]
fn hash_float(number: f64, hasher: &mut impl Hasher) {
    // Saturates: what is out of range does not come back as itself, or is equal to no Int.
    let whole = number as i64;
    if whole as f64 == number {
        (1, whole).hash(hasher);
    } else if number.is_nan() {
        18.hash(hasher);
    } else {
        (19, number.to_bits()).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Map;
    use crate::vm::{Canceller, Limits};

    fn values() -> Vec<Value> {
        let map = |entries: &[(&str, i64)]| {
            let entries = entries
                .iter()
                .map(|(key, value)| (*key, Value::Int(*value)));
            Value::map(entries.collect::<Map>())
        };
        let mut all = vec![
            Value::Nil,
            Value::None,
            Value::Bool(true),
            Value::Int(0),
            Value::Float(0.0),
            Value::Float(-0.0),
            Value::Int(1),
            Value::Float(1.0),
            Value::Float(1.5),
            Value::Float(f64::NAN),
            Value::Int(i64::MAX),
            Value::Float(9_223_372_036_854_775_807.0),
            Value::Int(1 << 53),
            Value::Int((1 << 53) + 1),
            Value::Float(9_007_199_254_740_992.0),
            Value::from("1"),
            map(&[("a", 1), ("b", 2)]),
            map(&[("b", 2), ("a", 1)]),
            map(&[("a", 1)]),
            Value::record("P", vec![("x", Value::Int(1)), ("y", Value::Int(2))]),
            Value::record("P", vec![("y", Value::Float(2.0)), ("x", Value::Int(1))]),
            Value::record("Q", vec![("x", Value::Int(1)), ("y", Value::Int(2))]),
        ];
        let boxed: Vec<Value> = all.iter().cloned().map(Value::some).collect();
        let lists: Vec<Value> = all
            .iter()
            .map(|it| Value::array(vec![it.clone()]))
            .collect();
        all.extend(boxed);
        all.extend(lists.iter().cloned());
        all.extend(lists);
        all
    }

    #[test]
    fn what_is_unique_is_what_comparing_each_with_each_gives() {
        let all = values();
        let mut expected: Vec<Value> = Vec::new();
        for value in &all {
            if !expected.contains(value) {
                expected.push(value.clone());
            }
        }
        let mut meter = Meter::new(&Limits::default(), Canceller::default());
        let unique = Unique::of(&all, &mut meter).expect("it fits");
        let shown = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&unique.items), shown(&expected));
        for value in &all {
            let contains = unique.contains(value, &mut meter).expect("it fits");
            assert_eq!(contains, expected.contains(value), "{value}");
        }
    }
}
