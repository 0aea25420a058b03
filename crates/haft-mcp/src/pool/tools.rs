//! The tools of one server as they may be used.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_core::cut;
use serde_json::Value;

use crate::listing::ToolList;
use crate::pins::{Compared, Difference, Standing};
use crate::settings::{Pin, ServerSettings};
use crate::text::visible;
use crate::tool::{Diagnostic, ToolDef};

/// How many names and problems a message about a list has.
const SHOWN_REASONS: usize = 10;

/// The tools of one server, frozen: those that may be used, those that are held back, and what was wrong
/// with the rest.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ServerTools {
    /// Those that may be used. What was there before keeps its place; what is new comes last.
    pub tools: Vec<Arc<ToolDef>>,
    /// Those that changed since they were accepted, or are new, and wait for `haft mcp accept`.
    pub held: Vec<HeldTool>,
    /// The raw names of those that the settings exclude (`allow`, `deny`).
    pub excluded: Vec<String>,
    /// What was not as it should be.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the whole list was read.
    pub is_complete: bool,
    /// Whether the list was read from the server in this process, not remembered from an earlier one.
    pub is_live: bool,
    /// For how long the server believes the list to hold.
    pub ttl: Duration,
    /// Whether others than those whose credentials it was read with may see it.
    pub is_public: bool,
}

/// A tool that is held back.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldTool {
    /// Its raw name.
    pub name: String,
    /// What is different from what was accepted.
    pub differences: Vec<Difference>,
}

impl ServerTools {
    /// The tool with this raw name.
    pub fn get(&self, raw: &str) -> Option<&Arc<ToolDef>> {
        self.tools.iter().find(|tool| tool.name == raw)
    }

    /// What of a list may be used. `compared` says how the list stands to what was accepted.
    pub(super) fn of_list(
        mut list: ToolList,
        settings: &ServerSettings,
        compared: Option<&Compared>,
        before: Option<&Self>,
    ) -> Self {
        let pin = pin_of(settings);
        let standing: HashMap<&str, &Standing> = compared
            .into_iter()
            .flat_map(|compared| &compared.standings)
            .map(|(name, standing)| (name.as_str(), standing))
            .collect();
        let mut tools = Vec::new();
        let mut held = Vec::new();
        misnamed(&mut list, settings);
        let excluded = list.excluded.into_iter().map(|tool| tool.name).collect();
        for tool in list.tools {
            let differences = match standing.get(tool.name.as_str()) {
                None | Some(Standing::Same) => None,
                Some(Standing::New) => Some(Vec::new()),
                Some(Standing::Changed(differences)) => Some(differences.clone()),
            };
            match differences {
                Some(differences) if pin == Pin::Hold => held.push(HeldTool {
                    name: tool.name,
                    differences,
                }),
                _ => tools.push(Arc::new(tool)),
            }
        }
        if let Some(before) = before {
            keep_places(&mut tools, before);
        }
        Self {
            tools,
            held,
            excluded,
            diagnostics: list.diagnostics,
            is_complete: list.is_complete,
            is_live: true,
            ttl: Duration::from_millis(list.ttl_ms),
            is_public: list.is_public,
        }
    }

    /// Why the list is empty, or has fewer tools than the server offers, as a message for API clients; none
    /// where nothing is missing but what the operator excludes.
    pub fn shortfall(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if !self.held.is_empty() {
            let held: Vec<_> = self.held.iter().map(|tool| tool.name.as_str()).collect();
            reasons.push(format!(
                "new or changed and held back until the operator accepts: {}",
                quoted(&held)
            ));
        }
        let problems = self.diagnostics.iter();
        // An incomplete list says why in a note about no tool.
        let problems =
            problems.filter(|it| it.is_left_out || !self.is_complete && it.tool.is_none());
        reasons.extend(problems.take(SHOWN_REASONS).map(ToString::to_string));
        if self.tools.is_empty() && reasons.is_empty() {
            reasons.push(match self.excluded.len() {
                0 => "the server lists no tools".to_owned(),
                count => format!("all {count} tools are excluded by the operator"),
            });
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Whether somebody who goes by this list would see anything else in the other.
    pub(super) fn shows_the_same(&self, other: &Self) -> bool {
        self.tools == other.tools && self.held == other.held
    }
}

/// Names for a message, with a count for those past the first ten.
fn quoted(names: &[&str]) -> String {
    let shown = names.iter().take(SHOWN_REASONS);
    let shown: Vec<_> = shown
        .map(|name| format!("`{}`", cut(&visible(name))))
        .collect();
    let more = names.len() - shown.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

/// Notes names in the settings that no tool has: what is said of them holds for nothing.
fn misnamed(list: &mut ToolList, settings: &ServerSettings) {
    if !list.is_complete {
        return;
    }
    let tools = list.tools.iter().chain(&list.excluded);
    let mut names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
    // Those that are left out are there as well.
    names.extend(list.diagnostics.iter().filter_map(|it| it.tool.as_deref()));
    let allowed = settings.allow.iter().flatten();
    let said = allowed.map(|name| ("allow", name));
    let said = said.chain(settings.deny.iter().map(|name| ("deny", name)));
    let said = said.chain(settings.tools.keys().map(|name| ("tools", name)));
    let unknown = said.filter(|(_, name)| !names.contains(&name.as_str()));
    let note = |(key, name): (&str, &String)| {
        let near = names
            .iter()
            .map(|there| (strsim::osa_distance(name, there), there))
            .filter(|(distance, _)| *distance <= 2)
            .min();
        let hint = near.map(|(_, there)| format!("; did you mean `{}`?", cut(&visible(there))));
        let problem = format!(
            "`{key}` of `[mcp.{}]` names `{}`, which the server does not have{}",
            settings.label,
            cut(name),
            hint.unwrap_or_default()
        );
        Diagnostic {
            tool: None,
            is_left_out: false,
            problem,
        }
    };
    let notes: Vec<_> = unknown.map(note).collect();
    list.diagnostics.extend(notes);
}

/// What becomes of changed tools of this server.
pub(super) fn pin_of(settings: &ServerSettings) -> Pin {
    let default = if settings.trusted {
        Pin::Warn
    } else {
        Pin::Hold
    };
    settings.pin.unwrap_or(default)
}

/// Prompts are cached by their beginning: what was there stays where it was.
fn keep_places(tools: &mut [Arc<ToolDef>], before: &ServerTools) {
    let places = before.tools.iter().enumerate();
    let places: HashMap<&str, usize> = places.map(|(at, it)| (it.name.as_str(), at)).collect();
    // The sort is stable: what is new stays in the server's order.
    tools.sort_by_key(|tool| {
        places
            .get(tool.name.as_str())
            .copied()
            .unwrap_or(usize::MAX)
    });
}

/// The tool in the words of the protocol, as the server could have written it.
pub(super) fn written(tool: &ToolDef) -> Value {
    let mut json = serde_json::Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            json.insert(key.into(), value);
        }
    };
    put("name", Some(tool.name.as_str().into()));
    put("title", tool.title.as_deref().map(Into::into));
    put("description", tool.description.as_deref().map(Into::into));
    let schema = tool.input_schema.as_ref().ok();
    put("inputSchema", schema.map(|schema| Value::clone(schema)));
    let output = tool.output_schema.as_ref();
    put("outputSchema", output.map(|schema| Value::clone(schema)));
    let hints = [
        ("readOnlyHint", tool.hints.read_only),
        ("destructiveHint", tool.hints.destructive),
        ("idempotentHint", tool.hints.idempotent),
        ("openWorldHint", tool.hints.open_world),
    ];
    let hints = hints
        .into_iter()
        .filter_map(|(key, said)| Some((key.to_owned(), said?.into())));
    let hints: serde_json::Map<String, Value> = hints.collect();
    put("annotations", (!hints.is_empty()).then_some(hints.into()));
    put("_meta", tool.meta.clone().map(Into::into));
    json.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::listing::Listing;
    use crate::names::Label;

    fn settings() -> ServerSettings {
        ServerSettings::stdio(Label::new("files").unwrap(), "x")
    }

    fn list(tools: &Value) -> ToolList {
        list_of(tools, &settings())
    }

    fn list_of(tools: &Value, settings: &ServerSettings) -> ToolList {
        let mut listing = Listing::new(settings, false);
        listing.page(&json!({"tools": tools}), 0);
        listing.finish()
    }

    fn plain(names: &[&str]) -> ToolList {
        let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
        list(&names.iter().map(tool).collect())
    }

    fn names(tools: &ServerTools) -> Vec<&str> {
        tools.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn what_was_there_keeps_its_place_and_what_is_new_comes_last() {
        let before = ServerTools::of_list(plain(&["a", "b", "c"]), &settings(), None, None);
        let after = plain(&["new", "c", "a", "newer"]);
        let after = ServerTools::of_list(after, &settings(), None, Some(&before));
        assert_eq!(names(&after), ["a", "c", "new", "newer"]);
    }

    #[test]
    fn tools_that_the_operator_does_not_admit_are_named_and_not_there() {
        let mut settings = settings();
        settings.deny = vec!["write".into()];
        let two = json!([
            {"name": "read", "inputSchema": {"type": "object"}},
            {"name": "write", "inputSchema": {"type": "object"}},
        ]);
        let tools = ServerTools::of_list(list_of(&two, &settings), &settings, None, None);
        assert_eq!(names(&tools), ["read"]);
        assert_eq!(tools.excluded, ["write"]);
        assert_eq!(tools.diagnostics, []);
    }

    #[test]
    fn names_in_the_settings_that_no_tool_has_are_told() {
        let mut settings = settings();
        settings.deny = vec!["wirte".into()];
        settings
            .tools
            .insert("raed".into(), crate::ToolSettings::default());
        let two = json!([
            {"name": "read", "inputSchema": {"type": "object"}},
            {"name": "write", "inputSchema": {"type": "object"}},
        ]);
        let tools = ServerTools::of_list(list_of(&two, &settings), &settings, None, None);
        let told: Vec<_> = tools.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "`deny` of `[mcp.files]` names `wirte`, which the server does not have; did you mean `write`?",
                "`tools` of `[mcp.files]` names `raed`, which the server does not have; did you mean `read`?",
            ]
        );
    }

    #[test]
    fn a_tool_is_written_so_that_it_reads_the_same() {
        let told = json!([{
            "name": "read.all", "title": "Read", "description": "Reads.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
            "_meta": {"x": 1}
        }]);
        let tools = list(&told).tools;
        assert_eq!(list(&json!([written(&tools[0])])).tools, tools);
    }
}
