//! What must last: responses, conversations and the event logs and checkpoints of background runs.
//!
//! What comes in: records whose JSON is given as text, each with its owner. What goes out: the same
//! text, to the same owner. Both stores here keep the contract of [`Store`](haft_core::Store):
//!
//! - [`SqliteStore`] keeps one file. What it has acknowledged survives the death of the process and
//!   of the machine.
//! - [`MemoryStore`] keeps nothing beyond itself: for tests, and for hosts that want no file.
//!
//! Where the contract leaves room, both do the same:
//!
//! - A deleted response in a chain has the resource `null`.
//! - A chain that leads to a response which was never written begins behind it; its first `previous`
//!   then names what is missing. So a response should be written, unfinished, before its run
//!   starts: from then on nothing that it continues can vanish.
//! - Writing a deleted response makes it live again.
//! - A response that would continue itself, over however many others, is refused.
//! - Events for an unknown or deleted response are dropped: its run may not have heard of the
//!   deletion yet.
//! - An event that is in the log already, byte for byte, is not written again: a write can be repeated.
//!   Another one with its number is refused together with all that was to be written with it: what
//!   was told once stays told.
//! - A checkpoint and a trace stay until another one takes their place; a checkpoint given with a
//!   finished response is dropped. Both count as bytes of a retention.
//! - The list of responses is ordered by time, then by id, then by owner. In that of all owners, a page
//!   behind an id that several owners have begins behind the last of them in the page's order.
//! - "Newest" means written last. Writing a response again does not make those of its items younger
//!   that stand unchanged at its beginning.
//! - If an item occurs several times in a conversation, a page behind it begins behind the last
//!   occurrence in the page's order, so that paging always ends; deleting it deletes all of them.
//! - A conversation is touched by writing it, by adding an item and by deleting one.
//! - The bytes of a retention are those of all JSON kept, conversations included. In a file, indexes
//!   and pages come on top: half as much again for items of some hundred bytes, a twentieth for items
//!   of four kilobytes.
//! - What a cleaned response takes along of deleted ones counts for the batch too. It can then be
//!   exceeded by one chain, but not by more.
//!
//! This crate must never read the JSON that it keeps, and never log any of it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_core::{Alongside, Owner, Store, StoredResponse};
//! use haft_store::SqliteStore;
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("haft.db");
//!
//! let store = SqliteStore::open(&path)?;
//! let owner = Owner::new("acme");
//! let response = StoredResponse {
//!     id: "resp_1".to_owned(),
//!     previous: None,
//!     created_at: 1_700_000_000,
//!     is_finished: true,
//!     resource: serde_json::from_str(r#"{"status":"completed"}"#)?,
//!     input: Vec::new(),
//!     output: Vec::new(),
//! };
//! store.put_response(&owner, response, Alongside::default()).await?;
//!
//! assert!(store.response(&owner, "resp_1").await?.is_some());
//! assert!(store.response(&Owner::new("other"), "resp_1").await?.is_none());
//! # Ok(())
//! # }
//! ```

#![allow(clippy::doc_markdown, reason = "SQLite is a name, not code")]

mod clock;
mod cutoff;
mod memory;
mod open_error;
mod refusals;
mod sqlite;

pub use memory::MemoryStore;
pub use open_error::OpenError;
pub use sqlite::{DatabaseLock, SqliteStore, check_database, copy_database, read_server_note};
