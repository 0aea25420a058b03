//! JSON Schemas as a provider accepts them.
//!
//! Providers refuse whole requests for one schema that they do not like. [`lower`] makes of a
//! schema the nearest one that a provider takes, or says why there is none. It is pure: the same
//! schema and profile give the same result. Arguments are still validated against the schema as it
//! was; [`Lowered::restore`] undoes the lowering in them first.

mod bounds;
mod flatten;
mod gemini;
mod keys;
mod merge;
mod plain;
mod prose;
mod restore;
mod strict;
mod unfold;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use prose::{MAX_TOOL_BYTES, clean_text, shorten};
use restore::Optional;
pub use restore::map_keys;

/// Whose rules a schema is lowered to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Profile {
    /// `OpenAI`, not strict.
    Openai,
    /// `OpenAI`, strict: every object closed, every property required.
    OpenaiStrict,
    /// Anthropic: property names of few characters.
    Anthropic,
    /// Gemini, as JSON Schema.
    Gemini,
    /// Gemini, in its subset of `OpenAPI`.
    GeminiOpenapi,
    /// Any other server: Ollama, vLLM, llama.cpp.
    Generic,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Openai,
        Self::OpenaiStrict,
        Self::Anthropic,
        Self::Gemini,
        Self::GeminiOpenapi,
        Self::Generic,
    ];
}

/// A schema that its provider accepts, and how to undo what was done to it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lowered {
    /// The schema.
    pub schema: Value,
    /// Property names that had to be replaced: what the model writes, and what it stands for.
    pub key_map: BTreeMap<String, String>,
    /// What was lost or changed, for whoever wonders.
    pub notes: Vec<String>,
    /// Whether the provider can be asked to follow it strictly.
    pub strict: bool,
    optional: Optional,
}

/// Why there is no such schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its schema cannot be shown to this model: {0}")]
pub struct Dropped(pub String);

impl Dropped {
    fn because(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// Lowers a parameter schema.
///
/// ```
/// use haft_models::lower::schema::{Profile, lower};
/// use serde_json::json;
/// let schema = json!({
///     "$defs": {"city": {"type": "string"}},
///     "type": "object",
///     "properties": {"from": {"$ref": "#/$defs/city"}}
/// });
/// let lowered = lower(&schema, Profile::Generic)?;
/// assert_eq!(
///     lowered.schema,
///     json!({"type": "object", "properties": {"from": {"type": "string"}}})
/// );
/// # Ok::<(), haft_models::lower::schema::Dropped>(())
/// ```
pub fn lower(schema: &Value, profile: Profile) -> Result<Lowered, Dropped> {
    bounds::check(schema)?;
    let mut notes = Vec::new();
    let mut schema = unfold::unfold(schema, &mut notes)?;
    plain::simplify(&mut schema);
    root_object(&mut schema)?;
    prose::clean(&mut schema);
    let mut lowered = Lowered {
        schema,
        notes,
        ..Lowered::default()
    };
    match profile {
        Profile::Gemini => {}
        Profile::Openai | Profile::Generic => open_form(&mut lowered),
        Profile::Anthropic => {
            flatten::root(&mut lowered.schema, &mut lowered.notes);
            lowered.key_map = keys::rename(&mut lowered.schema);
        }
        Profile::GeminiOpenapi => {
            flatten::root(&mut lowered.schema, &mut lowered.notes);
            gemini::lower(&mut lowered.schema, &mut lowered.notes);
        }
        Profile::OpenaiStrict => {
            open_form(&mut lowered);
            match strict::lower(&lowered.schema) {
                Ok((schema, optional)) => {
                    lowered.schema = schema;
                    lowered.optional = optional;
                    lowered.strict = true;
                }
                Err(reason) => lowered.notes.push(format!("not strict: {reason}")),
            }
        }
    }
    let size = lowered.schema.to_string().len();
    prose::shorten(prose::descriptions(&mut lowered.schema), size);
    Ok(lowered)
}

impl Lowered {
    /// All descriptions of the schema, to be changed.
    pub(super) fn descriptions(&mut self) -> Vec<&mut String> {
        prose::descriptions(&mut self.schema)
    }
}

fn open_form(lowered: &mut Lowered) {
    flatten::root(&mut lowered.schema, &mut lowered.notes);
    plain::complete(&mut lowered.schema);
}

/// Sees to it that the root says that it is an object, with properties.
fn root_object(schema: &mut Value) -> Result<(), Dropped> {
    if !schema.is_object() {
        *schema = json!({});
    }
    let members = schema.as_object_mut().map_or_else(Map::new, std::mem::take);
    let is_object = match members.get("type") {
        None => !members.contains_key("enum") && !members.contains_key("const"),
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(_) => false,
    };
    if !is_object {
        return Err(Dropped::because("its root is no object"));
    }
    let mut root = Map::new();
    root.insert("type".into(), json!("object"));
    let mut rest = members;
    rest.shift_remove("type");
    rest.entry("properties").or_insert_with(|| json!({}));
    root.extend(rest);
    *schema = Value::Object(root);
    Ok(())
}

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod tests;
