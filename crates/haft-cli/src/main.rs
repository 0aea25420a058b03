//! The `haft` command.

mod demo;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

/// haft, the handle between a language model and its tools.
///
/// Takes a handful of calls as models write them, good, broken and hostile, through hydration and
/// gate with real tools, and shows what happens to each. Nothing is needed but this program.
#[derive(Parser)]
#[command(name = "haft", version)]
struct Arguments;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    Arguments::parse();
    match demo::run().await {
        Err(error) if !is_closed_pipe(&*error) => {
            // The last words may find no reader either.
            let _ = writeln!(io::stderr(), "haft: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Whoever read our output has seen enough, as in `haft | head`.
fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
