//! The members of one object, taken out one by one, with the path to each.

use serde_json::{Map, Value};

use super::Read;
use super::forms::Form;
use crate::error::{ApiError, ErrorCode};

/// An object that is being read.
///
/// What is taken leaves a null behind, so that taking is cheap and nothing moves; null and absent
/// are the same on this wire. Objects have few members and are asked for many: they are looked
/// through, not looked up.
#[derive(Debug)]
pub(crate) struct Fields {
    path: String,
    members: Vec<(String, Value)>,
}

impl Fields {
    /// The members of a value that must be an object.
    pub(crate) fn of(value: Value, path: impl Into<String>) -> Read<Self> {
        let path = path.into();
        match value {
            Value::Object(members) => Ok(Self {
                path,
                members: members.into_iter().collect(),
            }),
            other => Err(wrong_type(&path, "an object", &other)),
        }
    }

    /// Where the object stands; empty for the body itself.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The path to a member.
    pub(crate) fn at(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Whether there is such a member, not null.
    pub(crate) fn has(&self, key: &str) -> bool {
        let mut members = self.members.iter();
        members.any(|(name, value)| name == key && !value.is_null())
    }

    fn member(&mut self, key: &str) -> Option<&mut Value> {
        let mut members = self.members.iter_mut();
        let found = members.find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    }

    /// A member as it came.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        let value = self.member(key)?.take();
        (!value.is_null()).then_some(value)
    }

    /// A member that may be missing.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "a form is made where it is used"
    )]
    pub(crate) fn get<F: Form>(&mut self, key: &str, form: F) -> Read<Option<F::Output>> {
        match self.take(key) {
            Some(value) => form.read(value, &self.at(key)).map(Some),
            None => Ok(None),
        }
    }

    /// A member that must be there.
    pub(crate) fn need<F: Form>(&mut self, key: &str, form: F) -> Read<F::Output> {
        self.get(key, form)?
            .ok_or_else(|| missing(&self.at(key), "add it"))
    }

    /// Puts a member in its place, or at the end.
    pub(crate) fn put(&mut self, key: &str, value: Value) {
        match self.member(key) {
            Some(place) => *place = value,
            None => self.members.push((key.to_owned(), value)),
        }
    }

    /// Leaves out members that only this server writes, for itself.
    pub(crate) fn forget(&mut self, is_own: impl Fn(&str) -> bool) {
        self.members.retain(|(key, _)| !is_own(key));
    }

    /// Whether there are no members but these (and null ones).
    pub(crate) fn has_only(&self, keys: &[&str]) -> bool {
        self.members
            .iter()
            .all(|(key, value)| value.is_null() || keys.contains(&key.as_str()))
    }

    /// The names of the members that were not taken and are not null.
    pub(crate) fn names_left(&self) -> impl Iterator<Item = &str> {
        let members = self.members.iter();
        let left = members.filter(|(_, value)| !value.is_null());
        left.map(|(name, _)| name.as_str())
    }

    /// What was not taken, without nulls.
    pub(crate) fn rest(self) -> Map<String, Value> {
        let members = self.members.into_iter();
        members.filter(|(_, value)| !value.is_null()).collect()
    }

    /// Everything that was not taken, nulls included.
    pub(crate) fn all(self) -> Map<String, Value> {
        self.members.into_iter().collect()
    }
}

/// A field that must be there is not.
pub(crate) fn missing(path: &str, advice: &str) -> ApiError {
    ApiError::new(
        ErrorCode::MissingRequiredParameter,
        format!("`{path}` is missing: {advice}"),
    )
    .at(path)
}

/// A field has the wrong type. The value itself is not shown: it may be long, or a secret.
pub(crate) fn wrong_type(path: &str, wanted: &str, found: &Value) -> ApiError {
    let subject = if path.is_empty() {
        String::from("the body")
    } else {
        format!("`{path}`")
    };
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let error = ApiError::new(
        ErrorCode::InvalidType,
        format!("{subject} must be {wanted}, but is {found}"),
    );
    if path.is_empty() {
        error
    } else {
        error.at(path)
    }
}

/// A field has a value that it cannot have.
pub(crate) fn invalid(path: &str, message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidValue, message).at(path)
}
