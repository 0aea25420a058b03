//! `[limits]`: what requests may bring, what keys may ask for, and how many may wait.

use std::num::NonZeroU32;

use haft_server::access::{KeyLimits, Limits};

use super::complaint::Complaint;
use super::document::{Document, Step};
use super::file::LimitsTable;
use super::values::{Age, Bytes};

/// The limits, where the table says nothing the server's own.
pub(super) fn limits(document: &Document<'_>, said: &LimitsTable) -> Result<Limits, Complaint> {
    let zero = [
        ("requests_per_minute", said.requests_per_minute == Some(0)),
        ("concurrent", said.concurrent == Some(0)),
        (
            "max_pending_bytes",
            said.max_pending_bytes == Some(Bytes(0)),
        ),
        ("max_header_bytes", said.max_header_bytes == Some(Bytes(0))),
        ("max_headers", said.max_headers == Some(0)),
        ("max_input_items", said.max_input_items == Some(0)),
        ("max_tools", said.max_tools == Some(0)),
    ];
    if let Some((key, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
        let path = [Step::Key("limits"), Step::Key(key)];
        return Err(document.complain(&path, format!("`{key}` must be more than 0")));
    }
    let usual = Limits::default();
    // More than can be addressed is as good as no limit.
    let size = |Bytes(bytes)| usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(Limits {
        keys: KeyLimits {
            requests_per_minute: said.requests_per_minute.and_then(NonZeroU32::new),
            concurrent: said.concurrent.and_then(NonZeroU32::new),
        },
        max_waiting: said.max_waiting,
        max_wait: said.max_wait.map_or(usual.max_wait, |Age(wait)| wait),
        max_pending_bytes: (said.max_pending_bytes).map_or(usual.max_pending_bytes, size),
        max_header_bytes: (said.max_header_bytes).map_or(usual.max_header_bytes, size),
        max_headers: said.max_headers.unwrap_or(usual.max_headers),
        max_input_items: said.max_input_items.unwrap_or(usual.max_input_items),
        max_tools: said.max_tools.unwrap_or(usual.max_tools),
    })
}
