//! The models behind the server, by the names that requests use.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use haft_core::Model;
use haft_models::pool::{Member, Pool};
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
    /// The same model as its backends.
    pub pool: Arc<Pool>,
}

impl ModelEntry {
    /// A model under this name. It is always asked, however often it fails.
    ///
    /// Where its server speaks Chat Completions, such bodies are passed on to it as they are.
    ///
    /// ```
    /// use haft_models::{OfflineModel, OpenAiChat};
    /// use haft_server::ModelEntry;
    /// assert!(ModelEntry::new("local", OpenAiChat::new("qwen3-8b")).pool.passes_chat());
    /// assert!(!ModelEntry::new("offline", OfflineModel::new()).pool.passes_chat());
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
    pub fn from_backend(
        name: impl Into<String>,
        aliases: impl IntoIterator<Item = String>,
        backend: Backend,
    ) -> Self {
        let name = name.into();
        let member = Member::new(name.as_str(), backend);
        Self::from_pool(name, aliases, Pool::new(Arc::new(member), []))
    }

    /// Several backends as one model, under this name and others.
    ///
    /// ```
    /// use haft_models::http::Http;
    /// use haft_models::{Adapter, ModelConfig};
    /// use haft_server::ModelEntry;
    /// let mut near = ModelConfig::new("near", Adapter::Ollama);
    /// near.failover = vec!["far".into()];
    /// let configs = [near, ModelConfig::new("far", Adapter::Offline)];
    /// let pools = haft_models::pools(&configs, &|_| None, &Http::default())?;
    /// let entries = configs.into_iter().zip(pools);
    /// let entries = entries.map(|(it, pool)| ModelEntry::from_pool(it.name, it.aliases, pool));
    /// assert_eq!(entries.last().unwrap().name, "far");
    /// # Ok::<(), haft_models::ConfigError>(())
    /// ```
    pub fn from_pool(
        name: impl Into<String>,
        aliases: impl IntoIterator<Item = String>,
        pool: Pool,
    ) -> Self {
        let pool = Arc::new(pool);
        Self {
            name: name.into(),
            aliases: aliases.into_iter().collect(),
            model: Arc::clone(&pool) as Arc<dyn Model>,
            pool,
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

    /// The names of all models and their aliases, each once: a name of a model comes before its aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let mut seen = HashSet::new();
        let names = self.entries.iter().flat_map(|entry| {
            let aliases = entry.aliases.iter().map(String::as_str);
            std::iter::once(entry.name.as_str()).chain(aliases)
        });
        names.filter(move |name| seen.insert(*name))
    }

    /// The model of requests that name none.
    pub(crate) fn default_entry(&self) -> &ModelEntry {
        &self.entries[self.default]
    }

    /// The backends of all models, each once.
    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        let mut members: Vec<Arc<Member>> = Vec::new();
        for member in self.entries.iter().flat_map(|entry| entry.pool.members()) {
            if !members.iter().any(|known| Arc::ptr_eq(known, member)) {
                members.push(Arc::clone(member));
            }
        }
        members
    }

    /// The model that a request means.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&ModelEntry, ApiError> {
        let Some(name) = name else {
            return Ok(self.default_entry());
        };
        let found = self.entries.iter().find(|entry| entry.is_called(name));
        // Where no entry bears the name, it means what it says.
        let found = found.or_else(|| (name == "default").then(|| self.default_entry()));
        found.ok_or_else(|| {
            let known: Vec<_> = self.names().collect();
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
