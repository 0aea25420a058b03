//! The tools that haft runs by itself, as this folder's configuration says.
//!
//! `haft serve`, `haft chat` and `haft tools` have the same ones.

use std::path::Path;

use haft::{Catalog, ToolName};
use haft_hosted::{FileSearchConfig, HostedOptions};
use tempfile::TempDir;

use crate::failure::Failure;

/// The file in the data folder that keeps what was read of the folders that are searched.
const INDEX: &str = "search.db";

/// What stands in front of a tool's name where requests name it.
pub(crate) const PREFIX: &str = "haft:";

/// The tools, and their names.
pub(crate) fn hosted(
    search: Option<FileSearchConfig>,
    data_dir: &Path,
) -> Result<(Catalog, Vec<ToolName>), Failure> {
    let catalog = Catalog::new();
    let options = HostedOptions {
        search,
        index: data_dir.join(INDEX),
    };
    let names = haft_hosted::register(&catalog, options)
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok((catalog, names))
}

/// The tools of a command that keeps nothing.
pub(crate) struct HostedHere {
    pub(crate) catalog: Catalog,
    pub(crate) names: Vec<ToolName>,
    /// Where the index is as long as the command runs, if the server has none to share.
    _index: Option<TempDir>,
}

/// The same for a command that keeps nothing: it uses the index of a server's data folder if there is
/// one, and makes neither a folder nor a file where a server would have its data.
pub(crate) fn hosted_here(
    search: Option<FileSearchConfig>,
    data_dir: &Path,
) -> Result<HostedHere, Failure> {
    let is_searched = search.as_ref().is_some_and(|it| !it.folders.is_empty());
    let search = search.filter(|_| is_searched);
    let is_shared = || data_dir.join(INDEX).is_file() && crate::serve::data_dir(data_dir).is_ok();
    let index = if is_searched && !is_shared() {
        let made = tempfile::Builder::new().prefix("haft-").tempdir();
        Some(
            made.map_err(|error| Failure::new(format!("cannot make a folder to search: {error}")))?,
        )
    } else {
        None
    };
    let folder = index.as_ref().map_or(data_dir, TempDir::path);
    let (catalog, names) = hosted(search, folder)?;
    Ok(HostedHere {
        catalog,
        names,
        _index: index,
    })
}
