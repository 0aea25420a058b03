//! The ways to a token, with rmcp doing what the protocol says.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haft_core::caught;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata,
    AuthorizationMetadataSource, ClientCredentialsConfig, CredentialStore as _,
    InMemoryCredentialStore, OAuthClientConfig, OAuthHttpClient, StoredCredentials,
};
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::assertion::assertion;
use super::courier::Courier;
use super::login::{LoginError, PastedLines};
use super::redirects::Redirects;
use super::store::Entry;
use super::{LOGIN, TokenStore};
use crate::secret::{Redactor, Secret};
use crate::settings::{OAuthClient, OAuthSettings, Proof};
use crate::text::visible;

/// What haft is called where it registers itself.
const NAME: &str = "haft";

/// How a client with a key says who it is.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The scope without which some servers give no token to refresh with.
const OFFLINE: &str = "offline_access";

/// A token while it is of use.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) token: Secret,
    expires_at: Option<SystemTime>,
    pub(super) scopes: Vec<String>,
}

impl Held {
    pub(super) fn of(credentials: &StoredCredentials) -> Option<Self> {
        let response = serde_json::to_value(credentials.token_response.as_ref()?).ok()?;
        let token = Secret::new(response.get("access_token")?.as_str()?);
        let lasts = response.get("expires_in").and_then(Value::as_u64);
        let expires_at = lasts
            .zip(credentials.token_received_at)
            .and_then(|(lasts, received)| {
                UNIX_EPOCH.checked_add(Duration::from_secs(received.saturating_add(lasts)))
            });
        Some(Self {
            token,
            expires_at,
            scopes: credentials.granted_scopes.clone(),
        })
    }

    /// Whether it will be of no use soon.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        self.expires_at
            .is_some_and(|end| end < SystemTime::now() + time)
    }
}

/// Why there is no token.
#[derive(Debug)]
pub(super) enum NoToken {
    /// A person has to log in.
    Login,
    /// It failed otherwise, perhaps not the next time.
    Failed(LoginError),
}

impl From<LoginError> for NoToken {
    fn from(error: LoginError) -> Self {
        Self::Failed(error)
    }
}

/// One attempt to get a token.
pub(super) struct Flow<'a> {
    pub(super) url: &'a Url,
    pub(super) settings: &'a OAuthSettings,
    pub(super) tokens: &'a TokenStore,
    /// What the server said when it refused.
    pub(super) challenge: Option<&'a str>,
}

/// rmcp's side of an attempt.
struct Session {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    memory: InMemoryCredentialStore,
    courier: Arc<Courier>,
    /// Whether the server says nothing about OAuth, so that the endpoints are guessed.
    is_guessed: bool,
}

impl Flow<'_> {
    /// Finds out who authorizes for the server.
    async fn session(&self, stored: Option<StoredCredentials>) -> Result<Session, LoginError> {
        let courier = Courier::new(self.url).await.map_err(LoginError::Server)?;
        let client: Arc<dyn OAuthHttpClient> = Arc::clone(&courier) as _;
        let memory = InMemoryCredentialStore::new();
        let told = |error: AuthError| self.told(&error, &courier, &[]);
        let opened = async {
            if let Some(stored) = stored {
                memory.save(stored).await?;
            }
            let manager =
                AuthorizationManager::new_with_oauth_http_client(self.url.clone(), client);
            let mut manager = manager.await?;
            manager.set_credential_store(memory.clone());
            let found = manager
                .resolve_metadata_from_challenge(self.challenge)
                .await?;
            manager.set_metadata(found.metadata.clone());
            let is_guessed = found.source == AuthorizationMetadataSource::LegacyEndpointFallback;
            Ok((manager, found.metadata, is_guessed))
        };
        let (manager, metadata, is_guessed) = opened
            .with_subscriber(NoSubscriber::default())
            .await
            .map_err(told)?;
        Ok(Session {
            manager,
            metadata,
            memory,
            courier,
            is_guessed,
        })
    }

    /// A new token for an old one.
    pub(super) async fn refreshed(&self, entry: Entry) -> Result<Held, NoToken> {
        let known = serde_json::to_value(&entry.credentials.token_response).unwrap_or_default();
        let Some(refresh) = known.get("refresh_token").and_then(Value::as_str) else {
            return Err(NoToken::Login);
        };
        let secrets = [Secret::new(refresh)];
        // Held until the new one is kept. Waiting for another process may take a while.
        let tokens = self.tokens.clone();
        let locked = tokio::task::spawn_blocking(move || tokens.refreshing()).await;
        let _locked = locked
            .map_err(|error| LoginError::Server(error.to_string()))?
            .map_err(LoginError::Tokens)?;
        // Another process may have been faster.
        let now = self.tokens.entry(self.url).map_err(LoginError::Tokens)?;
        let entry = now.unwrap_or(entry);
        let mut session = self.session(Some(entry.credentials.clone())).await?;
        let id = entry.credentials.client_id.clone();
        let secret = match &self.settings.client {
            OAuthClient::Registered { id: own, secret } if *own == id => {
                secret.as_ref().map(|secret| secret.expose().to_owned())
            }
            _ => entry.client_secret.clone(),
        };
        let manager = &mut session.manager;
        let refreshing = async {
            // Tokens of another issuer are of no use and are not shown to this one.
            if !manager.initialize_from_store().await? {
                return Err(AuthError::AuthorizationRequired);
            }
            let mut config = OAuthClientConfig::new(id, self.url.as_str());
            if let Some(secret) = secret {
                config = config.with_client_secret(secret);
            }
            manager.configure_client(config)?;
            manager.refresh_token().await
        };
        let refreshed = refreshing.with_subscriber(NoSubscriber::default()).await;
        match refreshed {
            Ok(_) => Ok(self.keep(&session, entry.client_secret).await?),
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
                Err(NoToken::Login)
            }
            Err(error) => Err(self.told(&error, &session.courier, &secrets).into()),
        }
    }

    /// A token for a client that acts for itself. It is not worth keeping: it can be had again at any
    /// time.
    pub(super) async fn for_itself(
        &self,
        id: &str,
        proof: &Proof,
        more: &[String],
    ) -> Result<Held, LoginError> {
        let mut session = self.session(None).await?;
        let scopes = self.scopes(&session, more).await;
        let resource = super::store::key(self.url);
        let secret = match proof {
            Proof::Secret(secret) => secret.expose().to_owned(),
            Proof::Key(key) => {
                let exchanged = session.signed(id, key, &scopes, &resource).await;
                return exchanged.map_err(|text| self.cleaned(&text, &[]));
            }
        };
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: id.to_owned(),
            client_secret: secret,
            scopes,
            resource: Some(resource),
        };
        let manager = &mut session.manager;
        let exchanging = async {
            manager.validate_client_credentials_metadata(&config)?;
            manager.configure_client_credentials(&config)?;
            manager.exchange_client_credentials(&config).await
        };
        let exchanged = exchanging.with_subscriber(NoSubscriber::default()).await;
        exchanged.map_err(|error| self.told(&error, &session.courier, &[]))?;
        held(&session.memory).await
    }

    /// A token from a person, who is shown where to log in. `more`: the scopes that are needed, where
    /// the server has said so.
    pub(super) async fn asked(
        &self,
        more: &[String],
        open: &mut (dyn FnMut(&Url) + Send),
        pasted: Option<PastedLines>,
    ) -> Result<Held, LoginError> {
        let port = self.settings.callback_port;
        let redirects = Redirects::open(port).await;
        let redirects = redirects.map_err(|error| match port {
            Some(port) => LoginError::Port(format!("port {port}: {error}")),
            None => LoginError::Port(error.to_string()),
        })?;
        let mut session = self.session(None).await?;
        let scopes = self.lasting_scopes(&session, more).await;
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let asking = self.begun(&mut session, redirects.address(), &scopes);
        let begun = asking.with_subscriber(NoSubscriber::default()).await;
        let (page, client_secret) = match begun {
            Ok(begun) => begun,
            Err(AuthError::RegistrationFailed(_))
                if session.metadata.registration_endpoint.is_none() =>
            {
                return Err(LoginError::NoRegistration);
            }
            Err(AuthError::RegistrationFailed(_)) if session.is_guessed => {
                return Err(LoginError::NoOAuth { is_refused: true });
            }
            Err(error) => return Err(self.told(&error, &session.courier, &[])),
        };
        let page = Url::parse(&page).map_err(|error| LoginError::Server(error.to_string()))?;
        let state = page.query_pairs().find(|(key, _)| key == "state");
        let state = state
            .map(|(_, state)| state.into_owned())
            .unwrap_or_default();
        caught(|| open(&page))
            .map_err(|panic| LoginError::Server(format!("the page cannot be shown: {panic}")))?;
        let address = redirects.address().to_owned();
        let came = async {
            tokio::select! {
                came = redirects.wait(&state) => came.map_err(|error| LoginError::Port(error.to_string())),
                text = next_line(pasted) => Redirects::pasted(&address, &text, &state).map_err(LoginError::Pasted),
            }
        };
        let came = tokio::time::timeout(LOGIN, came).await;
        let came = came.map_err(|_| LoginError::TimedOut)??;
        let callback = callback(&came)?;
        let mut secrets = vec![Secret::new(callback.code.clone())];
        secrets.extend(client_secret.clone().map(Secret::new));
        let exchanging = session.manager.exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.csrf_token,
            callback.issuer.as_deref(),
        );
        let exchanged = exchanging.with_subscriber(NoSubscriber::default()).await;
        exchanged.map_err(|error| self.told(&error, &session.courier, &secrets))?;
        self.keep(&session, client_secret).await
    }

    /// What is asked for: what the operator says, else what the server wants.
    async fn scopes(&self, session: &Session, more: &[String]) -> Vec<String> {
        let mut scopes = self.settings.scopes.clone();
        add(&mut scopes, more);
        if scopes.is_empty() {
            scopes = session.manager.select_initial_scopes(&[]).await;
        }
        scopes
    }

    /// The same for a person, with a token that can be refreshed where there are such.
    async fn lasting_scopes(&self, session: &Session, more: &[String]) -> Vec<String> {
        let mut scopes = self.scopes(session, more).await;
        let known = session.metadata.scopes_supported.iter().flatten();
        if !scopes.is_empty() && known.into_iter().any(|scope| scope == OFFLINE) {
            add(&mut scopes, &[OFFLINE.to_owned()]);
        }
        scopes
    }

    /// Makes haft known to the authorization server; gives the page for the person, and the secret of
    /// a client that was registered for it.
    async fn begun(
        &self,
        session: &mut Session,
        redirect: &str,
        scopes: &[&str],
    ) -> Result<(String, Option<String>), AuthError> {
        let reads_documents = session
            .metadata
            .additional_fields
            .get("client_id_metadata_document_supported")
            .is_some_and(|value| *value == Value::Bool(true));
        let manager = &mut session.manager;
        let config = match &self.settings.client {
            OAuthClient::Registered { id, secret } => {
                let config = OAuthClientConfig::new(id, redirect);
                match secret {
                    Some(secret) => config.with_client_secret(secret.expose()),
                    None => config,
                }
            }
            OAuthClient::Described(url) if reads_documents => {
                OAuthClientConfig::new(url.as_str(), redirect)
            }
            _ => manager.register_client(NAME, redirect, scopes).await?,
        };
        let is_registered = matches!(self.settings.client, OAuthClient::Registered { .. });
        let own_secret = config.client_secret.clone().filter(|_| !is_registered);
        manager.configure_client(config)?;
        let page = manager.get_authorization_url(scopes).await?;
        Ok((page, own_secret))
    }

    async fn keep(
        &self,
        session: &Session,
        client_secret: Option<String>,
    ) -> Result<Held, LoginError> {
        let held = held(&session.memory).await?;
        let credentials = session.memory.load().await.ok().flatten();
        if let Some(credentials) = credentials {
            self.tokens
                .keep(self.url, client_secret, credentials)
                .map_err(LoginError::Tokens)?;
        }
        Ok(held)
    }

    /// rmcp's words, without what nobody may see.
    fn told(&self, error: &AuthError, courier: &Courier, secrets: &[Secret]) -> LoginError {
        let mut text = error.to_string();
        if let Some(failure) = courier.failure()
            && !text.contains(&failure)
        {
            text = format!("{text}: {failure}");
        }
        self.cleaned(&text, secrets)
    }

    fn cleaned(&self, text: &str, secrets: &[Secret]) -> LoginError {
        let own = self.settings.secret().cloned();
        let redactor = Redactor::new(secrets.iter().cloned().chain(own));
        LoginError::Server(shown(&redactor.clean(text.to_owned())))
    }
}

impl Session {
    /// A token for the word of a client that has a key. rmcp can do this too, with a second library of
    /// cryptography.
    async fn signed(
        &self,
        id: &str,
        key: &Secret,
        scopes: &[String],
        resource: &str,
    ) -> Result<Held, String> {
        let issuer = self.metadata.issuer.as_deref();
        let issuer = issuer.ok_or("the authorization server does not say who it is")?;
        let assertion = assertion(id, issuer, key)?;
        let scopes = scopes.join(" ");
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", &assertion),
            ("resource", resource),
        ];
        if !scopes.is_empty() {
            form.push(("scope", &scopes));
        }
        let answer = self
            .courier
            .submit(&self.metadata.token_endpoint, &form)
            .await?;
        let received_at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let granted = answer
            .get("scope")
            .and_then(Value::as_str)
            .unwrap_or(&scopes);
        let credentials = json!({
            "client_id": id,
            "granted_scopes": granted.split_whitespace().collect::<Vec<_>>(),
            "token_received_at": received_at.as_secs(),
            "token_response": answer,
        });
        let credentials: Option<StoredCredentials> = serde_json::from_value(credentials).ok();
        let held = credentials.as_ref().and_then(Held::of);
        held.ok_or_else(|| "the answer holds no token".into())
    }
}

/// The next line that the user pastes. Without one it never comes: the browser may still.
async fn next_line(pasted: Option<PastedLines>) -> String {
    let mut pasted = pasted;
    if let Some(lines) = &mut pasted {
        while let Some(line) = lines.recv().await {
            if !line.trim().is_empty() {
                return line;
            }
        }
    }
    std::future::pending().await
}

/// What rmcp has put away.
async fn held(memory: &InMemoryCredentialStore) -> Result<Held, LoginError> {
    let credentials = memory.load().await.ok().flatten();
    let held = credentials.as_ref().and_then(Held::of);
    held.ok_or_else(|| LoginError::Server("the answer holds no token".into()))
}

/// What the browser brought back: a code, or the word that there is none.
fn callback(came: &Url) -> Result<AuthorizationCallback, LoginError> {
    let value = |name: &str| {
        let mut pairs = came.query_pairs();
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| shown(&value))
    };
    if let Some(error) = value("error") {
        let description = value("error_description");
        return Err(LoginError::Denied {
            reason: description.map_or(error.clone(), |more| format!("{error}: {more}")),
        });
    }
    AuthorizationCallback::from_redirect_url(came.as_str())
        .map_err(|error| LoginError::Server(shown(&error.to_string())))
}

fn add(scopes: &mut Vec<String>, more: &[String]) {
    for scope in more {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
}

/// A foreign text, made visible and cut.
fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 500;
    let text = visible(text);
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
