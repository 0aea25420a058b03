//! The definitions of real servers, where they lie beside the workspace.

use std::path::PathBuf;

use haft_mcp::gateway::{Gateway, ListedTool, Mode};
use haft_mcp::{Label, exposed_name};
use serde_json::{Value, json};

use crate::client::{Era, Person, call, connect};
use crate::toolbox::{Toolbox, object};

fn corpus() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("HAFT_SHARED").map_or(beside, PathBuf::from);
    Some(folder.join("data/mcp-tooldefs")).filter(|folder| folder.is_dir())
}

/// All tools of all servers, under the names of the gateway.
fn tools(folder: &std::path::Path) -> Vec<ListedTool> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut tools = Vec::new();
    for file in files.iter().map(std::fs::DirEntry::path) {
        let label = file.file_stem().unwrap().to_str().unwrap();
        // The last one is another server's list in another era.
        if file.extension().is_none_or(|it| it != "json") || label == "time-legacy" {
            continue;
        }
        let listed: Vec<Value> =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for tool in listed {
            let raw = tool["name"].as_str().unwrap();
            let name = exposed_name(&Label::new(label).unwrap(), raw, 48);
            let schema = object(tool["inputSchema"].clone());
            let description = tool["description"].as_str().unwrap_or_default();
            tools.push(
                ListedTool::new(name.as_str(), schema)
                    .described(description)
                    .of_server(label, raw),
            );
        }
    }
    tools
}

#[tokio::test]
#[allow(clippy::print_stderr, reason = "says why nothing was tested")]
async fn every_tool_is_found_first_by_its_name_however_it_is_written() {
    let Some(folder) = corpus() else {
        return eprintln!("skipped: no corpus of tools; set `HAFT_SHARED` to where `data` is");
    };
    let tools = tools(&folder);
    assert_eq!(tools.len(), 116);
    let gateway = Gateway::builder(Toolbox::new(tools.clone()));
    let gateway = gateway.mode(Mode::Facade).build().unwrap();
    let client = connect(&gateway, "a", Person::helpful(Era::Modern).0).await;
    let mut missed = Vec::new();
    for tool in &tools {
        let raw = tool.raw_name.as_deref().unwrap();
        let spellings = [
            tool.name.clone(),
            tool.name.to_uppercase(),
            format!("please use {} now", tool.name),
            raw.replace('_', "-"),
            raw.replace(['_', '-'], " "),
        ];
        for query in spellings {
            let found = call(&client, "search_tools", json!({"query": query})).await;
            let found = found.structured_content.unwrap();
            let first = &found["tools"][0]["name"];
            let is_namesake = tools
                .iter()
                .any(|it| first == it.name.as_str() && it.raw_name == tool.raw_name);
            if first != tool.name.as_str() && (!is_namesake || query.contains("__")) {
                missed.push((query, first.clone()));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
