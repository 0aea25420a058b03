//! What an operator says about hosts.

use haft_core::cut;
use reqwest::Url;

/// One entry of the list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rule {
    /// Every public host.
    Any,
    /// This host.
    Host(String),
    /// Every host below this one.
    Under(String),
    /// This origin, wherever it is.
    Origin(reqwest::Url),
}

/// An entry that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{entry}` is no host: write `*`, `example.com`, `*.example.com`, or a whole origin such as `http://127.0.0.1:9000`"
)]
pub struct HostRuleError {
    /// The entry, cut.
    pub entry: String,
}

impl Rule {
    pub(super) fn read(entry: &str) -> Result<Self, HostRuleError> {
        let wrong = || HostRuleError { entry: cut(entry) };
        let entry = entry.trim();
        if entry == "*" {
            return Ok(Self::Any);
        }
        if entry.contains("://") {
            let url = Url::parse(entry).map_err(|_| wrong())?;
            let is_origin = matches!(url.scheme(), "http" | "https")
                && url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
                && !has_user(&url);
            return if is_origin {
                Ok(Self::Origin(url))
            } else {
                Err(wrong())
            };
        }
        let (host, rule): (_, fn(String) -> Self) = match entry.strip_prefix("*.") {
            Some(parent) => (parent, Self::Under),
            None => (entry, Self::Host),
        };
        // Brought to the form that hosts of addresses have.
        let url = Url::parse(&format!("https://{host}/")).map_err(|_| wrong())?;
        let is_host = url.path() == "/"
            && url.port().is_none()
            && !host.contains(['*', '/', '?', '#', '@'])
            && !host.ends_with(':');
        if is_host {
            Ok(rule(host_of(&url)))
        } else {
            Err(wrong())
        }
    }

    /// Whether a host is meant. Origins are not about hosts.
    pub(super) fn admits(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Host(own) => own == host,
            Self::Under(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            Self::Origin(_) => false,
        }
    }

    /// Whether exactly this origin is listed.
    pub(super) fn is_origin_of(&self, url: &Url) -> bool {
        matches!(self, Self::Origin(own) if own.origin() == url.origin())
    }
}

/// The host without the dot that may end it.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.strip_suffix('.').unwrap_or(host).to_owned()
}

pub(super) fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_parents_and_origins_are_told_apart() {
        let admits = |entry: &str, host: &str| Rule::read(entry).unwrap().admits(host);
        assert!(admits("*", "anything.example"));
        assert!(admits("Example.COM", "example.com"));
        assert!(admits("example.com.", "example.com"));
        assert!(!admits("example.com", "a.example.com"));
        assert!(admits("*.example.com", "a.b.example.com"));
        assert!(!admits("*.example.com", "example.com"));
        assert!(!admits("*.example.com", "evil-example.com"));
        assert!(!admits("*.example.com", ".example.com"));
        assert!(admits("bücher.example", "xn--bcher-kva.example"));
        assert!(!admits("http://127.0.0.1:9000", "127.0.0.1"));
    }

    #[test]
    fn an_entry_that_says_nothing_is_refused() {
        for entry in [
            "",
            "a b",
            "*.*",
            "**",
            "*.",
            "example.com:8443",
            "example.com/mcp",
            "user@example.com",
            "https://example.com/mcp",
            "https://u:p@example.com",
            "ftp://example.com",
            "https://",
        ] {
            assert!(Rule::read(entry).is_err(), "{entry}");
        }
    }
}
