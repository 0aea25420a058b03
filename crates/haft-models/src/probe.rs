//! Finding a model without being told of one.
//!
//! What comes in: the variables of the environment, and the ports that local servers usually have.
//! What goes out: the first model that answers, as an entry that the rest of this crate understands.
//! It asks only which models there are, never waits longer than it is told, and does not take haft's
//! own server for a model.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use haft_core::ModelError;
use serde::Deserialize;
use serde_json::Value;

use crate::http::{Endpoint, Http, Timeouts};
use crate::{Adapter, ChatQuirks, ChatServer, Lookup, ModelConfig, ollama, process_environment};

/// How long a server on this machine is given to answer.
pub const PATIENCE: Duration = Duration::from_millis(300);

/// The model at `OpenAI` where no variable names one.
pub const OPENAI_MODEL: &str = "gpt-5.2";

/// The model at Anthropic where no variable names one.
pub const ANTHROPIC_MODEL: &str = "claude-sonnet-5";

/// How haft's own server signs its models.
const OWN_NAME: &str = "haft";

/// The longest list of models that is read.
const MAX_LIST_BYTES: u64 = 1024 * 1024;

/// Where a server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What it would speak: [`Adapter::Ollama`], or [`Adapter::OpenaiChat`].
    pub adapter: Adapter,
    /// The base address that its adapter would have.
    pub base_url: String,
}

impl Place {
    /// Ollama at this address.
    pub fn ollama(base_url: impl Into<String>) -> Self {
        Self {
            adapter: Adapter::Ollama,
            base_url: base_url.into(),
        }
    }

    /// A server of the `OpenAI` kind at this address, `/v1` included.
    pub fn openai(base_url: impl Into<String>) -> Self {
        Self {
            adapter: Adapter::OpenaiChat,
            base_url: base_url.into(),
        }
    }
}

/// A model that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What its server speaks.
    pub adapter: Adapter,
    /// Where the server is.
    pub base_url: String,
    /// What the server calls the model.
    pub model: String,
    /// Which server it is, if it says so.
    pub server: Option<ChatServer>,
}

impl Found {
    /// The entry for it, under the model's own name.
    ///
    /// ```
    /// use haft_models::probe::Found;
    /// use haft_models::{Adapter, ChatServer};
    /// let found = Found {
    ///     adapter: Adapter::OpenaiChat,
    ///     base_url: "http://127.0.0.1:8000/v1".into(),
    ///     model: "qwen3-8b".into(),
    ///     server: Some(ChatServer::Vllm),
    /// };
    /// let model = haft_models::from_config(&found.config())?;
    /// assert!(model.capabilities().parallel_calls);
    /// # Ok::<(), haft_models::ConfigError>(())
    /// ```
    pub fn config(&self) -> ModelConfig {
        let mut config = ModelConfig::new(self.model.as_str(), self.adapter);
        config.base_url = Some(self.base_url.clone());
        config.chat = self.server.map(|server| ChatQuirks {
            server: Some(server),
            ..ChatQuirks::default()
        });
        config
    }
}

/// Looks for a model on this machine at the [`usual_places`].
pub async fn local(timeout: Duration) -> Option<Found> {
    first_of(usual_places(&process_environment), timeout).await
}

/// Where local servers usually are, the preferred first: Ollama (at `OLLAMA_HOST` if that is set),
/// llama.cpp, vLLM, LM Studio.
///
/// ```
/// let places = haft_models::probe::usual_places(&|_| None);
/// assert_eq!(places[0].base_url, "http://127.0.0.1:11434");
/// assert_eq!(places[1].base_url, "http://127.0.0.1:8080/v1");
/// ```
pub fn usual_places(variables: Lookup<'_>) -> Vec<Place> {
    let ports = [8080, 8000, 1234];
    let others = ports.map(|port| Place::openai(format!("http://127.0.0.1:{port}/v1")));
    let ollama = Place::ollama(ollama::base_url_of(variables));
    std::iter::once(ollama).chain(others).collect()
}

/// The model of the first place that has one. All are asked at once, each for so long.
pub async fn first_of(places: Vec<Place>, timeout: Duration) -> Option<Found> {
    let http = Http::new(timeout);
    let asked = places.into_iter().map(|place| {
        let http = http.clone();
        async move { tokio::time::timeout(timeout, ask(place, &http, timeout)).await }
    });
    // Answers are taken in the order of the places, whichever comes first.
    let mut answers: FuturesOrdered<_> = asked.collect();
    while let Some(answer) = answers.next().await {
        if let Ok(Some(found)) = answer {
            return Some(found);
        }
    }
    None
}

async fn ask(place: Place, http: &Http, timeout: Duration) -> Option<Found> {
    let path = if place.adapter == Adapter::Ollama {
        "api/tags"
    } else {
        "models"
    };
    let listed = match list(&place, path, http, timeout).await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::debug!(base = %place.base_url, %error, "no model is found here");
            return None;
        }
    };
    if listed.iter().any(|model| model.owner() == Some(OWN_NAME)) {
        tracing::debug!(base = %place.base_url, "haft itself answers here");
        return None;
    }
    let model = listed.iter().find(|model| model.can_talk())?;
    Some(Found {
        adapter: place.adapter,
        base_url: place.base_url,
        model: model.name()?.to_owned(),
        server: match model.owner() {
            Some("vllm") => Some(ChatServer::Vllm),
            Some("llamacpp") => Some(ChatServer::LlamaCpp),
            _ => None,
        },
    })
}

async fn list(
    place: &Place,
    path: &str,
    http: &Http,
    timeout: Duration,
) -> Result<Vec<Listed>, ModelError> {
    let invalid = |words: String| ModelError::new(haft_core::ModelErrorKind::Protocol, words);
    let endpoint = Endpoint::new(&place.base_url).map_err(|error| invalid(error.to_string()))?;
    let timeouts = Timeouts {
        connect: timeout,
        header: timeout,
        idle: timeout,
        max_body_bytes: MAX_LIST_BYTES,
    };
    let body = http.get(&endpoint, path, &timeouts).await?.whole().await?;
    let lists: Lists = serde_json::from_slice(&body).map_err(|error| invalid(error.to_string()))?;
    Ok(lists.data.or(lists.models).unwrap_or_default())
}

/// A list of models, in the words of `OpenAI` or of Ollama.
#[derive(Deserialize)]
struct Lists {
    data: Option<Vec<Listed>>,
    models: Option<Vec<Listed>>,
}

/// One model of a list, whatever else it says.
#[derive(Deserialize)]
#[serde(transparent)]
struct Listed(Value);

impl Listed {
    fn text(&self, pointer: &str) -> Option<&str> {
        let text = self.0.pointer(pointer).and_then(Value::as_str);
        text.filter(|text| !text.trim().is_empty())
    }

    fn name(&self) -> Option<&str> {
        self.text("/id").or_else(|| self.text("/name"))
    }

    fn owner(&self) -> Option<&str> {
        self.text("/owned_by")
    }

    /// Models that only turn text into numbers are listed beside the others.
    fn can_talk(&self) -> bool {
        let only_embeds = |word: &str| word.to_lowercase().contains("embed");
        let is_bert = |family: &str| family.to_lowercase().contains("bert");
        self.name().is_some_and(|name| !only_embeds(name))
            && !self.text("/type").is_some_and(only_embeds)
            && !self.text("/details/family").is_some_and(is_bert)
    }
}

/// The model that the variables name: the one at `OpenAI` where `OPENAI_API_KEY` is set, the one at
/// Anthropic where `ANTHROPIC_API_KEY` is.
///
/// Which one is in `OPENAI_MODEL` or `ANTHROPIC_MODEL`, else in `HAFT_MODEL`, else [`OPENAI_MODEL`]
/// or [`ANTHROPIC_MODEL`]; where, in `OPENAI_BASE_URL` or `ANTHROPIC_BASE_URL`.
///
/// ```
/// use haft_models::{Adapter, probe};
/// let variables = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "sk-ant".to_owned());
/// let config = probe::from_environment(&variables).ok_or("nothing there")?;
/// assert_eq!(config.adapter, Adapter::Anthropic);
/// assert_eq!(config.model(), probe::ANTHROPIC_MODEL);
/// # Ok::<(), &str>(())
/// ```
pub fn from_environment(variables: Lookup<'_>) -> Option<ModelConfig> {
    let given = |name: &str| {
        let value = variables(name)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    };
    [
        ("OPENAI", Adapter::OpenaiResponses, OPENAI_MODEL),
        ("ANTHROPIC", Adapter::Anthropic, ANTHROPIC_MODEL),
    ]
    .into_iter()
    .find_map(|(prefix, adapter, usual)| {
        let key = format!("{prefix}_API_KEY");
        given(&key)?;
        let model = given(&format!("{prefix}_MODEL")).or_else(|| given("HAFT_MODEL"));
        let mut config = ModelConfig::new(model.unwrap_or_else(|| usual.to_owned()), adapter);
        config.api_key_env = Some(key);
        config.base_url = given(&format!("{prefix}_BASE_URL"));
        Some(config)
    })
}
