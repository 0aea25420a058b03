//! The way to a provider and back: one POST, its answer as bytes.
//!
//! What comes in: an [`Endpoint`] with its secrets and the bytes of a request. What goes out: a
//! [`Body`] to be read piece by piece, or a [`ModelError`] in the provider's own words. Every wait
//! has a limit, every answer a size. A key never leaves this room except to the origin that it was
//! given for: not by a redirect, not in an error text, not in `Debug`.
//!
//! [`ModelError`]: haft_core::ModelError

mod answer;
mod body;
mod client;
mod connection;
mod diagnosis;
mod direct;
mod endpoint;
mod failure;
mod forwarded;
mod redact;
mod retry_after;
mod secret;

pub use body::Body;
pub use client::{Http, Timeouts};
pub use connection::Connection;
pub use endpoint::{Endpoint, EndpointError};
pub(crate) use failure::{finished, in_stream};
pub use forwarded::{ByteStream, Forwarded};
pub use redact::Redactor;
pub use secret::Secret;
