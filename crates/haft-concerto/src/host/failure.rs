//! How a program ended before its end.

use std::fmt;

use super::Place;

/// How a program ended before its end. Its display form is what stands behind `runtime error: `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFailure {
    /// What happened.
    pub text: String,
    /// Where.
    pub place: Option<Place>,
    /// Whether the host was told to stop ([`Host::cancel`](super::Host::cancel)).
    pub is_cancelled: bool,
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for RunFailure {}
