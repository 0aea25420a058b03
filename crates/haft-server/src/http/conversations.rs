//! Conversations and their items (`open-responses.md` §1, §9.3).

use std::sync::Arc;

use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use haft_core::{Owner, StoredConversation, StoredItem};
use haft_hydrate::JsonSchemaFactory;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::{body, reply};
use crate::app::{App, Caller, now, store_failed};
use crate::context::conversation_not_found;
use crate::error::{ApiError, ErrorCode};
use crate::wire::{
    InputItem, ItemsQuery, ListPage, Vocabulary, new_id, read_metadata, visible_item,
};

/// How many items may be added at once.
const MAX_ITEMS: usize = 20;

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

fn members(body: Value) -> Result<Map<String, Value>, ApiError> {
    match body {
        Value::Object(members) => Ok(members),
        _ => Err(ApiError::new(
            ErrorCode::InvalidType,
            "the body must be a JSON object",
        )),
    }
}

fn metadata(body: &mut Map<String, Value>) -> Result<Option<Map<String, Value>>, ApiError> {
    match body.shift_remove("metadata") {
        None | Some(Value::Null) => Ok(None),
        Some(metadata) => read_metadata(metadata, "metadata").map(Some),
    }
}

/// Items as they come in, ready to be kept.
async fn items(
    app: &App,
    owner: &Owner,
    body: &mut Map<String, Value>,
) -> Result<Option<Vec<StoredItem>>, ApiError> {
    let given = match body.shift_remove("items") {
        None | Some(Value::Null) => return Ok(None),
        Some(given) => given,
    };
    if let Value::Array(list) = &given
        && list.len() > MAX_ITEMS
    {
        let message = format!(
            "`items` has {} entries: add at most {MAX_ITEMS} at once",
            list.len()
        );
        return Err(ApiError::new(ErrorCode::InvalidValue, message).at("items"));
    }
    let mut items = Vec::new();
    for item in read(app, given)? {
        items.push(match item {
            InputItem::Item(record) => record.stored().map_err(|error| {
                tracing::error!(%error, "an item cannot be written");
                ApiError::new(ErrorCode::ServerError, "an item cannot be written")
            })?,
            InputItem::Reference { id, param } => {
                let found = app.store.item(owner, &id).await.map_err(store_failed)?;
                found.ok_or_else(|| item_not_found(&id).at(param))?
            }
            InputItem::CompactionTrigger => {
                let message = "a `compaction_trigger` is for requests, not for conversations";
                return Err(ApiError::new(ErrorCode::UnsupportedItemType, message).at("items"));
            }
        });
    }
    Ok(Some(items))
}

fn read(app: &App, given: Value) -> Result<Vec<InputItem>, ApiError> {
    let is_vendor_type = |tool_type: &str| app.is_vendor_type(tool_type);
    let words = Vocabulary {
        is_vendor_type: &is_vendor_type,
        schemas: &JsonSchemaFactory,
    };
    InputItem::read_list(given, "items", &words)
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
    let body = body::read_optional_json(request, app.options.max_body_bytes).await?;
    let mut body = members(body.unwrap_or_else(|| json!({})))?;
    let metadata = metadata(&mut body)?.unwrap_or_default();
    let items = items(&app, &caller.owner, &mut body).await?;
    let conversation = record(new_id("conv"), now(), &metadata)?;
    let put = app
        .store
        .put_conversation(&caller.owner, conversation.clone());
    put.await.map_err(store_failed)?;
    if let Some(items) = items.filter(|items| !items.is_empty()) {
        let added = app
            .store
            .append_items(&caller.owner, &conversation.id, items);
        added.await.map_err(store_failed)?;
    }
    Ok(reply::ok(&shown(&conversation)))
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
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    Ok(reply::ok(&shown(&load(&app, &caller.owner, &id).await?)))
}

/// `POST /conversations/{id}`
pub(super) async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(request, app.options.max_body_bytes).await?;
    let metadata = metadata(&mut members(body)?)?.ok_or_else(|| {
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
    Ok(reply::ok(&shown(&changed)))
}

/// `DELETE /conversations/{id}`
pub(super) async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
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
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, ApiError> {
    let include = ItemsQuery::read(query.as_deref())?.include;
    let body = body::read_json(request, app.options.max_body_bytes).await?;
    let items = items(&app, &caller.owner, &mut members(body)?).await?;
    let items = items.filter(|items| !items.is_empty()).ok_or_else(|| {
        let message = "`items` is missing or empty: send 1 to 20 items";
        ApiError::new(ErrorCode::MissingRequiredParameter, message).at("items")
    })?;
    // A run that is under way has read the conversation already.
    let _lock = app.conversations.lock(&caller.owner, &id)?;
    let added = app.store.append_items(&caller.owner, &id, items.clone());
    if !added.await.map_err(store_failed)? {
        return Err(conversation_not_found(&id));
    }
    Ok(reply::ok(&ListPage::whole(&items, include)))
}

/// `GET /conversations/{id}/items`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = ItemsQuery::read(query.as_deref())?;
    let page = app.store.conversation_page(&caller.owner, &id, query.page);
    let page = page.await.map_err(store_failed)?;
    let page = page.ok_or_else(|| conversation_not_found(&id))?;
    Ok(reply::ok(&ListPage::of(&page, query.include)))
}

/// `GET /conversations/{id}/items/{item_id}`
pub(super) async fn item(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, item_id)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let include = ItemsQuery::read(query.as_deref())?.include;
    let items = app.store.conversation_items(&caller.owner, &id).await;
    let items = items.map_err(store_failed)?;
    let items = items.ok_or_else(|| conversation_not_found(&id))?;
    let found = items.iter().rev().find(|item| item.id == item_id);
    let found = found.ok_or_else(|| item_not_found(&item_id))?;
    Ok(reply::ok(&visible_item(found, include)))
}

/// `DELETE /conversations/{id}/items/{item_id}`
pub(super) async fn delete_item(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, item_id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let conversation = load(&app, &caller.owner, &id).await?;
    let deleted = app.store.delete_item(&caller.owner, &id, &item_id).await;
    if !deleted.map_err(store_failed)? {
        return Err(item_not_found(&item_id));
    }
    Ok(reply::ok(&shown(&conversation)))
}
