//! Keys for tests, and requests that bring them.

use std::path::Path;
use std::time::Duration;

use haft_server::access::{KeyFile, KeyLimits, NewKey};
use serde_json::Value;

use crate::support::{Answer, Served};

/// Longer than a server believes what it knows of its keys.
const LOOK: Duration = Duration::from_millis(1_100);

/// A data folder with keys.
pub(crate) struct Keys {
    folder: tempfile::TempDir,
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self) -> KeyFile {
        KeyFile::in_folder(self.folder.path())
    }

    pub(crate) fn add(&self, name: &str, tenant: &str) -> String {
        self.add_with(name, tenant, KeyLimits::default())
    }

    pub(crate) fn add_with(&self, name: &str, tenant: &str, limits: KeyLimits) -> String {
        let new = NewKey {
            tenant: tenant.to_owned(),
            limits,
            ..NewKey::named(name)
        };
        self.file().add(new).unwrap().1.expose().to_owned()
    }

    /// One whose time is over.
    pub(crate) fn expired(&self, tenant: &str) -> String {
        let new = NewKey {
            tenant: tenant.to_owned(),
            lifetime: Some(Duration::ZERO),
            ..NewKey::named("expired")
        };
        self.file().add(new).unwrap().1.expose().to_owned()
    }

    /// Revokes a key and waits until a server has heard of it.
    pub(crate) async fn revoke(&self, name: &str) {
        self.file().revoke(name).unwrap();
        tokio::time::sleep(LOOK).await;
    }
}

impl Served {
    /// A request with this key, or without one, by its whole path.
    pub(crate) async fn ask(
        &self,
        key: Option<&str>,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let path = path.strip_prefix("/v1").expect("a path of the API");
        let mut request = match body {
            Some(body) => self.posting(path, body),
            None => self.request(method, path),
        };
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        self.send(request).await
    }

    pub(crate) async fn post_as(&self, key: &str, path: &str, body: Value) -> Answer {
        self.ask(Some(key), "POST", &format!("/v1{path}"), Some(&body))
            .await
    }

    pub(crate) async fn get_as(&self, key: &str, path: &str) -> Answer {
        self.ask(Some(key), "GET", &format!("/v1{path}"), None)
            .await
    }
}
