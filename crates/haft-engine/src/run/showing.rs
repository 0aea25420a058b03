//! What a run shows to its model, and when.

use std::sync::Arc;

use haft_catalog::BriefSchema;
use haft_catalog::prompt::{Collect, Overrides, Params, Prompt, Visibility};
use haft_core::{Defer, ToolName};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::disclosure::{PromptSource, ToolFinder};

use super::Run;

/// What was said about the prompt.
#[derive(Default)]
pub(super) struct PromptSettings {
    prompt: Option<Prompt>,
    params: Params,
    passed: Overrides,
    collect: Collect,
}

impl PromptSettings {
    pub(super) fn into_source(self) -> Option<Arc<PromptSource>> {
        let prompt = self.prompt?;
        Some(Arc::new(PromptSource {
            prompt,
            params: self.params,
            passed: self.passed,
            collect: self.collect,
        }))
    }
}

impl Run {
    /// The prompt: its text is what the model is told before everything else, its sections bring their
    /// tools. [`instructions`](Self::instructions) come behind it.
    pub fn prompt<T>(mut self, prompt: &Prompt<T>) -> Self {
        self.prompt.prompt = Some(prompt.untyped());
        self
    }

    /// The same, and demands an answer of the prompt's type.
    pub fn typed_prompt<T: DeserializeOwned + JsonSchema>(self, prompt: &Prompt<T>) -> Self {
        self.prompt(prompt).answer_as::<T>()
    }

    /// What is put into the placeholders of the prompt.
    pub fn params(mut self, params: Params) -> Self {
        self.prompt.params = params;
        self
    }

    /// What is put into one of them.
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.prompt.params.set(name, value);
        self
    }

    /// How a section is shown in this run, whatever its author and the conversation say.
    pub fn visibility(mut self, path: impl Into<String>, visibility: Visibility) -> Self {
        self.prompt.passed.set(path, visibility);
        self
    }

    /// Whose tools come with a section that the model reads.
    pub fn collect(mut self, collect: Collect) -> Self {
        self.prompt.collect = collect;
        self
    }

    /// Shows tools in one line each until the model picks them with `pick_tools` or calls them.
    ///
    /// Good for some dozens of tools with long descriptions. A pick changes entries in the middle of
    /// the list, which costs a provider's cache; above that [`defer`](Self::defer) is the better way.
    pub fn brief_until_picked(self) -> Self {
        self.brief_schema(BriefSchema::Drop)
    }

    /// The same, and says what is left of the parameters.
    pub fn brief_schema(mut self, schema: BriefSchema) -> Self {
        self.environment.showing.brief = Some(schema);
        self
    }

    /// Keeps picks when the run ends with its answer, for the next run of the conversation.
    pub fn keep_picks(mut self) -> Self {
        self.environment.showing.keeps_picks = true;
        self
    }

    /// Whether tools are held back until the model finds them with `search_tools`: where there are too
    /// many of them, if not said. What a tool says about itself wins.
    pub fn defer(mut self, defer: Defer) -> Self {
        self.environment.options.defer = defer;
        self
    }

    /// Who finds tools that are held back; by words, in this process, if not said.
    pub fn finder(mut self, finder: impl ToolFinder) -> Self {
        self.environment.showing.finder = Some(Arc::new(finder));
        self
    }

    /// Searches in this process, even if the model's provider has a search of its own: for hosts that tell
    /// of searches.
    pub fn search_here(mut self) -> Self {
        self.environment.showing.searches_here = true;
        self
    }

    /// What the model reads behind the description of `search_tools`: what there is to be found.
    pub fn search_note(mut self, note: impl Into<Arc<str>>) -> Self {
        self.environment.showing.search_note = Some(note.into());
        self
    }

    /// Tools that the conversation has loaded before, in order: for hosts that keep conversations and
    /// no sessions. They come behind all others, also those that would not be held back now.
    pub fn loaded(mut self, tools: impl IntoIterator<Item = ToolName>) -> Self {
        self.loaded.extend(tools);
        self
    }

    /// Starts the model anew for new tools, even if it could take them in a running conversation.
    pub fn force_restart(mut self) -> Self {
        self.environment.options.force_restart = true;
        self
    }

    /// How often the model is started anew for new tools; 10 times if not said.
    pub fn max_restarts(mut self, restarts: u32) -> Self {
        self.environment.options.max_restarts = restarts;
        self
    }
}
