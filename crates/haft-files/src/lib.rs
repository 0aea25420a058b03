//! Files for their owner alone: keys, pinned definitions, tokens.
//!
//! What comes in: a path and bytes. What goes out: the bytes that were written last, never half of
//! them. It must never read what others can write, nor know what the bytes mean.

mod private_file;

pub use private_file::{Locked, PrivateFile, Unreadable};
