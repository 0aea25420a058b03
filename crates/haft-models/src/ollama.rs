//! Ollama's own chat.

use haft_core::{
    BoxFuture, Capabilities, ForcedChoice, Item, Model, ModelError, ModelOptions, ModelRequest,
    ModelStream, Streaming, UnsupportedContent,
};
use serde_json::{Map, Value};

use crate::builders::connection_builders;
use crate::config::{Parts, process_environment};
use crate::frame::Lines;
use crate::http::{Connection, Secret};
use crate::lift::lifted;
use crate::lift::ollama::OllamaLift;
use crate::lower::ollama::{OllamaForm, ignored, request, tools, unsupported};
use crate::lower::tools::LeftOut;
use crate::{CapabilityOverrides, ConfigError, Lookup};

const BASE_URL: &str = "http://127.0.0.1:11434";
const PORT: &str = "11434";
const PATH: &str = "api/chat";

/// A model that Ollama runs, behind its own `/api/chat`.
///
/// Its calls have no ids and it knows no `tool_choice`. Set [`context_tokens`](Self::context_tokens):
/// what does not fit into Ollama's low default is cut off without a word.
///
/// ```
/// use haft_core::Model;
/// use haft_models::Ollama;
/// let model = Ollama::new("qwen3:8b").context_tokens(32_768);
/// assert_eq!((model.name(), model.capabilities().context_tokens), ("qwen3:8b", Some(32_768)));
/// ```
#[derive(Debug, Clone)]
pub struct Ollama {
    model: String,
    connection: Connection,
    overrides: CapabilityOverrides,
    context_tokens: Option<u64>,
    extra: Map<String, Value>,
}

impl Ollama {
    /// This model on this machine.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            connection: Connection::new(BASE_URL),
            overrides: CapabilityOverrides::default(),
            context_tokens: None,
            extra: Map::new(),
        }
    }

    /// This model at `OLLAMA_HOST`, on this machine if that is not set.
    pub fn from_env(model: impl Into<String>) -> Result<Self, ConfigError> {
        Self::from_env_with(model, &process_environment)
    }

    /// [`from_env`](Self::from_env), with variables from elsewhere.
    pub fn from_env_with(
        model: impl Into<String>,
        variables: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        let ollama = Self::new(model).base_url(&base_url_of(variables));
        ollama.connection.check()?;
        Ok(ollama)
    }

    pub(crate) fn configured(parts: &Parts<'_>) -> Result<Self, ConfigError> {
        let config = parts.config;
        let mut ollama = Self::new(config.model());
        let mut connection = parts.connection(BASE_URL)?;
        if let Some(key) = parts.named_api_key()? {
            connection = connection.bearer(key);
        }
        ollama.connection = parts.checked(connection)?;
        ollama.overrides = config.capabilities;
        ollama.context_tokens = config.context_tokens;
        ollama.extra.clone_from(&config.extra);
        Ok(ollama)
    }

    /// Sets where Ollama is.
    #[must_use]
    pub fn base_url(mut self, base_url: &str) -> Self {
        self.connection = self.connection.base_url(base_url);
        self
    }

    /// Sets a key, for an Ollama behind a proxy that wants one.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.connection = self.connection.bearer(key.into());
        self
    }

    connection_builders!();

    /// Corrects what the model is taken to be able to do.
    #[must_use]
    pub fn with_capabilities(mut self, overrides: CapabilityOverrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// Sets how many tokens fit, here and at Ollama (`num_ctx`).
    #[must_use]
    pub fn context_tokens(mut self, tokens: u64) -> Self {
        self.context_tokens = Some(tokens);
        self
    }

    /// Sets members to put into every request as they are; `options` are added to the others.
    #[must_use]
    pub fn extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = extra;
        self
    }

    /// The tools of a request that this model would not be shown, and why.
    pub fn left_out(&self, request: &ModelRequest) -> Vec<LeftOut> {
        tools(request).left_out().to_vec()
    }

    async fn ask(&self, mut asked: ModelRequest) -> Result<ModelStream, ModelError> {
        asked.options.stream = self.connection.streaming(asked.options.stream);
        let form = OllamaForm {
            model: &self.model,
            capabilities: self.capabilities(),
            extra: &self.extra,
        };
        let (body, tools) = request(&asked, &form)?;
        let accept = match asked.options.stream {
            Streaming::Pieces => "application/x-ndjson",
            _ => "application/json",
        };
        let body = self.connection.post(PATH, body, accept).await?;
        // A whole answer is a stream of one line.
        Ok(lifted(body, Lines::default(), OllamaLift::new(tools)))
    }
}

/// Where Ollama is: at `OLLAMA_HOST`, on this machine if that is not set.
pub(crate) fn base_url_of(variables: Lookup<'_>) -> String {
    match variables("OLLAMA_HOST").as_deref().map(str::trim) {
        None | Some("") => BASE_URL.to_owned(),
        Some(host) => address_of(host),
    }
}

/// Ollama's own forms of an address: with or without scheme, host and port.
fn address_of(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (name, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    // What a server listens on is not where one reaches it.
    let name = match name.strip_prefix("0.0.0.0") {
        Some(port) => format!("127.0.0.1{port}"),
        None if name.is_empty() || name.starts_with(':') => format!("127.0.0.1{name}"),
        None => name.to_owned(),
    };
    // With a scheme, the scheme's own port is meant.
    if has_port || host.contains("://") {
        format!("{scheme}://{name}{path}")
    } else {
        format!("{scheme}://{name}:{PORT}{path}")
    }
}

impl Model for Ollama {
    fn name(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> &'static str {
        "ollama"
    }

    fn capabilities(&self) -> Capabilities {
        let usual = Capabilities {
            supports_dynamic_tools: true,
            parallel_calls: false,
            strict_schemas: false,
            named_choice: false,
            forced_choice: ForcedChoice::Unsupported,
            none_choice: false,
            native_deferred_loading: false,
            tool_references: false,
            image_input: true,
            file_input: false,
            video_input: false,
            structured_output: true,
            // The schema becomes a grammar, in which there are no calls.
            structured_output_with_tools: false,
            provider_tools: haft_core::ProviderTools::default(),
            repeats_calls: true,
            context_tokens: self.context_tokens,
        };
        Capabilities {
            // This protocol has no form for either.
            native_deferred_loading: false,
            tool_references: false,
            ..self.overrides.apply(usual)
        }
    }

    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        unsupported(item, &self.capabilities())
    }

    fn ignored_options(&self, options: &ModelOptions) -> Vec<&'static str> {
        ignored(options)
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(self.ask(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_host_is_understood() {
        for (host, address) in [
            ("127.0.0.1", "http://127.0.0.1:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            (":8080", "http://127.0.0.1:8080"),
            ("box.example:1234", "http://box.example:1234"),
            ("http://box.example", "http://box.example"),
            ("https://box.example:1/path", "https://box.example:1/path"),
            ("[::1]:8080", "http://[::1]:8080"),
        ] {
            assert_eq!(address_of(host), address, "{host}");
            assert!(
                Ollama::from_env_with("m", &|_| Some(host.into())).is_ok(),
                "{host}"
            );
        }
        assert!(Ollama::from_env_with("m", &|_| None).is_ok());
        assert!(Ollama::from_env_with("m", &|_| Some("ftp://box".into())).is_err());
    }
}
