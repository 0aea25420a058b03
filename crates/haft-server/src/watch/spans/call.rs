//! The span of a tool call through the gateway.

use std::sync::Arc;

use super::context::SpanContext;
use super::names::{
    ERROR_TYPE, EXECUTE_TOOL, MCP_ENDPOINT, MCP_METHOD, MCP_SERVER, OPERATION, OUTCOME, TENANT,
    TOOL_CALL_ID, TOOL_NAME, TOOL_TYPE,
};
use super::span::{Attributes, Span, SpanKind};
use super::{Tracer, Tracing};
use crate::gateway::CallEntry;
use crate::watch::epoch_seconds;

/// A call that is under way, if it is recorded.
pub(crate) struct CallSpan(Option<Open>);

struct Open {
    tracing: Arc<Tracing>,
    context: SpanContext,
    parent: Option<[u8; 8]>,
    start: f64,
}

impl Tracer {
    /// The span of a call, below the one that its client names in `traceparent`.
    pub(in crate::watch) fn call(&self, traceparent: Option<&str>) -> CallSpan {
        let Some(tracing) = &self.0 else {
            return CallSpan::none();
        };
        let (context, parent) = match traceparent.and_then(SpanContext::parse) {
            // Whether a trace is recorded is decided by the client that began it.
            Some(client) if !client.is_sampled => return CallSpan::none(),
            Some(client) => (client.child(), Some(client.span_id)),
            None if tracing.samples() => (SpanContext::root(), None),
            None => return CallSpan::none(),
        };
        CallSpan(Some(Open {
            tracing: Arc::clone(tracing),
            context,
            parent,
            start: epoch_seconds(),
        }))
    }
}

impl CallSpan {
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The value of `traceparent` for what happens below this span.
    pub(crate) fn traceparent(&self) -> Option<String> {
        self.0.as_ref().map(|open| open.context.to_string())
    }

    pub(crate) fn trace_id(&self) -> Option<String> {
        let open = self.0.as_ref()?;
        Some(format!(
            "{:032x}",
            u128::from_be_bytes(open.context.trace_id)
        ))
    }

    /// The call ended.
    pub(crate) fn end(&mut self, call: &CallEntry) {
        let Some(open) = self.0.take() else { return };
        let mut attributes = Attributes::default();
        attributes.text(OPERATION, EXECUTE_TOOL);
        attributes.text(MCP_METHOD, "tools/call");
        attributes.text(TOOL_NAME, call.tool.clone());
        attributes.text(TOOL_TYPE, "extension");
        attributes.text(TOOL_CALL_ID, call.id.clone());
        attributes.maybe(MCP_SERVER, call.server.as_deref());
        attributes.text(MCP_ENDPOINT, call.endpoint.clone());
        attributes.text(TENANT, call.caller.clone());
        attributes.text(OUTCOME, call.outcome.clone());
        let is_error = call.outcome != "succeeded";
        if is_error {
            attributes.text(ERROR_TYPE, call.outcome.clone());
        }
        open.tracing.exporter.send(Span {
            context: open.context,
            parent: open.parent,
            name: format!("{EXECUTE_TOOL} {}", call.tool),
            kind: SpanKind::Internal,
            start: open.start,
            end: epoch_seconds(),
            attributes,
            is_error,
        });
    }
}
