//! Arrays and boxes, and how values are dropped: without recursion, however deep they are nested.

use std::sync::Arc;

use super::Value;

/// Values in order.
#[derive(Debug, Clone, Default)]
pub struct Array {
    items: Vec<Value>,
}

impl Array {
    /// An array.
    pub fn new(items: Vec<Value>) -> Self {
        Self { items }
    }

    /// Its values.
    #[inline]
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// Its values, to change.
    #[inline]
    pub fn items_mut(&mut self) -> &mut Vec<Value> {
        &mut self.items
    }
}

/// A value in a value.
#[derive(Debug, Clone)]
pub struct Boxed {
    value: Value,
}

impl Boxed {
    /// A value in a box.
    pub fn new(value: Value) -> Self {
        Self { value }
    }

    /// The value.
    pub fn get(&self) -> &Value {
        &self.value
    }

    /// The value out of a shared box: moved if nobody else sees it.
    pub fn unwrap(this: Arc<Self>) -> Value {
        match Arc::try_unwrap(this) {
            Ok(mut boxed) => boxed.value.take(),
            Err(shared) => shared.value.clone(),
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if self.items.iter().any(Value::is_container) {
            drop_flat(self.items.drain(..));
        }
    }
}

impl Drop for Boxed {
    fn drop(&mut self) {
        if self.value.is_container() {
            drop_flat(std::iter::once(self.value.take()));
        }
    }
}

impl Value {
    /// Whether it may hold other values.
    pub(super) fn is_container(&self) -> bool {
        matches!(
            self,
            Self::Array(_)
                | Self::Map(_)
                | Self::Struct(_)
                | Self::Enum(_)
                | Self::Ok(_)
                | Self::Err(_)
                | Self::Some(_)
                | Self::Function(_)
                | Self::Builder(_)
        )
    }
}

/// Drops values and all that only they hold. A program can nest values as deep as memory goes; were
/// they dropped the usual way, each within the other, the stack would overflow.
pub(super) fn drop_flat(values: impl Iterator<Item = Value>) {
    let mut open: Vec<Value> = values.filter(Value::is_container).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Array(array) => {
                if let Some(mut array) = Arc::into_inner(array) {
                    open.extend(array.items.drain(..).filter(Value::is_container));
                }
            }
            Value::Ok(boxed) | Value::Err(boxed) | Value::Some(boxed) => {
                if let Some(mut boxed) = Arc::into_inner(boxed)
                    && boxed.value.is_container()
                {
                    open.push(boxed.value.take());
                }
            }
            Value::Map(map) => {
                if let Some(mut map) = Arc::into_inner(map) {
                    open.extend(map.drain().filter(Value::is_container));
                }
            }
            Value::Struct(object) => {
                if let Some(mut object) = Arc::into_inner(object) {
                    open.extend(object.drain().filter(Value::is_container));
                }
            }
            Value::Enum(object) => {
                if let Some(mut object) = Arc::into_inner(object) {
                    open.extend(object.drain().filter(Value::is_container));
                }
            }
            Value::Function(closure) => {
                if let Some(mut closure) = Arc::into_inner(closure) {
                    open.extend(closure.captures.drain(..).filter(Value::is_container));
                }
            }
            Value::Builder(builder) => {
                if let Some(mut builder) = Arc::into_inner(builder) {
                    open.extend(builder.context.take().filter(Value::is_container));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, RefKind, Reference};
    use super::*;

    #[test]
    fn builders_nested_a_million_times_are_dropped_without_overflow() {
        let agent = Arc::new(Reference {
            kind: RefKind::Agent,
            name: Arc::from("a"),
        });
        let mut value = Value::Nil;
        for _ in 0..1_000_000 {
            let mut builder = Builder::new(Arc::clone(&agent));
            builder.context = Some(value);
            value = Value::Builder(Arc::new(builder));
        }
        drop(value);
    }

    #[test]
    fn values_nested_a_million_times_are_dropped_without_overflow() {
        let mut value = Value::Nil;
        for depth in 0..1_000_000 {
            value = if depth % 2 == 0 {
                Value::array(vec![value])
            } else {
                Value::some(value)
            };
        }
        drop(value);
    }
}
