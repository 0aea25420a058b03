//! The tool over the search.

use haft_core::{ToolDefinition, ToolError};
use serde_json::json;

use super::file_search::FileSearch;
use super::results::SearchRequest;
use crate::tool::{HostedTool, hosted_tool};

/// The tool `search_files`: full-text search over the folders of `search`.
pub fn search_files(search: FileSearch) -> HostedTool {
    let folders: Vec<_> = search.folders().map(|name| format!("`{name}`")).collect();
    let definition = ToolDefinition::builder("search_files")
        .description(format!(
            "Search the text of files in these folders: {}.\n\n\
             Gives the best places with path, line number and the lines around. All words must \
             stand near each other; put \"words that belong together\" in quotation marks, end a \
             word with * to find every word that begins so, put - before a word to leave passages \
             with it out.",
            folders.join(", ")
        ))
        .brief("Search the text of files in the folders that the operator listed.")
        .tags(["files", "search"])
        .read_only()
        .idempotent()
        .example(
            json!({"query": "\"retry limit\" config*", "path_glob": "*.md", "limit": 5}),
            None,
        );
    hosted_tool(definition, move |request: SearchRequest, context| {
        search
            .search(&request, context.cancel())
            .map_err(ToolError::from)
    })
}
