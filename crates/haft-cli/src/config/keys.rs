//! Keys that a configuration names, and where they are.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft::models::http::Secret;
use haft::models::{Lookup, required_variable};

use super::complaint::Complaint;
use super::document::{Document, Step};
use super::excerpt::is_variable_name;
use super::resolve::ClientKey;

/// How long a key in a file may be.
const MAX_KEY_BYTES: u64 = 16 * 1024;

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    Variable(String),
    File(PathBuf),
}

impl KeySource {
    /// The key, if it is there.
    pub(crate) fn read(&self, lookup: Lookup<'_>) -> Option<Secret> {
        match self {
            Self::Variable(name) => required_variable(name, lookup).ok(),
            Self::File(path) => read(path).ok(),
        }
    }
}

/// The key that `[server]` asks clients for.
pub(super) fn client_key(
    document: &Document<'_>,
    variable: Option<String>,
    file: Option<PathBuf>,
    lookup: Lookup<'_>,
) -> Result<Option<ClientKey>, Complaint> {
    let in_server = |key| [Step::Key("server"), Step::Key(key)];
    let (secret, source, path) = match (variable, file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let path = in_server("api_key_file");
            return Err(document
                .complain(&path, "`api_key_env` is given as well")
                .remedy("keep one of the two"));
        }
        (Some(variable), None) => {
            let path = in_server("api_key_env");
            let secret = required_variable(&variable, lookup)
                .map_err(|_| unset_variable(document, &path, &variable))?;
            (secret, KeySource::Variable(variable), path)
        }
        (None, Some(file)) => {
            let path = in_server("api_key_file");
            let file = document.folder_of(&path).join(file);
            // It is shown to people who may stand elsewhere.
            let file = std::path::absolute(&file).unwrap_or(file);
            let secret = read(&file).map_err(|reason| {
                document
                    .complain(&path, format!("`api_key_file` cannot be used: {reason}"))
                    .remedy("name a file that holds the key and nothing else")
            })?;
            (secret, KeySource::File(file), path)
        }
    };
    // Such a key could not be sent, or not be told from what is around it.
    let is_sendable = |it: char| it.is_ascii_graphic();
    if !secret.expose().chars().all(is_sendable) {
        return Err(document
            .complain(&path, "the key cannot be sent as a bearer token")
            .remedy("use a key of visible ASCII characters without spaces"));
    }
    Ok(Some(ClientKey { secret, source }))
}

/// The complaint about a variable that is not there. What is not named like a variable may be the
/// key itself, and is not shown.
pub(super) fn unset_variable(
    document: &Document<'_>,
    path: &[Step<'_>],
    variable: &str,
) -> Complaint {
    if is_variable_name(variable) {
        return document
            .complain(
                path,
                format!("the environment variable `{variable}` is not set"),
            )
            .remedy(format!("set it: `export {variable}=…`"));
    }
    document
        .complain(path, "there is no environment variable of this name")
        .remedy("give the name of a variable that holds the key, such as `MY_KEY`")
}

/// The key in a file, or why there is none.
pub(crate) fn read(file: &Path) -> Result<Secret, String> {
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_KEY_BYTES).read_to_string(&mut text))
        .map_err(|error| error.to_string())?;
    match text.trim() {
        "" => Err(String::from("the file is empty")),
        key => Ok(Secret::new(key)),
    }
}
