//! `POST /responses/compact`: a window of context becomes a shorter one (`open-responses.md` §8.1).
//!
//! What comes out is no response: it is not stored, and nothing can go on from its id.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use haft_core::Cancel;
use serde_json::{Value, json};

use super::{reply, responses, warning};
use crate::app::{App, Caller, now};
use crate::compaction::{Halt, Piece, Writing, compact_window, item_of};
use crate::context::Context;
use crate::error::{ApiError, ErrorCode};
use crate::history::{AsWritten, Record, expand, verify};
use crate::plan::{model_options, summary_options};
use crate::wire::{Door, Include, UsageBody, View, make_visible, new_id};

pub(super) async fn compact(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, _) = responses::receive(&app, request, Door::Compact).await?;
    let entry = app.models.find(request.model.as_deref())?;
    let model = &entry.model;
    let _permit = app.admit(&caller).await?;
    let context = app.context(&caller, &request, None).await?;
    check_calls(&context)?;
    let stopping = StopOnDrop(Cancel::new());
    let writing = Writing {
        model,
        instructions: request.instructions.as_deref(),
        options: &app.options.loop_options,
        model_options: summary_options(&model_options(&request)),
        cancel: &stopping.0,
        request_id: &caller.request_id,
    };
    let compacted = compact_window(context.pieces, &app.keys, &caller.owner, &writing).await;
    app.watch.window_compacted(&entry.name, &compacted);
    let (outside, sealed, usage) = compacted.map_err(|halt| match halt {
        Halt::Error(error) => error,
        Halt::Cancelled(_) => ApiError::new(
            ErrorCode::ResponseCancelled,
            "the compaction was stopped before it was done",
        ),
    })?;
    let include = Include {
        provider: 0,
        encrypted_reasoning: true,
        logprobs: false,
    };
    let view = app.view(&caller.owner, include);
    let outside = outside.iter().filter_map(|piece| shown(piece, &view));
    let mut output: Vec<Value> = outside.collect();
    output.push(item_of(&new_id("cmp"), &sealed).into());
    let mut response = reply::ok(&json!({
        "id": new_id("resp"),
        "object": "response.compaction",
        "created_at": now(),
        "output": output,
        "usage": UsageBody::from(&usage),
    }));
    warning::log(&request.ignored);
    warning::report(&mut response, &[], &request.ignored);
    Ok(response)
}

/// Outputs must belong to calls; a call that is still open is no mistake here.
fn check_calls(context: &Context) -> Result<(), ApiError> {
    let records = context.pieces.iter().map(|piece| piece.record.clone());
    let records: Vec<Record> = records.collect();
    let conversation = expand(&records, &AsWritten, false, &context.claims)?.answered();
    match verify(&conversation, &records) {
        Err(error) if error.code != ErrorCode::MissingToolOutput => Err(error),
        _ => Ok(()),
    }
}

/// An item as the client may see it.
fn shown(piece: &Piece, view: &View) -> Option<Value> {
    let mut item = serde_json::to_value(&piece.record.item).ok()?;
    make_visible(item.as_object_mut()?, &piece.record.id, view);
    Some(item)
}

/// Ends the request to the model when nobody waits for it any more.
struct StopOnDrop(Cancel);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
