//! `POST /chat/completions`: one request to the model that is named, and its answer.

mod passing;
mod streaming;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryFutureExt as _};
use haft_core::{
    Assembly, FinishReason, Model as _, ModelError, ModelErrorKind, ModelEvent, ModelStream,
    Streaming,
};
use haft_models::pool::{Pool, Witness};

use super::{body, counts, reply, warning};
use crate::access::RunPermit;
use crate::app::{App, Caller};
use crate::chat::{ChatRequest, ChunkWriter, Completion, Envelope, Heading};
use crate::content_hosts::check_chat_body;
use crate::error::ApiError;
use crate::failure;
use crate::metered_model::metered;
use crate::watch::ChatWatch;

pub(super) async fn complete(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json_bytes(request, &app).await?;
    let envelope = Envelope::read(&body)?;
    let entry = app.models.find(envelope.model.as_deref())?;
    let limits = &app.options.limits;
    counts::check("messages", envelope.messages, limits.max_input_items)?;
    counts::check("tools", envelope.tools, limits.max_tools)?;
    check_chat_body(&body, &app.content_hosts)?;
    let watch = app.watch.chat(&caller, &entry.name);
    let (pool, witness) = (&entry.pool, Witness::default());
    if !pool.passes_chat() {
        let asked = read(&body, pool)?;
        let permit = app.admit(&caller).await?;
        let telling = Telling {
            permit,
            witness,
            watch,
        };
        return translate(&app, &entry.name, pool, asked, telling).await;
    }
    let permit = app.admit(&caller).await?;
    let addressed = |name: &str| envelope.addressed(&body, name);
    let streaming = if envelope.is_streamed {
        Streaming::Pieces
    } else {
        Streaming::Whole
    };
    let wait = app.options.answer_wait;
    let passed = pool.forward(streaming, wait, addressed, &witness).await;
    let failure = match &passed {
        Ok(answer) => answer.failure(),
        Err(error) => Some(error),
    };
    // Backends that speak otherwise may stand in, if the request can be told in other words.
    if let Some(others) = failure.and_then(|failure| pool.beside_chat(failure))
        && let Ok(asked) = read(&body, &others)
    {
        let others = Arc::new(others);
        let telling = Telling {
            permit,
            witness,
            watch,
        };
        return translate(&app, &entry.name, &others, asked, telling).await;
    }
    let answer = watch.forward(passed).map_err(|error| told(&error))?;
    // A client that reads 401 or 404 looks for the mistake in its own request.
    if let Some(failure) = answer
        .failure()
        .filter(|it| failure::is_operator_matter(it))
    {
        return Err(told(failure));
    }
    let mut response = passing::pass(answer, envelope.is_streamed, permit, &app.memory).await?;
    reply::name_stand_ins(&mut response, &witness);
    Ok(response)
}

/// Reads a body for backends that speak otherwise.
fn read(body: &Bytes, pool: &Pool) -> Result<ChatRequest, ApiError> {
    let mut asked = ChatRequest::read(body::parse(body)?, pool.provider())?;
    asked.check_content(pool)?;
    let of_model = pool.ignored_options(&asked.request.options).into_iter();
    asked.ignored.extend(of_model.map(str::to_owned));
    Ok(asked)
}

/// What goes along with an answer.
struct Telling {
    permit: RunPermit,
    witness: Witness,
    watch: ChatWatch,
}

/// Asks in haft's own words, and tells the answer in those of Chat Completions.
async fn translate(
    app: &App,
    name: &str,
    pool: &Arc<Pool>,
    asked: ChatRequest,
    telling: Telling,
) -> Result<Response, ApiError> {
    let Telling {
        permit,
        witness,
        watch,
    } = telling;
    let mut model = pool.heard_by(witness.clone());
    let heading = Heading::new(name);
    let is_streamed = asked.request.options.stream == Streaming::Pieces;
    if !is_streamed {
        model = metered(model, &app.memory);
    }
    warning::log(&asked.ignored);
    let ignored = asked.ignored;
    let request = asked.request;
    let events = async move { model.send(request).await }.try_flatten_stream();
    let events: ModelStream = Box::pin(events.map(|event| event.and_then(sound)));
    let events = watch.follow(events);
    let mut response = if is_streamed {
        let writer = ChunkWriter::new(heading, asked.with_usage);
        streaming::answer(events, writer, permit, &app.options).await?
    } else {
        let answer = whole(events, heading).await?;
        drop(permit);
        reply::ok(&answer)
    };
    warning::report(&mut response, &[], &ignored);
    reply::name_stand_ins(&mut response, &witness);
    Ok(response)
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
