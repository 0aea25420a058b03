//! `haft config`: whether a configuration is right, and what it comes to.
//!
//! What comes in: `haft.toml` and the environment. What goes out: one clear complaint, or every value
//! that holds with the place where it was said. Nothing is started, and no key is shown.

mod check;
mod effective;
mod show;

use std::error::Error;
use std::process::ExitCode;

use crate::arguments::ConfigCommand;

/// Performs it.
pub(crate) fn perform(command: &ConfigCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        ConfigCommand::Check(arguments) => check::check(arguments),
        ConfigCommand::Show(arguments) => show::show(arguments),
    }
}
