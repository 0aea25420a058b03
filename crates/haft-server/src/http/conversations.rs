//! Conversations and their items (`open-responses.md` §1, §9.3).

use std::sync::Arc;

use axum::extract::{RawQuery, Request, State};
use axum::response::Response;
use haft_core::{Owner, StoredConversation, StoredItem};
use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::path::Ids;
use super::{body, reply, warning};
use crate::app::{App, Caller, now, store_failed};
use crate::context::conversation_not_found;
use crate::error::{ApiError, ErrorCode};
use crate::wire::{
    BoundedSchemas, ConversationBody, InputItem, ItemsBody, ItemsQuery, ListPage, Vocabulary,
    new_id, visible_item,
};

fn shown(conversation: &StoredConversation) -> Value {
    let metadata: Value = serde_json::from_str(conversation.metadata.get()).unwrap_or_default();
    json!({
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created_at,
        "metadata": metadata,
    })
}

async fn load(app: &App, owner: &Owner, id: &str) -> Result<StoredConversation, ApiError> {
    let found = app
        .store
        .conversation(owner, id)
        .await
        .map_err(store_failed)?;
    found.ok_or_else(|| conversation_not_found(id))
}

/// Reads a body by the words that this server knows.
fn read<T>(
    app: &App,
    body: Value,
    read: impl FnOnce(Value, &Vocabulary<'_>) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let is_vendor_type = |tool_type: &str| app.is_vendor_type(tool_type);
    let words = Vocabulary {
        is_vendor_type: &is_vendor_type,
        schemas: &BoundedSchemas::default(),
    };
    read(body, &words)
}

/// Items as they come in, ready to be kept.
async fn kept(
    app: &App,
    owner: &Owner,
    given: Vec<InputItem>,
) -> Result<Vec<StoredItem>, ApiError> {
    let mut items = Vec::new();
    for item in given {
        match item {
            InputItem::Item(record) => {
                items.push(record.stored().map_err(|error| {
                    tracing::error!(%error, "an item cannot be written");
                    ApiError::new(ErrorCode::ServerError, "an item cannot be written")
                })?);
            }
            InputItem::Reference { id, param } => {
                let found = app.store.item(owner, &id).await.map_err(store_failed)?;
                items.push(found.ok_or_else(|| item_not_found(&id).at(param))?);
            }
            // Refused when it was read.
            InputItem::CompactionTrigger => {}
        }
    }
    Ok(items)
}

fn item_not_found(id: &str) -> ApiError {
    let message = format!("there is no item `{}` here", haft_core::cut(id));
    ApiError::new(ErrorCode::ItemNotFound, message)
}

/// `POST /conversations`
pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_optional_json(request, &app).await?;
    let body = read(
        &app,
        body.unwrap_or_else(|| json!({})),
        ConversationBody::read,
    )?;
    let items = kept(&app, &caller.owner, body.items).await?;
    let metadata = body.metadata.unwrap_or_default();
    let conversation = record(new_id("conv"), now(), &metadata)?;
    let put = app
        .store
        .put_conversation(&caller.owner, conversation.clone());
    put.await.map_err(store_failed)?;
    if !items.is_empty() {
        let added = app
            .store
            .append_items(&caller.owner, &conversation.id, items);
        added.await.map_err(store_failed)?;
    }
    Ok(answered(&shown(&conversation), &body.ignored))
}

/// A response that names the members of its request that had no effect.
fn answered(value: &impl Serialize, ignored: &[String]) -> Response {
    let mut response = reply::ok(value);
    warning::log(ignored);
    warning::report(&mut response, &[], ignored);
    response
}

fn record(
    id: String,
    created_at: i64,
    metadata: &Map<String, Value>,
) -> Result<StoredConversation, ApiError> {
    let metadata = to_raw_value(metadata).map_err(|error| {
        tracing::error!(%error, "metadata cannot be written");
        ApiError::new(ErrorCode::ServerError, "the metadata cannot be written")
    })?;
    Ok(StoredConversation {
        id,
        created_at,
        metadata,
    })
}

/// `GET /conversations/{id}`
pub(super) async fn retrieve(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    Ok(reply::ok(&shown(&load(&app, &caller.owner, &id).await?)))
}

/// `POST /conversations/{id}`
pub(super) async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(request, &app).await?;
    let mut body = read(&app, body, ConversationBody::read)?;
    if !body.items.is_empty() {
        // They are added at a path of their own.
        body.ignored.push("items".to_owned());
    }
    let metadata = body.metadata.ok_or_else(|| {
        ApiError::new(
            ErrorCode::MissingRequiredParameter,
            "`metadata` is missing: only it can be changed",
        )
        .at("metadata")
    })?;
    let known = load(&app, &caller.owner, &id).await?;
    let changed = record(known.id, known.created_at, &metadata)?;
    let put = app.store.put_conversation(&caller.owner, changed.clone());
    put.await.map_err(store_failed)?;
    Ok(answered(&shown(&changed), &body.ignored))
}

/// `DELETE /conversations/{id}`
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, ApiError> {
    let deleted = app.store.delete_conversation(&caller.owner, &id).await;
    if !deleted.map_err(store_failed)? {
        return Err(conversation_not_found(&id));
    }
    Ok(reply::ok(
        &json!({"id": id, "object": "conversation.deleted", "deleted": true}),
    ))
}

/// `POST /conversations/{id}/items`
pub(super) async fn add(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, ApiError> {
    let view = app.view(&caller.owner, ItemsQuery::read(query.as_deref())?.include);
    let body = body::read_json(request, &app).await?;
    let body = read(&app, body, ItemsBody::read)?;
    let items = kept(&app, &caller.owner, body.items).await?;
    // A run that is under way has read the conversation already.
    let _lock = app.conversations.lock(&caller.owner, &id).await?;
    let added = app.store.append_items(&caller.owner, &id, items.clone());
    if !added.await.map_err(store_failed)? {
        return Err(conversation_not_found(&id));
    }
    Ok(answered(&ListPage::whole(&items, &view), &body.ignored))
}

/// `GET /conversations/{id}/items`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids(id): Ids<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = ItemsQuery::read(query.as_deref())?;
    let view = app.view(&caller.owner, query.include);
    let _load = app.begin_load().await;
    let page = app.store.conversation_page(&caller.owner, &id, query.page);
    let page = page.await.map_err(store_failed)?;
    let page = page.ok_or_else(|| conversation_not_found(&id))?;
    body::sized(body::bytes_of(&page.items), move || {
        Ok(reply::ok(&ListPage::of(&page, &view)))
    })
    .await
}

/// `GET /conversations/{id}/items/{item_id}`
pub(super) async fn item(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids((id, item_id)): Ids<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let view = app.view(&caller.owner, ItemsQuery::read(query.as_deref())?.include);
    let items = app.store.conversation_items(&caller.owner, &id).await;
    let items = items.map_err(store_failed)?;
    let items = items.ok_or_else(|| conversation_not_found(&id))?;
    let found = items.iter().rev().find(|item| item.id == item_id);
    let found = found.ok_or_else(|| item_not_found(&item_id))?;
    Ok(reply::ok(&visible_item(found, &view)))
}

/// `DELETE /conversations/{id}/items/{item_id}`
pub(super) async fn delete_item(
    State(app): State<Arc<App>>,
    caller: Caller,
    Ids((id, item_id)): Ids<(String, String)>,
) -> Result<Response, ApiError> {
    let conversation = load(&app, &caller.owner, &id).await?;
    let deleted = app.store.delete_item(&caller.owner, &id, &item_id).await;
    if !deleted.map_err(store_failed)? {
        return Err(item_not_found(&item_id));
    }
    Ok(reply::ok(&shown(&conversation)))
}
