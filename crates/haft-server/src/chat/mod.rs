//! Chat Completions: how a body of that protocol becomes a request to a model, and how its answer
//! becomes one of that protocol again.
//!
//! A model whose server speaks Chat Completions gets the body as it is ([`Envelope`]). For every
//! other the body is read ([`ChatRequest`]) and the events of the answer are written
//! ([`Completion`], [`ChunkWriter`]). One request, one answer: nothing is run, added, tried again or
//! kept, and nothing here reaches out.

mod envelope;
mod read;
mod write;

pub(crate) use envelope::Envelope;
pub(crate) use read::ChatRequest;
pub(crate) use write::{ChunkWriter, Completion, Heading, error_frame};
