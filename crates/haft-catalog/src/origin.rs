//! Where a tool came from, for the person who has to find it.

use std::fmt;
use std::panic::Location;

use haft_core::Namespace;

/// The place where a tool was registered: a line of Rust, or what the host says.
///
/// ```
/// use haft_catalog::Origin;
/// assert_eq!(Origin::from("haft.toml, line 12").to_string(), "haft.toml, line 12");
/// assert!(Origin::here().to_string().contains(".rs:"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(Box<str>);

impl Origin {
    /// The line that calls this.
    #[track_caller]
    pub fn here() -> Self {
        Self(Location::caller().to_string().into())
    }

    /// The origin as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn within(&self, namespace: Option<&Namespace>) -> Self {
        match namespace {
            Some(namespace) => Self(format!("{self} (namespace `{namespace}`)").into()),
            None => self.clone(),
        }
    }
}

impl From<&str> for Origin {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Origin {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
