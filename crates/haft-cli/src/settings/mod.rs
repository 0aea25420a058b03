//! `haft config`: what can be said in a configuration.
//!
//! What comes in: the types that read `haft.toml`. What goes out: every key with its type, its default
//! and its meaning, for people or for editors. Nothing is started, and no file is read.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::arguments::ConfigCommand;
use crate::config;
use crate::terminal::print_json;

/// Performs it.
pub(crate) fn perform(command: &ConfigCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        ConfigCommand::Reference => io::stdout().write_all(config::reference().as_bytes())?,
        ConfigCommand::Schema => print_json(&config::schema())?,
    }
    Ok(ExitCode::SUCCESS)
}
