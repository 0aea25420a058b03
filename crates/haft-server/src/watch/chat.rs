//! One request of Chat Completions under watch: no run, one request to a model and its answer.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt as _;
use haft_core::{ModelError, ModelErrorKind, ModelEvent, ModelStream};
use haft_models::http::{ByteStream, Forwarded};

use super::metrics::ModelMeters;
use super::request::RequestWatch;

/// A request that a model answers by itself.
pub(crate) struct ChatWatch {
    model: Arc<ModelMeters>,
    request: RequestWatch,
    started: Instant,
}

impl ChatWatch {
    pub(super) fn new(model: Arc<ModelMeters>, request: RequestWatch) -> Self {
        request.asks(&model.name.0);
        Self {
            model,
            request,
            started: Instant::now(),
        }
    }

    /// The same answer, heard along.
    pub(crate) fn follow(self, events: ModelStream) -> ModelStream {
        self.model.requests.inc();
        let mut awaits_first = true;
        Box::pin(events.inspect(move |event| match event {
            Err(error) => self.model.failed(error.kind),
            Ok(ModelEvent::Finished { usage, .. }) => {
                if let Some(usage) = usage {
                    self.model.used(usage);
                    self.request.ran(usage);
                }
            }
            Ok(event) if awaits_first && event.text().is_some() => {
                awaits_first = false;
                self.first();
            }
            Ok(_) => {}
        }))
    }

    /// An answer that is passed on as it is. What it costs stands in its bytes, which nobody reads.
    pub(crate) fn forward(
        self,
        answer: Result<Forwarded, ModelError>,
    ) -> Result<Forwarded, ModelError> {
        self.model.requests.inc();
        let mut answer = answer.inspect_err(|error| self.model.failed(error.kind))?;
        if !answer.is_success() {
            let failure = answer.failure();
            let kind = failure.map_or(ModelErrorKind::ServerError, |failure| failure.kind);
            self.model.failed(kind);
            return Ok(answer);
        }
        let mut awaits_first = true;
        let body = answer.body.inspect(move |piece| match piece {
            Err(error) => self.model.failed(error.kind),
            Ok(_) if awaits_first => {
                awaits_first = false;
                self.first();
            }
            Ok(_) => {}
        });
        answer.body = Box::pin(body) as ByteStream;
        Ok(answer)
    }

    fn first(&self) {
        let waited = self.started.elapsed().as_secs_f64();
        self.model.first_token.observe(waited);
    }
}
