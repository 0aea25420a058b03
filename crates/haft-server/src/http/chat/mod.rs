//! `POST /chat/completions`: one request to the model that is named, and its answer.

mod passing;
mod streaming;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::{StreamExt as _, TryFutureExt as _};
use haft_core::{
    Assembly, FinishReason, Model as _, ModelError, ModelErrorKind, ModelEvent, ModelStream,
    Streaming,
};

use super::{body, counts, reply};
use crate::app::{App, Caller};
use crate::chat::{ChatRequest, ChunkWriter, Completion, Envelope, Heading};
use crate::error::ApiError;
use crate::failure;

pub(super) async fn complete(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json_bytes(request, app.options.max_body_bytes).await?;
    let envelope = Envelope::read(&body)?;
    let entry = app.models.find(envelope.model.as_deref())?;
    let limits = &app.options.limits;
    counts::check("messages", envelope.messages, limits.max_input_items)?;
    counts::check("tools", envelope.tools, limits.max_tools)?;
    let watch = app.watch.chat(&caller, &entry.name);
    if let Some(chat) = &entry.chat {
        let permit = app.admit(&caller).await?;
        let body = envelope.addressed(&body, chat.name());
        return passing::pass(chat, body, envelope.is_streamed, permit, watch).await;
    }
    let model = Arc::clone(&entry.model);
    let asked = ChatRequest::read(body::parse(&body)?, model.provider())?;
    asked.check_content(&*model)?;
    let permit = app.admit(&caller).await?;
    let heading = Heading::new(&entry.name);
    let is_streamed = asked.request.options.stream == Streaming::Pieces;
    let request = asked.request;
    let events = async move { model.send(request).await }.try_flatten_stream();
    let events: ModelStream = Box::pin(events.map(|event| event.and_then(sound)));
    let events = watch.follow(events);
    if is_streamed {
        let writer = ChunkWriter::new(heading, asked.with_usage);
        streaming::answer(events, writer, permit, &app.options).await
    } else {
        let answer = whole(events, heading).await?;
        drop(permit);
        Ok(reply::ok(&answer))
    }
}

/// An answer that failed is none.
fn sound(event: ModelEvent) -> Result<ModelEvent, ModelError> {
    match event {
        ModelEvent::Finished {
            finish: FinishReason::Error,
            ..
        } => Err(ModelError::new(
            ModelErrorKind::ServerError,
            "it says that the answer failed",
        )),
        event => Ok(event),
    }
}

async fn whole(mut events: ModelStream, heading: Heading) -> Result<Completion, ApiError> {
    let mut assembly = Assembly::default();
    while let Some(event) = events.next().await {
        assembly.add(event.map_err(|error| told(&error))?);
    }
    let answer = assembly.take_finished();
    let answer = answer.ok_or_else(|| told(&broken_off()))?;
    Ok(Completion::of(answer, heading))
}

fn broken_off() -> ModelError {
    ModelError::new(ModelErrorKind::Unreachable, "the answer broke off")
}

/// A model's failure in the words of this API.
fn told(error: &ModelError) -> ApiError {
    let mut told = failure::of_model(error, &error.to_string());
    if told.param.is_some() {
        told.param = Some(String::from("messages"));
    }
    told
}
