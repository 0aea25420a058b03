//! The tools of a gateway, put together once for each state of the catalogue and of the servers' lists.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_mcp::gateway::{CacheHints, Caller, ListedTool, ToolList};
use haft_mcp::{Server, ServerStatus, ServerTools};

use super::entry::Entry;

/// How many callers' lists are kept.
const KEPT: usize = 64;

/// What a tenant may see of haft's own tools can change without a new version of the catalogue: such lists are
/// put together anew after this.
const TENANT_MAX_AGE: Duration = Duration::from_secs(1);

/// A server, and its list if one is known.
pub(super) type Listed = (Arc<Server>, Option<Arc<ServerTools>>);

/// All tools of one caller.
pub(super) struct Offer {
    pub(super) list: Arc<ToolList>,
    by_name: HashMap<String, Entry>,
}

impl Offer {
    /// The tools in their order. A name that two of them have is the first one's: only a hash can be the same
    /// for two.
    pub(super) fn new(entries: impl IntoIterator<Item = Entry>, hints: CacheHints) -> Self {
        let mut by_name = HashMap::new();
        let mut tools: Vec<Arc<ListedTool>> = Vec::new();
        for entry in entries {
            let name = entry.listed.name.clone();
            if let std::collections::hash_map::Entry::Vacant(free) = by_name.entry(name) {
                tools.push(Arc::clone(&entry.listed));
                free.insert(entry);
            }
        }
        let list = Arc::new(ToolList { tools, hints });
        Self { list, by_name }
    }

    /// The status of a server without what this caller may not know: tools that are not offered to it.
    pub(super) fn status_for_caller(&self, mut status: ServerStatus) -> ServerStatus {
        let Some(all) = status.tools else {
            return status;
        };
        let offered = self.list.tools.iter();
        let offered = offered.filter(|it| it.server.as_deref() == Some(status.label.as_str()));
        let offered: HashSet<&str> = offered.filter_map(|it| it.raw_name.as_deref()).collect();
        if offered.len() < all {
            status.tools = Some(offered.len());
            status
                .samples
                .retain(|name| offered.contains(name.as_str()));
            status.held.clear();
        }
        status
    }

    /// The tool of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name)
    }
}

/// What was put together last, for each caller.
#[derive(Default)]
pub(super) struct Offers(Mutex<HashMap<Caller, Cached>>);

struct Cached {
    /// The version of the catalogue.
    version: u64,
    lists: Vec<Listed>,
    made_at: Instant,
    offer: Arc<Offer>,
}

impl Cached {
    fn is_of(&self, version: u64, lists: &[Listed], is_tenant: bool) -> bool {
        let is_same = |((server, tools), (other, others)): (&Listed, &Listed)| {
            let is_same_list = match (tools, others) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => true,
                _ => false,
            };
            Arc::ptr_eq(server, other) && is_same_list
        };
        self.version == version
            && self.lists.len() == lists.len()
            && self.lists.iter().zip(lists).all(is_same)
            && !(is_tenant && self.made_at.elapsed() > TENANT_MAX_AGE)
    }
}

impl Offers {
    /// The offer for a caller; `make` puts it together if something has changed.
    pub(super) fn get(
        &self,
        caller: &Caller,
        is_tenant: bool,
        version: u64,
        lists: Vec<Listed>,
        make: impl FnOnce(&[Listed]) -> Offer,
    ) -> Arc<Offer> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = lock().get(caller)
            && cached.is_of(version, &lists, is_tenant)
        {
            return Arc::clone(&cached.offer);
        }
        let offer = Arc::new(make(&lists));
        let mut cached = lock();
        if cached.len() >= KEPT && !cached.contains_key(caller) {
            cached.clear();
        }
        let new = Cached {
            version,
            lists,
            made_at: Instant::now(),
            offer: Arc::clone(&offer),
        };
        cached.insert(caller.clone(), new);
        offer
    }
}
