//! Concerto: a small typed language for programs that call language models with tools.
//!
//! What comes in: the source of a program, its manifest, and what its host lets it do. What goes out:
//! diagnostics, the program as IR (JSON that other tools can read), and what the program does when it
//! runs: its output, its emits, and calls of models that go through haft's own loop.
//!
//! A program, its IR and its manifest come from strangers: none of them may make this crate panic,
//! overflow the stack or reach anything that the host did not allow. The front half, from source to
//! IR, does no I/O but through [`Sources`](source::Sources).
//!
//! Read in order: `source` → `lex` → `parse` → `check` → `emit` → `ir` → `load` → `vm`.

pub mod ast;
pub mod check;
mod compile;
pub mod diagnostic;
pub mod emit;
pub mod host;
pub mod ir;
pub mod lex;
pub mod load;
pub mod manifest;
mod modules;
#[allow(clippy::unnecessary_box_returns)] // failures are boxed wherever they go
pub mod natives;
pub mod parse;
pub mod print;
pub mod repl;
pub mod source;
pub mod symbols;
#[allow(clippy::unnecessary_box_returns)] // failures are boxed wherever they go
pub mod value;
#[allow(clippy::unnecessary_box_returns)] // failures are boxed wherever they go
pub mod vm;

pub use compile::{Compiled, Connections, Options, Source, check, compile};
pub use modules::read_program;
pub use print::format;
