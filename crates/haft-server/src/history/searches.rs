//! Searches that this server carried out: two items on the wire, which name each other by their order, and
//! a call with its output for a model.

use std::collections::{HashMap, VecDeque};

use haft_core::Item;
use serde_json::{Map, Value};

use super::marks::{CALL, FOUND};
use super::{Record, ToolNames};

/// What a model reads of a search that found nothing (`dynamic-tools.md` §8.1, word for word).
const NOTHING: &str = "No tool found.";

/// The places of searches that ran here, each with that of what it found. One without an output is none.
pub(super) fn searches(records: &[Record]) -> HashMap<usize, usize> {
    let mut open: VecDeque<(usize, Option<&str>)> = VecDeque::new();
    let mut pairs = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let Item::Other(members) = &record.item else {
            continue;
        };
        // What the client carries out is known by the id of the call.
        if members.get("call_id").is_some_and(Value::is_string) {
            continue;
        }
        let mark = members.get(CALL).and_then(Value::as_str);
        match record.item.kind() {
            "tool_search_call" => open.push_back((at, mark)),
            "tool_search_output" => {
                let same = open.iter().position(|(_, own)| *own == mark);
                if let Some((call, _)) = open.remove(same.unwrap_or_default()) {
                    pairs.insert(call, at);
                }
            }
            _ => {}
        }
    }
    pairs
}

/// What a model reads of what a search here found.
pub(super) fn found(output: &Map<String, Value>, names: &dyn ToolNames) -> String {
    if let Some(text) = output.get(FOUND).and_then(Value::as_str) {
        return text.to_owned();
    }
    let lines = names_in(output, names);
    let lines: Vec<_> = lines.iter().map(|name| names.found(name)).collect();
    match lines.as_slice() {
        [] => NOTHING.to_owned(),
        lines => lines.join("\n"),
    }
}

/// What the model calls the tools that a search here found.
pub(super) fn names_in(output: &Map<String, Value>, names: &dyn ToolNames) -> Vec<String> {
    let tools = output.get("tools").and_then(Value::as_array);
    let tools = tools.into_iter().flatten();
    tools.flat_map(|tool| called(tool, None, names)).collect()
}

/// What the model calls a tool, or those of a namespace or a server.
fn called(tool: &Value, namespace: Option<&str>, names: &dyn ToolNames) -> Vec<String> {
    let text = |key: &str| tool.get(key).and_then(Value::as_str);
    let list = |key: &str| {
        tool.get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let name = text("name").unwrap_or_default();
    match text("type").unwrap_or_default() {
        "function" | "custom" => vec![names.client(namespace, name)],
        "namespace" => list("tools")
            .flat_map(|tool| called(tool, Some(name), names))
            .collect(),
        "mcp" => {
            let label = text("server_label").unwrap_or_default();
            let tools = list("allowed_tools").filter_map(Value::as_str);
            tools.map(|tool| names.mcp(label, tool)).collect()
        }
        hosted => vec![names.hosted(hosted)],
    }
}
