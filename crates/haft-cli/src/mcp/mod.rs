//! `haft mcp`: the MCP servers of a configuration, looked at and called by hand, and haft as one itself.
//!
//! What comes in: names of servers and tools, or a program or an address that no configuration knows. What
//! goes out: how they are and what they gave, as a person or a program reads it. It decides nothing about
//! tools: calls go the way of every call, and what is held back stays so until a person accepts it.

mod accept;
mod call;
mod calls;
mod change;
mod clients;
mod cost;
#[cfg(unix)]
mod descendants;
mod import;
mod install;
mod list;
mod login;
mod secrets;
mod serve;
mod servers;
mod status;
#[cfg(unix)]
mod supervise;
mod table;
mod test;
mod tools;

use std::error::Error;
use std::process::ExitCode;

pub(crate) use self::clients::Client;
pub(crate) use self::servers::{connect_options, pool_of, unusable_status};
#[cfg(unix)]
pub(crate) use self::supervise::{run_supervisor, supervisor_arguments};
use crate::arguments::McpCommand;
#[cfg(not(unix))]
use crate::failure::Failure;

/// Performs it.
pub(crate) async fn perform(command: McpCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        McpCommand::List(arguments) => list::list(&arguments),
        McpCommand::Test(arguments) => test::test(arguments).await,
        McpCommand::Tools(arguments) => tools::tools(arguments).await,
        McpCommand::Call(arguments) => call::call(arguments).await,
        McpCommand::Status(arguments) => status::status(arguments).await,
        McpCommand::Calls(arguments) => calls::calls(&arguments),
        McpCommand::Accept(arguments) => accept::accept(&arguments),
        McpCommand::Cost(arguments) => cost::cost(&arguments).await,
        McpCommand::Login(arguments) => login::login(arguments).await,
        McpCommand::Import(arguments) => import::import(&arguments),
        McpCommand::Add(arguments) => change::add(&arguments),
        McpCommand::Remove(arguments) => change::remove(&arguments),
        McpCommand::Install(arguments) => install::install(&arguments),
        McpCommand::Serve(arguments) => Box::pin(serve::serve(arguments)).await,
        #[cfg(unix)]
        McpCommand::Supervise(arguments) => supervise::supervise(&arguments).await,
        #[cfg(not(unix))]
        McpCommand::Supervise(_) => Err(Failure::new("this system has no supervisor").into()),
    }
}
