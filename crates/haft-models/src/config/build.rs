//! From an entry to its adapter.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haft_core::{Model, ModelError};

use super::{Adapter, ConfigError, Lookup, ModelConfig, process_environment, required_variable};
use crate::http::{Connection, Http, Secret};
use crate::scripted::Script;
use crate::{Anthropic, OfflineModel, Ollama, OpenAiChat, OpenAiResponses, ScriptedModel};

/// A model as an entry describes it, and what else its server can be asked.
///
/// ```
/// use haft_models::{Adapter, Backend, ModelConfig};
/// let mut config = ModelConfig::new("local", Adapter::OpenaiChat);
/// config.base_url = Some("http://127.0.0.1:8080/v1".into());
/// let backend = Backend::from_config(&config)?;
/// assert_eq!(backend.model().name(), "local");
/// assert!(backend.chat().is_some(), "Chat Completions can be passed on to it as they are");
/// # Ok::<(), haft_models::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Backend {
    model: Arc<dyn Model>,
    chat: Option<Arc<OpenAiChat>>,
    ping: Option<Ping>,
}

/// How a server is asked whether it is there: the list of its models costs nothing.
#[derive(Clone)]
struct Ping {
    connection: Connection,
    path: &'static str,
}

impl Backend {
    /// Makes what an entry describes.
    pub fn from_config(config: &ModelConfig) -> Result<Self, ConfigError> {
        Self::from_config_with(config, &process_environment, &Http::default())
    }

    /// [`from_config`](Self::from_config), with variables from elsewhere and connections shared with
    /// other models. An entry with a `connect_timeout` of its own has its own connections.
    pub fn from_config_with(
        config: &ModelConfig,
        variables: Lookup<'_>,
        http: &Http,
    ) -> Result<Self, ConfigError> {
        check(config)?;
        let parts = Parts {
            config,
            variables,
            http,
        };
        let model: Arc<dyn Model> = match config.adapter {
            Adapter::Anthropic => {
                let model = Anthropic::configured(&parts)?;
                return Ok(Self::reached(
                    model.connection().clone(),
                    model.models_path(),
                    model,
                ));
            }
            Adapter::OpenaiResponses => {
                let model = OpenAiResponses::configured(&parts)?;
                return Ok(Self::reached(model.connection().clone(), "models", model));
            }
            Adapter::OpenaiChat => {
                let chat = Arc::new(OpenAiChat::configured(&parts)?);
                return Ok(Self::from(chat));
            }
            Adapter::Ollama => {
                let model = Ollama::configured(&parts)?;
                return Ok(Self::reached(model.connection().clone(), "api/tags", model));
            }
            Adapter::Scripted => Arc::new(scripted(config)?),
            Adapter::Offline => Arc::new(OfflineModel::new()),
        };
        Ok(Self::from(model))
    }

    fn reached(connection: Connection, path: &'static str, model: impl Model) -> Self {
        Self {
            model: Arc::new(model),
            chat: None,
            ping: Some(Ping { connection, path }),
        }
    }

    /// Asks the server whether it is there, for no longer than this; none if it cannot be asked.
    /// Whatever it says, it is there, unless it says that it failed.
    pub async fn ping(&self, timeout: Duration) -> Option<Result<(), ModelError>> {
        let Ping { connection, path } = self.ping.as_ref()?;
        Some(connection.ping(path, timeout).await)
    }

    /// Where its server is, without secrets; none where no server is known.
    pub fn base_url(&self) -> Option<String> {
        self.ping.as_ref()?.connection.base()
    }

    /// Whether it can be asked.
    pub fn can_be_pinged(&self) -> bool {
        self.ping.is_some()
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// The same model, where its server speaks Chat Completions: bodies of that protocol can be
    /// passed on to it ([`OpenAiChat::forward`]).
    pub fn chat(&self) -> Option<&Arc<OpenAiChat>> {
        self.chat.as_ref()
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("provider", &self.model.provider())
            .field("model", &self.model.name())
            .finish_non_exhaustive()
    }
}

/// Any model, of which nothing more is known.
impl From<Arc<dyn Model>> for Backend {
    fn from(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            chat: None,
            ping: None,
        }
    }
}

impl From<Arc<OpenAiChat>> for Backend {
    fn from(chat: Arc<OpenAiChat>) -> Self {
        Self {
            model: Arc::clone(&chat) as Arc<dyn Model>,
            ping: Some(Ping {
                connection: chat.connection().clone(),
                path: "models",
            }),
            chat: Some(chat),
        }
    }
}

/// Makes the model that an entry describes.
pub fn from_config(config: &ModelConfig) -> Result<Arc<dyn Model>, ConfigError> {
    Ok(Backend::from_config(config)?.model)
}

/// [`from_config`], with variables from elsewhere and connections shared with other models. An
/// entry with a `connect_timeout` of its own has its own connections.
pub fn from_config_with(
    config: &ModelConfig,
    variables: Lookup<'_>,
    http: &Http,
) -> Result<Arc<dyn Model>, ConfigError> {
    Ok(Backend::from_config_with(config, variables, http)?.model)
}

/// What is wrong with an entry whatever its adapter.
fn check(config: &ModelConfig) -> Result<(), ConfigError> {
    if config.model().trim().is_empty() {
        return Err(config.invalid(
            "model",
            "it is empty: give the provider's name of the model",
        ));
    }
    let breaker = config.breaker.and_then(|breaker| breaker.fault());
    if let Some((member, reason)) = breaker {
        return Err(config.invalid("breaker", format!("`{member}`: {reason}")));
    }
    let health = config.health.and_then(|health| health.fault());
    if let Some((member, reason)) = health {
        return Err(config.invalid("health", format!("`{member}`: {reason}")));
    }
    let is_here = matches!(config.adapter, Adapter::Scripted | Adapter::Offline);
    if is_here && config.health.is_some() {
        let reason = "the model runs in this process: there is nobody to ask";
        return Err(config.invalid("health", reason));
    }
    let base_url = config.base_url.as_deref().unwrap_or_default();
    if let Some(reason) = super::base_url::fault(config.adapter, base_url) {
        return Err(config.invalid("base_url", reason));
    }
    if let Some(reason) = config.capabilities.fault() {
        return Err(config.invalid("capabilities", reason));
    }
    for name in config.capabilities.deferrals() {
        let has_it = match config.adapter {
            Adapter::Anthropic => true,
            Adapter::OpenaiResponses => name == "native_deferred_loading",
            _ => false,
        };
        if !has_it {
            let adapter = config.adapter.as_str();
            let reason =
                format!("`{name}`: `adapter = \"{adapter}\"` has no form for it: leave it out");
            return Err(config.invalid("capabilities", reason));
        }
    }
    for (key, is_given, adapter) in [
        ("chat", config.chat.is_some(), Adapter::OpenaiChat),
        (
            "responses",
            config.responses.is_some(),
            Adapter::OpenaiResponses,
        ),
        ("anthropic", config.anthropic.is_some(), Adapter::Anthropic),
        ("script", config.script.is_some(), Adapter::Scripted),
    ] {
        if is_given && config.adapter != adapter {
            let reason = format!("it is for `adapter = \"{}\"` only", adapter.as_str());
            return Err(config.invalid(key, reason));
        }
    }
    Ok(())
}

/// The model that answers from the file that the entry names.
fn scripted(config: &ModelConfig) -> Result<ScriptedModel, ConfigError> {
    let Some(path) = &config.script else {
        let reason = "it is missing: name the file of JSON lines to answer from";
        return Err(config.invalid("script", reason));
    };
    let cannot =
        |reason: String| config.invalid("script", format!("`{}`: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    let script = Script::from_json_lines(&text).map_err(|error| cannot(error.to_string()))?;
    Ok(ScriptedModel::new(script).named(config.model()))
}

/// What every adapter makes itself from.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'p> {
    pub(crate) config: &'p ModelConfig,
    pub(crate) variables: Lookup<'p>,
    pub(crate) http: &'p Http,
}

impl Parts<'_> {
    /// The key that the entry names. Without one, `usual` is read if the entry names no address of
    /// its own: the provider itself wants a key, a server of one's own mostly none.
    pub(crate) fn api_key(&self, usual: &str) -> Result<Option<Secret>, ConfigError> {
        match self.named_api_key()? {
            None if self.config.base_url.is_none() => {
                required_variable(usual, self.variables).map(Some)
            }
            key => Ok(key),
        }
    }

    /// The key that the entry names, if it names one.
    pub(crate) fn named_api_key(&self) -> Result<Option<Secret>, ConfigError> {
        self.config.api_key(self.variables)
    }

    /// The entry's connection without its key.
    pub(crate) fn connection(&self, usual_base_url: &str) -> Result<Connection, ConfigError> {
        let config = self.config;
        let base_url = config.base_url.as_deref().unwrap_or(usual_base_url);
        let mut connection = Connection::new(base_url)
            .http(self.http.clone())
            .timeouts(config.timeouts()?);
        for (name, source) in &config.headers {
            connection = connection.header(name, source.read(self.variables)?);
        }
        Ok(connection)
    }

    /// The connection if it can be used, else an error that names the entry.
    pub(crate) fn checked(&self, connection: Connection) -> Result<Connection, ConfigError> {
        match connection.check() {
            Ok(()) => Ok(connection),
            Err(error) => Err(self.config.invalid("base_url", error.to_string())),
        }
    }
}
