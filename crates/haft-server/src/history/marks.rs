//! What this server notes in items that it keeps, for itself: clients neither see nor send it.

use haft_core::TOOL_REFERENCES;

/// Which turn of its response a stored call belongs to.
pub(crate) const TURN: &str = "haft_turn";

/// What id the model knows a stored call by, so that it reads the same again. Always beside [`TURN`].
pub(crate) const CALL: &str = "haft_call_id";

/// What the model read of a search. Always beside [`TURN`].
pub(crate) const FOUND: &str = "haft_found";

/// The arguments of a search as the model wrote them. Always beside [`TURN`].
pub(crate) const WRITTEN: &str = "haft_written";

/// What the conversation of a stored response has to remember of searches that nobody saw; on its last item.
pub(crate) const DEFERRAL: &str = "haft_deferral";

/// The calls that nobody saw, beside the item that they stand in front of or behind.
pub(crate) const UNSEEN: &str = "haft_unseen";

/// What id the model's provider knows an item by, where that is another than the one shown here; empty where it
/// knows none.
pub(crate) const WIRE_ID: &str = "haft_wire_id";

/// Whether the first part of a stored reasoning item's summary is the raw text, presented as a summary
/// because the client asked for one and the backend gave none.
pub(crate) const RAW_SUMMARY: &str = "haft_raw_summary";

/// What the names of all of these begin with.
const OWN: &str = "haft_";

/// Whether a member of an item is one that only this server writes.
pub(crate) fn is_mark(key: &str) -> bool {
    key.starts_with(OWN) || key == TOOL_REFERENCES
}
