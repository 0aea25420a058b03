//! The `haft` command.

mod demo;

use clap::Parser;

/// haft, the handle between a language model and its tools.
///
/// Takes a handful of calls as models write them, good, broken and hostile, through hydration and
/// gate with real tools, and shows what happens to each. Nothing is needed but this program.
#[derive(Parser)]
#[command(name = "haft", version)]
struct Arguments;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Arguments::parse();
    demo::run().await
}
