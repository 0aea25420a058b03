//! Searches of this server for tools, in the words of the API (`open-responses.md` §5.5).
//!
//! A search and what it found are told together, when it is over: neither stands alone.

use haft_core::{CallOutput, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::Placing as _;
use super::items::{self, SEARCH_CALL, search_arguments};
use super::translator::Translator;
use crate::history::{CALL, FOUND, TURN, Unsaid, WRITTEN};
use crate::toolkit::definitions;

/// A search that is not over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Search {
    arguments: String,
    /// The names of what was found; none before that is known.
    found: Option<Vec<String>>,
}

impl Search {
    pub(super) fn begun(arguments: String) -> Self {
        Self {
            arguments,
            found: None,
        }
    }
}

impl Translator {
    /// A search found something, or nothing.
    pub(super) fn found(&mut self, call_id: &str, names: &[ToolName]) {
        let names: Vec<String> = names.iter().map(ToolName::to_string).collect();
        self.loaded.extend(names.iter().cloned());
        if let Some(search) = self.searches.get_mut(call_id) {
            search.found = Some(names);
        } else if let Some(unsaid) = &mut self.unsaid {
            unsaid.add(Unsaid {
                all: false,
                loaded: names,
            });
        }
    }

    /// A call named a deferred tool and loaded it, without any search that a client could see: the response remembers
    /// it for the next one.
    pub(super) fn loaded_by_call(&mut self, tool: &ToolName, call_id: &str) {
        self.loaded.push(tool.to_string());
        self.unsaid.get_or_insert_default().add(Unsaid {
            all: false,
            loaded: vec![tool.to_string()],
        });
        self.answer.load(call_id);
    }

    /// A call is over. Was it a search that found something, it is told; one that could not be carried out
    /// never was. Says whether it was a search.
    pub(super) fn search_done(&mut self, call_id: &str, output: &CallOutput) -> bool {
        let Some(search) = self.searches.remove(call_id) else {
            return false;
        };
        if let Some(found) = search.found {
            self.tell_search(call_id, search.arguments, &found, output);
        }
        self.answer.settle(call_id);
        self.show();
        self.tell_behind();
        true
    }

    fn tell_search(
        &mut self,
        call_id: &str,
        arguments: String,
        found: &[String],
        output: &CallOutput,
    ) {
        self.add_search_item("tsc", call_id, SEARCH_CALL, |item| {
            item["arguments"] = search_arguments(&arguments);
            item[WRITTEN] = arguments.into();
        });
        let declared = &self.translation.declared;
        let tools = definitions(found.iter().filter_map(|name| declared.get(name)));
        let text = output.to_text();
        self.add_search_item("tso", call_id, "tool_search_output", |item| {
            item["tools"] = tools.into();
            item[FOUND] = text.into();
        });
    }

    fn add_search_item(
        &mut self,
        prefix: &str,
        call_id: &str,
        kind: &str,
        fill: impl FnOnce(&mut Value),
    ) {
        let place = self.output.place(None, prefix);
        let at = place.output_index;
        let mut json = json!({
            "id": place.item_id, "type": kind, "status": "completed",
            "call_id": null, "execution": "server",
        });
        fill(&mut json);
        json[TURN] = self.turn.into();
        json[CALL] = call_id.into();
        self.output.items[at] = Some(items::whole(place, json, &mut self.writer));
    }
}
