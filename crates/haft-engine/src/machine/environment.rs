//! What a run is given and does not change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_catalog::prompt::Rendered;
use haft_catalog::{BindError, Binding};
use haft_core::{
    Conversation, Defer, Fingerprint, Item, Loading, Model, ModelOptions, Policy, SessionState,
    ToolChoice, ToolDefinition, ToolName, ToolObject, Validator, ValidatorFactory, caught,
};
use haft_hydrate::{Hydrator, JsonSchemaFactory};
use serde_json::Value;

use crate::answer::AnswerContract;
use crate::disclosure::{Deferral, FrozenPrompt, Opens, Parts, PromptSource, Showing, Toolset};
use crate::event::RunContext;
use crate::executor::Executors;
use crate::feedback::Feedback;
use crate::loop_report::{LoopAction, LoopReport};
use crate::moment::Moment;
use crate::options::LoopOptions;
use crate::retry::{Backoff, RetryPolicy};
use crate::spill::SpillStore;

/// Everything around a run: who answers, which tools there are, what is allowed.
///
/// It is not part of the session: whoever takes a session up again brings it along.
pub(crate) struct Environment {
    pub(crate) context: Arc<RunContext>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) binding: Binding,
    /// The choice that holds until a tool has run, where there is one.
    pub(crate) first_choice: Option<ToolChoice>,
    /// The tools as the run begins with them.
    pub(crate) tools: Toolset,
    pub(crate) showing: Showing,
    pub(crate) prompt: Option<Arc<PromptSource>>,
    /// The prompt as the run begins with it; none where it goes on.
    pub(crate) rendered: Option<Rendered>,
    /// The same, for whoever goes on with the run.
    pub(crate) frozen: Option<FrozenPrompt>,
    pub(crate) hydrator: Hydrator,
    pub(crate) instructions: Option<Arc<str>>,
    pub(crate) options: LoopOptions,
    pub(crate) model_options: ModelOptions,
    pub(crate) parallel_tool_calls: Option<bool>,
    /// Calls for the caller are handed over even if their arguments are refused.
    pub(crate) hands_over_refused: bool,
    /// The session is stored before calls begin.
    pub(crate) is_journaled: bool,
    pub(crate) answer: Option<AnswerContract>,
    pub(crate) policies: Vec<Arc<dyn Policy>>,
    pub(crate) has_approver: bool,
    pub(crate) executors: Executors,
    /// How the words of a call that came to nothing are written for the model.
    pub(crate) error_words: Option<fn(&str) -> String>,
    pub(crate) feedback: Feedback,
    pub(crate) retry: Arc<dyn RetryPolicy>,
    pub(crate) on_loop: Option<Arc<LoopCallback>>,
    pub(crate) state: SessionState,
    pub(crate) deadline: Option<Moment>,
    pub(crate) spill: Option<Arc<SpillStore>>,
    /// The tool that reads what was put away.
    pub(crate) recall: Option<Arc<dyn ToolObject>>,
    pub(crate) output_validators: OutputValidators,
}

/// Decides what is done about a loop.
pub(crate) type LoopCallback = dyn Fn(&LoopReport) -> LoopAction + Send + Sync;

impl Environment {
    /// A run of this model with these tools, everything else as it is by default.
    pub(crate) fn new(model: Arc<dyn Model>, binding: Binding) -> Self {
        Self {
            context: Arc::default(),
            model,
            tools: Toolset::plain(binding.clone()),
            binding,
            first_choice: None,
            showing: Showing::default(),
            prompt: None,
            rendered: None,
            frozen: None,
            hydrator: Hydrator::new(),
            instructions: None,
            options: LoopOptions::default(),
            model_options: ModelOptions::default(),
            parallel_tool_calls: None,
            hands_over_refused: false,
            is_journaled: false,
            answer: None,
            policies: vec![Arc::new(haft_core::TrustPolicy::default())],
            has_approver: false,
            executors: Executors::default(),
            error_words: None,
            feedback: Feedback::new(),
            retry: Arc::new(Backoff::default()),
            on_loop: None,
            state: SessionState::default(),
            deadline: None,
            spill: None,
            recall: None,
            output_validators: OutputValidators::default(),
        }
    }
}

impl Environment {
    /// How tools that are asked for reach the model.
    pub(crate) fn opens(&self) -> Opens {
        let is_dynamic = self.model.capabilities().supports_dynamic_tools;
        if is_dynamic && !self.options.force_restart {
            Opens::ByInjection
        } else {
            Opens::ByRestart
        }
    }

    /// How the model gets to see tools that are held back: from the list, unless its provider has a way
    /// of its own.
    pub(crate) fn loading(&self) -> Loading {
        let capabilities = self.model.capabilities();
        if capabilities.native_deferred_loading && !self.showing.searches_here {
            Loading::Searched
        } else if capabilities.tool_references && self.opens() == Opens::ByInjection {
            Loading::Referenced
        } else {
            Loading::Listed
        }
    }

    /// Whether tools may be held back.
    pub(crate) fn may_defer(&self) -> bool {
        let defers =
            |defer: Defer| move |tool: &Arc<ToolDefinition>| tool.annotations().defer == defer;
        self.binding.tools_for_llm().any(defers(Defer::Always))
            || match self.options.defer {
                Defer::Always => !self.binding.is_empty(),
                Defer::Auto => self.binding.len() > LoopOptions::FEW_TOOLS,
                Defer::Never => false,
            }
    }

    /// The tool that has to be called first, if it is named.
    pub(crate) fn forced_tool(&self) -> Option<ToolName> {
        let choices = [self.first_choice.as_ref(), Some(self.binding.choice())];
        choices
            .into_iter()
            .flatten()
            .find_map(|choice| match choice {
                ToolChoice::Function(name) => ToolName::new(name).ok(),
                _ => None,
            })
    }

    /// What the model is told before everything else: the prompt, then the run's own words.
    pub(crate) fn instructions_with(&self, prompt: &FrozenPrompt) -> Arc<str> {
        match &self.instructions {
            None => Arc::clone(&prompt.text),
            Some(words) => format!("{}\n\n{words}", prompt.text).into(),
        }
    }

    /// What is asked before a call of this tool, in order.
    pub(crate) fn policies_for(&self, tool: &ToolDefinition) -> Vec<Arc<dyn Policy>> {
        let mut policies = match &self.prompt {
            Some(source) => source.policies(tool),
            None => Vec::new(),
        };
        policies.extend(self.policies.iter().cloned());
        policies
    }

    /// The tools with a prompt that stands like this, and a conversation that has come so far. What was
    /// `disclosed` in this run comes last, in that order.
    pub(crate) fn toolset(
        &self,
        prompt: Option<&FrozenPrompt>,
        disclosed: &[ToolName],
        conversation: &Conversation,
    ) -> Result<Toolset, BindError> {
        let find = |name: &ToolName| self.prompt.as_ref().and_then(|source| source.tool(name));
        let shown = prompt.map_or(&[][..], |prompt| &prompt.tools);
        let reads = prompt.is_some_and(|prompt| prompt.offers_read_section);
        let read_section = match &self.prompt {
            Some(source) if reads => Some(source.read_section(self.opens())?),
            _ => None,
        };
        let deferral = self.state.get::<Deferral>();
        let mut loaded = deferral.map(|it| it.loaded.clone()).unwrap_or_default();
        loaded.retain(|name| !disclosed.contains(name));
        let unread = prompt.map_or(&[][..], |prompt| &prompt.unread);
        let is_referenced = |name: &ToolName| conversation.items().any(|item| refers(item, name));
        let unreferenced = loaded.iter().filter(|name| !is_referenced(name));
        let mut tools = Toolset::open(Parts {
            binding: &self.binding,
            of_sections: shown.iter().filter_map(find).collect(),
            unread: unread.iter().filter_map(find).collect(),
            read_section,
            recall: self.recall.clone(),
            showing: &self.showing,
            options: &self.options,
            context_tokens: self.model.capabilities().context_tokens,
            first_choice: self.first_choice.as_ref(),
            loading: self.loading(),
            unreferenced: unreferenced.cloned().collect(),
            loaded,
            state: &self.state,
        })?;
        for name in disclosed {
            if let Some(tool) = find(name) {
                tools.inject(vec![tool]);
                continue;
            }
            tools.load(std::slice::from_ref(name));
            if !is_referenced(name) {
                tools.list(name);
            }
        }
        tools.show(&self.state);
        Ok(tools)
    }
}

/// Whether an item is an output by which the model got to know this tool.
fn refers(item: &Item, name: &ToolName) -> bool {
    match item {
        Item::FunctionCallOutput(output) => {
            let mut names = output.tool_references();
            names.any(|one| one == name.as_str())
        }
        _ => false,
    }
}

/// The compiled output schemas of the run's tools, each compiled when first needed.
#[derive(Default)]
pub(crate) struct OutputValidators(Mutex<HashMap<Fingerprint, Compiled>>);

type Compiled = Result<Arc<dyn Validator>, String>;

impl OutputValidators {
    /// What is wrong with a result by its tool's output schema; nothing where there is none.
    pub(crate) fn errors(&self, definition: &ToolDefinition, value: Option<&Value>) -> Vec<String> {
        let Some(schema) = definition.output_schema() else {
            return Vec::new();
        };
        let Some(value) = value else {
            return vec!["there is no value".into()];
        };
        match self.compiled(definition, schema) {
            Err(reason) => vec![reason],
            Ok(validator) => match caught(|| validator.validate(value)) {
                Ok(errors) => errors
                    .into_iter()
                    .take(8)
                    .map(|error| error.message)
                    .collect(),
                Err(panic) => vec![format!("it could not be checked: {panic}")],
            },
        }
    }

    fn compiled(&self, definition: &ToolDefinition, schema: &Value) -> Compiled {
        // Nothing is half-inserted if compiling panics.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(definition.fingerprint().clone())
            .or_insert_with(|| {
                let compiled = caught(|| JsonSchemaFactory.compile(schema));
                match compiled {
                    Ok(Ok(validator)) => Ok(validator),
                    Ok(Err(error)) => Err(format!("its output schema cannot be used: {error}")),
                    Err(panic) => Err(format!("its output schema cannot be used: {panic}")),
                }
            })
            .clone()
    }
}
