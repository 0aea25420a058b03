//! A server's list of tools as an item.

use haft_core::{Item, ToolDefinition};
use haft_mcp::ToolDef;
use serde_json::{Map, Value, json};

use super::servers::{ListedServer, ToolSource};
use crate::history::Record;

/// The type of the items.
const KIND: &str = "mcp_list_tools";

/// A server's tools, or why there are none, for the `mcp_list_tools` item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listing {
    label: String,
    outcome: Result<Vec<Value>, String>,
    /// Why a list that was read is empty or not the whole list.
    shortfall: Option<String>,
}

impl Listing {
    pub(crate) fn of(server: &ListedServer) -> Self {
        let outcome = match &server.tools {
            Ok(tools) => Ok(tools.iter().map(|it| written(&it.source)).collect()),
            Err(problem) => Err(problem.clone()),
        };
        Self {
            label: server.label.clone(),
            outcome,
            shortfall: server.shortfall.clone(),
        }
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.outcome.is_err()
    }

    /// Whether the newest list of this server in a history has the same tools and the same note.
    pub(crate) fn is_known_in<'r>(
        &self,
        records: impl DoubleEndedIterator<Item = &'r Record>,
    ) -> bool {
        let Ok(tools) = &self.outcome else {
            return false;
        };
        let mut lists = records.rev().filter_map(|record| match &record.item {
            Item::Other(members) if record.item.kind() == KIND => Some(members),
            _ => None,
        });
        let own_note = self.shortfall.as_deref();
        let parts = |members: &'r Map<String, Value>| {
            let tools = members.get("tools").and_then(Value::as_array)?;
            let label = members.get("server_label").and_then(Value::as_str)?;
            let note = members.get("error").and_then(Value::as_str);
            // A list that failed is skipped: it does not replace the one before it.
            let is_failed = note.is_some() && note != own_note && tools.is_empty();
            (label == self.label && !is_failed).then_some((tools, note))
        };
        lists.find_map(parts) == Some((tools, own_note))
    }

    /// The item as it begins.
    pub(crate) fn begun(&self, id: &str) -> Value {
        json!({
            "id": id, "type": KIND, "status": "in_progress",
            "server_label": self.label, "tools": [], "error": null,
        })
    }

    /// The item as it is done.
    pub(crate) fn to_item(&self, id: &str) -> Value {
        let mut item = self.begun(id);
        match &self.outcome {
            Ok(tools) => {
                item["status"] = "completed".into();
                item["tools"] = tools.clone().into();
                item["error"] = self.shortfall.clone().into();
            }
            Err(problem) => {
                item["status"] = "failed".into();
                item["error"] = problem.as_str().into();
            }
        }
        item
    }
}

fn written(source: &ToolSource) -> Value {
    match source {
        ToolSource::Remote { tool, .. } => written_remote(tool),
        ToolSource::Hosted(tool) => written_hosted(tool.definition()),
    }
}

fn written_hosted(definition: &ToolDefinition) -> Value {
    let said = definition.annotations();
    let hints = [
        ("readOnlyHint", said.read_only),
        ("destructiveHint", said.destructive),
        ("idempotentHint", said.idempotent),
        ("openWorldHint", said.open_world),
    ];
    let hints = hints.into_iter().filter(|(_, is_set)| *is_set);
    let hints = hints.map(|(key, is_set)| (key.to_owned(), is_set.into()));
    let title = said.title.iter();
    let title = title.map(|title| ("title".to_owned(), title.as_str().into()));
    let annotations: Map<String, Value> = title.chain(hints).collect();
    json!({
        "name": definition.name().as_str(),
        "description": definition.description(),
        "input_schema": definition.parameters().cloned().unwrap_or_else(|| json!({})),
        "annotations": (!annotations.is_empty()).then_some(annotations),
    })
}

fn written_remote(tool: &ToolDef) -> Value {
    let hints = [
        ("readOnlyHint", tool.hints.read_only),
        ("destructiveHint", tool.hints.destructive),
        ("idempotentHint", tool.hints.idempotent),
        ("openWorldHint", tool.hints.open_world),
    ];
    let hints = hints
        .into_iter()
        .filter_map(|(key, said)| Some((key.to_owned(), said?.into())));
    let title = tool.title.iter();
    let title = title.map(|title| ("title".to_owned(), title.as_str().into()));
    let annotations: Map<String, Value> = title.chain(hints).collect();
    let schema = tool.input_schema.as_ref().ok();
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": schema.map_or_else(|| json!({}), |schema| Value::clone(schema)),
        "annotations": (!annotations.is_empty()).then_some(annotations),
    })
}
