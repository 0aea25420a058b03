//! The `haft` command: it reads its arguments, calls the library and prints what came of it.

mod arguments;
mod ask;
mod config;
mod demo;
mod text;
mod tools;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command, ModelChoice, Show};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let command = Arguments::parse().command;
    match perform(command).await {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            // The last words may find no reader either.
            let _ = writeln!(io::stderr(), "haft: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn perform(command: Option<Command>) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        None | Some(Command::Demo { show: Show::Loop }) => {
            let code = ask::ask(ask::QUESTION, &ModelChoice::Offline).await?;
            ask::what_next()?;
            Ok(code)
        }
        Some(Command::Demo { show: Show::Calls }) => {
            demo::run().await?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Ask { question, model }) => ask::ask(&question, &model).await,
    }
}

/// Whoever read our output has seen enough, as in `haft | head`.
fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
