//! What operators see of a server: metrics, spans, the access log, and how each run went.
//!
//! What comes in: requests as the envelope of the API takes them in, and the events of runs. What
//! goes out: `/metrics`, lines on the log's target `haft::access`, spans over OTLP where a collector
//! is configured, and the record that is stored beside each response.
//!
//! Nothing here changes what a request or a run does, waits for anybody, or fails anything. Nothing
//! here tells content or keys, and nothing that a client chooses becomes the name of a series.

mod access_log;
mod body;
mod chat;
mod live;
mod mcp;
mod metrics;
mod options;
mod record;
mod recorder;
mod request;
mod routes;
mod run;
#[cfg(feature = "otlp")]
mod spans;
#[cfg(not(feature = "otlp"))]
#[path = "spans_off.rs"]
mod spans;
mod store;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::Request;
use haft_core::{Owner, Usage};

use crate::app::Caller;
use crate::compaction::Halt;

pub(crate) use chat::ChatWatch;
pub(crate) use mcp::{McpCall, McpFigures};
pub use metrics::metrics_table;
pub(crate) use metrics::{BackendLabels, Form, Name, Word};
use metrics::{Metrics, ModelMeters, OutcomeLabels};
pub use options::{CallRecord, WatchOptions};
pub use record::{AttemptTrace, CallTrace, HydrationTrace, Note, NoteKind, RunTrace, TurnTrace};
pub(crate) use request::{RequestWatch, Watched};
pub(crate) use run::{Commission, RunWatch, Tools};
pub(crate) use spans::CallSpan;
#[cfg(feature = "otlp")]
pub use spans::OtlpOptions;
pub(crate) use store::timed;

/// All watchers of a server.
pub(crate) struct Watch {
    pub(crate) metrics: Metrics,
    pub(crate) options: WatchOptions,
    tracer: spans::Tracer,
    routes: routes::Routes,
    live: live::LiveTraces,
    mcp: mcp::McpWatch,
}

impl Watch {
    /// Watchers for a server with these models.
    pub(crate) fn new<'m>(
        models: impl IntoIterator<Item = &'m str>,
        options: WatchOptions,
    ) -> Arc<Self> {
        let metrics = Metrics::new(models);
        Arc::new(Self {
            tracer: spans::Tracer::new(&options, &metrics),
            metrics,
            options,
            routes: routes::Routes::default(),
            live: live::LiveTraces::default(),
            mcp: mcp::McpWatch::default(),
        })
    }

    /// A request begins.
    pub(crate) fn request(self: &Arc<Self>, request: &Request, request_id: &str) -> Watched {
        Watched::new(self, request, request_id)
    }

    /// A message in a `WebSocket`, which this request opened, asks for a response.
    pub(crate) fn message(self: &Arc<Self>, caller: &Caller, opening: &RequestWatch) -> Watched {
        Watched::message(self, caller, opening)
    }

    /// The span of a gateway call, below the one that its client names in `traceparent`.
    pub(crate) fn call_span(&self, traceparent: Option<&str>) -> CallSpan {
        self.tracer.call(traceparent)
    }

    /// A run is about to begin.
    pub(crate) fn run(self: &Arc<Self>, caller: &Caller, run: &Commission<'_>) -> RunWatch {
        caller.watch.runs(run.response_id, run.model_name);
        RunWatch::new(self, caller.watch.clone(), run)
    }

    /// A model is about to answer a request by itself.
    pub(crate) fn chat(&self, caller: &Caller, model: &str) -> ChatWatch {
        ChatWatch::new(self.metrics.model(model), caller.watch.clone())
    }

    /// A window of context was summed up for a client, or could not be.
    pub(crate) fn window_compacted<P>(
        &self,
        model: &str,
        compacted: &Result<(P, String, Usage), Halt>,
    ) {
        let cost = compacted.as_ref().map(|(_, _, usage)| *usage);
        self.compacted(&self.metrics.model(model), cost);
    }

    /// A context was summed up at this cost, or could not be.
    fn compacted(&self, model: &ModelMeters, cost: Result<Usage, &Halt>) -> (Word, Usage) {
        let (outcome, usage) = match cost {
            Ok(usage) => ("completed", usage),
            Err(Halt::Cancelled(usage)) => ("cancelled", *usage),
            Err(Halt::Error(_)) => ("failed", Usage::default()),
        };
        model.used(&usage);
        model.requests.inc_by(usage.requests);
        let labels = OutcomeLabels { outcome };
        let compactions = &self.metrics.meters.compactions;
        compactions.get_or_create(&labels).inc();
        (outcome, usage)
    }

    /// For a run that goes on without a request: the one that began it is over.
    pub(crate) fn unasked(&self) -> RequestWatch {
        RequestWatch::unasked(self.tracer.unasked())
    }

    /// Lets what is watched leave before everything ends, but not for long.
    pub(crate) async fn close(&self) {
        self.tracer.close().await;
    }

    /// Counts an open WebSocket as long as this is held.
    pub(crate) fn websocket(self: &Arc<Self>) -> OpenSocket {
        self.metrics.meters.websockets.inc();
        OpenSocket(Arc::clone(self))
    }

    /// Counts a request that waits for its run to begin as long as this is held.
    pub(crate) fn waiting(self: &Arc<Self>) -> WaitingRun {
        self.metrics.meters.waiting_runs.inc();
        WaitingRun(Arc::clone(self))
    }

    /// How far a background run has come.
    pub(crate) fn live_trace(&self, owner: &Owner, id: &str) -> Option<RunTrace> {
        self.live.get(owner, id)
    }
}

/// An open WebSocket.
pub(crate) struct OpenSocket(Arc<Watch>);

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.0.metrics.meters.websockets.dec();
    }
}

/// A request that waits for its run to begin.
pub(crate) struct WaitingRun(Arc<Watch>);

impl Drop for WaitingRun {
    fn drop(&mut self) {
        self.0.metrics.meters.waiting_runs.dec();
    }
}

/// Seconds since the epoch, with their fractions.
pub(crate) fn epoch_seconds() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
