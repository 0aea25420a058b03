//! `edit_file`: one place of a file, or every such place.

use haft_core::{ToolContext, ToolDefinition};
use schemars::JsonSchema;
use serde::Deserialize;

use super::text::text;
use super::{Built, file_tool};
use crate::refusal::Refusal;
use crate::workspace::Workspace;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, exactly as it stands in the file. It must occur once, unless `all` is
    /// true.
    #[schemars(length(min = 1))]
    old: String,
    /// What to put in its place.
    new: String,
    /// Whether to replace every occurrence.
    all: Option<bool>,
}

pub(crate) fn edit_file(workspace: &Workspace) -> Built {
    let definition = ToolDefinition::builder("edit_file")
        .description("Replace a piece of text in a file of the workspace.")
        .destructive();
    file_tool(workspace, definition, run)
}

fn run(
    workspace: &Workspace,
    arguments: &Arguments,
    context: &ToolContext,
) -> Result<String, Refusal> {
    let (shown, old) = (&arguments.path, arguments.old.as_str());
    let root = workspace.open()?;
    let path = root.resolve(shown)?;
    // Held from reading to writing: two edits of one file do not overwrite each other.
    let mut history = workspace.history();
    let text = text(&root, shown, &path)?;
    let count = text.matches(old).count();
    let all = arguments.all.unwrap_or(false);
    if old.is_empty() || count == 0 || (count > 1 && !all) {
        return Err(Refusal::Told(format!(
            "'old' occurs {count} times in '{shown}'."
        )));
    }
    let edited = text.replace(old, &arguments.new);
    history
        .write(
            &root,
            workspace.journalled(context)?,
            &path,
            edited.as_bytes(),
        )
        .map_err(|error| Refusal::io(shown, &error))?;
    let places = if count == 1 { "place" } else { "places" };
    Ok(format!("Changed {count} {places} in '{shown}'."))
}
