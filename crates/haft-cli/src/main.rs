//! The `haft` command: it reads its arguments, calls the library and prints what came of it.

mod arguments;
mod ask;
mod config;
mod demo;
mod failure;
mod init;
mod keys;
mod remote;
mod responses;
mod screen;
mod serve;
mod settings;
mod terminal;
mod text;
mod tools;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;

use crate::arguments::{Arguments, Command, ModelChoice, ServeArguments, Show};
use crate::config::Complaint;
use crate::terminal::Color;
use crate::text::printable;

/// What a command ends with if it was told nonsense; the same as for a wrong argument.
const MISTAKEN: u8 = 2;

fn main() -> ExitCode {
    Color::of_arguments(std::env::args_os()).apply();
    let command = Arguments::parse().command;
    match perform(command.unwrap_or_else(|| Command::Serve(ServeArguments::default()))) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            // The last words may find no reader either.
            let _ = match error.downcast_ref::<Complaint>() {
                // It begins with the place, for editors and people who know where to look.
                Some(complaint) => writeln!(io::stderr(), "{complaint}"),
                None => writeln!(io::stderr(), "haft: {}", printable(&error.to_string())),
            };
            if error.is::<Complaint>() {
                ExitCode::from(MISTAKEN)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn perform(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Serve(arguments) => {
            let runtime = Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(serve::serve(arguments))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Init(arguments) => {
            init::init(&arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Responses(command) => on_one_thread(responses::perform(command)),
        Command::Keys(arguments) => {
            keys::keys(arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Config(command) => settings::perform(&command),
        Command::Demo { show: Show::Loop } => on_one_thread(async {
            let code = ask::ask(ask::QUESTION, &ModelChoice::Offline).await?;
            ask::what_next()?;
            Ok(code)
        }),
        Command::Demo { show: Show::Calls } => on_one_thread(async {
            demo::run().await?;
            Ok(ExitCode::SUCCESS)
        }),
        Command::Ask { question, model } => on_one_thread(ask::ask(&question, &model)),
    }
}

/// One run needs no more.
fn on_one_thread(
    shown: impl Future<Output = Result<ExitCode, Box<dyn Error>>>,
) -> Result<ExitCode, Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(shown)
}

/// Whoever read our output has seen enough, as in `haft | head`.
fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
