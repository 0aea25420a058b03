//! The span of a request.

use std::sync::Arc;

use axum::http::StatusCode;

use super::context::SpanContext;
use super::names::{
    CLIENT_ADDRESS, ERROR_TYPE, HTTP_BODY_SIZE, HTTP_METHOD, HTTP_ROUTE, HTTP_STATUS, REQUEST,
    TENANT,
};
use super::span::{Attributes, Span, SpanKind};
use super::{Place, Tracing};
use crate::watch::epoch_seconds;
use crate::watch::request::RequestEnd;

/// A request that is being answered, if anybody records it.
pub(crate) struct RequestSpan(Option<Open>);

struct Open {
    tracing: Arc<Tracing>,
    context: SpanContext,
    parent: Option<[u8; 8]>,
    start: f64,
}

impl RequestSpan {
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn new(
        tracing: &Arc<Tracing>,
        context: SpanContext,
        parent: Option<[u8; 8]>,
    ) -> Self {
        Self(Some(Open {
            tracing: Arc::clone(tracing),
            context,
            parent,
            start: epoch_seconds(),
        }))
    }

    /// Where what happens in it belongs.
    pub(in crate::watch) fn place(&self) -> Place {
        let open = self.0.as_ref();
        open.map_or(Place::Nowhere, |open| Place::Below(open.context))
    }

    /// The value of `traceparent` for what happens in it.
    pub(in crate::watch) fn traceparent(&self) -> Option<String> {
        self.0.as_ref().map(|open| open.context.to_string())
    }

    pub(in crate::watch) fn end(&mut self, end: &RequestEnd<'_>) {
        let Some(open) = self.0.take() else { return };
        let mut attributes = Attributes::default();
        attributes.text(HTTP_METHOD, end.method);
        attributes.text(HTTP_ROUTE, end.route.to_owned());
        attributes.count(HTTP_STATUS, u64::from(end.status));
        attributes.count(HTTP_BODY_SIZE, end.bytes);
        attributes.text(REQUEST, end.request_id.to_owned());
        attributes.maybe(TENANT, end.tenant);
        if let Some(client) = end.client {
            attributes.text(CLIENT_ADDRESS, client.to_string());
        }
        // What the client did wrong is no error of the server.
        let is_error = end.status >= StatusCode::INTERNAL_SERVER_ERROR.as_u16();
        if is_error {
            attributes.text(ERROR_TYPE, end.status.to_string());
        }
        open.tracing.exporter.send(Span {
            context: open.context,
            parent: open.parent,
            name: format!("{} {}", end.method, end.route),
            kind: SpanKind::Server,
            start: open.start,
            end: epoch_seconds(),
            attributes,
            is_error,
        });
    }
}
