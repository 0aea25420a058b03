//! What goes wrong with prompts.

use haft_core::{DefinitionError, ToolName, cut};

use super::template::TextPart;
use super::tree::MAX_DEPTH;

/// Why a prompt could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// The prompt's own namespace or key.
    #[error(
        "`{name}` is not a prompt's name: namespace and key are 1 to 64 of a-z, 0-9, `_` and `-`, \
         the first a letter or a digit"
    )]
    InvalidName {
        /// Both, with a stroke between them.
        name: String,
    },
    /// A section's key.
    #[error("{}", invalid_key(key))]
    InvalidSectionKey {
        /// The key as given.
        key: String,
    },
    /// Two siblings with one key.
    #[error("there are two sections `{path}`: give one of them another key")]
    DuplicateSection {
        /// Their path.
        path: String,
    },
    /// A title that is none.
    #[error("the title of section `{path}` {problem}: use 1 to 120 characters on one line")]
    InvalidTitle {
        /// The section.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A section inside too many others.
    #[error("section `{path}` is nested too deeply: at most {MAX_DEPTH} others may be around it")]
    TooDeep {
        /// The section.
        path: String,
    },
    /// Always a summary, and none is there.
    #[error("section `{path}` is to be shown as a summary and has none: give it one")]
    MissingSummary {
        /// The section.
        path: String,
    },
    /// A text with something that looks like a placeholder.
    #[error("the {part} of section `{path}`, {error}")]
    InvalidTemplate {
        /// The section.
        path: String,
        /// Which of its texts.
        part: TextPart,
        /// What is wrong, and where.
        error: TemplateError,
    },
    /// The same tool twice, or two tools with one name. It does not matter whether both are ever
    /// shown.
    #[error(
        "tool `{name}` is in section `{first}` and again in section `{second}`: take one out, or \
         rename it"
    )]
    DuplicateTool {
        /// The name.
        name: ToolName,
        /// The path of the section that comes first.
        first: String,
        /// The path of the other one, which may be the same.
        second: String,
    },
    /// The name of one of haft's own tools.
    #[error("tool `{name}` of section `{path}` has the name of one of haft's own tools: rename it")]
    ReservedName {
        /// The name.
        name: ToolName,
        /// The section.
        path: String,
    },
    /// The types or the JSON of a tool make no definition.
    #[error("a tool of section `{path}` cannot be used: {error}")]
    InvalidTool {
        /// The section.
        path: String,
        /// Why.
        error: DefinitionError,
    },
}

/// The text of the reference for a wrong character; the other rules have words of their own.
fn invalid_key(key: &str) -> String {
    let legal = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-');
    let rule = if key.chars().all(legal) {
        "use 1 to 64 characters, the first a letter or a digit"
    } else {
        "only [a-z0-9_-] is allowed"
    };
    format!("Invalid section key '{}': {rule}", cut(key))
}

/// A dollar sign that begins no placeholder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: `{text}` is no placeholder: write `$name` or `${{name}}`, or write `$$` for a \
     dollar sign"
)]
pub struct TemplateError {
    /// The line of the text as it was given, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
}

impl TemplateError {
    pub(super) fn new(line: usize, rest: &str) -> Self {
        let rest_of_line = rest.lines().next().unwrap_or_default();
        Self {
            line,
            text: cut(rest_of_line),
        }
    }
}

/// Why a prompt could not be rendered. Nothing of it may be sent then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// Nothing is given for a placeholder.
    #[error(
        "the {part} of section `{path}` has a placeholder `${name}` and there is no parameter \
         `{name}`: give it, or write `$$` for a dollar sign"
    )]
    UnknownPlaceholder {
        /// The section.
        path: String,
        /// Which of its texts.
        part: TextPart,
        /// The name.
        name: String,
    },
    /// A summary is asked for and none is there.
    #[error(
        "section `{path}` is to be shown as a summary and has none: give it one, or show it in \
         full"
    )]
    MissingSummary {
        /// The section.
        path: String,
    },
    /// A predicate failed.
    #[error("what decides about section `{path}` panicked: {reason}")]
    Panicked {
        /// The section.
        path: String,
        /// What the panic said.
        reason: String,
    },
}
