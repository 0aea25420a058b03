//! `haft responses`: what a server has stored, listed, shown, waited for and deleted.
//!
//! What comes in: ids. What goes out: what the server says of them, as a person reads it or as JSON.
//! Nothing is kept here.

mod delete;
mod list;
mod pages;
mod show;
mod wait;

use std::error::Error;
use std::process::ExitCode;

use haft::Value;

use crate::arguments::ResponsesCommand;

pub(crate) use self::show::input_items;

/// Performs it.
pub(crate) async fn perform(command: ResponsesCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        ResponsesCommand::List(arguments) => list::list(&arguments).await,
        ResponsesCommand::Show(arguments) => show::show(&arguments).await,
        ResponsesCommand::Wait(arguments) => wait::wait(&arguments).await,
        ResponsesCommand::Delete(arguments) => delete::delete(&arguments).await,
    }
}

/// A member that is a text.
fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
