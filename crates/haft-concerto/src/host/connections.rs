//! Connections: from a model's `provider` and `base` to somebody who answers (§8, §16).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::Model;
use haft_engine::{FailedAttempt, RetryPolicy};
use haft_models::http::Http;
use haft_models::{Adapter, ChatQuirks, ChatServer, ModelConfig, from_config_with};
use serde_json::Value as Json;

use super::house::House;
use super::mock_model::MockModel;
use super::rate::{Rate, RateLimit};
use crate::ir::{self, Backoff};

/// Where Google answers in the words of `OpenAI`.
const GOOGLE: &str = "https://generativelanguage.googleapis.com/v1beta/openai";

/// What connections keep between calls.
#[derive(Default)]
pub(super) struct Connections {
    http: Http,
    limits: Mutex<HashMap<String, Arc<RateLimit>>>,
}

/// Who answers a model's calls, and how patient one is with it.
pub(super) struct Line {
    pub(super) model: Arc<dyn Model>,
    /// How long one request may take.
    pub(super) timeout: Option<Duration>,
    /// When requests are repeated; as the runtime has it where the connection says nothing.
    pub(super) retry: Option<ConnectionRetry>,
    pub(super) limit: Option<Arc<RateLimit>>,
}

impl Connections {
    /// Who answers a model, or why nobody does.
    pub(super) fn line(&self, house: &House, model: &ir::Model) -> Result<Line, String> {
        let name = model.connection.as_str();
        let declared = house
            .program
            .ir()
            .connections
            .iter()
            .find(|it| it.name == name && it.config.get("type") != Some(&Json::from("mcp")));
        let config = declared.map(|it| &it.config);
        let base = config.map_or_else(
            || model.config.base.clone(),
            |config| model_name(config, model),
        );
        let is_mock = config.is_some_and(|config| text(config, "provider") == Some("mock"));
        if house.setup.mock || is_mock {
            return Ok(Line {
                model: Arc::new(MockModel::new(base.unwrap_or_default())),
                timeout: None,
                retry: None,
                limit: None,
            });
        }
        let own = model.config.timeout.and_then(seconds);
        let Some(config) = config else {
            return other(house, name, base.as_deref(), own);
        };
        let base = base.ok_or_else(|| {
            format!(
                "connection '{name}': no model is named: give model '{}' a `base`, or the connection a \
                 `default_model`",
                model.name
            )
        })?;
        let entry = self.entry(house, name, config, &base)?;
        let model = from_config_with(&entry, &*house.setup.variables, &self.http);
        let model = model.map_err(|error| format!("connection '{name}': {error}"))?;
        Ok(Line {
            model,
            timeout: own.or_else(|| {
                config
                    .get("timeout")
                    .and_then(Json::as_f64)
                    .and_then(seconds)
            }),
            retry: config.get("retry").map(ConnectionRetry::read),
            limit: self.limit(name, config),
        })
    }

    /// The connection as an entry for `haft-models`.
    fn entry(
        &self,
        house: &House,
        name: &str,
        config: &Json,
        base: &str,
    ) -> Result<ModelConfig, String> {
        let provider = text(config, "provider").unwrap_or_default();
        let adapter = match provider {
            "openai" | "google" | "custom" => Adapter::OpenaiChat,
            "anthropic" => Adapter::Anthropic,
            "ollama" => Adapter::Ollama,
            other => {
                return Err(format!(
                    "connection '{name}': provider '{other}' is none of openai, anthropic, google, \
                     ollama, custom, mock"
                ));
            }
        };
        let mut entry = ModelConfig::new(base, adapter);
        let address = text(config, "base_url");
        entry.base_url = match (provider, address) {
            ("custom", None) => {
                return Err(format!(
                    "connection '{name}': provider 'custom' needs a `base_url`"
                ));
            }
            ("google", None) => Some(GOOGLE.to_owned()),
            ("openai" | "google" | "custom", Some(address)) => Some(with_version(address)),
            ("ollama", Some(address)) => Some(without_version(address)),
            (_, address) => address.map(str::to_owned),
        };
        if provider == "openai" {
            entry.chat = Some(ChatQuirks {
                server: Some(ChatServer::Openai),
                // A server of one's own knows the older name better.
                max_completion_tokens: address.map(|_| false),
                openai_members: address.map(|_| false),
                ..ChatQuirks::default()
            });
        }
        if let Some(variable) = text(config, "api_key_env") {
            self.check_variable(house, name, config, variable)?;
            entry.api_key_env = Some(variable.to_owned());
        } else if matches!(provider, "openai" | "anthropic" | "google") {
            return Err(format!("connection '{name}': `api_key_env` is missing"));
        }
        Ok(entry)
    }

    /// Whether the key is there, and this program may have it sent: whoever writes a file of IR must not
    /// send any variable anywhere.
    #[allow(clippy::unused_self)] // belongs to the connections
    fn check_variable(
        &self,
        house: &House,
        name: &str,
        config: &Json,
        variable: &str,
    ) -> Result<(), String> {
        let manifest = house.setup.manifest.as_ref();
        let is_granted = manifest.is_some_and(|manifest| {
            let mut known = manifest.connections.iter();
            known.any(|known| known.name == name && known.config == *config)
        });
        if !is_granted {
            let allowed = house.setup.permissions.may_read_variable(variable);
            allowed.map_err(|denied| {
                format!("connection '{name}' is not that of the manifest: {denied}")
            })?;
        }
        let value = (house.setup.variables)(variable);
        match value.filter(|value| !value.trim().is_empty()) {
            Some(_) => Ok(()),
            None => Err(format!(
                "connection '{name}': environment variable {variable} is not set"
            )),
        }
    }

    fn limit(&self, name: &str, config: &Json) -> Option<Arc<RateLimit>> {
        let rate = Rate::read(config.get("rate_limit")?)?;
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = limits
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(RateLimit::new(rate)));
        Some(Arc::clone(limit))
    }
}

/// A connection that is not the manifest's.
fn other(
    house: &House,
    name: &str,
    base: Option<&str>,
    timeout: Option<Duration>,
) -> Result<Line, String> {
    let known = house.setup.models.as_ref();
    let found = known.and_then(|models| models.model(name, base));
    let model = match found {
        Some(model) => model.map_err(|text| format!("connection '{name}': {text}"))?,
        None => {
            return Err(format!(
                "connection '{name}' is not known: add [connections.{name}] to Concerto.toml, or a \
                 `[[model]]` of that name to haft.toml"
            ));
        }
    };
    Ok(Line {
        model,
        timeout,
        retry: None,
        limit: None,
    })
}

/// What the provider calls the model: an alias's meaning, the name itself, or the connection's default.
fn model_name(config: &Json, model: &ir::Model) -> Option<String> {
    let base = model.config.base.as_deref();
    let name = base.or_else(|| text(config, "default_model"))?;
    let aliases = config.get("models");
    let meant = aliases.and_then(|aliases| aliases.get(name)?.as_str());
    Some(meant.unwrap_or(name).to_owned())
}

fn text<'c>(config: &'c Json, key: &str) -> Option<&'c str> {
    config.get(key).and_then(Json::as_str)
}

/// Seconds of a configuration; nothing if they are none.
pub(super) fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero())
}

/// An address of the `OpenAI` kind ends in `/v1`, unless it has a path of its own.
fn with_version(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    let after_scheme = address.split_once("://").map_or(address, |(_, rest)| rest);
    if after_scheme.contains('/') {
        address.to_owned()
    } else {
        format!("{address}/v1")
    }
}

/// Ollama's own API is beside the one in the words of `OpenAI`.
fn without_version(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    address.strip_suffix("/v1").unwrap_or(address).to_owned()
}

/// `[connections.NAME.retry]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionRetry {
    attempts: u32,
    backoff: Backoff,
    first: Duration,
    longest: Duration,
}

impl ConnectionRetry {
    fn read(config: &Json) -> Self {
        let number =
            |key: &str, usual: u64| config.get(key).and_then(Json::as_u64).unwrap_or(usual);
        Self {
            attempts: u32::try_from(number("max_attempts", 1))
                .unwrap_or(u32::MAX)
                .max(1),
            backoff: Backoff::of(text(config, "backoff"), Backoff::None),
            first: Duration::from_millis(number("initial_delay_ms", 1000)),
            longest: Duration::from_millis(number("max_delay_ms", 30_000)),
        }
    }

    /// Every request is made once.
    pub(super) fn never() -> Self {
        Self {
            attempts: 1,
            backoff: Backoff::None,
            first: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }
}

impl RetryPolicy for ConnectionRetry {
    fn delay(&self, attempt: &FailedAttempt<'_>) -> Option<Duration> {
        if !attempt.error.kind.is_retryable() || attempt.retry >= self.attempts {
            return None;
        }
        let asked = attempt.error.retry_after.unwrap_or_default();
        let delay = self.backoff.delay(self.first, attempt.retry).max(asked);
        let delay = delay.min(self.longest);
        attempt
            .remaining
            .is_none_or(|remaining| delay < remaining)
            .then_some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_its_version_or_not() {
        assert_eq!(with_version("http://h:1"), "http://h:1/v1");
        assert_eq!(with_version("http://h:1/"), "http://h:1/v1");
        assert_eq!(with_version("http://h:1/v1/"), "http://h:1/v1");
        assert_eq!(with_version("http://h/api/v3"), "http://h/api/v3");
        assert_eq!(without_version("http://h/v1"), "http://h");
    }
}
