//! Anthropic's Messages API.

use haft_core::{
    BoxFuture, Capabilities, ForcedChoice, Item, Model, ModelError, ModelOptions, ModelRequest,
    ModelStream, UnsupportedContent,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer;
use crate::builders::connection_builders;
use crate::config::{
    CapabilityOverrides, ConfigError, Lookup, Parts, process_environment, required_variable,
};
use crate::http::{Connection, Secret};
use crate::lift::AnthropicLift;
use crate::lower::anthropic::{self, Settings, Thinking};
use crate::lower::tools::LeftOut;

/// Where Anthropic itself answers.
const BASE_URL: &str = "https://api.anthropic.com";

/// The version of the API that is spoken here.
const VERSION: &str = "2023-06-01";

/// The limit of answers for requests that name none.
const MAX_TOKENS: u64 = 16_384;

/// A model behind Anthropic's Messages API.
///
/// Thoughts come back as reasoning items whose `encrypted_content` begins with `anthropic:`, and go
/// out again as the blocks that they were. Words of the host at the beginning of a conversation are
/// part of `system`; later ones stay in their place, in `<system>` tags, so that nothing before them
/// changes. Arguments in the history that are no JSON object go out as
/// `{"INVALID_JSON": "<what was written>"}`.
///
/// ```
/// use haft_core::Model;
/// use haft_models::Anthropic;
/// let model = Anthropic::new("claude-sonnet-5").api_key("sk-ant-hunter2").max_tokens(4_096);
/// assert_eq!((model.provider(), model.name()), ("anthropic", "claude-sonnet-5"));
/// assert!(!format!("{model:?}").contains("hunter2"));
/// ```
#[derive(Debug, Clone)]
pub struct Anthropic {
    connection: Connection,
    path: &'static str,
    settings: Settings,
}

/// What a file can say about an `anthropic` entry beside what it says about every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnthropicOptions {
    /// How many tokens an answer may have where a request names no limit.
    ///
    /// See [`Anthropic::max_tokens`].
    #[schemars(extend("default" = MAX_TOKENS))]
    pub max_tokens: Option<u64>,
    /// Whether the provider is asked to cache the prompt.
    ///
    /// See [`Anthropic::caching`].
    #[schemars(extend("default" = true))]
    pub caching: Option<bool>,
    /// How a reasoning effort is told to the model.
    ///
    /// See [`Anthropic::thinking`].
    pub thinking: Thinking,
}

impl Anthropic {
    /// A model by its name, without a key yet.
    pub fn new(model: impl Into<String>) -> Self {
        Self::at(Connection::new(BASE_URL), BASE_URL, model)
    }

    /// A model by its name, with the key in `ANTHROPIC_API_KEY`, at `ANTHROPIC_BASE_URL` if that is
    /// set.
    pub fn from_env(model: impl Into<String>) -> Result<Self, ConfigError> {
        Self::from_env_with(model, &process_environment)
    }

    /// [`from_env`](Self::from_env), with variables from elsewhere.
    ///
    /// ```
    /// use haft_models::Anthropic;
    /// let error = Anthropic::from_env_with("claude-sonnet-5", &|_| None).unwrap_err();
    /// assert!(error.to_string().contains("`ANTHROPIC_API_KEY`"));
    /// ```
    pub fn from_env_with(
        model: impl Into<String>,
        variables: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        let key = required_variable("ANTHROPIC_API_KEY", variables)?;
        let base_url = variables("ANTHROPIC_BASE_URL").filter(|url| !url.trim().is_empty());
        let model = Self::new(model)
            .base_url(base_url.as_deref().unwrap_or(BASE_URL))
            .api_key(key);
        model.connection.check()?;
        Ok(model)
    }

    pub(crate) fn configured(parts: &Parts<'_>) -> Result<Self, ConfigError> {
        let config = parts.config;
        let base_url = config.base_url.as_deref().unwrap_or(BASE_URL);
        let mut model = Self::at(parts.connection(BASE_URL)?, base_url, config.model());
        if let Some(key) = parts.api_key("ANTHROPIC_API_KEY")? {
            model = model.api_key(key);
        }
        model.connection = parts.checked(model.connection)?;
        let options = config.anthropic.unwrap_or_default();
        model.settings.max_tokens = options.max_tokens.unwrap_or(MAX_TOKENS);
        model.settings.caching = options.caching.unwrap_or(true);
        model.settings.thinking = options.thinking;
        model.settings.extra.clone_from(&config.extra);
        model.settings.capabilities.context_tokens = config.context_tokens;
        Ok(model.with_capabilities(config.capabilities))
    }

    fn at(connection: Connection, base_url: &str, model: impl Into<String>) -> Self {
        Self {
            connection: connection.header("anthropic-version", Secret::new(VERSION)),
            path: path_below(base_url),
            settings: Settings {
                model: model.into(),
                capabilities: Capabilities {
                    supports_dynamic_tools: true,
                    parallel_calls: true,
                    strict_schemas: false,
                    named_choice: true,
                    forced_choice: ForcedChoice::Named,
                    none_choice: true,
                    native_deferred_loading: false,
                    tool_references: false,
                    image_input: true,
                    file_input: true,
                    video_input: false,
                    structured_output: true,
                    structured_output_with_tools: true,
                    provider_tools: haft_core::ProviderTools::default(),
                    repeats_calls: false,
                    context_tokens: None,
                },
                max_tokens: MAX_TOKENS,
                caching: true,
                thinking: Thinking::default(),
                extra: Map::new(),
            },
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.connection = self.connection.header("x-api-key", key.into());
        self
    }

    /// Sets where the server is, with or without `/v1` at the end.
    #[must_use]
    pub fn base_url(mut self, base_url: &str) -> Self {
        self.connection = self.connection.base_url(base_url);
        self.path = path_below(base_url);
        self
    }

    connection_builders!();

    /// Sets how many tokens an answer may have where a request names no limit: 16384 if nothing is
    /// said. This API must be told one.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: u64) -> Self {
        self.settings.max_tokens = max_tokens;
        self
    }

    /// Sets whether the provider is asked to cache the prompt, up to the end of the tools, of the
    /// system text and of the last message. It is if nothing is said.
    #[must_use]
    pub fn caching(mut self, caching: bool) -> Self {
        self.settings.caching = caching;
        self
    }

    /// Sets how a reasoning effort is told to the model: [`Thinking::Budget`] for models before
    /// Claude 4.6.
    #[must_use]
    pub fn thinking(mut self, thinking: Thinking) -> Self {
        self.settings.thinking = thinking;
        self
    }

    /// Sets members to put into every request as they are.
    #[must_use]
    pub fn extra(mut self, extra: Map<String, Value>) -> Self {
        self.settings.extra = extra;
        self
    }

    /// Changes what the model is taken to be able to do.
    #[must_use]
    pub fn with_capabilities(mut self, overrides: CapabilityOverrides) -> Self {
        self.settings.capabilities = overrides.apply(self.settings.capabilities);
        self
    }

    /// Sets how many tokens fit.
    #[must_use]
    pub fn context_tokens(mut self, tokens: u64) -> Self {
        self.settings.capabilities.context_tokens = Some(tokens);
        self
    }

    /// Where the provider lists its models.
    pub(crate) fn models_path(&self) -> &'static str {
        match self.path {
            "messages" => "models",
            _ => "v1/models",
        }
    }

    /// The tools of a request that this model would not be shown, and why.
    pub fn left_out(&self, request: &ModelRequest) -> Vec<LeftOut> {
        anthropic::tools(request).left_out().to_vec()
    }
}

/// People give the address with the version or without.
fn path_below(base_url: &str) -> &'static str {
    if base_url.trim().trim_end_matches('/').ends_with("/v1") {
        "messages"
    } else {
        "v1/messages"
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn capabilities(&self) -> Capabilities {
        self.settings.capabilities.clone()
    }

    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        anthropic::unsupported(item, &self.settings.capabilities)
    }

    fn ignored_options(&self, options: &ModelOptions) -> Vec<&'static str> {
        anthropic::ignored(options, &self.settings)
    }

    fn send(&self, mut request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(async move {
            let wanted = self.connection.streaming(request.options.stream);
            request.options.stream = wanted;
            let lowered = anthropic::lower(&request, &self.settings)?;
            let accept = answer::accepts(wanted);
            let body = self
                .connection
                .post(self.path, lowered.body, accept)
                .await?;
            let lift = AnthropicLift::default();
            answer::of(body, wanted, lift, AnthropicLift::whole, lowered.tools).await
        })
    }
}
