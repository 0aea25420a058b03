//! `GET /healthz` and `GET /readyz`: for those who watch over the server.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use serde_json::json;

use super::{caller, door, origin, reply};
use crate::app::App;
use crate::health::Readiness;

/// That the process answers is all that is said.
pub(super) async fn healthy() -> Response {
    fresh(reply::ok(&json!({"status": "ok"})))
}

/// Whether requests can be served, and to those who may come in what is in the way.
pub(super) async fn ready(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Response {
    app.keyring.refresh().await;
    let readiness = Readiness::of(&app).await;
    let status = if readiness.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let known = door::check_headers(&app.options.limits, &uri, &headers)
        .and_then(|()| door::check_host(&app, &uri, &headers))
        .and_then(|()| origin::allowed(&app, &headers))
        .and_then(|_| caller::recognise(&app, &headers, ""));
    let told = match known {
        Ok(_) => readiness,
        Err(_) => readiness.verdict(),
    };
    fresh(reply::json(status, &told))
}

/// Nobody may keep it.
fn fresh(mut response: Response) -> Response {
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, never);
    response
}
