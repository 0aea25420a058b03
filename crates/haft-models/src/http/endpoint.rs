//! Where a provider is, and what it is told about who asks.

use std::fmt;
use std::sync::OnceLock;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::{Redactor, Secret};

/// A base address with the headers that every request to it bears. All of them count as secret.
///
/// ```
/// use haft_models::http::Endpoint;
/// let endpoint = Endpoint::new("https://api.example.com/v1/")?.bearer("sk-hunter2".into())?;
/// assert_eq!(endpoint.url("chat/completions").as_str(), "https://api.example.com/v1/chat/completions");
/// assert!(!format!("{endpoint:?}").contains("hunter2"));
/// # Ok::<(), haft_models::http::EndpointError>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    base: Url,
    is_local: bool,
    headers: HeaderMap,
    secrets: Vec<Secret>,
    /// The first address that was asked for, by its path: an adapter asks for it again and again.
    asked: OnceLock<(String, Url)>,
}

impl Endpoint {
    /// An endpoint without headers.
    pub fn new(base_url: &str) -> Result<Self, EndpointError> {
        // The address itself is not repeated in errors: somebody may have put a password into it.
        let refuse = |reason: &str| {
            Err(EndpointError::Address {
                reason: reason.to_owned(),
            })
        };
        if !base_url.contains("://") {
            return refuse("it must begin with `http://` or `https://`");
        }
        let base = Url::parse(base_url.trim()).map_err(|error| EndpointError::Address {
            reason: error.to_string(),
        })?;
        if !matches!(base.scheme(), "http" | "https") {
            return refuse("it must begin with `http://` or `https://`");
        }
        if base.host_str().is_none() {
            return refuse("it names no host");
        }
        if !base.username().is_empty() || base.password().is_some() {
            return refuse("it holds a user or password: use an API key or a header instead");
        }
        // What stands in a query may be a key as well.
        let secrets = base
            .query_pairs()
            .map(|(_, value)| Secret::new(value))
            .collect();
        Ok(Self {
            is_local: is_local(&base),
            base,
            headers: HeaderMap::new(),
            secrets,
            asked: OnceLock::new(),
        })
    }

    /// Adds a key in the `Authorization` header.
    pub fn bearer(mut self, key: Secret) -> Result<Self, EndpointError> {
        let value = header_value("authorization", &format!("Bearer {}", key.expose()))?;
        self.headers.insert(AUTHORIZATION, value);
        self.secrets.push(key);
        Ok(self)
    }

    /// Adds a header, in place of one with the same name.
    pub fn header(mut self, name: &str, value: Secret) -> Result<Self, EndpointError> {
        let header =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| EndpointError::HeaderName {
                name: haft_core::cut(name),
            })?;
        self.headers
            .insert(header, header_value(name, value.expose())?);
        // Both `Bearer xyz` and `xyz` must not be shown.
        if let Some((_, token)) = value.expose().split_once(' ') {
            self.secrets.push(Secret::new(token.trim()));
        }
        self.secrets.push(value);
        Ok(self)
    }

    /// The address of something below the base address. The base's query stays.
    pub fn url(&self, path: &str) -> Url {
        let asked = self
            .asked
            .get_or_init(|| (path.to_owned(), self.below(path)));
        match asked {
            (asked, url) if asked == path => url.clone(),
            _ => self.below(path),
        }
    }

    fn below(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let base = self.base.path().trim_end_matches('/');
        url.set_path(&format!("{base}/{}", path.trim_start_matches('/')));
        url
    }

    /// The base address, without its query.
    pub fn base(&self) -> String {
        let mut base = self.base.clone();
        base.set_query(None);
        base.into()
    }

    /// What takes this endpoint's secrets out of texts.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.secrets.iter().cloned())
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(super) fn is_secure(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// Whether it is on this very machine.
    pub(super) fn is_local(&self) -> bool {
        self.is_local
    }
}

fn is_local(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let by_number = |number: std::net::IpAddr| number.is_loopback();
    host == "localhost" || host.ends_with(".localhost") || bare.parse().is_ok_and(by_number)
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base", &self.base())
            .field(
                "headers",
                &self
                    .headers
                    .keys()
                    .map(HeaderName::as_str)
                    .collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, EndpointError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| EndpointError::HeaderValue {
        name: haft_core::cut(name),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// An endpoint that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// No usable address.
    #[error("the base address cannot be used: {reason}")]
    Address {
        /// Why.
        reason: String,
    },
    /// No name for a header.
    #[error("`{name}` is no name for an HTTP header: use letters, digits and `-`")]
    HeaderName {
        /// What was given.
        name: String,
    },
    /// No value for a header.
    #[error(
        "the value for the HTTP header `{name}` holds characters that none may have: look for a \
         line break at its end"
    )]
    HeaderValue {
        /// The header.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_the_query_stays() {
        let url = |base: &str| {
            Endpoint::new(base)
                .unwrap()
                .url("chat/completions")
                .to_string()
        };
        assert_eq!(url("http://h:1"), "http://h:1/chat/completions");
        let endpoint = Endpoint::new("http://h/v1").unwrap();
        for path in ["responses", "models", "responses"] {
            assert_eq!(endpoint.url(path).path(), format!("/v1/{path}"));
        }
        assert_eq!(url("http://h/v1"), "http://h/v1/chat/completions");
        assert_eq!(
            url("http://h/v1/?api-version=2"),
            "http://h/v1/chat/completions?api-version=2"
        );
    }

    #[test]
    fn bad_addresses_and_headers_are_refused_without_repeating_them() {
        for base in [
            "",
            "api.example.com",
            "ftp://h",
            "http://user:hunter2@h",
            "http://",
        ] {
            let error = Endpoint::new(base).unwrap_err().to_string();
            assert!(
                error.starts_with("the base address") && !error.contains("hunter2"),
                "{error}"
            );
        }
        let endpoint = || Endpoint::new("http://h").unwrap();
        let error = endpoint().bearer("hunter2\n".into()).unwrap_err();
        assert_eq!(
            error,
            EndpointError::HeaderValue {
                name: "authorization".into()
            }
        );
        assert!(endpoint().header("a b", "x".into()).is_err());
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let endpoint = Endpoint::new("http://h/?key=hunter22")
            .unwrap()
            .header("x-api-key", "swordfish".into())
            .unwrap();
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("x-api-key"));
        assert!(
            !shown.contains("swordfish") && !shown.contains("hunter22"),
            "{shown}"
        );
        let cleaned = endpoint.redactor().clean("swordfish hunter22".into());
        assert_eq!(cleaned, "[redacted] [redacted]");
    }

    #[test]
    fn this_machine_is_recognised() {
        for (base, is_local) in [
            ("http://localhost:1", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:8080/v1", true),
            ("http://10.0.0.1", false),
            ("https://example.com", false),
        ] {
            assert_eq!(Endpoint::new(base).unwrap().is_local(), is_local, "{base}");
        }
    }
}
