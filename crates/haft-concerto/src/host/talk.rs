//! A model as one call of a program talks to it: at the pace of its connection, and not for ever.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use haft_core::{
    BoxFuture, Capabilities, Item, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest,
    ModelStream, UnsupportedContent,
};
use tokio::time::{Instant, timeout_at};

use super::connections::Line;
use super::rate::{Place, RateLimit};

/// A model at a connection.
pub(super) struct Talk {
    model: Arc<dyn Model>,
    timeout: Option<Duration>,
    limit: Option<Arc<RateLimit>>,
    /// Most tokens of each answer. The loop's own limit would count all answers of a call together.
    max_tokens: Option<u64>,
}

impl Talk {
    pub(super) fn new(line: &Line, max_tokens: Option<u64>) -> Self {
        Self {
            model: Arc::clone(&line.model),
            timeout: line.timeout,
            limit: line.limit.clone(),
            max_tokens,
        }
    }
}

impl Model for Talk {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        self.model.unsupported(item)
    }

    fn reads_compaction(&self) -> bool {
        self.model.reads_compaction()
    }

    fn send(&self, mut request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        Box::pin(async move {
            request.options.max_output_tokens = self.max_tokens;
            // Waiting for one's turn is not the provider's fault.
            let place = match &self.limit {
                Some(limit) => Some(limit.place().await),
                None => None,
            };
            let deadline = self.timeout.map(|time| (Instant::now() + time, time));
            let stream = in_time(deadline, self.model.send(request)).await??;
            if place.is_none() && deadline.is_none() {
                return Ok(stream);
            }
            Ok(watched(stream, place, deadline))
        })
    }
}

type Deadline = Option<(Instant, Duration)>;

async fn in_time<T>(deadline: Deadline, work: impl Future<Output = T>) -> Result<T, ModelError> {
    match deadline {
        None => Ok(work.await),
        Some((at, time)) => timeout_at(at, work).await.map_err(|_| late(time)),
    }
}

fn late(time: Duration) -> ModelError {
    let words = format!("no whole answer within {}s", time.as_secs_f64());
    ModelError::new(ModelErrorKind::Timeout, words)
}

/// A stream that ends in time, holds its place until it has ended, and counts what it cost.
fn watched(stream: ModelStream, place: Option<Place>, deadline: Deadline) -> ModelStream {
    let state = Some((stream, place));
    let events = stream::unfold(state, move |state| async move {
        let (mut stream, place) = state?;
        let next = match in_time(deadline, Pin::new(&mut stream).next()).await {
            Ok(next) => next?,
            Err(error) => return Some((Err(error), None)),
        };
        if let (
            Some(place),
            Ok(ModelEvent::Finished {
                usage: Some(usage), ..
            }),
        ) = (&place, &next)
        {
            place.spend(usage.total_tokens());
        }
        Some((next, Some((stream, place))))
    });
    Box::pin(events)
}
