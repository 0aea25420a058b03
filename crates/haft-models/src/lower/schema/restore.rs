//! Undoing a lowering in the arguments that a model wrote for it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Lowered;

/// Which properties were optional before a strict lowering made them nullable, place by place.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Optional {
    /// Properties whose `null` means that they are not given.
    pub(super) absent: BTreeSet<String>,
    /// Properties whose `null` is a value, in some variant at least.
    pub(super) nullable: BTreeSet<String>,
    pub(super) properties: BTreeMap<String, Optional>,
    pub(super) items: Option<Box<Optional>>,
}

impl Optional {
    pub(super) fn is_empty(&self) -> bool {
        self.absent.is_empty()
            && self.properties.values().all(Self::is_empty)
            && self.items.as_deref().is_none_or(Self::is_empty)
    }

    /// What holds if one of two variants does.
    pub(super) fn join(&mut self, other: Self) {
        self.absent.extend(other.absent);
        self.nullable.extend(other.nullable);
        for (name, optional) in other.properties {
            self.properties.entry(name).or_default().join(optional);
        }
        if let Some(items) = other.items {
            self.items.get_or_insert_default().join(*items);
        }
    }

    fn drop_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, value| {
                    let means_absent = self.absent.contains(name) && !self.nullable.contains(name);
                    !(value.is_null() && means_absent)
                });
                for (name, optional) in &self.properties {
                    if let Some(value) = members.get_mut(name) {
                        optional.drop_nulls(value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(optional) = &self.items {
                    for item in items {
                        optional.drop_nulls(item);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Lowered {
    /// Whether arguments for it mean the same without being restored.
    pub fn is_faithful(&self) -> bool {
        self.key_map.is_empty() && self.optional.is_empty()
    }

    /// The arguments as the schema before its lowering knows them: names mapped back, and each
    /// `null` dropped that stands for a property that was optional.
    ///
    /// `None` where there is nothing to restore; the text then stays as it is, byte for byte. So
    /// does text that is no JSON object, for the hydration to judge.
    pub fn restore(&self, arguments: &str) -> Option<String> {
        if self.is_faithful() {
            return None;
        }
        let before: Value = serde_json::from_str(arguments).ok()?;
        let mut after = before.clone();
        self.optional.drop_nulls(&mut after);
        if !self.key_map.is_empty() {
            map_keys(&mut after, &self.key_map);
        }
        (after != before).then(|| after.to_string())
    }
}

/// Replaces property names by what they stand for, at every depth.
///
/// ```
/// use std::collections::BTreeMap;
/// use haft_models::lower::schema::map_keys;
/// let mut arguments = serde_json::json!({"a_b": [{"a_b": 1}]});
/// map_keys(&mut arguments, &BTreeMap::from([("a_b".into(), "a b".into())]));
/// assert_eq!(arguments, serde_json::json!({"a b": [{"a b": 1}]}));
/// ```
pub fn map_keys(value: &mut Value, key_map: &BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            if members.keys().any(|name| key_map.contains_key(name)) {
                let old = std::mem::take(members);
                let map = |(name, value)| (key_map.get(&name).cloned().unwrap_or(name), value);
                *members = old.into_iter().map(map).collect::<Map<_, _>>();
            }
            members
                .values_mut()
                .for_each(|value| map_keys(value, key_map));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| map_keys(item, key_map)),
        _ => {}
    }
}
