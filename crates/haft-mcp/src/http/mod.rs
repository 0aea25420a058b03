//! Servers at an address: streamable HTTP, and what the older protocol shares with it.
//!
//! Headers and tokens go to the origin that they were configured for and nowhere else; every body and
//! every event has a size that it may not pass.

mod client;
mod events;
mod failure;
mod notices;
mod streamable;

pub use self::client::HttpOptions;
pub(crate) use self::client::{HttpClient, body, is_local, refusal_body, tls};
pub(crate) use self::events::{Event, EventStream};
pub(crate) use self::failure::{cause_of, on_the_way, refused};
pub(crate) use self::streamable::{is_of_type, over_http};
