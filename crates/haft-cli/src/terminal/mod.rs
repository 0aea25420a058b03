//! What a terminal is and what is not one: colours, JSON for programs, and signs of life.
//!
//! What comes in: what the command line and the environment say, and whether standard output is a
//! terminal. What goes out: streams that are coloured where that makes sense, and values as JSON that
//! is safe to look at. Nothing of others must reach a terminal that moves its cursor.

mod color;
mod confirm;
mod json;
mod spinner;

pub(crate) use color::Color;
pub(crate) use confirm::confirm;
pub(crate) use json::{json_line, print_json};
pub(crate) use spinner::{Spinner, Vigil};
