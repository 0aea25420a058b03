//! The commands of Concerto: programs that are checked, compiled, formatted, run, tested and tried out.
//!
//! What comes in: a file or a folder, and what its program may do. What goes out: what the program prints,
//! on standard output, and everything else on standard error. Nothing here knows the language: it is
//! `haft-concerto` that reads, checks and runs programs.

mod begin;
mod check;
mod diagnostics;
mod fmt;
mod hosted;
mod output;
mod project;
mod repl;
mod run;
mod surroundings;
mod test;
mod write;

use std::error::Error;
use std::process::ExitCode;

pub(crate) use self::begin::begin;
pub(crate) use self::hosted::{Scripts, Wanted, Words, checked};
use crate::arguments::{
    CheckArguments, CompileArguments, FmtArguments, ReplArguments, RunArguments, TestArguments,
};

/// A command of Concerto.
pub(crate) enum Concerto {
    Run(RunArguments),
    Check(CheckArguments),
    Compile(CompileArguments),
    Test(TestArguments),
    Fmt(FmtArguments),
    Repl(ReplArguments),
}

/// Performs it.
pub(crate) async fn perform(command: Concerto) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Concerto::Run(arguments) => run::run(arguments).await,
        Concerto::Check(arguments) => check::check(&arguments),
        Concerto::Compile(arguments) => check::compile(&arguments),
        Concerto::Test(arguments) => test::test(arguments).await,
        Concerto::Fmt(arguments) => fmt::fmt(&arguments),
        Concerto::Repl(arguments) => repl::repl(arguments).await,
    }
}
