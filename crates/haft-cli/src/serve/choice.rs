//! Which models answer, and why these: the command line, the file, what the environment offers.

use std::future::Future;

use haft::models::http::Http;
use haft::models::probe::{self, Found};
use haft::models::{Adapter, Lookup, ModelConfig, from_config_with};

use crate::arguments::ModelChoice;
use crate::failure::Failure;

/// What requests may call the only model, whatever it is.
const USUAL_NAME: &str = "default";

/// The models of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) models: Vec<ModelConfig>,
    /// The one for requests that name none.
    pub(crate) default_model: String,
    pub(crate) reason: Reason,
}

/// Why these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The command line says so.
    Flag,
    /// This file says so.
    File(String),
    /// The variable with a provider's key is set.
    Variable(String),
    /// A server answers at its usual address.
    Answers { base_url: String },
    /// Nothing was found.
    Nothing,
}

impl Choice {
    pub(crate) fn new(models: Vec<ModelConfig>, reason: Reason) -> Self {
        let first = models.first().map(|model| model.name.clone());
        Self {
            default_model: first.unwrap_or_default(),
            models,
            reason,
        }
    }

    /// The same with another default, if there is one.
    pub(crate) fn with_default(mut self, name: Option<String>) -> Self {
        if let Some(name) = name {
            self.default_model = name;
        }
        self
    }
}

/// The model of `--model`, with its key and address from the usual variables.
pub(crate) fn by_flag(flag: &ModelChoice, lookup: Lookup<'_>) -> Result<ModelConfig, Failure> {
    let (adapter, name) = match flag {
        ModelChoice::Offline => return Ok(offline()),
        ModelChoice::OpenAiChat(name) => (Adapter::OpenaiChat, name),
        ModelChoice::OpenAiResponses(name) => (Adapter::OpenaiResponses, name),
        ModelChoice::Anthropic(name) => (Adapter::Anthropic, name),
        ModelChoice::Ollama(name) => (Adapter::Ollama, name),
    };
    let mut config = usual(ModelConfig::new(name, adapter));
    let given = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    let (key, base_url) = match adapter {
        Adapter::Anthropic => (Some("ANTHROPIC_API_KEY"), given("ANTHROPIC_BASE_URL")),
        Adapter::Ollama => (None, ollama_address(lookup)),
        _ => (Some("OPENAI_API_KEY"), given("OPENAI_BASE_URL")),
    };
    config.base_url = base_url;
    // The provider itself wants a key; a server of one's own gets one if there is one.
    if config.base_url.is_none() || key.is_some_and(|key| given(key).is_some()) {
        config.api_key_env = key.map(str::to_owned);
    }
    from_config_with(&config, lookup, &Http::default())
        .map_err(|error| Failure::mistake(format!("`--model`: {error}")))?;
    Ok(config)
}

/// Where Ollama is, by its own variable.
fn ollama_address(lookup: Lookup<'_>) -> Option<String> {
    let mut places = probe::usual_places(lookup).into_iter();
    let place = places.find(|place| place.adapter == Adapter::Ollama);
    place.map(|place| place.base_url)
}

/// What is there without being named: a provider's key in the environment, else a server on its
/// usual port of this machine, which is only looked for then, else the model that needs neither.
pub(crate) async fn found(
    by_key: Option<ModelConfig>,
    on_this_machine: impl Future<Output = Option<Found>>,
) -> Choice {
    if let Some(config) = by_key {
        let variable = config.api_key_env.clone().unwrap_or_default();
        return Choice::new(vec![usual(config)], Reason::Variable(variable));
    }
    match on_this_machine.await {
        Some(found) => {
            let config = usual(found.config());
            let base_url = found.base_url;
            Choice::new(vec![config], Reason::Answers { base_url })
        }
        None => Choice::new(vec![offline()], Reason::Nothing),
    }
}

/// The entry, which requests reach by its own name and by the usual one.
fn usual(mut config: ModelConfig) -> ModelConfig {
    if config.name != USUAL_NAME {
        config.aliases.push(USUAL_NAME.to_owned());
    }
    config
}

fn offline() -> ModelConfig {
    usual(ModelConfig::new("offline", Adapter::Offline))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(flag: &str, variables: &[(&str, &str)]) -> Result<ModelConfig, String> {
        let lookup = |name: &str| {
            let mut variables = variables.iter();
            let found = variables.find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        by_flag(&flag.parse().unwrap(), &lookup).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_model_of_the_command_line_has_its_key_and_address_from_the_usual_variables() {
        let error = flagged("anthropic:claude", &[]).unwrap_err();
        assert!(error.contains("`ANTHROPIC_API_KEY` is not set"), "{error}");

        let chat = flagged("openai-chat:qwen3", &[("OPENAI_BASE_URL", "http://h/v1")]).unwrap();
        assert_eq!(chat.name, "qwen3");
        assert_eq!(chat.aliases, ["default"]);
        assert_eq!(
            chat.api_key_env, None,
            "a server of one's own may want none"
        );

        let keyed = [("OPENAI_BASE_URL", "http://h/v1"), ("OPENAI_API_KEY", "k")];
        let chat = flagged("openai-chat:default", &keyed).unwrap();
        assert_eq!(chat.api_key_env.as_deref(), Some("OPENAI_API_KEY"));
        assert!(chat.aliases.is_empty(), "it is called so already");

        let offline = flagged("offline", &[]).unwrap();
        assert_eq!(offline.adapter, Adapter::Offline);
    }

    #[test]
    fn the_address_of_ollama_is_read_as_ollama_reads_it() {
        for (host, address) in [
            ("box", "http://box:11434"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            (":80", "http://127.0.0.1:80"),
            ("https://box", "https://box"),
        ] {
            let config = flagged("ollama:qwen3:8b", &[("OLLAMA_HOST", host)]).unwrap();
            assert_eq!(config.base_url.as_deref(), Some(address));
            assert_eq!(config.model(), "qwen3:8b");
        }
    }

    #[tokio::test]
    async fn a_key_wins_over_a_server_and_a_server_over_the_offline_model() {
        let mut by_key = ModelConfig::new("claude", Adapter::Anthropic);
        by_key.api_key_env = Some("ANTHROPIC_API_KEY".into());
        let local = || async {
            Some(Found {
                adapter: Adapter::Ollama,
                base_url: String::from("http://127.0.0.1:11434"),
                model: String::from("qwen3"),
                server: None,
            })
        };
        let choice = found(Some(by_key), async { panic!("nobody is to be asked") }).await;
        assert_eq!(choice.default_model, "claude");
        assert_eq!(choice.models[0].aliases, ["default"]);
        assert_eq!(choice.reason, Reason::Variable("ANTHROPIC_API_KEY".into()));

        let choice = found(None, local()).await;
        assert_eq!(choice.default_model, "qwen3");
        assert_eq!(choice.models[0].aliases, ["default"]);
        let config = &choice.models[0];
        assert_eq!((config.adapter, config.model()), (Adapter::Ollama, "qwen3"));
        let base_url = String::from("http://127.0.0.1:11434");
        assert_eq!(choice.reason, Reason::Answers { base_url });

        let choice = found(None, async { None }).await;
        assert_eq!(choice.reason, Reason::Nothing);
        assert_eq!(choice.models[0].adapter, Adapter::Offline);
    }
}
