//! The `haft` command: it reads its arguments, calls the library and prints what came of it.

mod arguments;
mod ask;
mod backup;
mod catalogue;
mod chat;
mod concerto;
mod config;
mod demo;
mod edit;
mod failure;
mod init;
mod inquiry;
mod keys;
mod mcp;
mod prompt;
mod remote;
mod responses;
mod screen;
mod serve;
mod settings;
mod terminal;
mod text;
mod tokens;
mod toolbox;
mod tools;
mod trace;
mod user_dirs;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use tokio::runtime::Builder;

use crate::arguments::{Arguments, Command, McpCommand, ModelChoice, ServeArguments, Show};
use crate::concerto::Concerto;
use crate::config::Complaint;
use crate::failure::Failure;
use crate::terminal::Color;
use crate::text::printable;

/// A server makes and drops hundreds of small things per request; the system's allocator takes a tenth
/// of its time for them. This one gives out first what was freed last: a request finds its memory in the
/// processor's cache, and leaves room there for the code that it runs through.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What a command ends with if it was told nonsense; the same as for a wrong argument.
const MISTAKEN: u8 = 2;

fn main() -> ExitCode {
    // There is one supervisor for each running MCP server, so it skips everything that costs memory.
    #[cfg(unix)]
    if let Some(arguments) = mcp::supervisor_arguments(std::env::args_os()) {
        return mcp::run_supervisor(&arguments);
    }
    Color::of_arguments(std::env::args_os()).apply();
    let Arguments { command, color } =
        Arguments::try_parse().unwrap_or_else(|error| arguments::refuse(error));
    let command = command.unwrap_or_else(|| Command::Serve(ServeArguments::default()));
    match perform(command, color) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            // The last words may find no reader either.
            let _ = match error.downcast_ref::<Complaint>() {
                // It begins with the place, for editors and people who know where to look.
                Some(complaint) => writeln!(io::stderr(), "{complaint}"),
                None => writeln!(io::stderr(), "haft: {}", printable(&error.to_string())),
            };
            let failure = error.downcast_ref::<Failure>();
            if error.is::<Complaint>() || failure.is_some_and(Failure::is_mistake) {
                ExitCode::from(MISTAKEN)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn perform(command: Command, color: Color) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Serve(arguments) => {
            let runtime = Builder::new_multi_thread().enable_all().build()?;
            let served = runtime.block_on(serve::serve(arguments));
            // What a thread is still stuck in, a disk for one, must not keep the process.
            runtime.shutdown_background();
            served.map(|()| ExitCode::SUCCESS)
        }
        Command::Init(arguments) => {
            if arguments.concerto {
                concerto::begin(&arguments.path.unwrap_or_default())?;
            } else {
                init::init(&arguments)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(arguments) => concerto(Concerto::Run(arguments)),
        Command::Check(arguments) => concerto(Concerto::Check(arguments)),
        Command::Compile(arguments) => concerto(Concerto::Compile(arguments)),
        Command::Test(arguments) => concerto(Concerto::Test(arguments)),
        Command::Fmt(arguments) => concerto(Concerto::Fmt(arguments)),
        Command::Repl(arguments) => concerto(Concerto::Repl(arguments)),
        Command::Keys(arguments) => {
            keys::keys(arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Backup(arguments) => {
            backup::backup(&arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Restore(arguments) => {
            backup::restore(&arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Chat(arguments) => on_one_thread(chat::chat(&arguments, color)),
        Command::Trace(arguments) => on_one_thread(trace::trace(&arguments)),
        Command::Tools(command) => on_one_thread(toolbox::perform(command)),
        Command::Prompt(command) => on_one_thread(prompt::perform(command)),
        Command::Mcp(command @ McpCommand::Serve(_)) => {
            let runtime = Builder::new_multi_thread().enable_all().build()?;
            let served = runtime.block_on(mcp::perform(command));
            // A thread waits for the next line of standard input, which need not come.
            runtime.shutdown_background();
            served
        }
        Command::Mcp(command) => on_one_thread(mcp::perform(command)),
        Command::Config(command) => settings::perform(&command),
        Command::Completions { shell } => completions(shell),
        Command::Responses(command) => on_one_thread(responses::perform(command)),
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

/// Performs a command of Concerto.
fn concerto(command: Concerto) -> Result<ExitCode, Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(concerto::perform(command));
    // A thread that a program keeps busy must not keep the process.
    runtime.shutdown_background();
    done
}

/// Writes the script for a shell.
fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Box<dyn Error>> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "haft", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
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
