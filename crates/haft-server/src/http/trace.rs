//! `GET /responses/{id}/trace`: how the run of a response went. An extension of haft's own.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;

use super::path::Ids;
use super::{reply, retrieve};
use crate::app::{App, Caller, store_failed};
use crate::error::{ApiError, ErrorCode};

pub(super) async fn trace(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    let _load = app.begin_load().await;
    // Ownership is checked first: other tenants must not learn whether a response has a trace.
    retrieve::load(&app, &caller.owner, &id).await?;
    if let Some(live) = app.watch.live_trace(&caller.owner, &id) {
        return Ok(reply::ok(&live));
    }
    let stored = app.store.trace(&caller.owner, &id).await;
    let Some(stored) = stored.map_err(store_failed)? else {
        let message = format!(
            "the response `{id}` has no trace: it was never run, or it was made before traces were \
             kept"
        );
        return Err(ApiError::new(ErrorCode::ResponseNotFound, message));
    };
    let mut response = Response::new(Body::from(String::from(Box::<str>::from(stored))));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
