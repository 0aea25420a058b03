//! Names: what a tool is called, here and on the wire.
//!
//! A wire name is a pure function of a tool's identity. Which other tools exist, the order in which
//! servers connect and the time of day never show in it, so a conversation that is resumed next
//! week still means the same tools.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cut::cut;

/// The longest name that every provider accepts.
pub const MAX_NAME_BYTES: usize = 64;

/// How much of an over-long name is kept in front of the `_` and the 12 digits of its hash.
const HASHED_PREFIX_BYTES: usize = MAX_NAME_BYTES - 13;

/// Names that haft's own tools bear in a run. No registered tool may take one.
pub const RESERVED_NAMES: [&str; 6] = [
    "read_section",
    "pick_tools",
    "search_tools",
    "describe_tool",
    "call_tool",
    "recall_tool_result",
];

/// A text that is no legal name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Not 1 to 64 of `A-Z a-z 0-9 _ -`.
    #[error(
        "`{0}` is not a legal tool name: use 1 to 64 of the characters A-Z, a-z, 0-9, `_` and `-`"
    )]
    InvalidName(String),
    /// Not a legal namespace.
    #[error(
        "`{0}` is not a legal namespace: use at most 24 of A-Z, a-z, 0-9, `-` and single `_`, \
         starting with a letter and not ending with `_`; `haft` is reserved"
    )]
    InvalidNamespace(String),
    /// Not of the form `slug:type`.
    #[error("`{0}` is not a custom tool kind: write `slug:type`, for example `acme:ledger`")]
    InvalidKind(String),
}

/// A legal tool name: `^[A-Za-z0-9_-]{1,64}$`.
///
/// ```
/// use haft_core::ToolName;
/// assert!(ToolName::new("get_weather").is_ok());
/// assert!(ToolName::new("get weather").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(Box<str>);

impl ToolName {
    /// Takes a name that is legal as it stands.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_name_byte) {
            Ok(Self(name.into()))
        } else {
            Err(NameError::InvalidName(cut(name)))
        }
    }

    /// Makes a foreign name legal, by the name alone: `::` becomes `__`, every other illegal
    /// character `_`. Where one of the latter was replaced, or the name is too long, a short hash
    /// of the foreign name keeps two different names apart.
    ///
    /// ```
    /// use haft_core::ToolName;
    /// assert_eq!(ToolName::import("Calculator::add").as_str(), "Calculator__add");
    /// assert_ne!(ToolName::import("a.b"), ToolName::import("a/b"));
    /// ```
    pub fn import(foreign: &str) -> Self {
        let joined = foreign.replace("::", "__");
        let legal = sanitise(&joined);
        if legal == joined && (1..=MAX_NAME_BYTES).contains(&legal.len()) {
            Self(legal.into())
        } else {
            Self::hashed(&legal, &[foreign.as_bytes()])
        }
    }

    /// The name of a tool in a namespace (or of an MCP server's tool, with the server's label):
    /// `namespace__name`, with a short hash where the plain form would be illegal, too long or
    /// not reversible.
    ///
    /// ```
    /// use haft_core::{Namespace, ToolName};
    /// let files = Namespace::new("files").unwrap();
    /// assert_eq!(ToolName::in_namespace(&files, "read").as_str(), "files__read");
    /// assert_eq!(ToolName::in_namespace(&files, "read.all").as_str().len(), "files__read_all".len() + 13);
    /// ```
    pub fn in_namespace(namespace: &Namespace, raw: &str) -> Self {
        let legal = sanitise(raw);
        let candidate = format!("{namespace}__{legal}");
        if legal == raw && !raw.is_empty() && candidate.len() <= MAX_NAME_BYTES {
            Self(candidate.into())
        } else {
            Self::in_namespace_hashed(namespace, raw)
        }
    }

    /// The form that [`in_namespace`](Self::in_namespace) takes when its plain form is not to be
    /// had: also used where the plain form already belongs to another tool.
    pub fn in_namespace_hashed(namespace: &Namespace, raw: &str) -> Self {
        let candidate = format!("{namespace}__{}", sanitise(raw));
        Self::hashed(
            &candidate,
            &[namespace.as_str().as_bytes(), b"\0", raw.as_bytes()],
        )
    }

    fn hashed(legal: &str, identity: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in identity {
            hash.update(part);
        }
        // `sanitise` leaves ASCII only, so any byte is a character boundary.
        let prefix = &legal[..legal.len().min(HASHED_PREFIX_BYTES)];
        let digits = hex(&hash.finalize()[..6]);
        Self(format!("{prefix}_{digits}").into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the name of one of haft's own tools.
    pub fn is_reserved(&self) -> bool {
        RESERVED_NAMES.contains(&self.as_str())
    }
}

/// A group of tools that share a prefix: `^[A-Za-z][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*$`, at most 24.
///
/// Without a double or a final underscore `namespace__tool` splits one way only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Namespace(Box<str>);

impl Namespace {
    /// The longest namespace.
    pub const MAX_BYTES: usize = 24;

    /// Takes a namespace that is legal as it stands.
    ///
    /// ```
    /// use haft_core::Namespace;
    /// assert!(Namespace::new("file-system").is_ok());
    /// assert!(Namespace::new("file__system").is_err());
    /// ```
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        let legal = (1..=Self::MAX_BYTES).contains(&name.len())
            && name.bytes().all(is_name_byte)
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.split('_').all(|part| !part.is_empty())
            && name != "haft";
        if legal {
            Ok(Self(name.into()))
        } else {
            Err(NameError::InvalidNamespace(cut(name)))
        }
    }

    /// The namespace as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! text_newtype {
    ($type:ident) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl TryFrom<String> for $type {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
        impl TryFrom<&str> for $type {
            type Error = NameError;
            fn try_from(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0.into()
            }
        }
    };
}

text_newtype!(ToolName);
text_newtype!(Namespace);

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn sanitise(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_1_to_64_legal_characters() {
        assert!(ToolName::new("a").is_ok());
        assert!(ToolName::new("x".repeat(64)).is_ok());
        for bad in ["", "a b", "ä", "a.b", &"x".repeat(65)] {
            assert!(ToolName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_error_shows_a_bounded_part_of_a_foreign_name() {
        let error = ToolName::new("é".repeat(10_000)).unwrap_err();
        assert!(error.to_string().len() < 400);
    }

    #[test]
    fn an_imported_name_keeps_double_colons_readable() {
        assert_eq!(
            ToolName::import("Calculator::add").as_str(),
            "Calculator__add"
        );
    }

    #[test]
    fn an_imported_name_that_lost_a_character_carries_a_hash() {
        let name = ToolName::import("weather.get");
        assert_eq!(name.as_str().len(), "weather_get".len() + 13);
        assert!(name.as_str().starts_with("weather_get_"));
        assert_eq!(name, ToolName::import("weather.get"));
    }

    #[test]
    fn an_over_long_name_keeps_51_bytes_and_a_hash() {
        let long = "x".repeat(65);
        let name = ToolName::import(&long);
        assert_eq!(name.as_str().len(), 64);
        assert_eq!(&name.as_str()[..52], format!("{}_", "x".repeat(51)));
        assert_ne!(name, ToolName::import(&"x".repeat(66)));
    }

    #[test]
    fn an_empty_foreign_name_still_gets_a_legal_one() {
        let name = ToolName::import("");
        assert!(ToolName::new(name.as_str()).is_ok());
    }

    #[test]
    fn a_namespace_splits_from_its_tool_one_way_only() {
        for bad in ["", "1a", "_a", "a_", "a__b", "haft", "a.b", &"x".repeat(25)] {
            assert!(Namespace::new(bad).is_err(), "{bad}");
        }
        assert!(Namespace::new("my_server-2").is_ok());
    }

    #[test]
    fn names_are_the_same_in_every_release() {
        let files = Namespace::new("files").unwrap();
        assert_eq!(ToolName::import("a.b").as_str(), "a_b_2e7336dc8eba");
        assert_eq!(
            ToolName::in_namespace(&files, "a.b").as_str(),
            "files__a_b_386a2e7dd9a0"
        );
    }

    #[test]
    fn the_hashed_form_differs_from_the_plain_one() {
        let files = Namespace::new("files").unwrap();
        let plain = ToolName::in_namespace(&files, "read");
        let hashed = ToolName::in_namespace_hashed(&files, "read");
        assert_eq!(plain.as_str(), "files__read");
        assert!(hashed.as_str().starts_with("files__read_"));
        assert_ne!(plain, hashed);
    }
}
