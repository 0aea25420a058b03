//! Compaction items become what they stand for.

use std::collections::HashSet;

use haft_core::Owner;
use serde_json::Value;

use super::compacted::{Compacted, invalid};
use super::piece::Piece;
use crate::error::ApiError;
use crate::sealed::{SealingKeys, is_sealed};
use crate::wire::Vocabulary;

/// What is needed to open compaction items.
pub(crate) struct Unfolding<'u> {
    pub(crate) keys: &'u SealingKeys,
    pub(crate) owner: &'u Owner,
    pub(crate) words: &'u Vocabulary<'u>,
    /// Whether the model behind reads items that were not sealed here.
    pub(crate) passes_foreign: bool,
    /// The field that brought what this request did not.
    pub(crate) inherited_by: &'u str,
}

/// Puts in the place of each compaction item what it holds, and leaves out what it covers in front
/// of it. One of another server stays as it is, if the model's provider may have made it.
pub(crate) fn unfold(pieces: Vec<Piece>, by: &Unfolding<'_>) -> Result<Vec<Piece>, ApiError> {
    let mut unfolded = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if piece.kind() != "compaction" {
            unfolded.push(piece);
            continue;
        }
        let sealed = piece.member("encrypted_content").and_then(Value::as_str);
        let sealed = sealed.unwrap_or_default();
        if !is_sealed(sealed) {
            unfolded.push(piece);
            continue;
        }
        let param = piece.record.param.as_deref();
        let compacted = Compacted::open(by.keys, by.owner, sealed, &place(param, by))?;
        drop_covered(&mut unfolded, &compacted.coverage());
        let digest = piece.digest();
        let param_or_field = param.unwrap_or(by.inherited_by);
        unfolded.extend(compacted.tools_piece(digest, param_or_field, by.words)?);
        unfolded.extend(compacted.pieces(digest, param));
    }
    let mut foreign = unfolded.iter().filter(|piece| piece.kind() == "compaction");
    match foreign.next() {
        Some(piece) if !by.passes_foreign => {
            Err(invalid(&place(piece.record.param.as_deref(), by)))
        }
        _ => Ok(unfolded),
    }
}

/// Where the blame lies.
fn place(param: Option<&str>, by: &Unfolding<'_>) -> String {
    match param {
        Some(param) => format!("{param}.encrypted_content"),
        None => by.inherited_by.to_owned(),
    }
}

/// Leaves out what a compaction that comes next stands for.
pub(super) fn drop_covered(pieces: &mut Vec<Piece>, covered: &HashSet<u64>) {
    let mut ids = HashSet::new();
    let mut is_next_dropped = false;
    let mut kept: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces.drain(..).rev() {
        let is_dropped = match piece.kind() {
            // A thought belongs to what it led to.
            "reasoning" => is_next_dropped || covered.contains(&piece.digest()),
            // No model reads it, and the client may have sent secrets along.
            "additional_tools" if piece.origin == super::Origin::Itself => false,
            _ => covered.contains(&piece.digest()),
        };
        is_next_dropped = is_dropped;
        // A window that is sent along with the chain that it was made of brings items twice.
        if !is_dropped && ids.insert(piece.record.id.clone()) {
            kept.push(piece);
        }
    }
    kept.reverse();
    *pieces = kept;
}
