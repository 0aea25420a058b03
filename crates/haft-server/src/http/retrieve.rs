//! Stored responses: shown, listed, deleted.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use haft_core::{Owner, StoredItem, StoredResponse};
use serde_json::{Value, json};

use super::path::Ids;
use super::{background, body, reply};
use crate::app::{App, Caller, store_failed};
use crate::error::{ApiError, ErrorCode, without_content};
use crate::stream::Dialect;
use crate::wire::{ItemsQuery, ListPage, ResponseResource, RetrieveQuery, View, visible_item};

/// A stored response and its resource.
pub(super) async fn load(
    app: &App,
    owner: &Owner,
    id: &str,
) -> Result<(StoredResponse, ResponseResource), ApiError> {
    let stored = app.store.response(owner, id).await.map_err(store_failed)?;
    let stored = stored.ok_or_else(|| not_found(id))?;
    let resource = serde_json::from_str(stored.resource.get()).map_err(|error| {
        let error = without_content(&error);
        tracing::error!(error, id, "a stored response cannot be read");
        let message = format!("the stored response `{id}` cannot be read");
        ApiError::new(ErrorCode::ServerError, message)
    })?;
    Ok((stored, resource))
}

fn not_found(id: &str) -> ApiError {
    let message = format!("there is no stored response `{}`", haft_core::cut(id));
    ApiError::new(ErrorCode::ResponseNotFound, message)
}

/// The whole resource, as this caller may see it.
pub(super) fn shown(
    stored: &StoredResponse,
    mut resource: ResponseResource,
    view: &View,
    dialect: Dialect,
) -> ResponseResource {
    let items = stored.output.iter();
    let items = items.filter_map(|item| {
        let visible = visible_item(item, view);
        serde_json::from_str::<Value>(visible.get()).ok()
    });
    resource.output = items.collect();
    resource.status = dialect.status(resource.status);
    resource
}

/// `GET /responses/{id}`
pub(super) async fn retrieve(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = RetrieveQuery::read(query.as_deref())?;
    let _load = app.begin_load().await;
    let (stored, resource) = load(&app, &caller.owner, &id).await?;
    if query.stream {
        let has_log = resource.background && background::has_log(&app, &caller.owner, &id).await?;
        if !has_log {
            let message = format!(
                "the response `{id}` has no events to be read again: only those made with \
                 `background` and `stream` have"
            );
            return Err(ApiError::new(ErrorCode::UnsupportedParameter, message).at("stream"));
        }
        let after = query.starting_after;
        return Ok(background::replay(
            &app,
            &caller.owner,
            &resource,
            after,
            caller.dialect,
        ));
    }
    let view = app.view(&caller.owner, query.include);
    let size = body::bytes_of(&stored.output);
    body::sized(size, move || {
        Ok(reply::ok(&shown(&stored, resource, &view, caller.dialect)))
    })
    .await
}

/// `DELETE /responses/{id}`
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    if let Some(live) = app.live.get(&caller.owner, &id) {
        live.cancel();
        live.over().await;
    }
    let deleted = app.store.delete_response(&caller.owner, &id).await;
    if !deleted.map_err(store_failed)? {
        return Err(not_found(&id));
    }
    Ok(reply::ok(
        &json!({"id": id, "object": "response.deleted", "deleted": true}),
    ))
}

/// `GET /responses/{id}/input_items`: everything that the response answered to.
pub(super) async fn input_items(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = ItemsQuery::read(query.as_deref())?;
    let _load = app.begin_load().await;
    let chain = app.store.chain(&caller.owner, &id).await;
    let mut chain = chain.map_err(store_failed)?.ok_or_else(|| not_found(&id))?;
    let Some(last) = chain.pop() else {
        return Err(not_found(&id));
    };
    let mut items = in_conversation(&app, &caller.owner, &last).await?;
    for link in chain {
        items.extend(link.input);
        items.extend(link.output);
    }
    items.extend(last.input);
    let view = app.view(&caller.owner, query.include);
    body::sized(body::bytes_of(&items), move || {
        let page = ListPage::cut(&items, &query.page, &view)?;
        Ok(reply::ok(&page))
    })
    .await
}

/// What its conversation held before a response was added to it.
async fn in_conversation(
    app: &App,
    owner: &Owner,
    response: &StoredResponse,
) -> Result<Vec<StoredItem>, ApiError> {
    let resource: Value = serde_json::from_str(response.resource.get()).unwrap_or_default();
    let Some(id) = resource.pointer("/conversation/id").and_then(Value::as_str) else {
        return Ok(Vec::new());
    };
    let items = app.store.conversation_items(owner, id).await;
    let mut items = items.map_err(store_failed)?.unwrap_or_default();
    let own = response.input.iter().chain(&response.output).next();
    let at = own.and_then(|own| items.iter().rposition(|item| item.id == own.id));
    items.truncate(at.unwrap_or(items.len()));
    Ok(items)
}
