//! The token of one connection: where it comes from, and what is done when it is refused.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::flow::{Flow, Held, NoToken};
use super::{OAuthOptions, Opener, TokenStore};
use crate::error::Cause;
use crate::names::Label;
use crate::secret::Secret;
use crate::settings::{
    HttpSettings, OAuthClient, OAuthSettings, ServerSettings, TransportSettings,
};

/// How long before its end a token is exchanged.
const SOON: Duration = Duration::from_secs(30);

/// How long a refresh that failed is not tried again.
const PAUSE: Duration = Duration::from_secs(30);

/// Whoever speaks for haft to one server.
pub(crate) struct Authority {
    server: Label,
    url: Url,
    settings: OAuthSettings,
    tokens: TokenStore,
    opener: Option<Opener>,
    state: Mutex<State>,
    /// Held while a person is asked; whoever needs nobody goes on meanwhile.
    asking: Mutex<()>,
}

#[derive(Default)]
struct State {
    is_loaded: bool,
    held: Option<Held>,
    /// What only a person can do something about, and the token that was not enough.
    refused: Option<(Refusal, Option<Secret>)>,
    refresh_after: Option<Instant>,
    /// The last token that was of no use.
    spent: Option<Secret>,
}

/// What a server said when it refused.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) challenge: Option<String>,
}

impl Authority {
    /// None where a token is given by hand, or nothing is known about any other.
    pub(crate) fn of(settings: &ServerSettings, options: &OAuthOptions) -> Option<Arc<Self>> {
        let TransportSettings::Http(http) = &settings.transport else {
            return None;
        };
        let HttpSettings { url, oauth, .. } = http;
        let is_known = oauth.is_some() || options.tokens.is_some() || options.opener.is_some();
        if http.has_token() || !is_known {
            return None;
        }
        let tokens = options.tokens.clone();
        Some(Arc::new(Self {
            server: settings.label.clone(),
            url: url.clone(),
            settings: oauth.clone().unwrap_or_default(),
            tokens: tokens.unwrap_or_else(TokenStore::memory),
            opener: options.opener.clone(),
            state: Mutex::default(),
            asking: Mutex::default(),
        }))
    }

    fn flow<'a>(&'a self, challenge: Option<&'a str>) -> Flow<'a> {
        Flow {
            url: &self.url,
            settings: &self.settings,
            tokens: &self.tokens,
            challenge,
        }
    }

    fn entry(&self) -> Result<Option<super::store::Entry>, Cause> {
        let entry = self.tokens.entry(&self.url);
        entry.map_err(|error| Cause::Settings(error.to_string()))
    }

    /// The token for the next request, if there is one.
    pub(crate) async fn token(&self) -> Result<Option<Secret>, Cause> {
        let mut state = self.state.lock().await;
        if !state.is_loaded {
            state.held = self.entry()?.and_then(|entry| Held::of(&entry.credentials));
            state.is_loaded = true;
        }
        let is_ending = state
            .held
            .as_ref()
            .is_some_and(|held| held.ends_within(SOON));
        let may_refresh = state
            .refresh_after
            .is_none_or(|after| Instant::now() >= after);
        if is_ending && may_refresh {
            match Box::pin(self.refreshed(None)).await {
                Ok(held) => state.held = Some(held),
                // It may still be of use, and if not, the server says so.
                Err(error) => {
                    tracing::debug!(server = %self.server, ?error, "a token was not refreshed");
                    state.refresh_after = Some(Instant::now() + PAUSE);
                }
            }
        }
        Ok(state.held.as_ref().map(|held| held.token.clone()))
    }

    async fn refreshed(&self, challenge: Option<&str>) -> Result<Held, NoToken> {
        let entry = self.tokens.entry(&self.url).ok().flatten();
        match entry {
            Some(entry) => self.flow(challenge).refreshed(entry).await,
            None => Err(NoToken::Login),
        }
    }

    /// Gets another token in place of the one that was refused, if that needs nobody.
    pub(crate) async fn renew(&self, used: Option<&Secret>, refusal: Refusal) -> Result<(), Cause> {
        let mut state = self.state.lock().await;
        let now = state.held.as_ref().map(|held| &held.token);
        if now.is_some() && now != used {
            // Somebody else has seen to it.
            return Ok(());
        }
        let wanted = self.wanted(&refusal);
        if refusal.status == 403 && wanted.is_none() {
            return Err(Cause::Unauthorized {
                status: 403,
                challenge: refusal.challenge,
            });
        }
        let challenge = refusal.challenge.as_deref();
        let failed = |error: super::LoginError| Cause::Authorization(error.to_string());
        if let OAuthClient::Itself { id, proof } = &self.settings.client {
            let more = more(state.held.as_ref(), wanted.as_deref());
            let held = self.flow(challenge).for_itself(id, proof, &more).await;
            state.held = Some(held.map_err(failed)?);
            return Ok(());
        }
        if let (401, Some(used)) = (refusal.status, used) {
            state.spent = Some(used.clone());
        }
        // Somebody may have logged in elsewhere.
        let kept = self.entry()?.and_then(|entry| Held::of(&entry.credentials));
        let is_new = |kept: &Held| {
            let token = Some(&kept.token);
            token != used && token != state.spent.as_ref()
        };
        if let Some(kept) = kept.filter(is_new) {
            state.held = Some(kept);
            return Ok(());
        }
        if refusal.status == 401 {
            state.held = None;
            match self.refreshed(challenge).await {
                Ok(held) => {
                    state.held = Some(held);
                    return Ok(());
                }
                Err(NoToken::Login) => {}
                Err(NoToken::Failed(error)) => return Err(failed(error)),
            }
        }
        state.refused = Some((refusal, used.cloned()));
        Err(Cause::LoginRequired {
            server: self.server.clone(),
            user: self.tokens.user().map(str::to_owned),
            wanted: wanted.map(|scopes| format!("`{}`", scopes.join("`, `"))),
        })
    }

    /// The scopes that are missing, if that is what is wrong.
    fn wanted(&self, refusal: &Refusal) -> Option<Vec<String>> {
        let challenge = refusal
            .challenge
            .as_deref()
            .filter(|_| refusal.status == 403)?;
        let params = WWWAuthenticateParams::parse(challenge, &self.url);
        let scopes = params.scope.as_deref().unwrap_or_default();
        let scopes = scopes
            .split_whitespace()
            .map(|it| haft_core::cut(&crate::text::visible(it)));
        params.is_insufficient_scope().then(|| scopes.collect())
    }

    /// Whether a person can be asked.
    pub(crate) fn asks(&self) -> bool {
        self.opener.is_some()
    }

    /// Asks a person for what was refused last. Several who were refused ask once.
    pub(crate) async fn log_in(&self) -> Result<(), Cause> {
        let Some(opener) = &self.opener else {
            return Err(Cause::LoginRequired {
                server: self.server.clone(),
                user: self.tokens.user().map(str::to_owned),
                wanted: None,
            });
        };
        let _asking = self.asking.lock().await;
        let (refusal, held) = {
            let mut state = self.state.lock().await;
            let Some((refusal, used)) = state.refused.take() else {
                return Ok(());
            };
            let held = state.held.clone();
            if held.is_some() && held.as_ref().map(|held| &held.token) != used.as_ref() {
                // The person was asked by another one meanwhile.
                return Ok(());
            }
            (refusal, held)
        };
        let wanted = self.wanted(&refusal);
        let more = more(held.as_ref(), wanted.as_deref());
        let flow = self.flow(refusal.challenge.as_deref());
        let held = flow.asked(&more, &mut |url| opener(url), None).await;
        let held = held.map_err(|error| Cause::Authorization(error.to_string()))?;
        self.state.lock().await.held = Some(held);
        Ok(())
    }
}

/// What is there already, and what is missing.
fn more(held: Option<&Held>, wanted: Option<&[String]>) -> Vec<String> {
    let Some(wanted) = wanted else {
        return Vec::new();
    };
    let had = held.map(|held| held.scopes.as_slice()).unwrap_or_default();
    [had, wanted].concat()
}
