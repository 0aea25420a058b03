//! The models behind the server, by the names that requests use.

use std::any::Any;
use std::sync::Arc;

use haft_core::Model;
use haft_models::{Backend, OpenAiChat};

use crate::error::{ApiError, ErrorCode};

/// A model and what requests call it.
pub struct ModelEntry {
    /// What requests call it.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The same model, where its server speaks Chat Completions: such bodies are passed on to it as
    /// they are.
    pub chat: Option<Arc<OpenAiChat>>,
}

impl ModelEntry {
    /// A model under this name.
    ///
    /// ```
    /// use haft_models::{OfflineModel, OpenAiChat};
    /// use haft_server::ModelEntry;
    /// assert!(ModelEntry::new("local", OpenAiChat::new("qwen3-8b")).chat.is_some());
    /// assert!(ModelEntry::new("offline", OfflineModel::new()).chat.is_none());
    /// ```
    pub fn new(name: impl Into<String>, model: impl Model) -> Self {
        let chat = (&model as &dyn Any).downcast_ref::<OpenAiChat>();
        let backend = match chat {
            Some(chat) => Backend::from(Arc::new(chat.clone())),
            None => Backend::from(Arc::new(model) as Arc<dyn Model>),
        };
        Self::from_backend(name, [], backend)
    }

    /// What an entry of a configuration describes, under this name and others.
    ///
    /// ```
    /// use haft_models::{Adapter, Backend, ModelConfig};
    /// use haft_server::ModelEntry;
    /// let config = ModelConfig::new("offline", Adapter::Offline);
    /// let backend = Backend::from_config(&config)?;
    /// let entry = ModelEntry::from_backend(config.name, config.aliases, backend);
    /// assert_eq!(entry.name, "offline");
    /// # Ok::<(), haft_models::ConfigError>(())
    /// ```
    #[allow(
        clippy::needless_pass_by_value,
        reason = "the entry takes the backend over; what it holds is shared"
    )]
    pub fn from_backend(
        name: impl Into<String>,
        aliases: impl IntoIterator<Item = String>,
        backend: Backend,
    ) -> Self {
        Self {
            name: name.into(),
            aliases: aliases.into_iter().collect(),
            model: Arc::clone(backend.model()),
            chat: backend.chat().cloned(),
        }
    }
}

/// All of them, in the order of the configuration.
pub(crate) struct Models {
    entries: Vec<ModelEntry>,
    default: usize,
}

impl Models {
    /// None if there is no model, or no such default.
    pub(crate) fn new(entries: Vec<ModelEntry>, default: Option<&str>) -> Option<Self> {
        let default = match default {
            None => 0,
            Some(name) => entries.iter().position(|entry| entry.is_called(name))?,
        };
        (!entries.is_empty()).then_some(Self { entries, default })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ModelEntry> {
        self.entries.iter()
    }

    /// The model that a request means.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&ModelEntry, ApiError> {
        let Some(name) = name else {
            return Ok(&self.entries[self.default]);
        };
        let found = self.entries.iter().find(|entry| entry.is_called(name));
        // Where no entry bears the name, it means what it says.
        let found = found.or_else(|| (name == "default").then(|| &self.entries[self.default]));
        found.ok_or_else(|| {
            let known: Vec<_> = self
                .entries
                .iter()
                .map(|entry| entry.name.as_str())
                .collect();
            let message = format!(
                "there is no model `{}`: use one of {}",
                haft_core::cut(name),
                known.join(", ")
            );
            ApiError::new(ErrorCode::ModelNotFound, message).at("model")
        })
    }
}

impl ModelEntry {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}
