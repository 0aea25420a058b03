//! A tool as it is listed, and whose it is.

use std::collections::HashSet;
use std::sync::Arc;

use haft_core::{ToolDefinition, ToolObject};
use haft_mcp::gateway::{ListedTool, OwnValidator};
use haft_mcp::{Defer, Server, ServerTools, ToolDef, exposed_name, exposed_name_hashed};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// How long names are. Clients put a prefix of their own in front.
const NAME_BYTES: usize = 48;

/// The `_` and the twelve digits behind a shortened name.
const HASH_BYTES: usize = 13;

/// A tool that is offered.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) listed: Arc<ListedTool>,
    pub(super) target: Target,
}

/// Whose tool it is.
#[derive(Clone)]
pub(super) enum Target {
    /// haft's own.
    Native(Arc<dyn ToolObject>),
    /// A server's.
    Remote(Arc<Server>, Arc<ToolDef>),
}

pub(super) fn native_entry(tool: &Arc<dyn ToolObject>) -> Entry {
    let definition = tool.definition();
    let schema = definition.parameters().and_then(Value::as_object);
    let schema = schema.cloned().unwrap_or_else(any_object);
    let mut listed = ListedTool::new(short_name(definition.name().as_str()), schema);
    listed.title.clone_from(&definition.annotations().title);
    listed.description = definition.description().map(str::to_owned);
    listed.output_schema = structured_schema(definition).map(|it| Arc::new(it.clone()));
    listed.annotations = Some(hints_of(definition));
    listed.validator = tool.validator().map(OwnValidator);
    Entry {
        listed: Arc::new(listed),
        target: Target::Native(Arc::clone(tool)),
    }
}

/// The schema of results that every client understands: those of before 2026 know objects only.
pub(super) fn structured_schema(definition: &ToolDefinition) -> Option<&Map<String, Value>> {
    let schema = definition.output_schema()?.as_object()?;
    (schema.get("type")? == "object").then_some(schema)
}

fn hints_of(definition: &ToolDefinition) -> Map<String, Value> {
    let said = definition.annotations();
    let hints = [
        ("readOnlyHint", said.read_only),
        ("destructiveHint", said.destructive),
        ("idempotentHint", said.idempotent),
        ("openWorldHint", said.open_world),
    ];
    let hints = hints.into_iter();
    hints
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

fn any_object() -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema
}

/// The name, or its beginning and a hash of it.
fn short_name(name: &str) -> String {
    if name.len() <= NAME_BYTES {
        return name.to_owned();
    }
    let hash = Sha256::digest(name.as_bytes());
    // Names of tools are ASCII, so every place is one to cut at.
    let mut short = format!("{}_", &name[..NAME_BYTES - HASH_BYTES]);
    for byte in &hash[..6] {
        use std::fmt::Write as _;
        // Writing to a `String` cannot fail.
        let _ = write!(short, "{byte:02x}");
    }
    short
}

/// The tools of a server. Its names give way to those of native tools.
pub(super) fn server_entries(
    server: &Arc<Server>,
    tools: &ServerTools,
    taken: &HashSet<&str>,
) -> Vec<Entry> {
    let entries = tools.tools.iter().map(|tool| {
        let mut name = exposed_name(server.label(), &tool.name, NAME_BYTES);
        if taken.contains(name.as_str()) {
            name = exposed_name_hashed(server.label(), &tool.name, NAME_BYTES);
        }
        Entry {
            listed: Arc::new(listed(server, tool, name.as_str())),
            target: Target::Remote(Arc::clone(server), Arc::clone(tool)),
        }
    });
    entries.collect()
}

fn listed(server: &Server, tool: &ToolDef, name: &str) -> ListedTool {
    let schema = tool.input_schema.as_ref().ok();
    let schema = schema.and_then(|it| it.as_object().cloned());
    let mut listed = ListedTool::new(name, schema.unwrap_or_else(any_object))
        .of_server(server.label().as_str(), &tool.name);
    listed.title.clone_from(&tool.title);
    listed.description.clone_from(&tool.description);
    let output = tool.output_schema.as_ref();
    listed.output_schema = output.and_then(|it| it.as_object().cloned()).map(Arc::new);
    let hints = [
        ("readOnlyHint", tool.hints.read_only),
        ("destructiveHint", tool.hints.destructive),
        ("idempotentHint", tool.hints.idempotent),
        ("openWorldHint", tool.hints.open_world),
    ];
    let hints = hints
        .into_iter()
        .filter_map(|(key, said)| Some((key.into(), said?.into())));
    let hints: Map<String, Value> = hints.collect();
    listed.annotations = (!hints.is_empty()).then_some(hints);
    listed.meta.clone_from(&tool.meta);
    listed.always_listed = server.settings().deferral(&tool.name) == Defer::Never;
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let (a, b) = ("x".repeat(64), format!("{}y", "x".repeat(63)));
        assert_eq!(short_name("clock"), "clock");
        assert_eq!(short_name(&"x".repeat(48)).len(), 48);
        assert_eq!((short_name(&a).len(), short_name(&b).len()), (48, 48));
        assert_ne!(short_name(&a), short_name(&b));
    }
}
