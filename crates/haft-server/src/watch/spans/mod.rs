//! Spans for a collector: requests, runs, the requests to models in them, and the calls.
//!
//! What comes in: what the other watchers hear. What goes out: OTLP over HTTP, in batches, by the
//! names of OpenTelemetry's conventions for generative AI. Whoever is watched never waits for a
//! collector: what cannot be sent is dropped and counted. Content goes out only where the operator
//! wants it, and never that of responses which are not to be stored.

mod call;
mod content;
mod context;
mod exporter;
mod names;
mod options;
mod protobuf;
mod request;
mod run;
mod span;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;

use super::metrics::Metrics;
use super::options::WatchOptions;
use context::SpanContext;
use exporter::Exporter;

pub(crate) use call::CallSpan;
pub use options::OtlpOptions;
pub(super) use request::RequestSpan;
pub(super) use run::RunSpans;

/// Where in a trace a run happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    /// Nobody records it.
    #[default]
    Nowhere,
    /// It begins the trace.
    First(SpanContext),
    /// Below this span.
    Below(SpanContext),
}

/// How long the last spans may take to leave.
const FAREWELL: Duration = Duration::from_secs(3);

/// Makes spans, where there is a collector for them.
pub(super) struct Tracer(Option<Arc<Tracing>>);

/// What spans are made by.
struct Tracing {
    exporter: Exporter,
    sample_ratio: f64,
    captures_content: bool,
}

impl Tracing {
    /// Whether a trace that begins here is recorded.
    fn samples(&self) -> bool {
        fastrand::f64() < self.sample_ratio
    }
}

impl Tracer {
    pub(super) fn new(options: &WatchOptions, metrics: &Metrics) -> Self {
        let tracing = options.otlp.as_ref().map(|options| Tracing {
            exporter: Exporter::new(options, metrics),
            sample_ratio: options.sample_ratio,
            captures_content: options.captures_content,
        });
        Self(tracing.map(Arc::new))
    }

    /// The span of a request, below that of its client if it has one.
    pub(super) fn request(&self, headers: &HeaderMap) -> RequestSpan {
        let Some(tracing) = &self.0 else {
            return RequestSpan::none();
        };
        match SpanContext::of_client(headers) {
            // Whether anybody records it was decided by whoever began the trace.
            Some(client) if !client.is_sampled => RequestSpan::none(),
            Some(client) => RequestSpan::new(tracing, client.child(), Some(client.span_id)),
            None if tracing.samples() => RequestSpan::new(tracing, SpanContext::root(), None),
            None => RequestSpan::none(),
        }
    }

    /// The place of a run that no request began.
    pub(super) fn unasked(&self) -> Place {
        let sampled = self.0.as_ref().filter(|tracing| tracing.samples());
        sampled.map_or(Place::Nowhere, |_| Place::First(SpanContext::root()))
    }

    /// The span of a message in a connection that has a place already.
    pub(super) fn message(&self, connection: Place) -> RequestSpan {
        match (&self.0, connection) {
            (Some(tracing), Place::Below(connection)) => {
                let parent = Some(connection.span_id);
                RequestSpan::new(tracing, connection.child(), parent)
            }
            _ => RequestSpan::none(),
        }
    }

    /// Lets the last spans leave, but not for long.
    pub(super) async fn close(&self) {
        if let Some(tracing) = &self.0 {
            tracing.exporter.close(FAREWELL).await;
        }
    }
}
