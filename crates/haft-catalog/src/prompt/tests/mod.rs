//! What is promised about prompts.

#![allow(clippy::unwrap_used)]

mod building;
mod golden;
mod properties;
mod reading;
mod rendering;

use std::sync::Arc;

use haft_core::{ToolDefinition, ToolObject, function_tool};
use serde_json::json;

use super::*;

fn tool(name: &str) -> Arc<dyn ToolObject> {
    let definition = ToolDefinition::builder(name)
        .description(format!("What {name} is good for."))
        .parameters(json!({"type": "object"}))
        .build()
        .unwrap();
    function_tool(definition)
}

/// A section with a body that says its key.
fn section(key: &str) -> Section {
    Section::new(key, key).body(format!("Body of {key}."))
}

/// The same, as a summary.
fn summarized(key: &str) -> Section {
    let section = section(key).summary(format!("Summary of {key}."));
    section.visibility(Visibility::Summary)
}

fn prompt(sections: impl IntoIterator<Item = Section>) -> Prompt {
    let template = PromptTemplate::new("test", "prompt").sections(sections);
    template.build().unwrap()
}

/// The sections of the golden rendering.
fn golden() -> Prompt {
    prompt([
        Section::new("task", "Task").body("Answer questions."),
        Section::new("ref", "Reference")
            .body("All API notes.")
            .summary("API notes.")
            .visibility(Visibility::Summary)
            .tools([tool("search"), tool("cite")])
            .child(Section::new("limits", "Limits").body("10 rps."))
            .child(
                Section::new("errors", "Errors")
                    .body("All error codes.")
                    .summary("Error codes.")
                    .visibility(Visibility::Summary)
                    .tool(tool("explain")),
            ),
        Section::new("old", "Old").body("Obsolete.").enabled(false),
        Section::new("style", "Style").body("Be brief."),
    ])
}

fn names(tools: &[SectionTool]) -> Vec<&str> {
    let names = tools.iter().map(|tool| tool.tool.definition().name());
    names.map(haft_core::ToolName::as_str).collect()
}

fn states(rendered: &Rendered) -> Vec<(&str, SectionState)> {
    let states = rendered.states.iter();
    states.map(|(path, state)| (&**path, *state)).collect()
}
