//! `haft config`: whether a configuration is right, what it comes to, and what one can say.
//!
//! What comes in: `haft.toml` and the environment, or only the types that read them. What goes out: one
//! clear complaint, or every value that holds with the place where it was said; or every key that there
//! is. Nothing is started, and no key is shown.

mod check;
mod effective;
mod show;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::arguments::ConfigCommand;
use crate::config;
use crate::terminal::print_json;

/// Performs it.
pub(crate) fn perform(command: &ConfigCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        ConfigCommand::Check(arguments) => check::check(arguments),
        ConfigCommand::Show(arguments) => show::show(arguments),
        ConfigCommand::Reference => {
            io::stdout().write_all(config::reference().as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        ConfigCommand::Schema => {
            print_json(&config::schema())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
