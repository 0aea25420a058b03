//! `read_file`: numbered lines.

use std::fmt::Write as _;

use haft_core::{ToolContext, ToolDefinition};
use schemars::JsonSchema;
use serde::Deserialize;

use super::text::text;
use super::{Built, file_tool};
use crate::refusal::Refusal;
use crate::workspace::Workspace;

/// How many lines are given unless `limit` says otherwise.
const LINES: u64 = 2000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The file, relative to the workspace.
    path: String,
    /// The first line to read, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to read; 2000 if not given.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

pub(crate) fn read_file(workspace: &Workspace) -> Built {
    let definition = ToolDefinition::builder("read_file")
        .description("Read a text file of the workspace. Gives its lines with their numbers.")
        .read_only()
        .idempotent();
    file_tool(workspace, definition, run)
}

fn run(workspace: &Workspace, arguments: &Arguments, _: &ToolContext) -> Result<String, Refusal> {
    let root = workspace.open()?;
    let path = root.resolve(&arguments.path)?;
    let text = text(&root, &arguments.path, &path)?;
    let first = arguments.offset.unwrap_or(1).max(1);
    Ok(numbered(&text, first, arguments.limit.unwrap_or(LINES)))
}

/// Lines `first` and following, at most `limit`, and how many there are more.
fn numbered(text: &str, first: u64, limit: u64) -> String {
    let mut shown = String::new();
    let end = first.saturating_add(limit);
    let mut left_out = 0_u64;
    for (number, line) in (1_u64..).zip(text.lines()) {
        if number >= end {
            left_out += 1;
        } else if number >= first {
            // Writing into a string cannot fail.
            let _ = writeln!(shown, "{number:>6}\t{line}");
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            shown,
            "[lines left out: {left_out}. Read on with offset {end}.]"
        );
    }
    shown.truncate(shown.trim_end_matches('\n').len());
    shown
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn lines_are_numbered_and_those_left_out_counted() {
        let text = "a\nb\n\nd\n";
        assert_eq!(
            numbered(text, 1, 9),
            "     1\ta\n     2\tb\n     3\t\n     4\td"
        );
        assert_eq!(
            numbered(text, 2, 1),
            "     2\tb\n[lines left out: 2. Read on with offset 3.]"
        );
        assert_eq!(numbered(text, 9, 1), "");
        assert_eq!(numbered("", 1, u64::MAX), "");
    }
}
