//! Models as a file describes them.
//!
//! What comes in: one `[[model]]` entry. What goes out: a model, or an error that names the entry
//! and the key at fault, before any request. A file never holds a secret: it names the variable or
//! the file where the secret is.

mod base_url;
mod build;
mod capabilities;
pub(crate) mod duration;
mod hosted_tools;
mod pools;
mod secrets;

pub(crate) use build::Parts;
pub use build::{Backend, from_config, from_config_with};
pub use capabilities::CapabilityOverrides;
pub use hosted_tools::HostedTools;
pub use pools::pools;
pub use secrets::{HeaderSource, process_environment, required_variable};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::{EndpointError, Timeouts};
use crate::pool::{BreakerSettings, HealthSettings};

/// Where variables come from: the process's environment, or whatever a test says.
pub type Lookup<'l> = &'l dyn Fn(&str) -> Option<String>;

/// One `[[model]]` entry. Unknown keys are errors.
///
/// ```
/// use haft_models::{Adapter, ModelConfig};
/// let config: ModelConfig = serde_json::from_value(serde_json::json!({
///     "name": "local",
///     "adapter": "openai-chat",
///     "model": "qwen3-8b",
///     "base_url": "http://127.0.0.1:8080/v1",
///     "idle_timeout": 300
/// }))?;
/// assert_eq!(config.adapter, Adapter::OpenaiChat);
/// assert_eq!(haft_models::from_config(&config)?.name(), "qwen3-8b");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// What requests call it.
    pub name: String,
    /// Which protocol it speaks.
    pub adapter: Adapter,
    /// What the provider calls it; the same as `name` where nothing is said.
    #[serde(default)]
    pub model: Option<String>,
    /// Other names for it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Where the provider is; at its own address, or that of the server on this machine, where nothing
    /// is said.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The variable that holds the key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// The file that holds the key.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Headers for every request: a value, or `{ env = "VARIABLE" }`.
    #[serde(default)]
    pub headers: BTreeMap<String, HeaderSource>,
    /// How many tokens fit, if that is to be known.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// How long until there is a connection; a number is seconds.
    #[serde(default, deserialize_with = "duration::seconds::deserialize")]
    #[schemars(with = "duration::seconds::Written")]
    #[schemars(extend("default" = usual_seconds(Timeouts::default().connect)))]
    pub connect_timeout: Option<f64>,
    /// How long until an answer begins; a number is seconds. Four times as long where one in one piece was
    /// asked for, which begins when it is finished.
    #[serde(default, deserialize_with = "duration::seconds::deserialize")]
    #[schemars(with = "duration::seconds::Written")]
    #[schemars(extend("default" = usual_seconds(Timeouts::default().header)))]
    pub header_timeout: Option<f64>,
    /// How long between two pieces of an answer; a number is seconds.
    #[serde(default, deserialize_with = "duration::seconds::deserialize")]
    #[schemars(with = "duration::seconds::Written")]
    #[schemars(extend("default" = usual_seconds(Timeouts::default().idle)))]
    pub idle_timeout: Option<f64>,
    /// What the model can do, where it differs from what the adapter takes for granted.
    #[serde(default)]
    pub capabilities: CapabilityOverrides,
    /// Members to put into every request as they are.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// What is special about an `openai-chat` server.
    #[serde(default)]
    pub chat: Option<crate::ChatQuirks>,
    /// What is special about an `openai-responses` server.
    #[serde(default)]
    pub responses: Option<crate::ResponsesOptions>,
    /// What is special about an `anthropic` model.
    #[serde(default)]
    pub anthropic: Option<crate::AnthropicOptions>,
    /// The file of JSON lines that a `scripted` model answers from.
    #[serde(default)]
    pub script: Option<PathBuf>,
    /// The entries that stand in when this one fails, in order.
    #[serde(default)]
    pub failover: Vec<String>,
    /// When it is left alone because it fails; where nothing is said, by the usual rules if a
    /// network is between, else never.
    #[serde(default)]
    pub breaker: Option<BreakerSettings>,
    /// How often it is asked how it is; never where nothing is said.
    #[serde(default)]
    pub health: Option<HealthSettings>,
}

impl ModelConfig {
    /// An entry with nothing but a name and an adapter.
    pub fn new(name: impl Into<String>, adapter: Adapter) -> Self {
        Self {
            name: name.into(),
            adapter,
            model: None,
            aliases: Vec::new(),
            base_url: None,
            api_key_env: None,
            api_key_file: None,
            headers: BTreeMap::new(),
            context_tokens: None,
            connect_timeout: None,
            header_timeout: None,
            idle_timeout: None,
            capabilities: CapabilityOverrides::default(),
            extra: Map::new(),
            chat: None,
            responses: None,
            anthropic: None,
            script: None,
            failover: Vec::new(),
            breaker: None,
            health: None,
        }
    }

    /// What the provider calls the model.
    pub fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(&self.name)
    }

    /// How long each wait may take.
    pub fn timeouts(&self) -> Result<Timeouts, ConfigError> {
        let usual = Timeouts::default();
        let seconds = |key: &'static str, given: Option<f64>, usual: Duration| match given {
            None => Ok(usual),
            Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds)
                .map_err(|_| self.invalid(key, "it is more seconds than there are")),
            Some(_) => Err(self.invalid(key, "it must be more than 0 seconds")),
        };
        Ok(Timeouts {
            connect: seconds("connect_timeout", self.connect_timeout, usual.connect)?,
            header: seconds("header_timeout", self.header_timeout, usual.header)?,
            idle: seconds("idle_timeout", self.idle_timeout, usual.idle)?,
            ..usual
        })
    }

    fn invalid(&self, key: &str, reason: impl Into<String>) -> ConfigError {
        ConfigError::Invalid {
            model: self.name.clone(),
            key: key.to_owned(),
            reason: reason.into(),
        }
    }
}

/// As a file writes it.
fn usual_seconds(usual: Duration) -> String {
    format!("{}s", usual.as_secs())
}

/// The protocols that haft speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Adapter {
    /// `OpenAI`'s Chat Completions, as most servers speak it.
    OpenaiChat,
    /// `OpenAI`'s Responses.
    OpenaiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's own chat.
    Ollama,
    /// Answers from a script.
    Scripted,
    /// Answers without any provider.
    Offline,
}

impl Adapter {
    /// As it is written in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::Scripted => "scripted",
            Self::Offline => "offline",
        }
    }
}

/// A model that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A variable is not there, or empty.
    #[error("the environment variable `{variable}` is not set: set it to the API key")]
    MissingVariable {
        /// The variable.
        variable: String,
    },
    /// A key of an entry is wrong.
    #[error("model `{model}`: `{key}`: {reason}")]
    Invalid {
        /// The entry.
        model: String,
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// The address or a header is wrong.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

#[cfg(test)]
mod tests;
