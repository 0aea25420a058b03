//! What the generated code of `#[tool]` calls: arguments in, whatever a function returns out.
//!
//! The attribute sees words, not types: `anyhow::Result<Weather>` and `Weather` look alike to it.
//! So the types decide, where they are known. An inherent method of `Returned<Result<T, E>>` goes
//! before the trait method for every `Returned<T>`, and one by value before one by reference; the
//! generated code writes the same call for every function and gets the right one.

use std::fmt::Display;
use std::marker::PhantomData;

use haft_core::{IntoToolOutput, ToolError, ToolOutput, output_schema_of, schema_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The parameter schema of an argument type, whose description is already the tool's.
#[must_use]
pub fn parameters_of<T: JsonSchema>(description: &str) -> Value {
    let mut schema = schema_of::<T>();
    if let Value::Object(members) = &mut schema {
        if members.get("description").and_then(Value::as_str) == Some(description) {
            members.shift_remove("description");
        }
        // A struct without fields leaves nothing to tell it from a map by; here it is one.
        let says_more = [
            "properties",
            "additionalProperties",
            "unevaluatedProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "$ref",
        ];
        let is_empty = !says_more.iter().any(|key| members.contains_key(*key));
        if is_empty && members.get("type") == Some(&json!("object")) {
            members.insert("properties".into(), json!({}));
            members.insert("additionalProperties".into(), json!(false));
        }
    }
    schema
}

/// The arguments of a tool that takes none.
#[derive(Debug, Deserialize, JsonSchema)]
// This comment is for us and not for the model.
#[schemars(description = "")]
pub struct NoArguments {}

/// Stands for a returned `T` while the types decide what to do with it.
#[derive(Debug)]
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// For a type.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "only generated code makes one")]
    pub fn new() -> Self {
        Self(PhantomData)
    }

    /// For the type of a value.
    #[must_use]
    pub fn of(_: &T) -> Self {
        Self::new()
    }
}

impl<T, E> Returned<Result<T, E>> {
    /// The value of a success; the words of a failure, with its causes where the type shows them.
    pub fn check(self, returned: Result<T, E>) -> Result<T, ToolError>
    where
        E: Display,
    {
        returned.map_err(|error| ToolError::new(format!("{error:#}")))
    }

    /// The schema of a success.
    #[must_use]
    pub fn output_schema(self) -> Value
    where
        T: JsonSchema,
    {
        output_schema_of::<T>()
    }
}

/// What is no `Result` is a success.
pub trait NoError<T> {
    /// The value.
    fn check(self, returned: T) -> Result<T, ToolError>;
}

impl<T> NoError<T> for Returned<T> {
    fn check(self, returned: T) -> Result<T, ToolError> {
        Ok(returned)
    }
}

/// The schema of what is no `Result`.
pub trait NoErrorSchema<T> {
    /// The schema.
    fn output_schema(self) -> Value
    where
        T: JsonSchema;
}

impl<T> NoErrorSchema<T> for Returned<T> {
    fn output_schema(self) -> Value
    where
        T: JsonSchema,
    {
        output_schema_of::<T>()
    }
}

impl Returned<()> {
    /// Nothing to say.
    pub fn output(self, (): ()) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::empty())
    }
}

impl Returned<ToolOutput> {
    /// The author's own output, as it is.
    pub fn output(self, output: ToolOutput) -> Result<ToolOutput, ToolError> {
        Ok(output)
    }
}

/// What serialises, also if it borrows from the context (which [`IntoToolOutput`] cannot).
pub trait SerializedOutput<T> {
    /// The output.
    fn output(self, value: T) -> Result<ToolOutput, ToolError>;
}

impl<T: Serialize> SerializedOutput<T> for Returned<T> {
    fn output(self, value: T) -> Result<ToolOutput, ToolError> {
        ToolOutput::serialized(&value)
    }
}

/// What does not serialise must say itself what comes out. By reference, so that it comes last.
pub trait CustomOutput<T> {
    /// The output.
    fn output(self, value: T) -> Result<ToolOutput, ToolError>
    where
        T: IntoToolOutput;
}

impl<T> CustomOutput<T> for &Returned<T> {
    fn output(self, value: T) -> Result<ToolOutput, ToolError>
    where
        T: IntoToolOutput,
    {
        value.into_tool_output()
    }
}
