//! The way to a haft server: for every command that asks one.
//!
//! What comes in: an address, a key, and what to ask. What goes out: the server's answer as JSON, or
//! its events one after the other, or one [`RemoteError`] that says what happened and what to do.
//! Every wait has its limit and every answer its size. The key goes to the server and nowhere else:
//! not to the command line, not into an error, not to another server.
//!
//! ```text
//! let remote = Remote::connect(&arguments.remote)?;
//! let response = remote.get(&["responses", &id], &[]).await?;
//! ```

mod address;
mod error;
mod events;
mod path;

use std::time::Duration;

use bytes::Bytes;
use haft::Value;
use haft::models::http::{Body, Endpoint, Http, Timeouts};
use haft::models::process_environment;

use crate::arguments::RemoteArguments;

use self::address::Address;
pub(crate) use self::error::RemoteError;
pub(crate) use self::events::Events;

/// How long a server may take to take a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Its waits, for answers that are there at once.
const SOON: Timeouts = Timeouts {
    connect: CONNECT,
    header: Duration::from_secs(30),
    idle: Duration::from_secs(30),
    max_body_bytes: 256 * 1024 * 1024,
};

/// Its waits, for what a model has to think about. A stream shows a sign of life every few seconds.
const LATER: Timeouts = Timeouts {
    header: Duration::from_mins(10),
    idle: Duration::from_mins(2),
    ..SOON
};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// A server, and the right to ask it.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    http: Http,
    endpoint: Endpoint,
    address: Address,
}

impl Remote {
    /// The server that the arguments, the environment or this folder's configuration name. Nothing
    /// is sent yet.
    pub(crate) fn connect(arguments: &RemoteArguments) -> Result<Self, Box<dyn std::error::Error>> {
        let (mut address, key) = address::find(arguments, &process_environment)?;
        let mut endpoint =
            Endpoint::new(&address.base).map_err(|error| address::refused(&error))?;
        // What stands behind a `?` may be secret.
        address.base = endpoint.base();
        if let Some(key) = key {
            endpoint = endpoint
                .bearer(key)
                .map_err(|error| address::refused(&error))?;
        }
        Ok(Self {
            http: Http::new(CONNECT),
            endpoint,
            address,
        })
    }

    /// Where the server is.
    pub(crate) fn base(&self) -> &str {
        &self.address.base
    }

    /// What is at a path.
    pub(crate) async fn get(
        &self,
        path: &[&str],
        parameters: &[(&str, &str)],
    ) -> Result<Value, RemoteError> {
        let path = path::joined(path).map_err(RemoteError::of_path)?;
        let asked = self
            .http
            .query(&self.endpoint, &path, parameters, JSON, &SOON);
        self.value(asked.await).await
    }

    /// What comes of sending something to a path. It may take its time.
    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, RemoteError> {
        let path = path::joined(path).map_err(RemoteError::of_path)?;
        let asked = self
            .http
            .post(&self.endpoint, &path, bytes(body), JSON, &LATER);
        self.value(asked.await).await
    }

    /// Removes what is at a path.
    pub(crate) async fn delete(&self, path: &[&str]) -> Result<Value, RemoteError> {
        let path = path::joined(path).map_err(RemoteError::of_path)?;
        let asked = self.http.delete(&self.endpoint, &path, &SOON);
        self.value(asked.await).await
    }

    /// The events that come of sending something to a path.
    pub(crate) async fn stream(&self, path: &[&str], body: &Value) -> Result<Events, RemoteError> {
        let path = path::joined(path).map_err(RemoteError::of_path)?;
        let asked = self
            .http
            .post(&self.endpoint, &path, bytes(body), EVENTS, &LATER);
        let body = asked.await.map_err(|error| self.error(error))?;
        Events::read(body, &self.address)
    }

    async fn value(&self, asked: Result<Body, haft::ModelError>) -> Result<Value, RemoteError> {
        let body = asked.map_err(|error| self.error(error))?;
        let whole = body.whole().await.map_err(|error| self.error(error))?;
        serde_json::from_slice(&whole).map_err(|_| RemoteError::no_json(&self.address))
    }

    fn error(&self, error: haft::ModelError) -> RemoteError {
        RemoteError::of(error, &self.address)
    }
}

fn bytes(body: &Value) -> Bytes {
    Bytes::from(body.to_string())
}
