//! URIs that came out of results, and the servers that they came from.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// How many links are remembered for one caller.
const LINKS_PER_CALLER: usize = 1_000;

/// How many callers have links; beyond that the oldest caller's are forgotten.
const CALLERS: usize = 1_000;

/// The longest URI that is remembered, in bytes.
const MAX_URI_BYTES: usize = 8 * 1024;

/// The links that each caller has seen. One caller's links are never another one's.
#[derive(Debug, Default)]
pub(super) struct Links(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    by_caller: HashMap<String, CallerLinks>,
    /// The callers, in the order in which they came.
    callers: VecDeque<String>,
}

#[derive(Debug, Default)]
struct CallerLinks {
    server_of: HashMap<String, String>,
    /// The URIs, in the order in which they came.
    order: VecDeque<String>,
}

impl Links {
    /// Remembers which server a URI came from.
    pub(super) fn remember(&self, caller: &str, uri: &str, server: &str) {
        if uri.len() > MAX_URI_BYTES {
            return;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.by_caller.contains_key(caller) {
            if state.callers.len() >= CALLERS
                && let Some(oldest) = state.callers.pop_front()
            {
                state.by_caller.remove(&oldest);
            }
            state.callers.push_back(caller.to_owned());
        }
        let links = state.by_caller.entry(caller.to_owned()).or_default();
        let before = links.server_of.insert(uri.to_owned(), server.to_owned());
        if before.is_none() {
            links.order.push_back(uri.to_owned());
        }
        if links.order.len() > LINKS_PER_CALLER
            && let Some(oldest) = links.order.pop_front()
        {
            links.server_of.remove(&oldest);
        }
    }

    /// The server that this caller got the URI from.
    pub(super) fn server(&self, caller: &str, uri: &str) -> Option<String> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.by_caller.get(caller)?.server_of.get(uri).cloned()
    }
}

/// The URI of a content block that is a link to a resource or an embedded one.
pub(super) fn uri_of(block: &mut Value) -> Option<&mut Value> {
    let uri = match block.get("type").and_then(Value::as_str)? {
        "resource_link" => block.get_mut("uri"),
        "resource" => block.get_mut("resource")?.get_mut("uri"),
        _ => None,
    };
    uri.filter(|uri| uri.is_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_bounded_and_belong_to_one_caller() {
        let links = Links::default();
        for number in 0..LINKS_PER_CALLER + 5 {
            links.remember("a", &format!("x:{number}"), "one");
        }
        assert_eq!(links.server("a", "x:4"), None);
        assert_eq!(links.server("a", "x:5").as_deref(), Some("one"));
        assert_eq!(links.server("b", "x:5"), None);
        for number in 0..CALLERS {
            links.remember(&format!("caller {number}"), "x:1", "two");
        }
        assert_eq!(links.server("a", "x:5"), None);
        assert_eq!(links.server("caller 7", "x:1").as_deref(), Some("two"));
    }
}
