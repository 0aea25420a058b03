//! Compaction: a long conversation becomes a short one that stands for it (`open-responses.md` §8).
//!
//! What comes in is the context of a request; what goes out is a compaction item, sealed for its
//! owner, and what it stands for when it comes back. Three ways lead here: `POST
//! /responses/compact`, a `compaction_trigger` at the end of the input, and `context_management`
//! once the context is too long. The model itself writes the summary, in a request of its own
//! without tools. This room must never part a call from its output, lose what the host said, or
//! take a blob for true that was not sealed here for this owner.
//!
//! What a compaction item holds, and how it is put in place of what it stands for:
//!
//! - [`Compacted`] is its content: the host's messages and loaded tools as they were, a summary of
//!   the rest, and items that are kept word for word. The compact endpoint hands the user's
//!   messages back as items, so they are not in there; a compaction inside of a response is the
//!   only item, so it keeps the latest of them itself.
//! - Each knows the items that it [covers]: where it follows them in a context, they are left out,
//!   and its content stands at its place. What it does not know stays, wherever it stands. So a
//!   client may send everything that it ever got, or only what came since, and the model reads the
//!   same; and in a chain everything before the newest compaction is represented by it.
//!
//! [covers]: Compacted::covers

mod carry_out;
mod compacted;
mod digest;
mod division;
mod piece;
mod summary;
mod transcript;
mod unfold;

#[cfg(test)]
mod tests;

pub(crate) use carry_out::{Carried, Compaction, Halt, compact_window, item_of};
pub(crate) use piece::{Origin, Piece};
pub(crate) use summary::Writing;
pub(crate) use unfold::{Unfolding, unfold};

#[cfg(doc)]
use compacted::Compacted;
