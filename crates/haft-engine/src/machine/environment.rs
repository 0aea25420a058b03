//! What a run is given and does not change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_catalog::Binding;
use haft_core::{
    Fingerprint, Model, ModelOptions, Policy, SessionState, ToolDefinition, Validator,
    ValidatorFactory, caught,
};
use haft_hydrate::{Hydrator, JsonSchemaFactory};
use serde_json::Value;

use crate::answer::AnswerContract;
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
    /// The same tools under the choice that holds until one of them has run, where there is one.
    pub(crate) first: Option<Binding>,
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
    pub(crate) feedback: Feedback,
    pub(crate) retry: Arc<dyn RetryPolicy>,
    pub(crate) on_loop: Option<Arc<LoopCallback>>,
    pub(crate) state: SessionState,
    pub(crate) deadline: Option<Moment>,
    pub(crate) spill: Option<Arc<SpillStore>>,
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
            binding,
            first: None,
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
            feedback: Feedback::new(),
            retry: Arc::new(Backoff::default()),
            on_loop: None,
            state: SessionState::default(),
            deadline: None,
            spill: None,
            output_validators: OutputValidators::default(),
        }
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
