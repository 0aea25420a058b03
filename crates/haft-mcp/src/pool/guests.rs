//! Servers that single requests name.
//!
//! Whoever comes with the same address and the same credentials finds the connection of before;
//! nobody else does. Those that nobody came back to are let go.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::server::{Parts, Server};
use crate::connection::ConnectOptions;
use crate::names::Label;
use crate::oauth::OAuthOptions;
use crate::question::Questions;
use crate::secret::Secret;
use crate::settings::{Approve, Pin, ServerSettings, TransportSettings};

/// How many are kept, and for how long after their last use.
const MOST: usize = 256;
const KEPT: Duration = Duration::from_mins(5);

/// A server that a request names.
#[derive(Clone, PartialEq, Eq)]
pub struct Guest {
    /// What the request calls it.
    pub label: Label,
    /// Its address, which was found to be allowed.
    pub url: Url,
    /// The addresses that its host was found to have, if they were checked.
    pub pinned: Option<Vec<SocketAddr>>,
    /// Headers of the request for this server.
    pub headers: BTreeMap<String, Secret>,
    /// A bearer token of the request for this server.
    pub bearer: Option<Secret>,
    /// For whom: two principals never share a connection.
    pub principal: String,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest")
            .field("label", &self.label)
            .field("origin", &self.url.origin().ascii_serialization())
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub(super) struct Guests(Mutex<Vec<Known>>);

#[derive(Debug)]
struct Known {
    guest: Guest,
    server: Arc<Server>,
    last_use: Instant,
}

impl Guests {
    pub(super) fn find(&self, mut guest: Guest, options: &ConnectOptions) -> Arc<Server> {
        if let Some(pinned) = &mut guest.pinned {
            // The order in which a name server gives them means nothing.
            pinned.sort_unstable();
        }
        let now = Instant::now();
        let mut known = self.lock();
        if let Some(known) = known.iter_mut().find(|known| known.guest == guest) {
            known.last_use = now;
            return Arc::clone(&known.server);
        }
        leave(&mut known, now);
        let server = server_of(&guest, options);
        known.push(Known {
            guest,
            server: Arc::clone(&server),
            last_use: now,
        });
        server
    }

    pub(super) fn take_all(&self) -> Vec<Arc<Server>> {
        let known = std::mem::take(&mut *self.lock());
        known.into_iter().map(|known| known.server).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of those that nobody came back to, and of the oldest where there are too many. A call under
/// way keeps its server until it has ended.
fn leave(known: &mut Vec<Known>, now: Instant) {
    known.retain(|known| now.duration_since(known.last_use) < KEPT);
    while known.len() >= MOST {
        let oldest = known.iter().enumerate().min_by_key(|(_, it)| it.last_use);
        let Some((at, _)) = oldest else { return };
        known.remove(at);
    }
}

fn server_of(guest: &Guest, options: &ConnectOptions) -> Arc<Server> {
    let mut settings = ServerSettings::http(guest.label.clone(), guest.url.clone());
    if let TransportSettings::Http(http) = &mut settings.transport {
        http.headers.clone_from(&guest.headers);
        http.bearer.clone_from(&guest.bearer);
    }
    settings.approve = Approve::Always;
    settings.pin = Some(Pin::Off);
    settings.idle_shutdown = Some(KEPT);
    let mut options = options.clone();
    options.custom = None;
    // Those are the operator's.
    options.oauth = OAuthOptions::default();
    // Nobody who could be asked stands behind a request.
    options.questions = Questions::Refused;
    options.http.pinned.clone_from(&guest.pinned);
    Server::new(Parts {
        settings: Arc::new(settings),
        options,
        memory: None,
        pins: None,
        changes: broadcast::channel(1).0,
        tenant: None,
        events: broadcast::channel(1).0,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn guest(token: &str, principal: &str) -> Guest {
        Guest {
            label: Label::new("air").unwrap(),
            url: Url::parse("https://air.example/mcp").unwrap(),
            pinned: None,
            headers: BTreeMap::new(),
            bearer: Some(Secret::new(token)),
            principal: principal.into(),
        }
    }

    #[tokio::test]
    async fn only_the_same_credentials_find_the_same_server() {
        let guests = Guests::default();
        let options = ConnectOptions::default();
        let find = |token, principal| guests.find(guest(token, principal), &options);
        let first = find("one", "a");
        assert!(Arc::ptr_eq(&first, &find("one", "a")));
        assert!(!Arc::ptr_eq(&first, &find("two", "a")));
        assert!(!Arc::ptr_eq(&first, &find("one", "b")));
    }

    #[tokio::test]
    async fn there_are_never_too_many() {
        let guests = Guests::default();
        let options = ConnectOptions::default();
        for number in 0..MOST + 10 {
            guests.find(guest(&number.to_string(), "a"), &options);
        }
        assert_eq!(guests.lock().len(), MOST);
    }
}
