//! Why a definition cannot be built.

use crate::name::NameError;

/// Why a definition could not be built. Each says what the author has to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name is not legal.
    #[error(transparent)]
    InvalidName(#[from] NameError),
    /// No schema and no opt-in.
    #[error(
        "tool '{tool}' has no parameter schema; add one or set allowNoSchema with a noSchemaMode"
    )]
    MissingSchema {
        /// The tool.
        tool: String,
    },
    /// The schema cannot be used.
    #[error("tool `{tool}` has an invalid schema: {reason}")]
    InvalidSchema {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// The schema refers to something outside itself, which is never fetched.
    #[error(
        "tool `{tool}` refers to `{reference}`, which is outside its schema and is never fetched: \
         copy it into `$defs` and refer to it with `#/$defs/…`"
    )]
    RemoteRef {
        /// The tool.
        tool: String,
        /// The reference as written.
        reference: String,
    },
    /// `allowNoSchema` without saying what is then allowed.
    #[error(
        "tool `{tool}` sets allowNoSchema without a noSchemaMode: add `read-only`, \
         `human-approval` or `full`"
    )]
    NoSchemaModeMissing {
        /// The tool.
        tool: String,
    },
    /// A schema and the opt-out of one.
    #[error("tool `{tool}` has a parameter schema and also opts out of one: remove either")]
    NoSchemaConflict {
        /// The tool.
        tool: String,
    },
    /// The description is too long.
    #[error("the description of tool `{tool}` has {chars} characters, more than 4096: shorten it")]
    DescriptionTooLong {
        /// The tool.
        tool: String,
        /// Its length.
        chars: usize,
    },
    /// The brief is too long.
    #[error("the brief has {chars} characters, more than 120: shorten it")]
    BriefTooLong {
        /// Its length.
        chars: usize,
    },
    /// The brief has several lines.
    #[error("the brief has more than one line: a brief is one line")]
    BriefNotOneLine,
    /// A timeout of nothing.
    #[error("timeout_ms is 0: leave it out for the default, or give at least 1")]
    ZeroTimeout,
    /// A key that nobody knows, in JSON input.
    #[error(
        "unknown key `{key}` in {place}: the schema goes under `parameters`, free metadata into \
         `annotations` under `x-…`"
    )]
    UnknownKey {
        /// Where it stands.
        place: &'static str,
        /// The key.
        key: String,
    },
    /// JSON input that is no definition.
    #[error("this is no tool definition: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
}
