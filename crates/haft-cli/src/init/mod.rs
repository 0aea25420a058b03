//! `haft init`: a configuration to begin with.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::arguments::InitArguments;
use crate::text::printable;

/// The file: every key with its default, all commented out.
pub(crate) const TEMPLATE: &str = include_str!("haft.toml");

/// The file's name where only a folder is named.
const NAME: &str = "haft.toml";

/// Writes the file and says what to do next.
pub(crate) fn init(arguments: &InitArguments) -> io::Result<()> {
    let path = match &arguments.path {
        None => PathBuf::from(NAME),
        Some(folder) if folder.is_dir() => folder.join(NAME),
        Some(file) => file.clone(),
    };
    let shown = printable(&path.display().to_string());
    let made = make_folder(&path)?;
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
            _ => format!("cannot write `{shown}`: {error}"),
        };
        io::Error::new(error.kind(), told)
    })?;
    let run = match shown.as_str() {
        NAME => String::from("haft serve"),
        shown => format!("haft serve --config {shown}"),
    };
    let made = made.map_or_else(String::new, |folder| format!("made the folder {folder}\n"));
    write!(
        io::stdout(),
        "{made}wrote {shown}: every key with its default, all commented out\n\n  \
         model  remove the `#` of a [[model]] block at its end and name the variable with the key;\n  \
         {space:<7}without one, haft takes a key in the environment, a server on this machine, or the\n  \
         {space:<7}offline model\n  \
         run    {run}\n",
        space = ""
    )
}

/// Makes the folder of a file if it is not there; says which.
fn make_folder(file: &Path) -> io::Result<Option<String>> {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    let Some(folder) = folder.filter(|folder| !folder.exists()) else {
        return Ok(None);
    };
    let shown = printable(&folder.display().to_string());
    fs::create_dir_all(folder).map_err(|error| {
        let told = format!("cannot make the folder `{shown}`: {error}");
        io::Error::new(error.kind(), told)
    })?;
    Ok(Some(shown))
}

#[cfg(test)]
mod tests;
