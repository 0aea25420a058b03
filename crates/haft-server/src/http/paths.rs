//! The paths of the API: a router that knows its own list.
//!
//! Whoever adds a path here adds it to the list, too, and the list is what tests go through that ask
//! whether every path keeps a promise.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, delete, get, post};

use super::metering::Metered;
use crate::app::App;

/// A method and a path that the server answers to.
///
/// ```
/// # use std::sync::Arc;
/// # fn example(server: &haft_server::Server) {
/// let routes = server.routes();
/// assert!(routes.iter().any(|route| route.method == "GET" && route.path == "/v1/responses/{id}"));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, with names in braces where ids stand.
    pub path: String,
}

/// Paths below a prefix.
pub(super) struct Paths {
    prefix: &'static str,
    router: Router<Arc<App>>,
    routes: Vec<Route>,
}

impl Paths {
    pub(super) fn below(prefix: &'static str) -> Self {
        Self {
            prefix,
            router: Router::new(),
            routes: Vec::new(),
        }
    }

    pub(super) fn get<H, T>(self, path: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        self.add("GET", path, get(handler))
    }

    pub(super) fn post<H, T>(self, path: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        self.add("POST", path, post(handler))
    }

    /// A path where a model's work is asked for: its requests count.
    pub(super) fn post_metered<H, T>(self, path: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        self.add("POST", path, post(Metered(handler)))
    }

    pub(super) fn delete<H, T>(self, path: &str, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        self.add("DELETE", path, delete(handler))
    }

    fn add(mut self, method: &'static str, path: &str, handler: MethodRouter<Arc<App>>) -> Self {
        let path = format!("{}{path}", self.prefix);
        self.router = self.router.route(&path, handler);
        self.routes.push(Route { method, path });
        self
    }

    pub(super) fn into_router(self) -> Router<Arc<App>> {
        self.router
    }

    pub(super) fn into_routes(self) -> Vec<Route> {
        self.routes
    }
}
