//! The server: put together, then served on a listener.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use haft_catalog::Catalog;
use haft_core::{Retention, Store};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::app::{App, ConversationLocks, now};
use crate::http;
use crate::live::LiveRuns;
use crate::models::{ModelEntry, Models};
use crate::options::ServerOptions;
use crate::sealed::{KeyFileError, SealingKeys};

/// How often what is too old is looked for.
const CLEANING_PAUSE: Duration = Duration::from_mins(1);

/// How much goes at once when it is cleaned.
const CLEANING_BATCH: usize = 200;

/// How long background runs may take to end when the server stops.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// An Open Responses server.
///
/// ```no_run
/// # use std::sync::Arc;
/// # async fn example(store: Arc<dyn haft_core::Store>, model: impl haft_core::Model) -> Result<(), Box<dyn std::error::Error>> {
/// use haft_server::{ModelEntry, Server};
///
/// let server = Server::builder(store)
///     .model(ModelEntry::new("default", model))
///     .build()?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:4141").await?;
/// server.serve(listener, std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    app: Arc<App>,
}

/// Collects the parts of a [`Server`].
#[must_use = "a server exists only after `build`"]
pub struct ServerBuilder {
    store: Arc<dyn Store>,
    data_dir: Option<PathBuf>,
    models: Vec<ModelEntry>,
    catalog: Catalog,
    options: ServerOptions,
}

/// A server that cannot be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no model, or none of the default's name.
    #[error("there is no model to answer with: add one, and let `default_model` name one of them")]
    NoModel,
    /// Two models share a name.
    #[error("two models are called `{name}`: give each names of its own")]
    DuplicateModel {
        /// The name.
        name: String,
    },
    /// A limit of the loop is zero: every request would fail.
    #[error("`{name}` is 0 and nothing could run: leave it out, or set at least 1")]
    ZeroLimit {
        /// Which.
        name: &'static str,
    },
    /// The keys that seal compacted conversations cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
}

impl ServerBuilder {
    /// Where the server keeps its keys; without one they die with it.
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(directory.into());
        self
    }

    /// Adds a model. The first is the default unless the options name another.
    pub fn model(mut self, entry: ModelEntry) -> Self {
        self.models.push(entry);
        self
    }

    /// The tools that requests may name.
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// What the operator decides.
    pub fn options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// The server.
    pub fn build(self) -> Result<Server, BuildError> {
        let mut names = std::collections::HashSet::new();
        for entry in &self.models {
            for name in std::iter::once(&entry.name).chain(&entry.aliases) {
                if !names.insert(name.clone()) {
                    let name = name.clone();
                    return Err(BuildError::DuplicateModel { name });
                }
            }
        }
        if let Some(name) = self.options.loop_options.zero_limit() {
            return Err(BuildError::ZeroLimit { name });
        }
        let default = self.options.default_model.as_deref();
        let models = Models::new(self.models, default).ok_or(BuildError::NoModel)?;
        let keys = match &self.data_dir {
            Some(directory) => SealingKeys::open(&directory.join("sealing-keys"))?,
            None => SealingKeys::ephemeral()?,
        };
        Ok(Server {
            app: Arc::new(App {
                models,
                catalog: self.catalog,
                store: self.store,
                runs: Arc::new(Semaphore::new(self.options.max_runs)),
                options: self.options,
                live: LiveRuns::default(),
                conversations: ConversationLocks::default(),
                keys,
            }),
        })
    }
}

impl Server {
    /// Puts a server together that keeps its data in this store.
    pub fn builder(store: Arc<dyn Store>) -> ServerBuilder {
        ServerBuilder {
            store,
            data_dir: None,
            models: Vec::new(),
            catalog: Catalog::new(),
            options: ServerOptions::default(),
        }
    }

    /// The API as a router, to be part of an application of your own.
    pub fn router(&self) -> Router {
        http::router(Arc::clone(&self.app))
    }

    /// Answers on the listener until `shutdown` says that it is enough; then it ends what is under
    /// way, background runs included.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        match http::settle_orphans(&self.app).await {
            Ok(0) => {}
            Ok(count) => tracing::warn!(count, "responses of an earlier process were not finished"),
            Err(error) => return Err(std::io::Error::other(error)),
        }
        let cleaner = tokio::spawn(clean(Arc::clone(&self.app)));
        let router = self.router();
        let served = axum::serve(listener, router).with_graceful_shutdown(shutdown);
        let served = served.await;
        cleaner.abort();
        self.stop_background().await;
        served
    }

    async fn stop_background(&self) {
        let live = self.app.live.all();
        for run in &live {
            run.cancel.cancel();
        }
        let over = async {
            for run in &live {
                run.over().await;
            }
        };
        if tokio::time::timeout(STOP_WAIT, over).await.is_err() {
            tracing::warn!("background runs did not end in time");
        }
    }
}

/// Removes what is too old or too much, a little at a time.
async fn clean(app: Arc<App>) {
    let retention = app.options.retention;
    if retention == Retention::default() {
        return;
    }
    loop {
        match app.store.clean(retention, now(), CLEANING_BATCH).await {
            Ok(cleaned) => {
                if cleaned.responses + cleaned.conversations > 0 {
                    tracing::info!(
                        responses = cleaned.responses,
                        conversations = cleaned.conversations,
                        "removed what is kept no longer"
                    );
                }
                if cleaned.has_more {
                    tokio::task::yield_now().await;
                    continue;
                }
            }
            Err(error) => tracing::error!(%error, "the store cannot be cleaned"),
        }
        tokio::time::sleep(CLEANING_PAUSE).await;
    }
}
