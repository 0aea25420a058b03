//! The gateway as a part of the server: `/mcp`, behind the same door as the API.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use haft_core::Cancel;
use haft_mcp::gateway::{Caller as GatewayCaller, Gateway, HttpOptions};

use super::CatalogBackend;
use crate::app::{App, Caller};
use crate::http::Route;

/// How long the body of a request may take, and how large it may be.
const BODY_WAIT: Duration = Duration::from_mins(2);
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Where it is.
const PATH: &str = "/mcp";

/// A gateway and its route.
pub(crate) struct Mounted {
    gateway: Gateway<CatalogBackend>,
    route: MethodRouter<Arc<App>>,
}

impl Mounted {
    pub(crate) fn new(gateway: Gateway<CatalogBackend>) -> Self {
        // The envelope of the API has looked at both, and knows when a name of this machine is asked for.
        let options = HttpOptions::default().checked_before();
        let route = gateway
            .http(options)
            .layer(middleware::from_fn(name_caller));
        Self { gateway, route }
    }

    /// The routes with this one.
    pub(crate) fn added_to(&self, router: Router<Arc<App>>) -> Router<Arc<App>> {
        router.route(PATH, self.route.clone())
    }

    /// What there is to ask for.
    pub(crate) fn routes() -> impl Iterator<Item = Route> {
        let route = |method| Route {
            method,
            path: PATH.to_owned(),
        };
        ["POST", "GET", "DELETE"].into_iter().map(route)
    }

    /// Ends its streams and sessions when nothing new is to begin: they would have no end of their own.
    pub(crate) fn close_at(&self, stopping: Cancel) {
        let gateway = self.gateway.clone();
        tokio::spawn(async move {
            stopping.cancelled().await;
            gateway.close();
        });
    }
}

/// Tells the gateway who asks, as the envelope has found out: the tenant of the key. Whoever sends takes no
/// longer over it than at the API.
async fn name_caller(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Some(caller) = parts.extensions.get::<Caller>() {
        let caller = GatewayCaller::new(caller.owner.as_str());
        parts.extensions.insert(caller);
    }
    let read = tokio::time::timeout(BODY_WAIT, to_bytes(body, MAX_BODY_BYTES)).await;
    let refused = match read {
        Ok(Ok(body)) => return next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(_)) => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
    };
    refused.into_response()
}
