//! Login of a user, in a browser.

use reqwest::Url;

use super::courier::Courier;
use super::flow::Flow;
use super::store::{TokenStore, TokenStoreError};
use crate::names::Label;
use crate::settings::{OAuthClient, OAuthSettings, ServerSettings, TransportSettings};

/// Lines that the user pastes: the address that the browser was led back to, or the code alone.
pub type PastedLines = tokio::sync::mpsc::Receiver<String>;

/// The result of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedIn {
    /// The granted scopes; may be empty.
    pub scopes: Vec<String>,
}

/// Why a login failed. The text holds neither a token nor a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// There is nothing to log in to.
    #[error("server `{server}` is not at an address: there is nothing to log in to")]
    NoAddress {
        /// The server.
        server: Label,
    },
    /// A token is configured by hand.
    #[error(
        "server `{server}` has a token by `bearer_env`, `bearer_file` or `headers`: remove that to log in"
    )]
    HasToken {
        /// The server.
        server: Label,
    },
    /// The client acts for itself.
    #[error("server `{server}` has the grant `client-credentials`: nobody needs to log in")]
    ForItself {
        /// The server.
        server: Label,
    },
    /// The tokens cannot be kept.
    #[error(transparent)]
    Tokens(TokenStoreError),
    /// The browser has nowhere to come back to.
    #[error("no port of this machine can be opened for the browser: {0}")]
    Port(String),
    /// Nobody came back.
    #[error("nobody logged in within five minutes: try again")]
    TimedOut,
    /// The person or the authorization server said no.
    #[error("the login was refused: {reason}")]
    Denied {
        /// Its words.
        reason: String,
    },
    /// haft is not known, and cannot make itself known.
    #[error(
        "the authorization server registers nobody by itself: register haft there, and set `client_id` in `[mcp.NAME.oauth]`"
    )]
    NoRegistration,
    /// The server offers no OAuth.
    #[error("{}", no_oauth(*is_refused))]
    NoOAuth {
        /// Whether it rejects requests without credentials.
        is_refused: bool,
    },
    /// The pasted text is not the answer to this login.
    #[error(
        "the pasted text cannot be used: {0}; paste the whole address that the browser shows at the end"
    )]
    Pasted(&'static str),
    /// Something that the other side should not do.
    #[error("{0}")]
    Server(String),
}

fn no_oauth(is_refused: bool) -> &'static str {
    if is_refused {
        "the server offers no OAuth: give it a token with `bearer_env`, `bearer_file` or `headers`"
    } else {
        "the server answers without authorization and offers no OAuth: no login is needed"
    }
}

/// Lets a user log in to a server, and stores the token.
///
/// `open` is given the page to show; the browser comes back to a port of this machine that is open
/// meanwhile, for five minutes at most.
pub async fn login(
    settings: &ServerSettings,
    open: impl FnMut(&Url) + Send,
    tokens: &TokenStore,
) -> Result<LoggedIn, LoginError> {
    login_with(settings, open, tokens, None).await
}

/// The same for hosts that the browser cannot come back to: a line of `pasted` may end the login as well.
pub async fn login_with(
    settings: &ServerSettings,
    mut open: impl FnMut(&Url) + Send,
    tokens: &TokenStore,
    pasted: Option<PastedLines>,
) -> Result<LoggedIn, LoginError> {
    let server = || settings.label.clone();
    let TransportSettings::Http(http) = &settings.transport else {
        return Err(LoginError::NoAddress { server: server() });
    };
    if http.has_token() {
        return Err(LoginError::HasToken { server: server() });
    }
    let unknown = OAuthSettings::default();
    let oauth = http.oauth.as_ref().unwrap_or(&unknown);
    if matches!(oauth.client, OAuthClient::Itself { .. }) {
        return Err(LoginError::ForItself { server: server() });
    }
    // Before anybody is bothered: a file that cannot be read could not be written either.
    tokens.has(&http.url).map_err(LoginError::Tokens)?;
    let courier = Courier::new(&http.url).await.map_err(LoginError::Server)?;
    let (is_refused, challenge) = courier.challenge().await;
    let flow = Flow {
        url: &http.url,
        settings: oauth,
        tokens,
        challenge: challenge.as_deref(),
    };
    let held = flow.asked(&[], &mut open, pasted).await;
    let held = held.map_err(|error| match error {
        LoginError::NoOAuth { .. } => LoginError::NoOAuth { is_refused },
        error => error,
    })?;
    Ok(LoggedIn {
        scopes: held.scopes,
    })
}
