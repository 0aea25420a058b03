//! Authorization: how haft shows a server who it is, without a token given by hand.
//!
//! rmcp knows the protocol (discovery, registration, PKCE, issuers). This side decides when it is used,
//! carries its requests within bounds, keeps the tokens, and waits for the browser. A token goes to the
//! server that it was made for and to nobody else, and never into a log, a text or a `Debug`.
//!
//! What can be done in silence is done when a request is refused: a token is refreshed, or a client that
//! acts for itself gets another one. A person is only asked by [`login`], or where an [`Opener`] was given.

mod assertion;
mod authority;
mod courier;
mod flow;
mod login;
mod redirects;
mod store;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

pub(crate) use self::assertion::check_key;
pub(crate) use self::authority::{Authority, Refusal};
pub use self::login::{LoggedIn, LoginError, PastedLines, login, login_with};
pub use self::store::{TokenStore, TokenStoreError};

/// How long a person may take to log in.
pub(crate) const LOGIN: Duration = Duration::from_mins(5);

/// Shows an address to a person, in a browser or as text.
pub type Opener = Arc<dyn Fn(&Url) + Send + Sync>;

/// What authorization needs beside the settings of a server.
#[derive(Clone, Default)]
pub struct OAuthOptions {
    /// Where tokens are kept. Without one, and without an opener or settings for it, no authorization is
    /// tried.
    pub tokens: Option<TokenStore>,
    /// Who shows a person where to log in when a server asks for it. Without one whoever connects is
    /// told to log in.
    pub opener: Option<Opener>,
}

impl fmt::Debug for OAuthOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthOptions")
            .field("tokens", &self.tokens)
            .field("opener", &self.opener.is_some())
            .finish()
    }
}
