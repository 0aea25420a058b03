//! What an author says about a tool beside its schema.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cut::cut;
use crate::definition_error::DefinitionError;
use crate::name::ToolName;

/// Whether a tool is held back until somebody searches for it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Defer {
    /// Where there are too many tools for the model's context.
    #[default]
    Auto,
    /// From the beginning, however few there are.
    Always,
    /// Never: it is in every request.
    Never,
}

impl Defer {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde's skip_serializing_if asks for"
    )]
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Hints for policies, selection and display. None of them opens a gate by itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an independent hint with a name of its own on the wire"
)]
pub struct Annotations {
    /// A title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// One line for lists, at most 120 characters; taken from the description if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// Words to filter and search by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// `Some(false)` keeps the tool out of request-time selection unless unsafe tools are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<bool>,
    /// The tool changes nothing.
    #[serde(skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// The tool may destroy something.
    #[serde(skip_serializing_if = "is_false")]
    pub destructive: bool,
    /// Calling it twice does no more than calling it once.
    #[serde(skip_serializing_if = "is_false")]
    pub idempotent: bool,
    /// It reaches out of this system.
    #[serde(skip_serializing_if = "is_false")]
    pub open_world: bool,
    /// No other call of the same turn may run beside it.
    #[serde(skip_serializing_if = "is_false")]
    pub sequential: bool,
    /// Its result changes by itself, so equal calls in a row are meant.
    #[serde(skip_serializing_if = "is_false")]
    pub polling: bool,
    /// The longest a call may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Who may be offered the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The foreign name that an imported tool had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Calls that show how the tool is used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// Tools whose results this one needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<ToolName>,
    /// Whether it is held back until somebody searches for it.
    #[serde(skip_serializing_if = "Defer::is_auto")]
    pub defer: Defer,
    /// Free metadata; every key starts with `x-`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One call of a tool, for the prompt and the documentation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The arguments.
    pub input: Value,
    /// What came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl Annotations {
    /// The longest brief, in characters.
    pub const MAX_BRIEF_CHARS: usize = 120;

    pub(crate) fn check(&self) -> Result<(), DefinitionError> {
        if let Some(key) = self.extra.keys().find(|key| !key.starts_with("x-")) {
            return Err(DefinitionError::UnknownKey {
                place: "annotations",
                key: cut(key),
            });
        }
        if let Some(brief) = &self.brief {
            let chars = brief.chars().count();
            if chars > Self::MAX_BRIEF_CHARS {
                return Err(DefinitionError::BriefTooLong { chars });
            }
            if brief.contains(['\n', '\r']) {
                return Err(DefinitionError::BriefNotOneLine);
            }
        }
        if self.timeout_ms == Some(0) {
            return Err(DefinitionError::ZeroTimeout);
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde's skip_serializing_if asks for"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}
