//! `OpenAI`'s Chat Completions, as most servers speak it.

use bytes::Bytes;
use haft_core::{
    BoxFuture, Capabilities, ForcedChoice, Item, Model, ModelError, ModelOptions, ModelRequest,
    ModelStream, Streaming, UnsupportedContent,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::accepts;
use crate::builders::connection_builders;
use crate::config::{Parts, process_environment, required_variable};
use crate::frame::SseParser;
use crate::http::{Body, Connection, Forwarded, Secret};
use crate::lift::chat::{ChatLift, Recover};
use crate::lift::quoted::SentText;
use crate::lift::{lifted, ready};
use crate::lower::body::json;
use crate::lower::chat::{self, ChatForm, request, tools, unsupported};
use crate::lower::schema::Profile;
use crate::lower::tools::LeftOut;
use crate::reasoning_field::{ObservedField, ReasoningField, ReasoningMember};
use crate::{CapabilityOverrides, ConfigError, Lookup};

const BASE_URL: &str = "https://api.openai.com/v1";
const PATH: &str = "chat/completions";

/// A model behind the Chat Completions API: `OpenAI` itself, vLLM, llama.cpp, `LiteLLM`, LM Studio
/// and all the others.
///
/// What a server can do is taken from which one it is ([`ChatServer`]) and can be corrected
/// ([`capabilities`](Self::with_capabilities)). Nothing is sent that was not asked for.
///
/// ```
/// use haft_core::Model;
/// use haft_models::OpenAiChat;
/// let model = OpenAiChat::new("qwen3-8b").base_url("http://127.0.0.1:8080/v1").api_key("sk-local");
/// assert_eq!((model.name(), model.provider()), ("qwen3-8b", "openai"));
/// assert!(!format!("{model:?}").contains("sk-local"));
/// ```
#[derive(Debug, Clone)]
pub struct OpenAiChat {
    model: String,
    connection: Connection,
    is_openai: bool,
    quirks: ChatQuirks,
    overrides: CapabilityOverrides,
    context_tokens: Option<u64>,
    extra: Map<String, Value>,
    /// Under which member the server gave reasoning so far.
    observed: ObservedField,
}

/// What is special about a server. What is not said follows from which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChatQuirks {
    /// Which server it is; `openai` at its own address, else `other`.
    pub server: Option<ChatServer>,
    /// Whether to ask for the cost of a streamed answer (`stream_options`); yes if nothing is said.
    pub stream_usage: Option<bool>,
    /// Whether instructions come from the `developer` instead of the `system`.
    pub developer_role: bool,
    /// Whether the limit is called `max_completion_tokens` instead of `max_tokens`; so it is at
    /// `OpenAI`.
    pub max_completion_tokens: Option<bool>,
    /// Whether the server knows `verbosity`, `service_tier`, `safety_identifier` and
    /// `prompt_cache_key`, which strict servers refuse; so it does at `OpenAI`.
    pub openai_members: Option<bool>,
    /// Whether calls that the model writes as JSON into its text are taken as calls, also beside other
    /// text, several of them, and in the forms of the API (`function`, `tool_calls`). Text then comes
    /// in one piece at the end. The limits of `recover_lone_call` hold here too.
    pub recover_calls: bool,
    /// The member of assistant messages in which reasoning goes back with the tool calls that it led
    /// to. If not set: the one in which the server gives reasoning; until it has given some,
    /// `reasoning` for `vllm`, none for `openai` and `reasoning_content` for others.
    pub reasoning_field: Option<ReasoningField>,
    /// Whether an answer that is nothing but one call written as JSON is taken as that call: bare, in a fence, or
    /// between `<tool_call>` tags, with exactly the members `name`, that of a tool that was offered, and `arguments` or
    /// `parameters`, an object. Never where the request demands a form of the answer, or where the same call stands in
    /// the conversation. Text is held back only while it can still become one. Yes if nothing is said, except at
    /// `OpenAI`, which reads its models' calls itself.
    pub recover_lone_call: Option<bool>,
}

/// Servers whose abilities are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ChatServer {
    /// `OpenAI` itself, or a proxy that passes everything on.
    Openai,
    /// vLLM.
    Vllm,
    /// llama.cpp's server: it takes a named function for `auto`, and `none` only stops it from
    /// reading calls.
    LlamaCpp,
    /// Any other: what not every server can do is not asked for.
    Other,
}

impl OpenAiChat {
    /// This model at `OpenAI`, without a key.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            connection: Connection::new(BASE_URL),
            is_openai: true,
            quirks: ChatQuirks::default(),
            overrides: CapabilityOverrides::default(),
            context_tokens: None,
            extra: Map::new(),
            observed: ObservedField::default(),
        }
    }

    /// This model with the key in `OPENAI_API_KEY`, at `OPENAI_BASE_URL` if that is set.
    pub fn from_env(model: impl Into<String>) -> Result<Self, ConfigError> {
        Self::from_env_with(model, &process_environment)
    }

    /// [`from_env`](Self::from_env), with variables from elsewhere.
    ///
    /// ```
    /// use haft_models::OpenAiChat;
    /// let error = OpenAiChat::from_env_with("gpt-5.2", &|_| None).unwrap_err();
    /// assert!(error.to_string().contains("`OPENAI_API_KEY`"));
    /// ```
    pub fn from_env_with(
        model: impl Into<String>,
        variables: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        let key = required_variable("OPENAI_API_KEY", variables)?;
        let mut chat = Self::new(model);
        if let Some(base_url) = variables("OPENAI_BASE_URL").filter(|url| !url.trim().is_empty()) {
            chat = chat.base_url(&base_url);
        }
        let chat = chat.api_key(key);
        chat.connection.check()?;
        Ok(chat)
    }

    pub(crate) fn configured(parts: &Parts<'_>) -> Result<Self, ConfigError> {
        let config = parts.config;
        let mut chat = Self::new(config.model());
        let mut connection = parts.connection(BASE_URL)?;
        if let Some(key) = parts.api_key("OPENAI_API_KEY")? {
            connection = connection.bearer(key);
        }
        chat.is_openai = is_openai(config.base_url.as_deref().unwrap_or(BASE_URL));
        chat.connection = parts.checked(connection)?;
        chat.quirks = config.chat.unwrap_or_default();
        chat.overrides = config.capabilities;
        chat.context_tokens = config.context_tokens;
        chat.extra.clone_from(&config.extra);
        Ok(chat)
    }

    /// Sets where the API is, up to and with `/v1`.
    #[must_use]
    pub fn base_url(mut self, base_url: &str) -> Self {
        self.is_openai = is_openai(base_url);
        self.connection = self.connection.base_url(base_url);
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.connection = self.connection.bearer(key.into());
        self
    }

    connection_builders!();

    /// Sets what is special about the server.
    #[must_use]
    pub fn quirks(mut self, quirks: ChatQuirks) -> Self {
        self.quirks = quirks;
        self
    }

    /// Corrects what the server is taken to be able to do.
    #[must_use]
    pub fn with_capabilities(mut self, overrides: CapabilityOverrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// Sets how many tokens fit.
    #[must_use]
    pub fn context_tokens(mut self, tokens: u64) -> Self {
        self.context_tokens = Some(tokens);
        self
    }

    /// Sets members to put into every request as they are.
    #[must_use]
    pub fn extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = extra;
        self
    }

    /// The tools of a request that this model would not be shown, and why.
    pub fn left_out(&self, request: &ModelRequest) -> Vec<LeftOut> {
        tools(request, &self.form()).left_out().to_vec()
    }

    /// Passes a Chat Completions body on to the server, and whatever it answers back: `model` becomes
    /// this one's name, the connection adds its own headers, and nothing else changes.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), haft_core::ModelError> {
    /// use haft_models::OpenAiChat;
    /// use serde_json::json;
    /// let model = OpenAiChat::new("qwen3-8b").base_url("http://127.0.0.1:8080/v1");
    /// let body = json!({"model": "public-name", "messages": [{"role": "user", "content": "hi"}]});
    /// let answer = model.forward(body.as_object().cloned().unwrap_or_default()).await?;
    /// assert_eq!(answer.status, 200);
    /// # Ok(()) }
    /// ```
    pub async fn forward(&self, mut body: Map<String, Value>) -> Result<Forwarded, ModelError> {
        body.insert("model".into(), self.model.as_str().into());
        let is_streamed = body.get("stream").and_then(Value::as_bool) == Some(true);
        let streaming = if is_streamed {
            Streaming::Pieces
        } else {
            Streaming::Whole
        };
        self.forward_bytes(json(&body).into(), streaming).await
    }

    /// [`forward`](Self::forward) for a body that is ready to be sent: not a byte of it changes, so
    /// its `model` must be what the server calls it ([`name`](Model::name)) and its `stream` what
    /// `streaming` says.
    pub async fn forward_bytes(
        &self,
        body: Bytes,
        streaming: Streaming,
    ) -> Result<Forwarded, ModelError> {
        let accept = accepts(streaming);
        self.connection.forward(PATH, body, accept).await
    }

    fn server(&self) -> ChatServer {
        let by_address = if self.is_openai {
            ChatServer::Openai
        } else {
            ChatServer::Other
        };
        self.quirks.server.unwrap_or(by_address)
    }

    fn takes_openai_members(&self) -> bool {
        let is_openai = self.server() == ChatServer::Openai;
        self.quirks.openai_members.unwrap_or(is_openai)
    }

    fn form(&self) -> ChatForm<'_> {
        let is_openai = self.server() == ChatServer::Openai;
        let new_name = self.quirks.max_completion_tokens.unwrap_or(is_openai);
        ChatForm {
            model: &self.model,
            capabilities: self.capabilities(),
            developer_role: self.quirks.developer_role,
            stream_usage: self.quirks.stream_usage.unwrap_or(true),
            max_tokens_member: if new_name {
                "max_completion_tokens"
            } else {
                "max_tokens"
            },
            openai_members: self.takes_openai_members(),
            profile: if is_openai {
                Profile::Openai
            } else {
                Profile::Generic
            },
            reasoning: self.reasoning_member(),
            extra: &self.extra,
        }
    }

    fn reasoning_member(&self) -> ReasoningMember {
        let fallback = match self.server() {
            ChatServer::Openai => ReasoningField::None,
            // Since 0.12 it reads no other name: https://github.com/vllm-project/vllm/issues/38488
            ChatServer::Vllm => ReasoningField::Reasoning,
            ChatServer::LlamaCpp | ChatServer::Other => ReasoningField::ReasoningContent,
        };
        let known = self.quirks.reasoning_field.or_else(|| self.observed.get());
        ReasoningMember::new(known, fallback)
    }

    /// The body without reasoning, if `error` rejects the reasoning in `sent`.
    ///
    /// Strict servers (Mistral, Groq) reject members that they do not know, and reasoning that
    /// another model wrote may be in the conversation.
    fn body_without_reasoning(
        &self,
        asked: &ModelRequest,
        sent: &Bytes,
        error: &ModelError,
    ) -> Option<Bytes> {
        let is_about_reasoning = matches!(error.status, Some(400 | 422))
            && error.message.contains("reasoning")
            && self.quirks.reasoning_field.is_none();
        if !is_about_reasoning {
            return None;
        }
        let form = ChatForm {
            reasoning: ReasoningMember::none(),
            ..self.form()
        };
        let (without, _) = request(asked, &form).ok()?;
        (without != *sent).then_some(without)
    }

    /// Posts a request; once more without reasoning where the server rejects that.
    async fn post(
        &self,
        asked: &ModelRequest,
        sent: Bytes,
        accept: &'static str,
    ) -> Result<Body, ModelError> {
        let error = match self.connection.post(PATH, sent.clone(), accept).await {
            Err(error) => error,
            answered => return answered,
        };
        let Some(without) = self.body_without_reasoning(asked, &sent, &error) else {
            return Err(error);
        };
        // Whatever fails now, the first error is the one to report.
        let Ok(body) = self.connection.post(PATH, without, accept).await else {
            return Err(error);
        };
        tracing::warn!(
            model = self.model,
            "the server rejects reasoning in assistant messages: it is left out from now on; set \
             `chat.reasoning_field` of the model"
        );
        self.observed.reject();
        Ok(body)
    }

    /// Which calls are recovered from the text of the answer to a request.
    fn recover(&self, asked: &ModelRequest) -> Recover {
        let is_openai = self.server() == ChatServer::Openai;
        let mut extra = [&self.extra, &asked.options.extra].into_iter();
        let demands_form =
            asked.demands_form() || extra.any(|extra| extra.contains_key("response_format"));
        if demands_form {
            // The text is the answer, also where that is JSON which looks like a call.
            Recover::Nothing
        } else if self.quirks.recover_calls {
            Recover::Calls
        } else if self.quirks.recover_lone_call.unwrap_or(!is_openai) {
            Recover::LoneCall
        } else {
            Recover::Nothing
        }
    }

    async fn ask(&self, mut asked: ModelRequest) -> Result<ModelStream, ModelError> {
        asked.options.stream = self.connection.streaming(asked.options.stream);
        let (body, tools) = request(&asked, &self.form())?;
        let in_pieces = asked.options.stream == Streaming::Pieces;
        let accept = accepts(asked.options.stream);
        let body = self.post(&asked, body, accept).await?;
        let lift = ChatLift::new(tools, self.recover(&asked), SentText::of(&asked))
            .observing(self.observed.clone());
        // Some servers do not do what they are asked; what they say they send counts.
        let comes_in_pieces = match body.content_type() {
            "text/event-stream" => true,
            "application/json" => false,
            _ => in_pieces,
        };
        if comes_in_pieces {
            return Ok(lifted(body, SseParser::default(), lift));
        }
        let redactor = body.redactor().clone();
        let whole = body.whole().await?;
        let events = lift.whole(&String::from_utf8_lossy(&whole));
        Ok(ready(events.map_err(|error| redactor.clean_error(error))?))
    }
}

/// Whether an address is `OpenAI`'s own.
pub(crate) fn is_openai(base_url: &str) -> bool {
    let rest = base_url.trim().strip_prefix("https://api.openai.com");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
}

impl Model for OpenAiChat {
    fn name(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> &'static str {
        "openai"
    }

    fn capabilities(&self) -> Capabilities {
        let server = self.server();
        let is_openai = server == ChatServer::Openai;
        let usual = Capabilities {
            supports_dynamic_tools: true,
            parallel_calls: is_openai || server == ChatServer::Vllm,
            strict_schemas: is_openai,
            named_choice: server != ChatServer::LlamaCpp,
            forced_choice: match server {
                ChatServer::Openai | ChatServer::Vllm => ForcedChoice::Named,
                ChatServer::LlamaCpp | ChatServer::Other => ForcedChoice::OnlyTool,
            },
            none_choice: is_openai,
            native_deferred_loading: false,
            tool_references: false,
            // Part of the protocol. A model that cannot see says so, and nothing is left out.
            image_input: true,
            file_input: is_openai,
            video_input: false,
            structured_output: true,
            structured_output_with_tools: is_openai,
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
        chat::ignored(options, self.takes_openai_members())
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(self.ask(request))
    }
}
