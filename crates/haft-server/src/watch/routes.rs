//! The names of routes: those of the router, each made once.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use super::metrics::Name;

/// The routes that were asked for. There are as many as the router has, and the one for none.
#[derive(Default)]
pub(super) struct Routes(RwLock<HashMap<Box<str>, Name>>);

impl Routes {
    /// The name of a route of the router.
    pub(super) fn name(&self, route: &str) -> Name {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(route) {
            return name.clone();
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let name = Name::from(route);
        known.entry(route.into()).or_insert(name).clone()
    }
}
