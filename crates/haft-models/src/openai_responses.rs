//! `OpenAI`'s Responses API, and servers that speak it.

use haft_core::{
    BoxFuture, Capabilities, ForcedChoice, Item, Model, ModelError, ModelOptions, ModelRequest,
    ModelStream, PROVIDER_TOOL_TYPES, ProviderOptions, ProviderTools, UnsupportedContent,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer;
use crate::builders::connection_builders;
use crate::config::{
    CapabilityOverrides, ConfigError, HostedTools, Lookup, Parts, process_environment,
    required_variable,
};
use crate::http::{Connection, Secret};
use crate::lift::ResponsesLift;
use crate::lower::responses::{self, Settings, ThoughtsBack};
use crate::lower::tools::LeftOut;
use crate::openai_chat::is_openai;
use crate::rejected_tools::RejectedTools;

/// Where `OpenAI` itself answers.
const BASE_URL: &str = "https://api.openai.com/v1";

/// A model behind `OpenAI`'s Responses API.
///
/// Conversations are in this API's form already, so items go out nearly as they are. Nothing is
/// stored at the provider unless [`store`](Self::store) says so; thoughts are then asked for in
/// sealed form whenever an effort is named, and sent back with their turn.
///
/// ```
/// use haft_core::Model;
/// use haft_models::OpenAiResponses;
/// let model = OpenAiResponses::new("gpt-5.2").api_key("sk-hunter2");
/// assert_eq!((model.provider(), model.name()), ("openai", "gpt-5.2"));
/// assert!(!format!("{model:?}").contains("hunter2"));
/// ```
#[derive(Debug, Clone)]
pub struct OpenAiResponses {
    connection: Connection,
    settings: Settings,
    /// Whether it was set which tool types go to the server as they are.
    has_hosted_tools: bool,
    /// What the server's errors say that it does not support.
    rejected_tools: RejectedTools,
}

/// What a file can say about an `openai-responses` entry beside what it says about every one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponsesOptions {
    /// Whether the provider keeps the responses, too.
    ///
    /// See [`OpenAiResponses::store`].
    pub store: bool,
    /// Whether sealed thoughts are asked for even where no effort is named: for models that always
    /// think.
    ///
    /// See [`OpenAiResponses::sealed_thoughts`].
    pub sealed_thoughts: bool,
    /// Which thoughts are sent back with the conversation.
    ///
    /// See [`OpenAiResponses::thoughts_back`].
    pub thoughts_back: ThoughtsBack,
    /// The tool types of a request that go to the server as they are instead of being refused, left out or
    /// lowered to functions: `apply_patch`, `code_interpreter`, `computer`, `computer_use_preview`, `custom`,
    /// `file_search`, `image_generation`, `local_shell`, `namespace`, `programmatic_tool_calling`, `shell`,
    /// `web_search`, `web_search_preview`. All but `namespace` at `api.openai.com`, none elsewhere.
    ///
    /// See [`OpenAiResponses::hosted_tools`].
    pub hosted_tools: Option<HostedTools>,
}

impl OpenAiResponses {
    /// A model by its name, without a key yet.
    pub fn new(model: impl Into<String>) -> Self {
        Self::at(Connection::new(BASE_URL), model)
    }

    /// A model by its name, with the key in `OPENAI_API_KEY`, at `OPENAI_BASE_URL` if that is set.
    pub fn from_env(model: impl Into<String>) -> Result<Self, ConfigError> {
        Self::from_env_with(model, &process_environment)
    }

    /// [`from_env`](Self::from_env), with variables from elsewhere.
    ///
    /// ```
    /// use haft_models::OpenAiResponses;
    /// let error = OpenAiResponses::from_env_with("gpt-5.2", &|_| None).unwrap_err();
    /// assert!(error.to_string().contains("`OPENAI_API_KEY`"));
    /// ```
    pub fn from_env_with(
        model: impl Into<String>,
        variables: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        let key = required_variable("OPENAI_API_KEY", variables)?;
        let base_url = variables("OPENAI_BASE_URL").filter(|url| !url.trim().is_empty());
        let model = Self::new(model)
            .base_url(base_url.as_deref().unwrap_or(BASE_URL))
            .api_key(key);
        model.connection.check()?;
        Ok(model)
    }

    pub(crate) fn configured(parts: &Parts<'_>) -> Result<Self, ConfigError> {
        let config = parts.config;
        let mut model = Self::at(parts.connection(BASE_URL)?, config.model());
        if let Some(key) = parts.api_key("OPENAI_API_KEY")? {
            model = model.api_key(key);
        }
        model.connection = parts.checked(model.connection)?;
        let options = config.responses.clone().unwrap_or_default();
        let base_url = config.base_url.as_deref().unwrap_or(BASE_URL);
        model.settings.capabilities.provider_tools = usual_tools(base_url);
        if let Some(tools) = options.hosted_tools {
            model = model.hosted_tools(tools.types().clone());
        }
        model.settings.store = options.store;
        model.settings.sealed_thoughts = options.sealed_thoughts;
        model.settings.thoughts_back = options.thoughts_back;
        model.settings.extra.clone_from(&config.extra);
        model.settings.capabilities.context_tokens = config.context_tokens;
        Ok(model.with_capabilities(config.capabilities))
    }

    fn at(connection: Connection, model: impl Into<String>) -> Self {
        Self {
            connection,
            settings: Settings {
                model: model.into(),
                capabilities: Capabilities {
                    supports_dynamic_tools: true,
                    parallel_calls: true,
                    strict_schemas: true,
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
                    provider_tools: usual_tools(BASE_URL),
                    repeats_calls: false,
                    context_tokens: None,
                },
                store: false,
                sealed_thoughts: false,
                thoughts_back: ThoughtsBack::default(),
                extra: Map::new(),
            },
            has_hosted_tools: false,
            rejected_tools: RejectedTools::default(),
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.connection = self.connection.bearer(key.into());
        self
    }

    /// Sets where the server is, `/v1` included.
    #[must_use]
    pub fn base_url(mut self, base_url: &str) -> Self {
        self.connection = self.connection.base_url(base_url);
        if !self.has_hosted_tools {
            self.settings.capabilities.provider_tools = usual_tools(base_url);
        }
        self
    }

    /// Sets which tool types go to the server as they are. Where nothing is set, all but `namespace`, which not
    /// all of its models take, do at `OpenAI`'s own address, and none elsewhere.
    ///
    /// ```
    /// use haft_core::{Model, ProviderTools};
    /// use haft_models::OpenAiResponses;
    /// let tools = |model: OpenAiResponses| model.capabilities().provider_tools;
    /// assert!(tools(OpenAiResponses::new("gpt-5.2")).contains("web_search"));
    /// let proxy = || OpenAiResponses::new("gpt-5.2").base_url("https://proxy.example.com/v1");
    /// assert!(tools(proxy()).is_empty());
    /// assert!(tools(proxy().hosted_tools(ProviderTools::all())).contains("namespace"));
    /// ```
    #[must_use]
    pub fn hosted_tools(mut self, tools: ProviderTools) -> Self {
        self.settings.capabilities.provider_tools = tools;
        self.has_hosted_tools = true;
        self
    }

    connection_builders!();

    /// Sets whether the provider keeps the responses. It does not if nothing is said.
    #[must_use]
    pub fn store(mut self, store: bool) -> Self {
        self.settings.store = store;
        self
    }

    /// Sets whether sealed thoughts are asked for even where no effort is named: for models that
    /// always think. Models that never do refuse such a request.
    #[must_use]
    pub fn sealed_thoughts(mut self, asked: bool) -> Self {
        self.settings.sealed_thoughts = asked;
        self
    }

    /// Sets which thoughts are sent back with the conversation.
    #[must_use]
    pub fn thoughts_back(mut self, thoughts: ThoughtsBack) -> Self {
        self.settings.thoughts_back = thoughts;
        self
    }

    /// Sets members to put into every request as they are.
    #[must_use]
    pub fn extra(mut self, extra: Map<String, Value>) -> Self {
        self.settings.extra = extra;
        self
    }

    /// Changes what the server is taken to be able to do; the lowering goes by it.
    #[must_use]
    pub fn with_capabilities(mut self, overrides: CapabilityOverrides) -> Self {
        self.settings.capabilities = overrides.apply(self.settings.capabilities);
        // This protocol has no form for it.
        self.settings.capabilities.tool_references = false;
        self
    }

    /// Sets how many tokens fit.
    #[must_use]
    pub fn context_tokens(mut self, tokens: u64) -> Self {
        self.settings.capabilities.context_tokens = Some(tokens);
        self
    }

    /// Remembers the tool types that an error says the server does not support, and logs each once.
    fn learn_from(
        &self,
        mut error: ModelError,
        options: &ProviderOptions,
        body: &[u8],
    ) -> ModelError {
        let rejected = self.rejected_tools.learn(&mut error, options, body);
        for tool_type in rejected {
            let (model, url) = (&*self.settings.model, self.connection.base());
            tracing::warn!(
                model,
                url,
                "the backend does not support the hosted tool type `{tool_type}`: it is treated as unsupported \
                 until haft restarts; leave it out of `hosted_tools` of the model"
            );
        }
        error
    }

    /// The tools of a request that this model would not be shown, and why.
    pub fn left_out(&self, request: &ModelRequest) -> Vec<LeftOut> {
        responses::tools(request, &self.settings)
            .left_out()
            .to_vec()
    }
}

/// The tool types that the server at this address is taken to know.
fn usual_tools(base_url: &str) -> ProviderTools {
    if !is_openai(base_url) {
        return ProviderTools::default();
    }
    let types = PROVIDER_TOOL_TYPES.into_iter();
    // Its earlier models refuse namespaces, and each takes the functions in them one by one.
    types
        .filter(|tool_type| *tool_type != "namespace")
        .collect()
}

impl Model for OpenAiResponses {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn provider(&self) -> &'static str {
        "openai"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.settings.capabilities.clone();
        let types = capabilities.provider_tools;
        capabilities.provider_tools = self.rejected_tools.remove_from(types);
        capabilities
    }

    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        responses::unsupported(item, &self.settings.capabilities)
    }

    fn reads_compaction(&self) -> bool {
        true
    }

    fn ignored_options(&self, options: &ModelOptions) -> Vec<&'static str> {
        responses::ignored(options)
    }

    fn send(&self, mut request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(async move {
            let wanted = self.connection.streaming(request.options.stream);
            request.options.stream = wanted;
            let lowered = responses::lower(&request, &self.settings)?;
            let accept = answer::accepts(wanted);
            let sent = self
                .connection
                .post("responses", lowered.body.clone(), accept)
                .await;
            let body = sent.map_err(|error| {
                self.learn_from(error, &request.options.provider, &lowered.body)
            })?;
            let mut provider = request.options.provider.clone();
            // Tools that the operator or the host adds to the body as they are.
            let extra = [&self.settings.extra, &request.options.extra].into_iter();
            let added = extra.filter_map(|extra| extra.get("tools")?.as_array());
            let tools = provider.tools.iter().chain(added.flatten());
            provider.tools = tools.cloned().collect();
            let lift = || ResponsesLift::new(provider.clone());
            let whole = |body: &str| lift().whole(body);
            answer::of(body, wanted, lift(), whole, lowered.tools).await
        })
    }
}
