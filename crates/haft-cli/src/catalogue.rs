//! The tools that haft runs by itself, as this folder's configuration says.
//!
//! `haft serve`, `haft chat` and `haft tools` have the same ones.

use std::path::Path;

use haft::{Catalog, ToolName};
use haft_hosted::{FileSearchConfig, HostedOptions};

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

/// The same for a command that keeps nothing: the data folder is made only if something is searched.
pub(crate) fn hosted_here(
    search: Option<FileSearchConfig>,
    data_dir: &Path,
) -> Result<(Catalog, Vec<ToolName>), Failure> {
    let is_searched = search.as_ref().is_some_and(|it| !it.folders.is_empty());
    if is_searched {
        let data_dir = crate::serve::data_dir(data_dir)?;
        hosted(search, &data_dir)
    } else {
        hosted(None, data_dir)
    }
}
