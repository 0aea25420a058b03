//! From IR to what the machine runs: names become registers and numbers, and everything that could be
//! wrong with a file is found here, once. Whatever the file says, loading ends with a program or with
//! a [`LoadError`].

mod code;
mod error;
mod flow;
mod method;
mod module;
mod op;
mod schema;
mod sites;
mod translate;

pub use code::Program;
pub use error::{LoadError, LoadErrorKind};
pub use module::load;

pub(crate) use code::{CallSite, Function, Mock, Returns, Stage, Step};
pub(crate) use method::Method;
pub(crate) use op::{Op, Reg, Test};
