//! The MCP endpoints of a server: `/mcp`, and `/mcp/NAME` for each that has a name.
//!
//! Each has its own gateway, and so its own sessions and its own key for request states: what a client holds of one
//! endpoint is worth nothing at another. An endpoint that a caller may not use looks like one that does not exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use haft_core::Cancel;
use haft_mcp::gateway::{Caller as GatewayCaller, CallerFilter};

use super::mounted::{Mounted, gateway_caller};
use crate::access::Keyring;
use crate::app::{App, Caller};
use crate::error::{ApiError, ErrorCode};
use crate::http::Route;

/// The path of the endpoint without a name; those with one are below it.
const PATH: &str = "/mcp";

/// The longest name of an endpoint.
const MAX_NAME_BYTES: usize = 64;

/// Whether an endpoint can be called so: lower-case letters, digits, `-` and `_`, a letter or a digit first.
pub fn is_endpoint_name(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().next().is_some_and(is_legal)
        && name
            .bytes()
            .all(|byte| is_legal(byte) || b"-_".contains(&byte))
}

/// All endpoints of a server.
#[derive(Default)]
pub(crate) struct Endpoints(Vec<Endpoint>);

struct Endpoint {
    path: String,
    callers: CallerFilter,
    mounted: Mounted,
}

/// Where the endpoints are and who may use each.
type Directory = Arc<[(String, CallerFilter)]>;

impl Endpoints {
    /// Adds the endpoint of this name, or the one without a name.
    pub(crate) fn add(&mut self, name: Option<&str>, callers: CallerFilter, mounted: Mounted) {
        let path = Self::path_of(name);
        self.0.push(Endpoint {
            path,
            callers,
            mounted,
        });
    }

    /// The path of the endpoint of this name, or of the one without a name.
    pub(crate) fn path_of(name: Option<&str>) -> String {
        match name {
            Some(name) => format!("{PATH}/{name}"),
            None => PATH.to_owned(),
        }
    }

    /// The router with the routes of the endpoints.
    pub(crate) fn added_to(&self, mut router: Router<Arc<App>>) -> Router<Arc<App>> {
        if self.0.is_empty() {
            return router;
        }
        let directory: Directory = self
            .0
            .iter()
            .map(|it| (it.path.clone(), it.callers.clone()))
            .collect();
        for endpoint in &self.0 {
            let guard = (Arc::clone(&directory), endpoint.callers.clone());
            let route = endpoint.mounted.route();
            let route = route.layer(middleware::from_fn_with_state(guard, admit));
            router = router.route(&endpoint.path, route);
        }
        let unknown = any(unknown).layer(Extension(directory));
        if self.0.iter().all(|endpoint| endpoint.path != PATH) {
            router = router.route(PATH, unknown.clone());
        }
        router.route(&format!("{PATH}/{{*name}}"), unknown)
    }

    /// Every method and path that they answer to.
    pub(crate) fn routes(&self) -> impl Iterator<Item = Route> {
        self.0.iter().flat_map(|endpoint| {
            ["POST", "GET", "DELETE"].into_iter().map(|method| Route {
                method,
                path: endpoint.path.clone(),
            })
        })
    }

    /// Ends their streams and sessions when nothing new is to begin: they would have no end of their own.
    pub(crate) fn close_at(&self, stopping: &Cancel) {
        for endpoint in &self.0 {
            endpoint.mounted.close_at(stopping.clone());
        }
    }

    /// Logs keys, tenants and roles that rules or endpoints name and no valid key has: most of them are typing
    /// errors, and a rule for nobody restricts nobody.
    pub(crate) fn warn_of_unknown_names(&self, keyring: &Keyring) {
        let Some(keys) = keyring.active_keys() else {
            return;
        };
        let mut known = BTreeSet::from([("key", "configured"), ("tenant", "default")]);
        for key in &keys {
            known.extend([
                ("key", key.id.as_str()),
                ("key", &key.name),
                ("tenant", &key.tenant),
            ]);
            known.extend(key.roles.iter().map(|role| ("role", role.as_str())));
        }
        for endpoint in &self.0 {
            let rules = endpoint.mounted.rule_callers();
            let filters = std::iter::once(&endpoint.callers).chain(rules);
            let named = filters.flat_map(|filter| {
                let keys = filter.keys().map(|it| ("key", it));
                let tenants = filter.tenants().map(|it| ("tenant", it));
                keys.chain(tenants)
                    .chain(filter.roles().map(|it| ("role", it)))
            });
            for (kind, name) in named.filter(|name| !known.contains(name)) {
                tracing::warn!(
                    endpoint = endpoint.path,
                    "no valid key has the {kind} `{name}` that the configuration of this endpoint names; check \
                     `haft keys list`"
                );
            }
        }
    }
}

/// Lets the callers of an endpoint through, with their identity as the gateway knows it.
async fn admit(
    State((directory, callers)): State<(Directory, CallerFilter)>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().map(gateway_caller);
    let Some(caller) = caller.filter(|caller| callers.includes(caller)) else {
        let caller = request.extensions().get::<Caller>().map(gateway_caller);
        let error = no_endpoint(request.method(), request.uri(), caller.as_ref(), &directory);
        return error.into_response();
    };
    // The span of a call belongs below that of its request, unless the client names another one in `_meta`.
    let request_caller = request.extensions().get::<Caller>();
    let trace = request_caller.and_then(|it| it.watch.traceparent().map(HeaderValue::from_str));
    if let Some(Ok(trace)) = trace {
        request.headers_mut().insert("traceparent", trace);
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Answers for every endpoint that does not exist.
async fn unknown(
    Extension(directory): Extension<Directory>,
    caller: Option<Extension<Caller>>,
    method: Method,
    uri: Uri,
) -> ApiError {
    let caller = caller.map(|Extension(caller)| gateway_caller(&caller));
    no_endpoint(&method, &uri, caller.as_ref(), &directory)
}

/// The error for an endpoint that does not exist or is not for the caller, which must not learn which of the two.
fn no_endpoint(
    method: &Method,
    uri: &Uri,
    caller: Option<&GatewayCaller>,
    directory: &Directory,
) -> ApiError {
    let is_open = |callers: &CallerFilter| caller.is_some_and(|caller| callers.includes(caller));
    let usable = directory.iter().filter(|(_, callers)| is_open(callers));
    let usable: Vec<_> = usable.map(|(path, _)| format!("`{path}`")).collect();
    let help = match usable.as_slice() {
        [] => String::from("this key may use no MCP endpoint"),
        usable => format!("the MCP endpoints for this key are {}", usable.join(", ")),
    };
    let path = haft_core::cut(uri.path());
    let message = format!("unknown route `{method} {path}`; {help}");
    ApiError::new(ErrorCode::RouteNotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_endpoints_are_parts_of_paths() {
        for name in ["coding", "team-2", "a_b", "2"] {
            assert!(is_endpoint_name(name), "{name}");
        }
        let long = "x".repeat(65);
        for name in ["", "-a", "_a", "A", "a b", "a/b", "a.b", "ä", long.as_str()] {
            assert!(!is_endpoint_name(name), "{name}");
        }
    }
}
