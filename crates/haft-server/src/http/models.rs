//! `GET /models` and `GET /models/{id}`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::path::Ids;
use super::reply;
use crate::app::App;
use crate::error::ApiError;

/// Clients expect a time of creation; backends do not tell one.
const CREATED: i64 = 1_700_000_000;

fn model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": CREATED, "owned_by": "haft"})
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Response {
    let data: Vec<_> = app.models.names().map(model).collect();
    reply::ok(&json!({"object": "list", "data": data}))
}

/// A model by any of its names; the answer has the name that was asked for, as clients compare it with their own.
pub(super) async fn retrieve(
    State(app): State<Arc<App>>,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    app.models.find(Some(&id))?;
    Ok(reply::ok(&model(&id)))
}
