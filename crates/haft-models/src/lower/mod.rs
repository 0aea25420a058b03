//! From haft's words to a provider's: schemas, tools and conversations as it accepts them.
//!
//! What comes in: definitions and requests, which are never changed. What goes out: the bytes of a
//! request, each piece rendered once and kept with what it was made from. A tool that a provider
//! could not take is left out with a reason; it never spoils the request.

pub(crate) mod answer;
pub(crate) mod anthropic;
pub(crate) mod body;
pub(crate) mod chat;
pub(crate) mod input;
pub(crate) mod offer;
pub(crate) mod ollama;
pub(crate) mod responses;
pub mod schema;
pub mod tools;
pub(crate) mod turns;
pub(crate) mod wishes;

pub use anthropic::Thinking;
pub use responses::ThoughtsBack;
