//! A list of tools, page by page, with an end.

use std::collections::HashSet;

use serde_json::Value;

use crate::settings::{Limits, ServerSettings};
use crate::tool::{Diagnostic, ToolDef, ToolReader};

/// How many notes about a list are kept.
const MAX_NOTES: usize = 200;

/// The tools of a server, in its order, and what was wrong with them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolList {
    /// Those that can be used.
    pub tools: Vec<ToolDef>,
    /// Those that could be used, and that the settings exclude.
    pub excluded: Vec<ToolDef>,
    /// What was not as it should be.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether all pages were read.
    pub is_complete: bool,
    /// For how long the server believes the list to hold, in milliseconds; 0 if it does not say.
    pub ttl_ms: u64,
    /// Whether the list may be shown to others than those whose credentials it was read with.
    pub is_public: bool,
}

/// What to do after a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Read the page behind this cursor.
    Page(String),
    /// There is no more to read.
    End,
}

/// A list under way.
pub(crate) struct Listing<'a> {
    settings: &'a ServerSettings,
    mirrors: bool,
    list: ToolList,
    pages: usize,
    bytes: usize,
    names: HashSet<String>,
    cursors: HashSet<String>,
    left_out_notes: usize,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(settings: &'a ServerSettings, mirrors: bool) -> Self {
        Self {
            settings,
            mirrors,
            list: ToolList {
                ttl_ms: u64::MAX,
                is_public: true,
                ..ToolList::default()
            },
            pages: 0,
            bytes: 0,
            names: HashSet::new(),
            cursors: HashSet::new(),
            left_out_notes: 0,
        }
    }

    /// Takes a page as the server wrote it.
    pub(crate) fn page(&mut self, page: &Value, bytes: usize) -> Next {
        let Limits {
            pages,
            tools,
            list_bytes,
            ..
        } = self.settings.limits;
        self.pages += 1;
        self.bytes += bytes;
        self.freshness(page);
        match page.get("tools") {
            Some(Value::Array(listed)) => {
                for tool in listed {
                    if self.names.len() >= tools {
                        return self.cut_short(format!(
                            "there are more than {tools} tools, the rest is left out"
                        ));
                    }
                    self.tool(tool);
                }
            }
            _ => self.note(format!(
                "page {} has no `tools` and is taken as empty",
                self.pages
            )),
        }
        let cursor = match page.get("nextCursor") {
            // An empty one is one too; only absence ends.
            Some(Value::String(cursor)) => cursor.clone(),
            None | Some(Value::Null) => {
                self.list.is_complete = true;
                return Next::End;
            }
            Some(_) => {
                return self.cut_short(format!(
                    "`nextCursor` of page {} is no text, the rest is left out",
                    self.pages
                ));
            }
        };
        if self.pages >= pages {
            return self.cut_short(format!(
                "there are more than {pages} pages, the rest is left out"
            ));
        }
        if self.bytes >= list_bytes {
            let limit = crate::error::size(list_bytes as u64);
            return self.cut_short(format!(
                "the list is larger than {limit}, the rest is left out"
            ));
        }
        if !self.cursors.insert(cursor.clone()) {
            return self.cut_short(
                "the list leads back to a page that was read, the rest is left out".into(),
            );
        }
        Next::Page(cursor)
    }

    /// Ends the list before its end and keeps what was read.
    pub(crate) fn cut_short(&mut self, problem: String) -> Next {
        self.note(problem);
        Next::End
    }

    /// How many pages were read.
    pub(crate) fn pages(&self) -> usize {
        self.pages
    }

    /// The list.
    pub(crate) fn finish(mut self) -> ToolList {
        if self.pages == 0 || self.list.ttl_ms == u64::MAX {
            self.list.ttl_ms = 0;
        }
        self.list.is_public &= self.pages > 0;
        if self.left_out_notes > 0 {
            let problem = format!(
                "{} more notes about this list are left out",
                self.left_out_notes
            );
            self.list.diagnostics.push(Diagnostic {
                tool: None,
                is_left_out: false,
                problem,
            });
        }
        self.list
    }

    fn tool(&mut self, value: &Value) {
        let settings = self.settings;
        let no_schema = |name: &str| settings.tools.get(name)?.no_schema_mode;
        let reader = ToolReader {
            mirrors: self.mirrors,
            no_schema: &no_schema,
        };
        let mut notes = Vec::new();
        let tool = reader.read(value, &mut notes);
        if let Some(tool) = tool {
            if !self.names.insert(tool.name.clone()) {
                // Pages are not consistent with each other: the first one wins.
                notes.clear();
                let name = Some(haft_core::cut(&crate::text::visible(&tool.name)));
                notes.push(Diagnostic {
                    tool: name,
                    is_left_out: true,
                    problem: "the name occurred before".into(),
                });
            } else if settings.admits(&tool.name) {
                self.list.tools.push(tool);
            } else {
                // Nobody wants to know what is wrong with it.
                notes.clear();
                self.list.excluded.push(tool);
            }
        }
        for note in notes {
            self.push(note);
        }
    }

    /// The shortest time and the narrowest scope of all pages hold.
    fn freshness(&mut self, page: &Value) {
        let ttl = page.get("ttlMs").and_then(Value::as_u64).unwrap_or(0);
        self.list.ttl_ms = self.list.ttl_ms.min(ttl);
        self.list.is_public &= page.get("cacheScope").and_then(Value::as_str) == Some("public");
    }

    fn note(&mut self, problem: String) {
        self.push(Diagnostic {
            tool: None,
            is_left_out: false,
            problem,
        });
    }

    fn push(&mut self, note: Diagnostic) {
        if self.list.diagnostics.len() < MAX_NOTES {
            self.list.diagnostics.push(note);
        } else {
            self.left_out_notes += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Label;
    use serde_json::json;

    fn settings() -> ServerSettings {
        ServerSettings::stdio(Label::new("x").unwrap(), "x")
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    fn names(list: &ToolList) -> Vec<&str> {
        list.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    fn notes(list: &ToolList) -> Vec<String> {
        list.diagnostics.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pages_follow_each_other_and_an_empty_cursor_is_one() {
        let settings = settings();
        let mut listing = Listing::new(&settings, false);
        let first =
            json!({"tools": [tool("a")], "nextCursor": "", "ttlMs": 500, "cacheScope": "public"});
        assert_eq!(listing.page(&first, 10), Next::Page(String::new()));
        let second = json!({"tools": [tool("b"), tool("a")], "ttlMs": 300, "cacheScope": "public"});
        assert_eq!(listing.page(&second, 10), Next::End);
        let list = listing.finish();
        assert_eq!(names(&list), ["a", "b"]);
        assert_eq!(
            notes(&list),
            ["tool `a` is left out: the name occurred before"]
        );
        assert!(list.is_complete);
        assert!(list.is_public);
        assert_eq!(list.ttl_ms, 300);
    }

    #[test]
    fn one_bad_tool_costs_itself_only() {
        let settings = settings();
        let mut listing = Listing::new(&settings, false);
        listing.page(
            &json!({"tools": [tool("a"), {"name": "b"}, 7, tool("c")]}),
            10,
        );
        let list = listing.finish();
        assert_eq!(names(&list), ["a", "c"]);
        assert_eq!(list.diagnostics.len(), 2);
        assert_eq!((list.ttl_ms, list.is_public), (0, false));
    }

    #[test]
    fn a_circle_of_pages_ends() {
        let settings = settings();
        let mut listing = Listing::new(&settings, false);
        assert_eq!(
            listing.page(&json!({"tools": [tool("a")], "nextCursor": "x"}), 10),
            Next::Page("x".into())
        );
        assert_eq!(
            listing.page(&json!({"tools": [tool("b")], "nextCursor": "x"}), 10),
            Next::End
        );
        let list = listing.finish();
        assert_eq!(names(&list), ["a", "b"]);
        assert!(!list.is_complete);
        assert_eq!(
            notes(&list),
            ["the list leads back to a page that was read, the rest is left out"]
        );
    }

    #[test]
    fn every_cap_ends_the_list_and_keeps_what_was_read() {
        let mut settings = settings();
        settings.limits.pages = 3;
        settings.limits.tools = 5;
        settings.limits.list_bytes = 1000;
        for (tools, bytes, expected_tools, note) in [
            (
                1,
                10,
                3,
                "there are more than 3 pages, the rest is left out",
            ),
            (
                3,
                10,
                5,
                "there are more than 5 tools, the rest is left out",
            ),
            (
                1,
                600,
                2,
                "the list is larger than 1000 bytes, the rest is left out",
            ),
        ] {
            let mut listing = Listing::new(&settings, false);
            let mut page = 0;
            loop {
                page += 1;
                let tools: Vec<_> = (0..tools)
                    .map(|index| tool(&format!("t{page}_{index}")))
                    .collect();
                let next = listing.page(
                    &json!({"tools": tools, "nextCursor": page.to_string()}),
                    bytes,
                );
                if next == Next::End {
                    break;
                }
            }
            let list = listing.finish();
            assert_eq!(list.tools.len(), expected_tools);
            assert!(!list.is_complete);
            assert_eq!(notes(&list), [note]);
        }
    }

    #[test]
    fn notes_are_bounded_and_denied_tools_make_none() {
        let mut settings = settings();
        settings.deny = vec!["a".into()];
        let mut listing = Listing::new(&settings, false);
        let mut bad: Vec<_> = (0..300).map(|_| json!({})).collect();
        bad.push(json!({"name": "a", "inputSchema": {}, "description": 1}));
        listing.page(&json!({ "tools": bad }), 10);
        let list = listing.finish();
        assert!(list.tools.is_empty());
        assert_eq!(list.diagnostics.len(), MAX_NOTES + 1);
        assert_eq!(
            notes(&list)[MAX_NOTES],
            "100 more notes about this list are left out"
        );
    }

    #[test]
    fn a_list_that_is_none_is_empty() {
        let settings = settings();
        let mut listing = Listing::new(&settings, false);
        assert_eq!(listing.page(&json!({}), 2), Next::End);
        let list = listing.finish();
        assert_eq!(
            notes(&list),
            ["page 1 has no `tools` and is taken as empty"]
        );
    }
}
