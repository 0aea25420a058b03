//! From what the builder gathered to a machine and the means to drive it.

use std::sync::Arc;
use std::time::Duration;

use haft_catalog::prompt::Overrides;
use haft_catalog::{BindError, Binding, Catalog};
use haft_core::{Slice, ToolChoice, ToolRef};
use haft_hydrate::Hydrator;
use serde_json::Value;

use crate::callbacks::Callbacks;
use crate::disclosure::{Deferral, Picked, Toolset};
use crate::driver::Means;
use crate::feedback::FeedbackMemory;
use crate::machine::{Environment, Machine};
use crate::moment::Moment;
use crate::session::Session;
use crate::spill::{SpillStore, recall_tool_result};

use super::{Run, RunError};

/// A run ready to go.
pub(super) struct Prepared {
    pub(super) machine: Machine,
    pub(super) means: Means,
    pub(super) callbacks: Callbacks,
}

impl Run {
    pub(super) fn prepare(mut self, now: Moment, seed: u64) -> Result<Prepared, RunError> {
        self.check_limits(now)?;
        let mut session = std::mem::take(&mut self.session);
        let carried_out = match self.carry_out.as_slice() {
            [] => {
                session.verify()?;
                Vec::new()
            }
            // One that goes on knows how far it has come with them.
            _ if session.is_unfinished() => Vec::new(),
            call_ids => session.calls_without_output(call_ids)?,
        };
        self.answers.check(&session)?;
        self.environment.deadline = self.deadline_from(now);
        self.furnish(&mut session, now)?;
        let spill = self.prepare_spill(&session)?;
        self.open_tools(&session)?;
        let means = Means {
            model: Arc::clone(&self.environment.model),
            approver: self.approver,
            context: self.context,
            cancel: self.cancel,
            spill,
            on_checkpoint: self.on_checkpoint,
        };
        let environment = Arc::from(self.environment);
        let machine = if session.is_unfinished() {
            for item in self.input {
                self.answers.push_input(item);
            }
            Machine::resume(environment, session, self.answers, now, seed)?
        } else if !carried_out.is_empty() {
            Machine::carry_out(environment, session, carried_out, self.input, now, seed)
        } else {
            for item in self.input {
                session.push(item);
            }
            if session.conversation().is_empty() {
                return Err(RunError::NothingToAnswer);
            }
            session.verify()?;
            Machine::start(environment, session, now, seed)
        };
        Ok(Prepared {
            machine,
            means,
            callbacks: self.callbacks,
        })
    }

    fn check_limits(&self, now: Moment) -> Result<(), RunError> {
        if let Some(name) = self.environment.options.zero_limit() {
            return Err(RunError::ZeroLimit { name });
        }
        // The clock ran while the run was being built: what was a second then still counts.
        let too_close = now.plus(Duration::from_millis(900));
        match self.deadline_from(now) {
            Some(deadline) if deadline < too_close => Err(RunError::DeadlineTooClose),
            _ => Ok(()),
        }
    }

    /// When this leg of the run must be over: the earlier of the two ways to say so.
    fn deadline_from(&self, now: Moment) -> Option<Moment> {
        let limit = self.environment.options.deadline;
        let by_limit = limit.map(|limit| now.plus(limit));
        let by_date = self.deadline.map(Moment::from);
        by_limit.into_iter().chain(by_date).min()
    }

    /// Puts everything that the builder gathered into the environment.
    fn furnish(&mut self, session: &mut Session, now: Moment) -> Result<(), RunError> {
        if session.id.is_empty() {
            session.id = new_id("conv");
        }
        self.identity.run_id = match &session.run {
            Some(run) => run.run_id.clone(),
            None => new_id("run"),
        };
        self.identity.conversation_id.clone_from(&session.id);
        let environment = &mut self.environment;
        environment.context = Arc::new(self.identity.clone());
        environment.binding = bind(self.binding.take(), &self.tools, self.tool_choice.take())?;
        environment.hydrator = self.hydrator.take().unwrap_or_else(|| {
            if environment.options.repair {
                Hydrator::new().with_audited_repair()
            } else {
                Hydrator::new()
            }
        });
        environment.prompt = std::mem::take(&mut self.prompt).into_source();
        environment.answer = self.answer.take().transpose().map_err(RunError::Answer)?;
        environment.policies = vec![Arc::new(std::mem::take(&mut self.trust))];
        environment.policies.append(&mut self.policies);
        environment.has_approver = self.approver.is_some();
        environment.retry = match self.retry.take() {
            Some(policy) => policy,
            None => Arc::new(environment.options.retry),
        };
        for policy in &environment.policies {
            policy.register(&environment.state)?;
        }
        if let Some(source) = &environment.prompt {
            for policy in source.all_policies() {
                policy.register(&environment.state)?;
            }
            environment.feedback.extend(source.feedback());
        }
        register_memory(environment, &session.state, !self.loaded.is_empty())?;
        if !environment.feedback.is_empty() {
            let state = &environment.state;
            state.register::<FeedbackMemory>()?;
        }
        if !session.state.is_null() {
            environment.state.load(&session.state)?;
        }
        if !self.loaded.is_empty() {
            let loaded = std::mem::take(&mut self.loaded);
            environment.state.update::<Deferral>(|deferral| {
                deferral.remember(&loaded);
            })?;
        }
        if !environment.feedback.is_empty() {
            let feedback = environment.feedback.clone();
            environment.state.update::<FeedbackMemory>(|memory| {
                feedback.begin(memory, now.to_duration());
            })?;
        }
        Ok(())
    }

    /// Makes the list of tools that the run begins with, or goes on with.
    fn open_tools(&mut self, session: &Session) -> Result<(), RunError> {
        let environment = &mut self.environment;
        environment.first_choice = self.first_choice.take();
        let defers = environment.state.get::<Deferral>().is_ok();
        let shows = environment.showing.brief.is_some() || environment.recall.is_some();
        if !defers && !shows && environment.prompt.is_none() {
            let tools = Toolset::plain(environment.binding.clone());
            environment.tools = tools.chosen_first(environment.first_choice.as_ref())?;
            return Ok(());
        }
        if environment.showing.brief.is_some()
            && let Some(name) = environment.forced_tool()
        {
            let picked = environment.state.update::<Picked>(|picked| {
                picked.add(&name);
            });
            picked?;
        }
        let run = session.run.as_ref();
        let mut prompt = run.and_then(|run| run.prompt.clone());
        if prompt.is_none()
            && let Some(source) = &environment.prompt
        {
            let rendered = source.render(&environment.state)?;
            prompt = Some(source.frozen(&rendered, environment.loading()));
            environment.rendered = Some(rendered);
            environment.frozen.clone_from(&prompt);
        }
        let disclosed = run.map_or(&[][..], |run| &run.disclosed);
        environment.tools =
            environment.toolset(prompt.as_ref(), disclosed, session.conversation())?;
        Ok(())
    }

    /// Opens the place for long results: the one of the earlier leg, or a new one.
    fn prepare_spill(&mut self, session: &Session) -> Result<Option<Arc<SpillStore>>, RunError> {
        let environment = &mut self.environment;
        if environment.options.spill_bytes.is_none() {
            return Ok(None);
        }
        let earlier = session
            .run
            .as_ref()
            .and_then(|run| run.spill_directory.clone());
        let earlier = earlier.and_then(|directory| SpillStore::reopened(directory).ok());
        let mut store = match (earlier, &self.spill_directory) {
            _ if self.spills_to_memory => SpillStore::in_memory(),
            (Some(store), _) => store,
            (None, Some(directory)) => SpillStore::below(directory)?,
            (None, None) => SpillStore::temporary()?,
        };
        if self.keep_spill {
            store = store.keep();
        }
        let store = Arc::new(store);
        let recall = recall_tool_result(Arc::clone(&store)).map_err(BindError::from)?;
        environment.recall = Some(recall);
        environment.spill = Some(Arc::clone(&store));
        Ok(Some(store))
    }
}

/// Registers what the conversation has to remember of its tools: only where there is something, so that
/// a plain run's session stays plain.
fn register_memory(
    environment: &Environment,
    stored: &Value,
    has_loaded: bool,
) -> Result<(), RunError> {
    let is_stored = |name: &str| stored.get(name).is_some();
    let state = &environment.state;
    if has_loaded || environment.may_defer() || is_stored(Deferral::NAME) {
        state.register::<Deferral>()?;
    }
    if environment.showing.brief.is_some() || is_stored(Picked::NAME) {
        state.register::<Picked>()?;
    }
    if environment.prompt.is_some() || is_stored(Overrides::NAME) {
        state.register::<Overrides>()?;
    }
    Ok(())
}

fn bind(
    binding: Option<Binding>,
    tools: &[ToolRef],
    choice: Option<ToolChoice>,
) -> Result<Binding, RunError> {
    let binding = match binding {
        None => {
            let builder = Catalog::new().snapshot().bind().without_tools();
            let builder = builder.with_tools(tools.iter().cloned());
            return Ok(builder.tool_choice(choice.unwrap_or_default()).build()?);
        }
        Some(binding) if tools.is_empty() => binding,
        Some(binding) => {
            let appended = binding.with_appended(tools.iter().cloned());
            if let Some(error) = appended.rejected.into_iter().next() {
                return Err(error.into());
            }
            appended.binding
        }
    };
    Ok(match choice {
        Some(choice) => binding.with_choice(choice)?,
        None => binding,
    })
}

fn new_id(prefix: &str) -> String {
    format!("{prefix}_{:032x}", fastrand::u128(..))
}
