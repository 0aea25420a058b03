//! Servers that a request names: which of them may be reached at all.
//!
//! A stranger who can name an address could otherwise have this machine ask its neighbours. The host
//! is looked up once, every address that it has is checked, and the connection goes to what was checked:
//! looking it up again could give something else.

mod address;
mod rules;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use haft_core::{BoxFuture, cut};
use reqwest::Url;
use tokio::sync::Semaphore;

pub(crate) use self::address::is_public;
pub use self::rules::HostRuleError;
use self::rules::{Rule, has_user, host_of};
use crate::http::HttpOptions;

/// How long a lookup may take.
const LOOKUP: Duration = Duration::from_secs(10);

/// Finds the addresses of a host.
pub trait Resolver: Send + Sync {
    /// All addresses of a host, with this port.
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// The lookup of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

/// How many names are looked up at the same time.
static LOOKUPS: Semaphore = Semaphore::const_new(16);

impl Resolver for SystemResolver {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let host = host.to_owned();
        Box::pin(async move {
            // The semaphore is never closed.
            let permit = LOOKUPS.acquire().await.map_err(io::Error::other)?;
            let lookup = tokio::task::spawn_blocking(move || {
                // Kept until the system has answered, also where nobody waits for it any more: a lookup
                // cannot be called off, and must not take the threads that others need.
                let _permit = permit;
                Ok((host.as_str(), port).to_socket_addrs()?.collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// Which hosts a request may name, as the operator lists them in `[server] mcp_hosts`.
///
/// `*` is every public host, `example.com` one, `*.example.com` all below it. They are reached over
/// `https` and at public addresses only. An origin that is listed in full, such as
/// `http://127.0.0.1:9000`, is the operator's own choice and exempt from both.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use haft_mcp::{HostRules, SystemResolver, Url};
/// let rules = HostRules::new(["*", "http://127.0.0.1:9000"])?;
/// let own = Url::parse("http://127.0.0.1:9000/mcp")?;
/// assert!(rules.admit(&own, &SystemResolver).await.is_ok());
/// let neighbour = Url::parse("https://192.168.1.1/mcp")?;
/// assert!(rules.admit(&neighbour, &SystemResolver).await.is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HostRules(Vec<Rule>);

impl Default for HostRules {
    /// Every public host.
    fn default() -> Self {
        Self(vec![Rule::Any])
    }
}

/// An address that may be reached, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The address.
    pub url: Url,
    /// What its host was found to be, and the only thing that it may be; not set for an origin that
    /// the operator listed in full.
    pub pinned: Option<Vec<SocketAddr>>,
}

impl Admitted {
    /// How the server is to be reached.
    pub fn http_options(&self) -> HttpOptions {
        HttpOptions {
            pinned: self.pinned.clone(),
        }
    }
}

/// Why an address may not be reached. The text says nothing about what the host was found to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAllowed {
    /// Not an address of a server at all.
    #[error("the server's address has no host: write `https://…`")]
    NoHost,
    /// A name or a password stands in it.
    #[error(
        "the address of `{host}` holds a user name or a password: leave it out, and send credentials as headers"
    )]
    UserInfo {
        /// The host.
        host: String,
    },
    /// Not `https`.
    #[error(
        "`{host}` may only be reached over `https`: use that, or the operator lists the whole origin in `[server] mcp_hosts`"
    )]
    NotHttps {
        /// The host.
        host: String,
    },
    /// Not a host that the operator allows.
    #[error("the host `{host}` is not allowed: the operator can add it to `[server] mcp_hosts`")]
    NotListed {
        /// The host.
        host: String,
    },
    /// The host's name leads to no public address. The text is the same whether the name is unknown or has a
    /// private address: otherwise it would tell which internal names exist.
    #[error(
        "the host `{host}` has no public address: check its name, or have the operator list the whole origin in `[server] mcp_hosts`"
    )]
    Unknown {
        /// The host.
        host: String,
        /// What the lookup gave, for the operator's log only.
        reason: String,
    },
    /// The URL holds an address that is not public.
    #[error(
        "`{host}` is not at a public address: the operator can list the whole origin in `[server] mcp_hosts`"
    )]
    NotPublic {
        /// The host.
        host: String,
    },
}

impl HostRules {
    /// The rules of this list.
    pub fn new(list: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, HostRuleError> {
        let rules = list.into_iter().map(|entry| Rule::read(entry.as_ref()));
        Ok(Self(rules.collect::<Result<_, _>>()?))
    }

    /// Whether an address may be given to somebody else who fetches it. Nothing is looked up here: hosts that are
    /// public by what they are called count as public, over `http` as well.
    ///
    /// ```
    /// use haft_mcp::{HostRules, Url};
    /// let rules = HostRules::default();
    /// assert!(rules.admits_unresolved(&Url::parse("https://example.com/a.pdf")?));
    /// assert!(!rules.admits_unresolved(&Url::parse("https://192.168.1.1/a.pdf")?));
    /// assert!(!rules.admits_unresolved(&Url::parse("file:///etc/passwd")?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn admits_unresolved(&self, url: &Url) -> bool {
        let host = host_of(url);
        let is_web = matches!(url.scheme(), "http" | "https") && !host.is_empty();
        if !is_web || has_user(url) {
            return false;
        }
        let mut rules = self.0.iter();
        if rules.any(|rule| rule.is_origin_of(url)) {
            return true;
        }
        let mut rules = self.0.iter();
        let is_public = match literal(url) {
            Some(address) => is_public(address),
            None => is_public_name(&host),
        };
        is_public && rules.any(|rule| rule.admits(&host))
    }

    /// Checks an address that a request names, and looks its host up once and for all.
    pub async fn admit(&self, url: &Url, resolver: &dyn Resolver) -> Result<Admitted, NotAllowed> {
        let host = host_of(url);
        let shown = cut(&host);
        if host.is_empty() || !matches!(url.scheme(), "http" | "https") {
            return Err(NotAllowed::NoHost);
        }
        if has_user(url) {
            return Err(NotAllowed::UserInfo { host: shown });
        }
        if self.0.iter().any(|rule| rule.is_origin_of(url)) {
            return Ok(Admitted {
                url: url.clone(),
                pinned: None,
            });
        }
        if url.scheme() != "https" {
            return Err(NotAllowed::NotHttps { host: shown });
        }
        if !self.0.iter().any(|rule| rule.admits(&host)) {
            return Err(NotAllowed::NotListed { host: shown });
        }
        let addresses = addresses(url, &host, resolver).await?;
        // One that is not public is one too many: which one is taken is not ours to say.
        if !addresses.iter().all(|address| is_public(address.ip())) {
            return Err(match literal(url) {
                Some(_) => NotAllowed::NotPublic { host: shown },
                None => NotAllowed::Unknown {
                    host: shown,
                    reason: "it has an address that is not public".into(),
                },
            });
        }
        Ok(Admitted {
            url: url.clone(),
            pinned: Some(addresses),
        })
    }
}

async fn addresses(
    url: &Url,
    host: &str,
    resolver: &dyn Resolver,
) -> Result<Vec<SocketAddr>, NotAllowed> {
    let port = url.port_or_known_default().unwrap_or(443);
    if let Some(address) = literal(url) {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let unknown = |reason: String| NotAllowed::Unknown {
        host: cut(host),
        reason,
    };
    let found = tokio::time::timeout(LOOKUP, resolver.resolve(host, port)).await;
    let found = found.map_err(|_| unknown("no answer in time".into()))?;
    let found = found.map_err(|error| unknown(error.to_string()))?;
    if found.is_empty() {
        return Err(unknown("it has no address".into()));
    }
    Ok(found)
}

/// Whether a name can be one of the public network: those without a dot and those of local networks are not.
fn is_public_name(host: &str) -> bool {
    // RFC 6761, RFC 6762, RFC 8375, and what ICANN keeps for private use.
    const LOCAL: [&str; 6] = [
        "localhost",
        "local",
        "internal",
        "home.arpa",
        "lan",
        "invalid",
    ];
    let host = host.to_ascii_lowercase();
    let is_below = |local: &&str| {
        let rest = host.strip_suffix(*local);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    host.contains('.') && !LOCAL.iter().any(is_below)
}

/// The address that stands in place of a name. All spellings of numbers were read with the URL.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

#[cfg(test)]
mod tests;
