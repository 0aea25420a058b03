//! The hosted tools' way into a catalogue.

use std::path::PathBuf;

use haft_catalog::{Catalog, Registration, RejectedTools};
use haft_core::ToolName;

use crate::calculate::calculate;
use crate::clock::clock;
use crate::search::{FileSearch, FileSearchConfig, FileSearchError, search_files};

/// Which tools are hosted, and what they need.
#[derive(Debug, Clone, Default)]
pub struct HostedOptions {
    /// What `search_files` looks through. Without folders the tool is not offered.
    pub search: Option<FileSearchConfig>,
    /// The file in which `search_files` keeps its index, best in the server's data directory.
    pub index: PathBuf,
}

/// Why the hosted tools could not be registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostedError {
    /// The search could not be opened.
    #[error("`search_files`: {0}")]
    Search(#[from] FileSearchError),
    /// The catalogue refused some of them. The others are registered.
    #[error(transparent)]
    Rejected(#[from] RejectedTools),
}

/// Registers `clock` and `calculate`, and `search_files` where folders are listed; gives their
/// names. Opening the index blocks for a moment.
///
/// ```
/// use haft_catalog::Catalog;
/// use haft_hosted::{HostedOptions, register};
///
/// let catalog = Catalog::new();
/// let names = register(&catalog, HostedOptions::default())?;
/// let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
/// assert_eq!(names, ["clock", "calculate"]);
/// # Ok::<(), haft_hosted::HostedError>(())
/// ```
pub fn register(catalog: &Catalog, options: HostedOptions) -> Result<Vec<ToolName>, HostedError> {
    let mut tools = vec![clock(), calculate()];
    let listed = options.search.filter(|config| !config.folders.is_empty());
    if let Some(config) = listed {
        tools.push(search_files(FileSearch::open(options.index, &config)?));
    }
    let registrations = tools
        .into_iter()
        .map(|tool| Registration::new(tool).from_origin("the hosted tools"));
    Ok(catalog.add_all(registrations).into_result()?)
}
