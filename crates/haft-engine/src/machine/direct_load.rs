//! Calls of deferred tools by their exact names (`docs/dynamic-tools.md`, "Search").
//!
//! A model may know a tool from its instructions without having searched for it. If the arguments are valid, the
//! search has nothing left to add, so the call loads the tool and runs. A call with other arguments is refused as
//! before: the model has to read the schema first. Tools of unread sections are not deferred but hidden, and stay
//! unknown; `tool_choice` and `allowed_tools` hold for loaded tools as for all others.

use haft_core::{Item, ModelResponse, ToolName};
use haft_hydrate::{CallIds, Hydrator};

use crate::calls::{as_tool_call, finish_of, source_of};
use crate::disclosure::{Deferral, Opens};
use crate::event::EventKind;

use super::Machine;
use super::batch::{Batch, BatchCall};

/// The `section_key` of [`EventKind::ToolsInjected`] for a tool that was loaded by a call of its name.
const DIRECT_CALL: &str = "direct_call";

impl Machine {
    /// Loads the deferred tools that the calls of an answer name with valid arguments, and returns the ids of those
    /// calls. `only` is the one call that may run, where only one may.
    pub(super) fn load_called(
        &mut self,
        response: &ModelResponse,
        only: Option<usize>,
    ) -> Vec<String> {
        let mut call_ids = Vec::new();
        if self.binding().held().len() == 0 {
            return call_ids;
        }
        let source = source_of(&*self.environment.model, response);
        let last = response.items.len().saturating_sub(1);
        let mut number = 0;
        for (at, item) in response.items.iter().enumerate() {
            let Item::FunctionCall(item) = item else {
                continue;
            };
            let is_taken = only.is_none_or(|only| only == number);
            number += 1;
            if !is_taken || !self.binding().is_held(&item.name) {
                continue;
            }
            let finish = finish_of(item, at == last, response.finish);
            let call = as_tool_call(item, finish, &source);
            let loaded = self.binding().with_loaded([item.name.as_str()]).binding;
            // Neither repaired nor recorded: the call itself is hydrated when the tool is loaded.
            let hydrated = Hydrator::new().hydrate(&call, &loaded, &mut CallIds::default());
            if hydrated.errors.is_empty()
                && let Ok(name) = ToolName::new(item.name.as_str())
            {
                self.load_directly(name, item.call_id.clone());
                call_ids.push(item.call_id.clone());
            }
        }
        call_ids
    }

    /// Records which calls loaded their own tools.
    pub(super) fn note_loaded(&mut self, batch: &Batch, call_ids: &[String]) {
        for call in &batch.calls {
            if let Some(record) = self.progress().records.get_mut(call.record) {
                record.loaded_by_call = call_ids.contains(&call.item.call_id);
            }
        }
    }

    fn load_directly(&mut self, name: ToolName, call_id: String) {
        let names = [name.clone()];
        let (added, skipped) = self.tools.load(&names);
        self.tools.list(&name);
        let state = &self.environment.state;
        self.tools.show(state);
        if let Err(error) = state.update::<Deferral>(|deferral| deferral.remember(&names)) {
            tracing::error!(%error, "cannot store that a tool was loaded");
        }
        tracing::info!(tool_name = %name, "loaded a deferred tool that was called by name");
        self.emit(EventKind::ToolLoaded {
            tool_name: name,
            call_id,
        });
        // An adapter that is started anew gets the tool with the new list.
        if self.environment.opens() == Opens::ByInjection {
            self.note_injected(added, skipped, DIRECT_CALL.to_owned());
        }
    }

    /// Whether a call loaded its own tool.
    pub(super) fn has_loaded_itself(&self, call: &BatchCall) -> bool {
        let run = self.session.run.as_ref();
        let record = run.and_then(|run| run.records.get(call.record));
        record.is_some_and(|record| record.loaded_by_call)
    }
}
