//! The access log: one line per request, never a word of its content.

use std::net::IpAddr;
use std::time::Duration;

use super::request::Notes;

/// What is told of a request.
pub(super) struct Line<'l> {
    pub(super) method: &'static str,
    pub(super) route: &'l str,
    pub(super) status: u16,
    pub(super) elapsed: Duration,
    pub(super) bytes: u64,
    pub(super) is_cut: bool,
    pub(super) request_id: &'l str,
    pub(super) tenant: Option<&'l str>,
    pub(super) client: Option<IpAddr>,
    pub(super) notes: &'l Notes,
}

impl Line<'_> {
    pub(super) fn write(&self) {
        let usage = self.notes.usage;
        let milliseconds = (self.elapsed.as_secs_f64() * 10_000.0).round() / 10.0;
        tracing::info!(
            target: "haft::access",
            method = self.method,
            route = self.route,
            status = self.status,
            ms = milliseconds,
            bytes = self.bytes,
            // Said only where it is so.
            cut = self.is_cut.then_some(true),
            request_id = self.request_id,
            tenant = self.tenant,
            client = self.client.map(tracing::field::display),
            response = self.notes.response_id.as_deref(),
            model = self.notes.model.as_deref(),
            input_tokens = usage.map(|usage| usage.input_tokens),
            output_tokens = usage.map(|usage| usage.output_tokens),
            "answered"
        );
    }
}
