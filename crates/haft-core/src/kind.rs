//! Where a tool runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cut::cut;
use crate::name::NameError;

/// Who executes a tool's calls.
///
/// The kind is part of the Rust definition and never of its JSON or fingerprint: the model and the
/// provider have no business with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ToolKind {
    /// The caller: the call is handed back and the run waits for its output.
    #[default]
    Function,
    /// An MCP server.
    Mcp,
    /// This process.
    Internal,
    /// A provider's own kind, `slug:type`.
    Custom(CustomKind),
}

/// A provider-prefixed kind such as `acme:ledger`.
///
/// ```
/// use haft_core::CustomKind;
/// let kind = CustomKind::new("acme:ledger").unwrap();
/// assert_eq!((kind.slug(), kind.kind()), ("acme", "ledger"));
/// assert!(CustomKind::new("ledger").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CustomKind {
    text: Box<str>,
    colon: usize,
}

impl CustomKind {
    /// Reads `slug:type`; both parts are lower-case letters, digits, `_` and `-`.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let is_part = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| {
                    byte.is_ascii_lowercase()
                        || byte.is_ascii_digit()
                        || byte == b'_'
                        || byte == b'-'
                })
        };
        match text.split_once(':') {
            Some((slug, kind)) if is_part(slug) && is_part(kind) && text.len() <= 64 => Ok(Self {
                text: text.into(),
                colon: slug.len(),
            }),
            _ => Err(NameError::InvalidKind(cut(text))),
        }
    }

    /// The part before the colon: whose kind it is.
    pub fn slug(&self) -> &str {
        &self.text[..self.colon]
    }

    /// The part behind the colon.
    pub fn kind(&self) -> &str {
        &self.text[self.colon + 1..]
    }
}

impl fmt::Display for CustomKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for ToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function => f.write_str("function"),
            Self::Mcp => f.write_str("mcp"),
            Self::Internal => f.write_str("internal"),
            Self::Custom(kind) => kind.fmt(f),
        }
    }
}

impl FromStr for ToolKind {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Ok(match text {
            "function" => Self::Function,
            "mcp" => Self::Mcp,
            "internal" => Self::Internal,
            custom => Self::Custom(CustomKind::new(custom)?),
        })
    }
}

/// For records of calls; a definition's JSON never has it.
impl Serialize for ToolKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ToolKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_kind_has_a_slug_and_a_type() {
        for bad in ["", ":", "a:", ":b", "a:b:c", "A:b", "a b:c"] {
            assert!(CustomKind::new(bad).is_err(), "{bad}");
        }
        assert_eq!(
            ToolKind::Custom(CustomKind::new("acme:ledger").unwrap()).to_string(),
            "acme:ledger"
        );
    }
}
