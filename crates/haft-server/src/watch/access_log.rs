//! The access log: one line per request, never a word of its content.

use super::request::{Notes, RequestEnd};

/// Writes the line of a request that is over.
pub(super) fn write(request: &RequestEnd<'_>, notes: &Notes) {
    let usage = notes.usage;
    let milliseconds = (request.elapsed.as_secs_f64() * 10_000.0).round() / 10.0;
    tracing::info!(
        target: "haft::access",
        method = request.method,
        route = request.route,
        status = request.status,
        ms = milliseconds,
        bytes = request.bytes,
        // Said only where it is so.
        cut = request.is_cut.then_some(true),
        request_id = request.request_id,
        tenant = request.tenant,
        key = request.key,
        client = request.client.map(tracing::field::display),
        response = notes.response_id.as_deref(),
        model = notes.model.as_deref(),
        input_tokens = usage.map(|usage| usage.input_tokens),
        output_tokens = usage.map(|usage| usage.output_tokens),
        "answered"
    );
}
