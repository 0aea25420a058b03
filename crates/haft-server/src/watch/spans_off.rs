//! Spans where nobody can export them: the same doors, and nothing behind them.

#![allow(
    clippy::unused_async,
    clippy::unused_self,
    reason = "the signatures of those who do something"
)]

use axum::http::HeaderMap;
use haft_core::{CallOutput, Item, ToolCall};

use super::metrics::Metrics;
use super::options::WatchOptions;
use super::record::{CallTrace, RunTrace, TurnTrace};
use super::request::RequestEnd;
use super::run::Commission;
use crate::gateway::CallEntry;

/// Where in a trace something happens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place;

pub(super) struct Tracer;

impl Tracer {
    pub(super) fn new(_: &WatchOptions, _: &Metrics) -> Self {
        Self
    }

    pub(super) fn request(&self, _: &HeaderMap) -> RequestSpan {
        RequestSpan
    }

    pub(super) fn message(&self, _: Place) -> RequestSpan {
        RequestSpan
    }

    pub(super) fn call(&self, _: Option<&str>) -> CallSpan {
        CallSpan
    }

    pub(super) fn unasked(&self) -> Place {
        Place
    }

    pub(super) async fn close(&self) {}
}

pub(super) struct RequestSpan;

impl RequestSpan {
    pub(super) fn place(&self) -> Place {
        Place
    }

    pub(super) fn traceparent(&self) -> Option<String> {
        None
    }

    pub(super) fn end(&mut self, _: &RequestEnd<'_>) {}
}

/// The span of a tool call.
pub(crate) struct CallSpan;

impl CallSpan {
    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn traceparent(&self) -> Option<String> {
        None
    }

    pub(crate) fn trace_id(&self) -> Option<String> {
        None
    }

    pub(crate) fn end(&mut self, _: &CallEntry) {}
}

pub(super) struct RunSpans;

impl RunSpans {
    pub(super) fn new(_: &Tracer, _: Place, _: &Commission<'_>) -> Self {
        Self
    }

    pub(super) fn resumed(&mut self, _: &str) {}

    pub(super) fn said(&mut self, _: &Item) {}

    pub(super) fn answer_is(&mut self, _: Option<&str>) {}

    pub(super) fn asked(&mut self, _: &TurnTrace, _: f64) {}

    pub(super) fn requested(&mut self, _: &[ToolCall]) {}

    pub(super) fn executed(&mut self, _: &CallTrace, _: f64, _: &CallOutput) {}

    pub(super) fn ended(&mut self, _: &RunTrace) {}
}
