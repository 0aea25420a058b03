//! How haft shows who it is to a server that asks for authorization.

use std::path::{Path, PathBuf};

use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;

use super::VariableLookup;
use super::secrets::token_in;
use crate::oauth::check_key;
use crate::secret::Secret;

/// What a file says about authorization: `[mcp.NAME.oauth]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OAuthConfig {
    /// The client's id. An `https` address is that of a document that describes the client. Without one
    /// the client is registered when somebody logs in, where the server allows that.
    pub client_id: Option<String>,
    /// The variable that holds the client's secret.
    pub client_secret_env: Option<String>,
    /// The file that holds the client's secret.
    pub client_secret_file: Option<PathBuf>,
    /// The file that holds the private key of a client that logs in for itself, in PEM, in place of a
    /// secret.
    pub private_key_file: Option<PathBuf>,
    /// The scopes that are asked for; those that the server names if none are given.
    pub scopes: Vec<String>,
    /// Who logs in.
    pub grant: Grant,
    /// The port of `127.0.0.1` that the browser comes back to, for clients that are registered with a fixed address:
    /// `http://127.0.0.1:PORT/callback`. Any free port if not set.
    pub callback_port: Option<u16>,
    /// Whether every tenant has a login of its own (`haft mcp login NAME --user TENANT`), which is used for its calls
    /// only. A tenant without one is refused.
    pub per_user: bool,
}

/// Who logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// A person, in a browser.
    #[default]
    Login,
    /// The client itself, with its id and its secret or key.
    ClientCredentials,
}

/// How haft shows who it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OAuthSettings {
    /// Who haft is.
    pub client: OAuthClient,
    /// The scopes that are asked for; those that the server names if there are none.
    pub scopes: Vec<String>,
    /// The port that the browser comes back to; any free one if not set.
    pub callback_port: Option<u16>,
    /// Whether every tenant has a login of its own.
    pub per_user: bool,
}

/// Who haft is for an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OAuthClient {
    /// Nobody yet: it is registered when a person logs in.
    #[default]
    Unknown,
    /// Somebody whom the authorization server knows, on behalf of a person.
    Registered {
        /// The id.
        id: String,
        /// The secret, if there is one.
        secret: Option<Secret>,
    },
    /// Somebody who is described at this address, on behalf of a person. Where the authorization
    /// server does not read such documents, the client is registered.
    Described(Url),
    /// Somebody whom the authorization server knows, on its own behalf.
    Itself {
        /// The id.
        id: String,
        /// How it shows that it is that.
        proof: Proof,
    },
}

/// How a client shows who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proof {
    /// With a secret that the authorization server knows as well.
    Secret(Secret),
    /// With a private key: P-256 or RSA, in PEM, as PKCS #8.
    Key(Secret),
}

impl OAuthSettings {
    pub(crate) fn secret(&self) -> Option<&Secret> {
        match &self.client {
            OAuthClient::Registered { secret, .. } => secret.as_ref(),
            OAuthClient::Itself {
                proof: Proof::Secret(secret) | Proof::Key(secret),
                ..
            } => Some(secret),
            OAuthClient::Unknown | OAuthClient::Described(_) => None,
        }
    }
}

impl OAuthConfig {
    /// Reads the secret and checks everything; an error is a key below `oauth` and what is wrong.
    pub(super) fn resolve(
        &self,
        variables: VariableLookup<'_>,
    ) -> Result<OAuthSettings, (&'static str, String)> {
        let secret = self.secret(variables)?;
        if let Some(file) = &self.private_key_file {
            return self.with_key(file, secret.is_some());
        }
        let client = match (self.grant, self.client_id.clone(), secret) {
            (Grant::Login, None, None) => OAuthClient::Unknown,
            (Grant::Login, Some(id), secret) => match described(&id).filter(|_| secret.is_none()) {
                Some(url) => OAuthClient::Described(url),
                None => OAuthClient::Registered { id, secret },
            },
            (Grant::ClientCredentials, Some(id), Some(secret)) => OAuthClient::Itself {
                id,
                proof: Proof::Secret(secret),
            },
            (_, None, _) => return Err(("oauth.client_id", "it is missing: give one".into())),
            (Grant::ClientCredentials, Some(_), None) => {
                let reason = "the grant `client-credentials` needs a proof: give `client_secret_env`, `client_secret_file` or `private_key_file`";
                return Err(("oauth.grant", reason.into()));
            }
        };
        self.settings(client)
    }

    /// A client with a key: it can only act for itself.
    fn with_key(
        &self,
        file: &Path,
        has_secret: bool,
    ) -> Result<OAuthSettings, (&'static str, String)> {
        let wrong = |reason: String| Err(("oauth.private_key_file", reason));
        if has_secret {
            return wrong("a secret is given as well: keep one".into());
        }
        let Some(id) = self.client_id.clone() else {
            return Err(("oauth.client_id", "it is missing: give one".into()));
        };
        if self.grant != Grant::ClientCredentials {
            return wrong("it needs the grant `client-credentials`".into());
        }
        let key = token_in(file).and_then(|key| check_key(&key).map(|()| key));
        match key {
            Ok(key) => self.settings(OAuthClient::Itself {
                id,
                proof: Proof::Key(key),
            }),
            Err(reason) => wrong(reason),
        }
    }

    fn settings(&self, client: OAuthClient) -> Result<OAuthSettings, (&'static str, String)> {
        let is_scope =
            |scope: &String| !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic());
        if !self.scopes.iter().all(is_scope) {
            let reason = "a scope is one word without blanks: write one per entry";
            return Err(("oauth.scopes", reason.into()));
        }
        if self.per_user && self.grant == Grant::ClientCredentials {
            let reason = "the grant `client-credentials` has no users: remove one of the two";
            return Err(("oauth.per_user", reason.into()));
        }
        Ok(OAuthSettings {
            per_user: self.per_user,
            client,
            scopes: self.scopes.clone(),
            callback_port: self.callback_port,
        })
    }

    fn secret(
        &self,
        variables: VariableLookup<'_>,
    ) -> Result<Option<Secret>, (&'static str, String)> {
        match (&self.client_secret_env, &self.client_secret_file) {
            (None, None) => Ok(None),
            (Some(name), None) => match variables(name).as_deref().map(str::trim) {
                None | Some("") => {
                    let reason = format!("the variable `{name}` is not set: set it");
                    Err(("oauth.client_secret_env", reason))
                }
                Some(secret) => Ok(Some(Secret::new(secret))),
            },
            (None, Some(file)) => token_in(file)
                .map(Some)
                .map_err(|reason| ("oauth.client_secret_file", reason)),
            (Some(_), Some(_)) => Err((
                "oauth.client_secret_file",
                "`client_secret_env` is given as well: keep one".into(),
            )),
        }
    }
}

/// The address of a document, if an id is one.
fn described(id: &str) -> Option<Url> {
    let url = Url::parse(id).ok()?;
    (url.scheme() == "https" && url.has_host() && url.path() != "/").then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<OAuthSettings, (&'static str, String)> {
        let config: OAuthConfig = toml::from_str(text).unwrap();
        config.resolve(&|name| (name == "SECRET").then(|| "hunter2".to_owned()))
    }

    #[test]
    fn every_kind_of_client_is_told_apart() {
        assert_eq!(resolve("").unwrap().client, OAuthClient::Unknown);
        let known = resolve("client_id = 'x'\nscopes = ['a', 'b:c']").unwrap();
        let id = || "x".to_owned();
        assert_eq!(
            known.client,
            OAuthClient::Registered {
                id: id(),
                secret: None
            }
        );
        assert_eq!(known.scopes, ["a", "b:c"]);
        let described = resolve("client_id = 'https://me.example/client.json'").unwrap();
        assert!(matches!(described.client, OAuthClient::Described(_)));
        let itself = "client_id = 'x'\nclient_secret_env = 'SECRET'\ngrant = 'client-credentials'";
        let itself = resolve(itself).unwrap();
        let secret = Secret::new("hunter2");
        assert!(!format!("{itself:?}").contains("hunter2"));
        let proof = Proof::Secret(secret);
        assert_eq!(itself.client, OAuthClient::Itself { id: id(), proof });
    }

    #[test]
    fn what_cannot_work_is_told_with_its_key() {
        for (text, key) in [
            ("client_secret_env = 'SECRET'", "oauth.client_id"),
            (
                "client_id = 'x'\nclient_secret_env = 'OTHER'",
                "oauth.client_secret_env",
            ),
            (
                "client_id = 'x'\nclient_secret_file = '/no/such/file'",
                "oauth.client_secret_file",
            ),
            (
                "client_id = 'x'\nclient_secret_env = 'SECRET'\nclient_secret_file = 'x'",
                "oauth.client_secret_file",
            ),
            (
                "client_id = 'x'\ngrant = 'client-credentials'",
                "oauth.grant",
            ),
            (
                "client_id = 'x'\nprivate_key_file = 'x'",
                "oauth.private_key_file",
            ),
            (
                "client_id = 'x'\nprivate_key_file = '/no/such'\ngrant = 'client-credentials'",
                "oauth.private_key_file",
            ),
            ("scopes = ['a b']", "oauth.scopes"),
            ("scopes = ['']", "oauth.scopes"),
        ] {
            assert_eq!(resolve(text).unwrap_err().0, key, "{text}");
        }
    }
}
