//! Compacting: the summary is written, the item sealed, the context replaced.

use haft_core::{Owner, Usage};
use serde_json::Value;

use super::compacted::Compacted;
use super::digest::digest;
use super::division::{Division, Scope, divide};
use super::piece::Piece;
use super::summary::{Writing, summarise};
use super::unfold::drop_covered;
use crate::error::ApiError;
use crate::sealed::SealingKeys;

/// At most so many tokens of the user's messages are kept word for word inside of a compaction.
const USER_TOKENS: u64 = 20_000;

/// A compaction that is due in a response.
#[derive(Debug)]
pub(crate) struct Compaction {
    pieces: Vec<Piece>,
    scope: Scope,
    division: Division,
}

/// Why there was none.
pub(crate) enum Halt {
    /// It failed.
    Error(ApiError),
    /// Somebody stopped it, at this cost.
    Cancelled(Usage),
}

impl From<ApiError> for Halt {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

/// What came of a compaction.
pub(crate) struct Carried {
    /// The content of the compaction item.
    pub(crate) sealed: String,
    pub(crate) usage: Usage,
    /// The context to go on with.
    pub(crate) pieces: Vec<Piece>,
}

impl Compaction {
    /// One that is asked for: all there is, and nothing follows in this response.
    pub(crate) fn now(pieces: Vec<Piece>) -> Self {
        let scope = Scope::Everything {
            budget: USER_TOKENS,
            goes_on: false,
        };
        Self::new(pieces, scope)
    }

    /// One because the context is longer than this; none if it would not get shorter.
    pub(crate) fn beyond(threshold: u64, pieces: Vec<Piece>) -> Option<Self> {
        let scope = Scope::Everything {
            budget: USER_TOKENS.min(threshold / 4),
            goes_on: true,
        };
        Some(Self::new(pieces, scope)).filter(|it| it.division.is_worthwhile)
    }

    fn new(pieces: Vec<Piece>, scope: Scope) -> Self {
        Self {
            division: divide(&pieces, scope),
            pieces,
            scope,
        }
    }

    /// Whether the model is to answer afterwards.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(self.scope, Scope::Everything { goes_on: true, .. })
    }

    /// Compacts.
    pub(crate) async fn carry_out(
        self,
        keys: &SealingKeys,
        owner: &Owner,
        writing: &Writing<'_>,
    ) -> Result<Carried, Halt> {
        let (summary, usage) = summarise(&self.pieces, self.scope, writing).await?;
        let division = self.division;
        let compacted = Compacted::new(
            division.host,
            summary,
            division.tools,
            division.kept,
            division.covers,
        );
        let compacted = compacted
            .with_summary_after(division.kept_before_summary)
            .remembering(division.unsaid);
        let sealed = compacted.seal(keys, owner)?;
        // The same as when the item comes back.
        let item = haft_core::Item::Other(item_of("", &sealed));
        let mut pieces = self.pieces;
        drop_covered(&mut pieces, &compacted.coverage());
        pieces.extend(compacted.pieces(digest(&item), None));
        Ok(Carried {
            sealed,
            usage,
            pieces,
        })
    }
}

/// Compacts a window for a client that keeps it: what stays outside, then the compaction item's
/// content.
pub(crate) async fn compact_window(
    pieces: Vec<Piece>,
    keys: &SealingKeys,
    owner: &Owner,
    writing: &Writing<'_>,
) -> Result<(Vec<Piece>, String, Usage), Halt> {
    let compaction = Compaction::new(pieces, Scope::Window);
    let outside = compaction.division.outside.iter();
    let outside = outside.map(|at| compaction.pieces[*at].clone()).collect();
    let carried = compaction.carry_out(keys, owner, writing).await?;
    Ok((outside, carried.sealed, carried.usage))
}

/// A compaction item with this content.
pub(crate) fn item_of(id: &str, sealed: &str) -> serde_json::Map<String, Value> {
    serde_json::Map::from_iter([
        ("id".into(), id.into()),
        ("type".into(), "compaction".into()),
        ("status".into(), "completed".into()),
        ("encrypted_content".into(), sealed.into()),
    ])
}
