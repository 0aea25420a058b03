//! The tools that haft runs by itself, and those of its MCP servers, as this folder's configuration says.
//!
//! `haft serve`, `haft chat` and `haft tools` have the same ones.

use std::path::Path;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use haft::{Catalog, Namespace, ToolName, ToolObject};
use haft_hosted::{FileSearchConfig, HostedOptions};
use haft_mcp::{McpTool, Pool, Server, ServerTools};
use tempfile::TempDir;

use crate::failure::Failure;

/// The file in the data folder that keeps what was read of the folders that are searched.
const INDEX: &str = "search.db";

/// How long a command waits for servers of which no list is known.
const FIRST_LIST_WAIT: Duration = Duration::from_secs(5);

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

/// Adds the tools of MCP servers to a catalogue, below the labels of their servers. A list that is known is used
/// as it is; only a server without one is connected to, all at once and for five seconds at most. Returns notes
/// about tools that are missing.
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
            Err(problem) => notes.push(problem),
        }
        labels.push(namespace);
    }
    catalog.set_group_order(labels);
    notes
}

async fn known_or_asked(server: &Arc<Server>) -> Result<Arc<ServerTools>, String> {
    if let Some(tools) = server.known_tools() {
        return Ok(tools);
    }
    match tokio::time::timeout(FIRST_LIST_WAIT, server.tools()).await {
        Ok(listed) => listed.map_err(|error| error.to_string()),
        Err(_) => Err(format!(
            "server `{label}` has not listed its tools within {} s, they are missing; `haft mcp test {label}` \
             waits longer",
            FIRST_LIST_WAIT.as_secs(),
            label = server.label()
        )),
    }
}
