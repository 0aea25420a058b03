//! What every adapter has: an endpoint that may yet be wrong, connections and limits.

use std::time::Duration;

use bytes::Bytes;
use haft_core::{ModelError, ModelErrorKind, Streaming};

use super::client::too_slow;
use super::{Body, Endpoint, EndpointError, Forwarded, Http, Secret, Timeouts};

/// The longest answer to the question how a server is.
const MAX_PING_BYTES: u64 = 1024 * 1024;

/// An adapter's way to its provider.
///
/// Its builders never fail: a mistake is kept and told by [`check`](Self::check) and by every
/// request.
#[derive(Debug, Clone)]
pub struct Connection {
    http: Http,
    base_url: Secret,
    headers: Vec<Header>,
    endpoint: Result<Endpoint, EndpointError>,
    timeouts: Timeouts,
}

#[derive(Debug, Clone)]
enum Header {
    Bearer(Secret),
    Named(String, Secret),
}

impl Connection {
    /// To a provider at this address.
    pub fn new(base_url: &str) -> Self {
        Self {
            http: Http::default(),
            base_url: base_url.into(),
            headers: Vec::new(),
            endpoint: Endpoint::new(base_url),
            timeouts: Timeouts::default(),
        }
    }

    /// Sets another address.
    #[must_use]
    pub fn base_url(mut self, base_url: &str) -> Self {
        self.base_url = base_url.into();
        self.resolved()
    }

    /// Adds a key in the `Authorization` header.
    #[must_use]
    pub fn bearer(mut self, key: Secret) -> Self {
        self.headers.push(Header::Bearer(key));
        self.resolved()
    }

    /// Adds a header, in place of one with the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: Secret) -> Self {
        self.headers.push(Header::Named(name.to_owned(), value));
        self.resolved()
    }

    fn resolved(mut self) -> Self {
        let bare = Endpoint::new(self.base_url.expose());
        self.endpoint = self.headers.iter().cloned().fold(bare, |endpoint, header| {
            endpoint.and_then(|endpoint| match header {
                Header::Bearer(key) => endpoint.bearer(key),
                Header::Named(name, value) => endpoint.header(&name, value),
            })
        });
        self
    }

    /// Sets how long each wait may take.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        if timeouts.connect != self.timeouts.connect {
            self.http = Http::new(timeouts.connect);
        }
        self.timeouts = timeouts;
        self
    }

    /// Shares connections with others.
    #[must_use]
    pub fn http(mut self, http: Http) -> Self {
        self.http = http;
        self
    }

    /// Whether it can be used at all.
    pub fn check(&self) -> Result<(), EndpointError> {
        self.endpoint.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// The base address without its query, if it can be used.
    pub fn base(&self) -> Option<String> {
        self.endpoint.as_ref().ok().map(Endpoint::base)
    }

    /// How an answer is asked for, where it does not matter to whoever reads it: in one piece from a
    /// server in one's own network, which costs both sides least. Between here and a provider out there
    /// stand others who cut off what is silent for a minute, so there it comes in pieces.
    ///
    /// ```
    /// use haft_core::Streaming;
    /// use haft_models::http::Connection;
    /// let near = Connection::new("http://127.0.0.1:8000/v1");
    /// let far = Connection::new("https://api.example.com/v1");
    /// assert_eq!(near.streaming(Streaming::Either), Streaming::Whole);
    /// assert_eq!(far.streaming(Streaming::Either), Streaming::Pieces);
    /// assert_eq!(far.streaming(Streaming::Whole), Streaming::Whole);
    /// ```
    pub fn streaming(&self, wanted: Streaming) -> Streaming {
        match wanted {
            Streaming::Either if self.endpoint.as_ref().is_ok_and(Http::is_direct) => {
                Streaming::Whole
            }
            Streaming::Either => Streaming::Pieces,
            wanted => wanted,
        }
    }

    /// Sends `body` to `path`.
    pub async fn post(
        &self,
        path: &str,
        body: Bytes,
        accept: &'static str,
    ) -> Result<Body, ModelError> {
        self.http
            .post(self.endpoint()?, path, body, accept, &self.timeouts)
            .await
    }

    /// Sends `body` to `path` and takes any answer, so that it can be passed on.
    pub async fn forward(
        &self,
        path: &str,
        body: Bytes,
        accept: &'static str,
    ) -> Result<Forwarded, ModelError> {
        self.http
            .forward(self.endpoint()?, path, body, accept, &self.timeouts)
            .await
    }

    /// Asks for what is at `path`, in no more time than this and without looking at the answer: one
    /// that is no success, but no fault of the server's either, will do.
    pub async fn ping(&self, path: &str, timeout: Duration) -> Result<(), ModelError> {
        let timeouts = Timeouts {
            header: timeout,
            idle: timeout,
            max_body_bytes: MAX_PING_BYTES,
            ..self.timeouts
        };
        let asked = async {
            let body = self.http.get(self.endpoint()?, path, &timeouts).await?;
            // Only a connection whose answer was read to its end can be used again.
            body.whole().await.map(drop)
        };
        match tokio::time::timeout(timeout, asked).await {
            Ok(Err(error)) if error.status.is_some_and(|status| status < 500) => Ok(()),
            Ok(asked) => asked,
            Err(_) => Err(too_slow("no answer came", timeout)),
        }
    }

    fn endpoint(&self) -> Result<&Endpoint, ModelError> {
        let endpoint = self.endpoint.as_ref();
        endpoint.map_err(|error| ModelError::new(ModelErrorKind::InvalidRequest, error.to_string()))
    }
}
