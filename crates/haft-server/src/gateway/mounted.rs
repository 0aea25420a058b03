//! A gateway as a route of the server, behind the same checks as the API.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use haft_core::Cancel;
use haft_mcp::gateway::{Caller as GatewayCaller, CallerFilter, Gateway, HttpOptions};

use super::CatalogBackend;
use crate::app::{App, Caller};

/// How long reading the body of a request may take, and how large it may be.
const BODY_WAIT: Duration = Duration::from_mins(2);
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A gateway and its route.
pub(crate) struct Mounted {
    gateway: Gateway<CatalogBackend>,
    route: MethodRouter<Arc<App>>,
}

impl Mounted {
    pub(crate) fn new(gateway: Gateway<CatalogBackend>) -> Self {
        // The envelope of the API has checked `Host` and `Origin`.
        let options = HttpOptions::default().checked_before();
        let route = gateway.http(options).layer(middleware::from_fn(read_body));
        Self { gateway, route }
    }

    /// The route. Requests must bring a [`GatewayCaller`] in their extensions.
    pub(super) fn route(&self) -> MethodRouter<Arc<App>> {
        self.route.clone()
    }

    /// The callers that the rules of the gateway name.
    pub(super) fn rule_callers(&self) -> impl Iterator<Item = &CallerFilter> {
        self.gateway.backend().access().rule_callers()
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

/// The caller as the gateway knows it: the tenant of the key, the key and its roles.
pub(super) fn gateway_caller(caller: &Caller) -> GatewayCaller {
    let pass = &caller.pass;
    let known = GatewayCaller::new(caller.owner.as_str()).with_roles(pass.roles().iter().cloned());
    match pass.key_name() {
        Some(name) => known.with_key(pass.key_id(), name),
        None => known,
    }
}

/// Reads the body within the limits of the API.
async fn read_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(BODY_WAIT, to_bytes(body, MAX_BODY_BYTES)).await;
    let rejected = match read {
        Ok(Ok(body)) => return next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(_)) => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "request body too large (limit 16 MiB)",
        ),
        Err(_) => (
            StatusCode::REQUEST_TIMEOUT,
            "timed out reading the request body after 120s",
        ),
    };
    rejected.into_response()
}
