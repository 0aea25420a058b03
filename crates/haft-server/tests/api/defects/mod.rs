//! The defects of comparable servers that this one must not have (`open-responses.md` §11); each
//! test names the line that it keeps.

mod input;
mod object;
mod operation;
mod state;
mod stream;
mod tools;
