//! `haft init`: a configuration to begin with.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};

use crate::arguments::InitArguments;
use crate::text::printable;

/// The file: every key with its default, all commented out.
pub(crate) const TEMPLATE: &str = include_str!("haft.toml");

/// The file's name where only a folder is named.
const NAME: &str = "haft.toml";

/// Writes the file and says what to do next.
pub(crate) fn init(arguments: &InitArguments) -> io::Result<()> {
    let path = if arguments.path.is_dir() {
        arguments.path.join(NAME)
    } else {
        arguments.path.clone()
    };
    let shown = printable(&path.display().to_string());
    let mut options = OpenOptions::new();
    options.write(true);
    if arguments.force {
        options.create(true).truncate(true)
    } else {
        // Not overwritten even if it appears in this moment.
        options.create_new(true)
    };
    let written = options
        .open(&path)
        .and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
    written.map_err(|error| {
        let told = match error.kind() {
            ErrorKind::AlreadyExists => format!(
                "`{shown}` is there already\n  = help: edit it, or write over it with `haft init \
                 --force {shown}`"
            ),
            ErrorKind::NotFound => format!(
                "cannot write `{shown}`: the folder is not there\n  = help: make the folder first"
            ),
            _ => format!("cannot write `{shown}`: {error}"),
        };
        io::Error::new(error.kind(), told)
    })?;
    let run = match shown.as_str() {
        NAME => String::from("haft serve"),
        shown => format!("haft serve --config {shown}"),
    };
    write!(
        io::stdout(),
        "wrote {shown}: every key with its default, all commented out\n\n  \
         model  remove the `#` of a [[model]] block at its end and name the variable with the key;\n  \
         {space:<7}without one, haft takes a key in the environment, a server on this machine, or the\n  \
         {space:<7}offline model\n  \
         run    {run}\n",
        space = ""
    )
}

#[cfg(test)]
mod tests;
