//! Servers as single tenants reach them: with credentials of their own, and so over connections of their own.
//!
//! Nothing that one tenant's connection brought, not even a list of tools, is shown to another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::server::Server;

/// How many are held, and for how long after their last use. Their connections are closed earlier, where they are idle.
const MAX_SERVERS: usize = 256;
const HELD_FOR: Duration = Duration::from_mins(30);

#[derive(Debug, Default)]
pub(super) struct TenantServers(Mutex<HashMap<(String, String), TenantServer>>);

#[derive(Debug)]
struct TenantServer {
    /// The server that all tenants share.
    shared: Arc<Server>,
    server: Arc<Server>,
    last_use: Instant,
}

impl TenantServers {
    /// The server as the tenant reaches it, which is the shared one where the tenant has no credentials of its own
    /// and needs none.
    pub(super) fn find(&self, shared: &Arc<Server>, tenant: &str) -> Arc<Server> {
        if !shared.settings().differs_by_tenant() {
            return Arc::clone(shared);
        }
        let now = Instant::now();
        let key = (shared.label().to_string(), tenant.to_owned());
        let mut servers = self.lock();
        if let Some(known) = servers.get_mut(&key)
            && Arc::ptr_eq(&known.shared, shared)
        {
            known.last_use = now;
            known.server.notice_login();
            return Arc::clone(&known.server);
        }
        let Some(server) = shared.for_tenant(tenant) else {
            return Arc::clone(shared);
        };
        make_room(&mut servers, now);
        let known = TenantServer {
            shared: Arc::clone(shared),
            server: Arc::clone(&server),
            last_use: now,
        };
        if let Some(replaced) = servers.insert(key, known) {
            close(replaced.server);
        }
        server
    }

    /// Closes the connections of tenants that are not to be kept.
    pub(super) fn retain(&self, is_kept: impl Fn(&str) -> bool) {
        self.lock().retain(|(_, tenant), known| {
            let is_kept = is_kept(tenant);
            if !is_kept {
                close(Arc::clone(&known.server));
            }
            is_kept
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes out those of a server that was removed.
    pub(super) fn take_of(&self, shared: &Arc<Server>) -> Vec<Arc<Server>> {
        let mut taken = Vec::new();
        self.lock().retain(|_, known| {
            let is_other = !Arc::ptr_eq(&known.shared, shared);
            if !is_other {
                taken.push(Arc::clone(&known.server));
            }
            is_other
        });
        taken
    }

    pub(super) fn take_all(&self) -> Vec<Arc<Server>> {
        let servers = std::mem::take(&mut *self.lock());
        servers.into_values().map(|known| known.server).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), TenantServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes those that were not used for long, and the oldest where there are too many. One with a call in flight
/// ends with that call.
fn make_room(servers: &mut HashMap<(String, String), TenantServer>, now: Instant) {
    servers.retain(|_, known| {
        let is_kept = now.duration_since(known.last_use) < HELD_FOR || known.server.is_in_use();
        if !is_kept {
            close(Arc::clone(&known.server));
        }
        is_kept
    });
    while servers.len() >= MAX_SERVERS {
        let oldest = servers
            .iter()
            .min_by_key(|(_, it)| (it.server.is_in_use(), it.last_use));
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            return;
        };
        if let Some(known) = servers.remove(&key)
            && !known.server.is_in_use()
        {
            close(known.server);
        }
    }
}

fn close(server: Arc<Server>) {
    tokio::spawn(async move { server.retire().await });
}
