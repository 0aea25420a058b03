//! Structs and enums.

use std::sync::Arc;

use super::Value;
use super::array::drop_flat;

/// The shape of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructDef {
    /// Its name, which is what `typeof` gives.
    pub name: Arc<str>,
    /// Its fields in the order they are shown.
    pub fields: Vec<Arc<str>>,
    /// Whether the field of the same place may be absent.
    pub optional: Vec<bool>,
}

impl StructDef {
    /// A shape without optional fields.
    pub fn new(name: &str, fields: Vec<Arc<str>>) -> Self {
        Self {
            name: Arc::from(name),
            optional: vec![false; fields.len()],
            fields,
        }
    }

    /// The place of a field.
    #[inline]
    pub fn place(&self, name: &Arc<str>) -> Option<usize> {
        // Names in a loaded program are shared, so that the addresses mostly decide.
        self.fields
            .iter()
            .position(|field| Arc::ptr_eq(field, name))
            .or_else(|| self.place_of(name))
    }

    /// The place of a field, by text.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| **field == *name)
    }
}

/// Named fields.
#[derive(Debug, Clone)]
pub struct Struct {
    def: Arc<StructDef>,
    values: Vec<Value>,
}

impl Struct {
    /// A struct whose values are in the order of its shape; [`Value::Absent`] for those that are not
    /// there.
    pub fn new(def: Arc<StructDef>, mut values: Vec<Value>) -> Self {
        values.resize(def.fields.len(), Value::Absent);
        Self { def, values }
    }

    /// Its shape.
    #[inline]
    pub fn def(&self) -> &Arc<StructDef> {
        &self.def
    }

    /// Its values in the order of its shape.
    #[inline]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Its values, to change.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [Value] {
        &mut self.values
    }

    /// A field by name, if it is there.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let value = self.values.get(self.def.place_of(name)?)?;
        (!matches!(value, Value::Absent)).then_some(value)
    }

    /// Names and values of the fields that are there.
    pub fn fields(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.def
            .fields
            .iter()
            .zip(&self.values)
            .filter(|(_, value)| !matches!(value, Value::Absent))
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Value> + '_ {
        self.values.drain(..)
    }
}

impl Drop for Struct {
    fn drop(&mut self) {
        if self.values.iter().any(Value::is_container) {
            drop_flat(self.values.drain(..));
        }
    }
}

/// The shape of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantDef {
    /// The enum's name, which is what `typeof` gives.
    pub type_name: Arc<str>,
    /// The variant's name.
    pub name: Arc<str>,
    /// Names of its values; none if they go by place.
    pub fields: Vec<Arc<str>>,
}

/// One variant of several.
#[derive(Debug, Clone)]
pub struct Enum {
    def: Arc<VariantDef>,
    values: Vec<Value>,
}

impl Enum {
    /// A variant with its values.
    pub fn new(def: Arc<VariantDef>, values: Vec<Value>) -> Self {
        Self { def, values }
    }

    /// Its shape.
    pub fn def(&self) -> &Arc<VariantDef> {
        &self.def
    }

    /// Its values.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Its values, to change.
    pub fn values_mut(&mut self) -> &mut [Value] {
        &mut self.values
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Value> + '_ {
        self.values.drain(..)
    }
}

impl Drop for Enum {
    fn drop(&mut self) {
        if self.values.iter().any(Value::is_container) {
            drop_flat(self.values.drain(..));
        }
    }
}
