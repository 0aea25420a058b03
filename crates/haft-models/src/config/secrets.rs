//! Where an entry's secrets are.

use std::fmt;
use std::io::Read as _;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ConfigError, Lookup, ModelConfig};
use crate::http::Secret;

/// How long a key in a file may be.
const MAX_KEY_BYTES: u64 = 16 * 1024;

/// The value of a header, or the variable that holds it.
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HeaderSource {
    /// The value itself, which should be no secret.
    Value(String),
    /// The variable that holds the value.
    Variable {
        /// Its name.
        env: String,
    },
}

impl fmt::Debug for HeaderSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // It should be none, but who knows.
            Self::Value(_) => f.write_str("Value"),
            Self::Variable { env } => write!(f, "Variable({env})"),
        }
    }
}

impl HeaderSource {
    pub(super) fn read(&self, variables: Lookup<'_>) -> Result<Secret, ConfigError> {
        match self {
            Self::Value(value) => Ok(Secret::new(value)),
            Self::Variable { env } => required_variable(env, variables),
        }
    }
}

/// The process's own environment, for those who read variables.
///
/// ```
/// assert!(haft_models::process_environment("NO_SUCH_VARIABLE_HERE").is_none());
/// ```
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The secret in a variable; an error that names it if there is none.
pub fn required_variable(name: &str, variables: Lookup<'_>) -> Result<Secret, ConfigError> {
    variables(name)
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
        .map(Secret::new)
        .ok_or_else(|| ConfigError::MissingVariable {
            variable: name.to_owned(),
        })
}

impl ModelConfig {
    /// The key, from wherever the entry says; none if it says nothing.
    pub(super) fn api_key(&self, variables: Lookup<'_>) -> Result<Option<Secret>, ConfigError> {
        match (&self.api_key_env, &self.api_key_file) {
            (None, None) => Ok(None),
            (Some(variable), None) => required_variable(variable, variables).map(Some),
            (None, Some(file)) => {
                let refused = |reason: String| self.invalid("api_key_file", reason);
                let mut text = String::new();
                std::fs::File::open(file)
                    .and_then(|file| file.take(MAX_KEY_BYTES).read_to_string(&mut text))
                    .map_err(|error| refused(format!("`{}`: {error}", file.display())))?;
                match text.trim() {
                    "" => Err(refused(format!("`{}` is empty", file.display()))),
                    key => Ok(Some(Secret::new(key))),
                }
            }
            (Some(_), Some(_)) => {
                Err(self.invalid("api_key_file", "`api_key_env` is given as well: keep one"))
            }
        }
    }
}
