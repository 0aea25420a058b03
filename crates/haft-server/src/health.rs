//! How the server is: part by part, `ok` or what is wrong.
//!
//! Nothing here tells an address, a key or what a provider said; those are in the log.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_core::Store;
use haft_models::pool::{Pool, Standing};
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::app::App;

/// How long the store may take to say that it works.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// How long what it said holds: anybody may ask, and each question costs a write.
const STORE_MEMORY: Duration = Duration::from_secs(1);

/// What a part says that has nothing to complain of.
const OK: &str = "ok";

/// Whether requests can be served.
#[derive(Debug, Serialize)]
pub(crate) struct Readiness {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Parts>,
}

#[derive(Debug, Serialize)]
struct Parts {
    /// Whether it goes on.
    server: String,
    store: String,
    /// Whether the file of keys can be read; said only where it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<&'static str>,
    /// Whether a backend of the default model can be asked.
    model: String,
    /// All backends by their names.
    backends: BTreeMap<String, String>,
}

impl Readiness {
    /// Looks at every part.
    pub(crate) async fn of(app: &App) -> Self {
        let server = if app.lifetime.is_draining() {
            String::from("it is being stopped")
        } else {
            OK.into()
        };
        let parts = Parts {
            server,
            store: app.store_health.of(&*app.store).await,
            keys: app.keyring.is_unusable().then_some("they cannot be read"),
            model: model(&app.models.default_entry().pool),
            backends: app
                .models
                .members()
                .iter()
                .map(|member| (member.name().to_string(), told(member.standing())))
                .collect(),
        };
        let is_ready = [&parts.server, &parts.store, &parts.model]
            .iter()
            .all(|part| *part == OK)
            && parts.keys.is_none();
        Self {
            status: if is_ready { "ready" } else { "not ready" },
            parts: Some(parts),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.status == "ready"
    }

    /// The same for somebody who is to know nothing more.
    pub(crate) fn verdict(self) -> Self {
        Self {
            parts: None,
            ..self
        }
    }
}

fn model(pool: &Pool) -> String {
    if pool.is_usable() {
        return OK.into();
    }
    match pool.members() {
        [_] => "the backend of the default model is left alone".into(),
        members => format!(
            "all {} backends of the default model are left alone",
            members.len()
        ),
    }
}

fn told(standing: Standing) -> String {
    let seconds = |wait: Duration| wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    match standing {
        Standing::Ready => OK.into(),
        Standing::Resting(wait) => format!("asked last for {} s", seconds(wait)),
        Standing::Open(wait) => format!("left alone for {} s", seconds(wait)),
        Standing::Due => "failed, asked again with the next request".into(),
        Standing::Trying => "failed, being asked again".into(),
        _ => "unknown".into(),
    }
}

/// What the store said last. One asks at a time, the others hear the same.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth(Mutex<Option<(Instant, String)>>);

impl StoreHealth {
    async fn of(&self, store: &dyn Store) -> String {
        let mut last = self.0.lock().await;
        if let Some((when, said)) = &*last
            && when.elapsed() < STORE_MEMORY
        {
            return said.clone();
        }
        let said = match timeout(STORE_PATIENCE, store.check()).await {
            Ok(Ok(())) => OK.into(),
            Ok(Err(error)) => {
                tracing::error!(%error, "the store is not well");
                String::from("it cannot be written")
            }
            Err(_) => {
                tracing::error!("the store does not say how it is");
                format!("it did not answer within {} s", STORE_PATIENCE.as_secs())
            }
        };
        *last = Some((Instant::now(), said.clone()));
        said
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haft_models::OfflineModel;
    use haft_store::MemoryStore;

    use super::*;
    use crate::{ModelEntry, Server};

    #[tokio::test]
    async fn a_server_that_stops_is_not_ready() {
        let server = Server::builder(Arc::new(MemoryStore::new()))
            .model(ModelEntry::new("m", OfflineModel::new()))
            .build()
            .unwrap();
        assert!(Readiness::of(server.app()).await.is_ready());
        server.app().lifetime.stop();
        let readiness = Readiness::of(server.app()).await;
        assert!(!readiness.is_ready());
        let parts = readiness.parts.as_ref().unwrap();
        assert_eq!(parts.server, "it is being stopped");
        assert!(readiness.verdict().parts.is_none());
    }
}
