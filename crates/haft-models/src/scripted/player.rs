//! A script being played: which step a request takes, and what was not as the script says.

use std::sync::{Mutex, MutexGuard, PoisonError};

use haft_core::{FinishReason, Item, ModelError, ModelErrorKind, Usage, cut};

use super::expect::in_backticks;
use super::pieces::Repeat;
use super::script::Script;
use super::step::Step;
use super::view::RequestView;

/// The code of the error for a request that the script does not foresee.
pub(crate) const MISMATCH: &str = "script_mismatch";

/// A script being played.
#[derive(Debug)]
pub(crate) struct Player {
    script: Script,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often each step was taken.
    taken: Vec<u32>,
    requests: usize,
    calls: usize,
    problems: Vec<String>,
}

/// What a step answers to one request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Which request it answers, from 1.
    pub(crate) number: usize,
    pub(crate) items: Vec<Item>,
    pub(crate) finish: FinishReason,
    pub(crate) usage: Option<Usage>,
    pub(crate) step: Step,
}

impl Player {
    pub(crate) fn new(script: Script) -> Self {
        let state = State {
            taken: vec![0; script.steps().len()],
            ..State::default()
        };
        Self {
            script,
            state: Mutex::new(state),
        }
    }

    /// The answer to a request, or why the script has none.
    pub(crate) fn play(&self, view: &RequestView) -> Result<Answer, ModelError> {
        let mut state = self.state();
        state.requests += 1;
        let number = state.requests;
        let Some((index, step)) = self.choose(&state, view) else {
            let problem = self.unforeseen(&state, view);
            return Err(state.fail(problem));
        };
        state.taken[index] += 1;
        let unmet = step.expect.as_ref().map(|expect| expect.unmet(view));
        let unmet = unmet.unwrap_or_default();
        if !unmet.is_empty() {
            let problem = format!(
                "request {number}, step {}: {}",
                title(index, step),
                unmet.join("; ")
            );
            return Err(state.fail(problem));
        }
        let items = step.answer(|| {
            state.calls += 1;
            format!("call_{}", state.calls)
        });
        Ok(Answer {
            number,
            items,
            finish: step.finish.unwrap_or(FinishReason::Normal),
            usage: step.usage.tokens(),
            step: step.clone(),
        })
    }

    fn choose(&self, state: &State, view: &RequestView) -> Option<(usize, &Step)> {
        let mut steps = self.script.steps().iter().enumerate();
        steps.find(|(index, step)| {
            let is_for = |when: &super::expect::Expect| when.unmet(view).is_empty();
            left(step, state.taken[*index]) && step.when.as_ref().is_none_or(is_for)
        })
    }

    fn unforeseen(&self, state: &State, view: &RequestView) -> String {
        let number = state.requests;
        let user = view.user.as_deref().map_or("none".to_owned(), |text| {
            let text = cut(text);
            format!("`{text}`")
        });
        let tools = in_backticks(view.tools.iter().map(String::as_str));
        let received = format!("received the user text {user} and the tools {tools}");
        let steps = self.script.steps().iter().enumerate();
        let waiting: Vec<_> = steps
            .filter(|(index, step)| left(step, state.taken[*index]))
            .map(|(index, step)| {
                let when = step.when.as_ref().map(|when| when.unmet(view));
                let unmet = when.unwrap_or_default().join("; ");
                format!("step {}: {unmet}", title(index, step))
            })
            .collect();
        if waiting.is_empty() {
            let steps = self.script.steps().len();
            return format!(
                "request {number} came after the last of {steps} steps, {received}: \
                 add a step, or let one repeat"
            );
        }
        let waiting = waiting.join("; ");
        format!("request {number} is for none of the steps left, {received}; {waiting}")
    }

    /// A problem that the script itself does not see, remembered.
    #[cfg(feature = "testing")]
    pub(crate) fn fail(&self, problem: String) -> ModelError {
        self.state().fail(problem)
    }

    /// Whether everything went as the script says.
    pub(crate) fn verify(&self) -> Result<(), ScriptFailure> {
        let state = self.state();
        let mut problems = state.problems.clone();
        for (index, step) in self.script.steps().iter().enumerate() {
            let taken = state.taken[index];
            if let Repeat::Times(times) = step.repeat
                && taken < times
            {
                let step = title(index, step);
                problems.push(format!("step {step} was taken {taken} of {times} times"));
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(ScriptFailure { problems })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way, so what a poisoned lock holds is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fail(&mut self, problem: String) -> ModelError {
        self.problems.push(problem.clone());
        ModelError::new(ModelErrorKind::InvalidRequest, problem).with_code(MISMATCH)
    }
}

fn left(step: &Step, taken: u32) -> bool {
    match step.repeat {
        Repeat::Forever => true,
        Repeat::Times(times) => taken < times,
    }
}

fn title(index: usize, step: &Step) -> String {
    match &step.name {
        Some(name) => format!("{} (`{name}`)", index + 1),
        None => (index + 1).to_string(),
    }
}

/// Not everything went as the script says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the script was not kept: {}", problems.join("; "))]
pub struct ScriptFailure {
    /// Everything that was otherwise, in words.
    pub problems: Vec<String>,
}
