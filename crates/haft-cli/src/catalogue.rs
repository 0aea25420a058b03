//! The tools that haft runs by itself, and those of its MCP servers, as this folder's configuration says.
//!
//! `haft serve`, `haft chat` and `haft tools` have the same ones.

use std::path::Path;

use std::sync::Arc;

use futures_util::future::join_all;
use haft::{Catalog, Namespace, ToolName, ToolObject};
use haft_hosted::{FileSearchConfig, HostedOptions};
use haft_mcp::{McpError, McpTool, Pool, Server, ServerTools};
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

/// Puts the tools of MCP servers into a catalogue, below the labels of their servers. What is known of a
/// server from before will do; only one that was never seen is connected to. Gives what could not be had.
pub(crate) async fn add_mcp(catalog: &Catalog, pool: &Pool) -> Vec<String> {
    let servers = pool.servers();
    let lists = join_all(servers.iter().map(known_or_asked)).await;
    let mut notes = Vec::new();
    let mut labels = Vec::new();
    for (server, list) in servers.iter().zip(lists) {
        let label = server.label();
        let Ok(namespace) = Namespace::new(label.as_str()) else {
            // A label of a configuration is one.
            continue;
        };
        match list {
            Ok(tools) => {
                let objects = tools.tools.iter().filter_map(|tool| {
                    let object = McpTool::new(Arc::clone(server), Arc::clone(tool)).ok()?;
                    Some(Arc::new(object) as Arc<dyn ToolObject>)
                });
                let dropped = catalog.set_group(&namespace, objects);
                notes.extend(dropped.iter().map(ToString::to_string));
                if !tools.held.is_empty() {
                    let held = tools.held.len();
                    notes.push(format!(
                        "{held} of the tools of `{label}` held back: `haft mcp tools {label}` shows why"
                    ));
                }
            }
            Err(error) => notes.push(error.to_string()),
        }
        labels.push(namespace);
    }
    catalog.set_group_order(labels);
    notes
}

async fn known_or_asked(server: &Arc<Server>) -> Result<Arc<ServerTools>, McpError> {
    match server.known_tools() {
        Some(tools) => Ok(tools),
        None => server.tools().await,
    }
}
