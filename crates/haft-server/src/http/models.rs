//! `GET /models`

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::path::Ids;
use super::reply;
use crate::app::App;
use crate::error::ApiError;
use crate::models::ModelEntry;

/// When models were made is nobody's business here; clients want a number.
const CREATED: i64 = 1_700_000_000;

fn model(entry: &ModelEntry) -> Value {
    json!({"id": entry.name, "object": "model", "created": CREATED, "owned_by": "haft"})
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Response {
    let data: Vec<_> = app.models.iter().map(model).collect();
    reply::ok(&json!({"object": "list", "data": data}))
}

pub(super) async fn retrieve(
    State(app): State<Arc<App>>,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    let entry = app.models.find(Some(&id))?;
    Ok(reply::ok(&model(entry)))
}
