//! How much of a section is shown.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much of a section its author or a conversation wants to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Its body, its tools, its children.
    #[default]
    Full,
    /// Its summary, and how to read the rest.
    Summary,
}

impl fmt::Display for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Summary => "summary",
        })
    }
}

impl FromStr for Visibility {
    type Err = UnknownVisibility;

    fn from_str(word: &str) -> Result<Self, UnknownVisibility> {
        match word {
            "full" => Ok(Self::Full),
            "summary" => Ok(Self::Summary),
            _ => Err(UnknownVisibility(haft_core::cut(word))),
        }
    }
}

/// A word that is neither of the two.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no visibility: write `full` or `summary`")]
pub struct UnknownVisibility(String);

/// What became of a section in one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionState {
    /// It or one above it is switched off.
    Disabled,
    /// It is inside a summarized section, and was not opened.
    Hidden,
    /// Its summary is there.
    Summarized,
    /// Its content is there.
    Shown,
}

impl fmt::Display for SectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "disabled",
            Self::Hidden => "hidden",
            Self::Summarized => "summarized",
            Self::Shown => "shown",
        })
    }
}
