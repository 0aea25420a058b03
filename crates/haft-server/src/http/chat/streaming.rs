//! An answer that a model is writing, as chunks of Chat Completions.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use haft_core::{ModelError, ModelEvent, ModelStream};
use tokio::time::{Instant, timeout, timeout_at};

use super::super::sse;
use super::{broken_off, told};
use crate::access::RunPermit;
use crate::chat::{ChunkWriter, error_frame};
use crate::error::ApiError;
use crate::options::ServerOptions;
use crate::stream::KEEP_ALIVE_FRAME;

/// Answers in chunks. What fails before the model shows a sign is told by its status, what fails
/// later in the stream.
pub(super) async fn answer(
    events: ModelStream,
    writer: ChunkWriter,
    permit: RunPermit,
    options: &ServerOptions,
) -> Result<Response, ApiError> {
    let mut chunks = Chunks {
        events: Some(events),
        writer,
        waiting: VecDeque::new(),
        keep_alive: options.keep_alive,
        _permit: permit,
    };
    let deadline = Instant::now() + options.answer_wait;
    while chunks.waiting.is_empty() {
        match timeout_at(deadline, chunks.read()).await {
            Ok(read) => read.map_err(|error| told(&error))?,
            Err(_) => break,
        }
    }
    let frames = stream::unfold(chunks, |mut chunks| async move {
        let frame = chunks.next().await?;
        Some((Ok::<_, Infallible>(frame), chunks))
    });
    Ok(sse::response(frames))
}

/// The frames of an answer. Dropping it ends the request to the model.
struct Chunks {
    /// None when the answer is over.
    events: Option<ModelStream>,
    writer: ChunkWriter,
    waiting: VecDeque<Bytes>,
    keep_alive: Duration,
    _permit: RunPermit,
}

impl Chunks {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.waiting.pop_front() {
                return Some(frame);
            }
            self.events.as_ref()?;
            match timeout(self.keep_alive, self.read()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Some(error_frame(&told(&error))),
                Err(_) => return Some(Bytes::from_static(KEEP_ALIVE_FRAME)),
            }
        }
    }

    /// Waits for one event. Nothing is lost if the wait is given up.
    async fn read(&mut self) -> Result<(), ModelError> {
        let Some(events) = self.events.as_mut() else {
            return Ok(());
        };
        let event = events.next().await.unwrap_or_else(|| Err(broken_off()));
        if matches!(event, Ok(ModelEvent::Finished { .. }) | Err(_)) {
            self.events = None;
        }
        self.waiting.extend(self.writer.take(event?));
        Ok(())
    }
}
