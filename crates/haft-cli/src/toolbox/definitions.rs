//! Tools to look at: those of the configuration, or definitions in files.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use haft::{Annotations, LoopOptions, ToolDefinition, ToolName, Value, json};

use super::{Toolbox, note};
use crate::arguments::WhichTools;
use crate::failure::Failure;
use crate::text::one_line;

/// How many descriptions' characters are read of a foreign tool.
const MAX_DESCRIPTION: usize = 64 * 1024;

/// The tools that somebody wants to know about.
pub(super) struct LookedAt {
    /// Each name once.
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    /// What the configuration says of runs with them; nothing of definitions in files.
    pub(super) options: Option<LoopOptions>,
}

pub(super) async fn of(which: &WhichTools) -> Result<LookedAt, Box<dyn Error>> {
    let mut tools: Vec<Arc<ToolDefinition>> = Vec::new();
    let mut options = None;
    if which.files.is_empty() {
        let toolbox = Toolbox::open(&which.from, &which.scripts).await?;
        let toolbox = toolbox.with_tools_of(None).await?;
        toolbox.close().await;
        tools.extend(toolbox.catalog().list());
        options = Some(toolbox.options);
    }
    for file in &which.files {
        let read = read(file)?;
        tools.extend(read);
    }
    let mut seen = std::collections::HashSet::new();
    let all = tools.len();
    tools.retain(|tool| seen.insert(tool.name().clone()));
    if tools.len() < all {
        let left_out = all - tools.len();
        note(&match left_out {
            1 => String::from("1 tool was left out: another bears its name"),
            many => format!("{many} tools were left out: another bears their name"),
        });
    }
    Ok(LookedAt { tools, options })
}

/// The definitions of a file: a JSON list, an object with `tools`, or one object in each line; as MCP
/// servers, providers and `haft tools list --json` write them.
fn read(file: &Path) -> Result<Vec<Arc<ToolDefinition>>, Failure> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::mistake(format!("`{shown}` cannot be read: {error}"))
            .remedy("name a file of tool definitions in JSON")
    })?;
    let values = match serde_json::from_str::<Value>(&text) {
        Ok(Value::Array(list)) => list,
        Ok(Value::Object(mut object)) => match object.remove("tools") {
            Some(Value::Array(list)) => list,
            _ => vec![Value::Object(object)],
        },
        _ => lines(file, &text)?,
    };
    let total = values.len();
    let tools: Vec<_> = values.iter().filter_map(definition).collect();
    if tools.is_empty() {
        let message = format!("`{shown}` holds no tool definition");
        return Err(Failure::mistake(message).remedy(
            "it is to be a JSON list of objects with `name`, `description` and `inputSchema` or `parameters`",
        ));
    }
    if tools.len() < total {
        let left_out = total - tools.len();
        note(&format!(
            "{left_out} entries of `{shown}` are no tool definitions and were left out"
        ));
    }
    Ok(tools)
}

fn lines(file: &Path, text: &str) -> Result<Vec<Value>, Failure> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let values = lines.map(|(at, line)| {
        serde_json::from_str(line).map_err(|error| {
            let place = format!("`{}`, line {}", file.display(), at + 1);
            Failure::mistake(format!("{place} is no JSON: {error}"))
                .remedy("a file of definitions is one JSON list, or one object in each line")
        })
    });
    values.collect()
}

/// A definition of whichever form. What would be refused for a tool to run is taken here: only its text
/// counts.
fn definition(value: &Value) -> Option<Arc<ToolDefinition>> {
    let tool = match &value["function"] {
        Value::Object(_) => &value["function"],
        _ => value,
    };
    let foreign = tool["name"].as_str()?;
    let schema = ["parameters", "inputSchema", "input_schema"];
    let schema = schema.iter().find_map(|key| tool.get(key));
    let needs = tool["depends_on"].as_array().into_iter().flatten();
    let needs = needs.filter_map(|one| one["name"].as_str().or(one.as_str()));
    let needs: Vec<_> = needs.map(ToolName::import).collect();
    let build = |schema: Value| {
        let name = ToolName::import(foreign);
        let origin = (name.as_str() != foreign).then(|| one_line(foreign, 256));
        let description = tool["description"].as_str().unwrap_or_default();
        let description: String = description.chars().take(MAX_DESCRIPTION).collect();
        ToolDefinition::builder(String::from(name))
            .foreign_description(description)
            .parameters(schema)
            .annotations(Annotations {
                origin,
                depends_on: needs.clone(),
                ..Annotations::default()
            })
            .build()
            .ok()
    };
    let own = schema.cloned().and_then(build);
    own.or_else(|| build(json!({"type": "object"})))
}
