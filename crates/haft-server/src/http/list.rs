//! `GET /responses`: the caller's responses, without their items. The list is haft's own; with an
//! upgrade the same path is the WebSocket.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use haft_core::{ListedResponse, ResponsePage};
use hyper::upgrade::OnUpgrade;
use serde::Serialize;

use super::{reply, websocket};
use crate::app::{App, Caller, store_failed};
use crate::error::{ApiError, without_content};
use crate::stream::Dialect;
use crate::wire::{ItemsQuery, ResponseResource};

/// `GET /responses`
pub(super) async fn list_or_upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    connection: Option<Extension<OnUpgrade>>,
) -> Result<Response, ApiError> {
    if method == Method::GET && websocket::is_requested(&headers) {
        let connection = connection.map(|Extension(connection)| connection);
        return websocket::open(app, caller, &headers, connection);
    }
    let query = ItemsQuery::read(query.as_deref())?;
    let page = app.store.responses(Some(&caller.owner), query.page).await;
    let page = page.map_err(store_failed)?;
    Ok(reply::ok(&Listed::of(&page, caller.dialect)))
}

/// A piece of the list, as clients see it.
#[derive(Debug, Serialize)]
struct Listed {
    object: &'static str,
    data: Vec<ResponseResource>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

impl Listed {
    fn of(page: &ResponsePage, dialect: Dialect) -> Self {
        // By what the store says: one that cannot be read is left out, and the next page goes on
        // behind it all the same.
        let id = |response: Option<&ListedResponse>| response.map(|it| it.id.clone());
        let first_id = id(page.responses.first());
        let last_id = id(page.responses.last());
        let data = page.responses.iter().filter_map(|listed| {
            let read = serde_json::from_str::<ResponseResource>(listed.resource.get());
            let mut resource = read
                .inspect_err(|error| {
                    let error = without_content(error);
                    tracing::error!(error, id = listed.id, "a stored response cannot be read");
                })
                .ok()?;
            resource.status = dialect.status(resource.status);
            Some(resource)
        });
        Self {
            object: "list",
            data: data.collect(),
            first_id,
            last_id,
            has_more: page.has_more,
        }
    }
}
