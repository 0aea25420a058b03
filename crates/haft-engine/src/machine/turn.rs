//! One request to the model, from its making to the end of its answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haft_catalog::Binding;
use haft_core::{
    Assembly, Item, ItemKind, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ToolChoice,
    Usage,
};

use crate::answer::AnswerContract;
use crate::event::EventKind;
use crate::outcome::{FailedReason, IncompleteReason};
use crate::retry::FailedAttempt;
use crate::session::LastTurn;

use super::{Effect, Machine, Phase, Took, plain_turn, repeat};

impl Machine {
    /// Asks the model, if the limits leave room for it.
    pub(super) fn begin_request(&mut self) {
        if self.deadline_passed() {
            return self.expire();
        }
        if let Some(message) = self.exceeded_budget() {
            return self.end_by_budget(message);
        }
        if self.has_no_room() {
            return self.end_incomplete(
                IncompleteReason::MaxOutputTokens,
                "No output tokens are left for another answer.",
            );
        }
        for item in std::mem::take(&mut self.progress().queued) {
            self.add_item(item);
        }
        self.effects.push_back(Effect::Checkpoint);
        self.attempt = 1;
        self.phase = Phase::Due;
    }

    /// Sends the request, for the first time or again.
    pub(super) fn send(&mut self, took: Took) {
        self.request += 1;
        self.progress().usage.requests += 1;
        let turn = self.progress().usage.requests;
        let body = Box::new(self.render());
        let tool_choice = body.tool_choice.clone();
        self.emit(EventKind::TurnStarted { turn, tool_choice });
        let request = self.request;
        self.effects.push_back(Effect::Send { request, body });
        self.phase = Phase::Requesting {
            assembly: Assembly::default(),
            call_ids: BTreeMap::new(),
            answered: false,
            took,
            until: self.now.plus(self.environment.options.request_timeout),
        };
    }

    fn render(&mut self) -> ModelRequest {
        let environment = Arc::clone(&self.environment);
        let tool_choice = self.choice();
        let format = environment.answer.as_ref();
        let capabilities = environment.model.capabilities();
        let takes_schema = |choice: &Option<ToolChoice>| {
            let calls_nothing = matches!(choice, None | Some(ToolChoice::None));
            capabilities.structured_output
                && (capabilities.structured_output_with_tools || calls_nothing)
        };
        let native = takes_schema(&tool_choice);
        // What was asked for in words stays in the prompt when the tools are withdrawn: providers cache
        // its beginning, and servers that constrain the output do not show the schema to the model.
        let usual = self.usual_choice();
        let demand = format.filter(|_| !takes_schema(&usual));
        let said = [
            self.instructions.as_deref().map(str::to_owned),
            demand.map(AnswerContract::instruction),
            // For this request only, and in front: not every server takes the host's words later.
            self.reminder(tool_choice.as_ref()),
        ];
        let said: Vec<_> = said.into_iter().flatten().collect();
        let instructions = match (&self.instructions, said.len()) {
            (_, 0) => None,
            (Some(text), 1) => Some(Arc::clone(text)),
            _ => Some(said.join("\n\n").into()),
        };
        let mut options = environment.model_options.clone();
        options.max_output_tokens = self.output_room();
        let progress = self.progress();
        if progress.rounds > 0 || progress.last_turn.is_some() {
            // Like every other demand, it holds until a tool has run.
            options.provider.choice = None;
        }
        let output_format = format
            .filter(|_| native)
            .map(|contract| contract.format().clone());
        let mut conversation = self.session.conversation.clone();
        // A model that is kept from calling only by having no tools imitates the calls that it reads.
        let is_plain = capabilities.repeats_calls && !capabilities.none_choice;
        if is_plain && self.progress().last_turn.is_some() {
            return ModelRequest {
                instructions,
                conversation: plain_turn::without_calls(&conversation),
                output_format,
                structured_output: format.is_some(),
                options,
                ..ModelRequest::default()
            };
        }
        if self.progress().is_nudged {
            let nudge = match format {
                None => repeat::NUDGE,
                Some(_) => repeat::NUDGE_TO_FORM,
            };
            conversation.push(Item::user(nudge));
        }
        ModelRequest {
            instructions,
            conversation,
            tools: self.binding().specs().clone(),
            parallel_tool_calls: environment
                .parallel_tool_calls
                .filter(|_| tool_choice.is_some()),
            tool_choice,
            output_format,
            structured_output: format.is_some(),
            options,
        }
    }

    /// The choice for the next request; none when no tools are offered.
    pub(super) fn choice(&mut self) -> Option<ToolChoice> {
        let progress = self.progress();
        // An answer that missed its form is asked for again by itself: a server that cannot constrain
        // its output beside tools can then.
        if progress.last_turn.is_some() || progress.invalid_outputs > 0 {
            return (!self.tools.full().is_empty()).then_some(ToolChoice::None);
        }
        self.usual_choice()
    }

    /// The choice as long as the tools are not withdrawn.
    fn usual_choice(&mut self) -> Option<ToolChoice> {
        let ran = if self.progress().tool_ran {
            haft_catalog::Progress::ToolRan
        } else {
            haft_catalog::Progress::NothingRan
        };
        self.binding().tool_choice(ran)
    }

    /// The tools, as far as the model may call them now.
    pub(super) fn binding(&self) -> Binding {
        let has_run = self.session.run.as_ref().is_some_and(|run| run.tool_ran);
        self.tools.binding(has_run).clone()
    }

    /// What to tell a model that just broke the choice.
    fn reminder(&mut self, choice: Option<&ToolChoice>) -> Option<String> {
        if self.progress().choice_broken == 0 {
            return None;
        }
        Some(match choice? {
            ToolChoice::Function(name) => format!("Call the tool '{name}' now."),
            choice if choice.demands_call() => "Call one of the tools now.".into(),
            _ => "Answer in text. Tools cannot be called now.".into(),
        })
    }

    pub(super) fn model_event(&mut self, mut event: ModelEvent) {
        let Phase::Requesting {
            assembly,
            call_ids,
            answered,
            ..
        } = &mut self.phase
        else {
            return;
        };
        *answered = true;
        match &mut event {
            ModelEvent::ItemStarted {
                index,
                kind: ItemKind::FunctionCall { call_id, .. },
                ..
            } => {
                *call_id = self.session.call_ids.assign(Some(call_id));
                call_ids.insert(*index, call_id.clone());
            }
            ModelEvent::ItemDone {
                index,
                item: Item::FunctionCall(call),
            } => {
                call.call_id = match call_ids.remove(index) {
                    Some(id) => id,
                    None => self.session.call_ids.assign(Some(&call.call_id)),
                };
            }
            _ => {}
        }
        let told = told(&event);
        assembly.add(event);
        if let Some(kind) = told {
            return self.emit(kind);
        }
        if let Some(response) = assembly.take_finished() {
            self.effects.push_back(Effect::Abandon);
            let usage = response.usage.unwrap_or_default();
            // The request itself was counted when it was sent.
            let usage = Usage {
                requests: 0,
                ..usage
            };
            self.progress().usage += usage;
            self.emit(EventKind::AnswerFinished {
                finish: response.finish,
                usage: response.usage,
                model: response.model.clone(),
                response_id: response.response_id.clone(),
            });
            self.judge(response);
        }
    }

    pub(super) fn model_failed(&mut self, error: ModelError) {
        let Phase::Requesting {
            answered,
            mut took,
            until,
            ..
        } = self.phase
        else {
            return;
        };
        let left = until.since(self.now);
        let spent = self
            .environment
            .options
            .request_timeout
            .saturating_sub(left);
        took.spent = took.spent.saturating_add(spent);
        self.effects.push_back(Effect::Abandon);
        let delay = (!answered && error.kind.is_retryable())
            .then(|| self.delay(&error, took))
            .flatten();
        let Some(delay) = delay else {
            if self.progress().last_turn == Some(LastTurn::Loop) {
                // The last answer is a favour: the loop is why the run ends.
                return self.end_at(LastTurn::Loop);
            }
            let attempts = self.attempt;
            let message = match attempts {
                1 => error.to_string(),
                _ => format!("{error} (after {attempts} attempts)"),
            };
            return self.end_failed(FailedReason::Model { error, attempts }, message);
        };
        self.emit(EventKind::RequestRetried {
            error: error.to_string(),
            error_kind: error.kind,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        });
        self.attempt += 1;
        self.phase = Phase::Backoff {
            until: self.now.plus(delay),
            took: Took {
                waited: took.waited.saturating_add(delay),
                ..took
            },
        };
    }

    /// How long to wait before the request is repeated; none if it is not.
    fn delay(&mut self, error: &ModelError, took: Took) -> Option<Duration> {
        let random = self.random.f64();
        let attempt = FailedAttempt {
            retry: self.attempt,
            error,
            waited: took.waited,
            spent: took.spent,
            remaining: self
                .environment
                .deadline
                .map(|deadline| deadline.since(self.now)),
            random,
        };
        let retry = Arc::clone(&self.environment.retry);
        haft_core::caught(|| retry.delay(&attempt)).unwrap_or(None)
    }

    /// An answer that cannot be used at all.
    pub(super) fn broken_answer(&mut self, words: &str) {
        let error = ModelError::new(ModelErrorKind::Protocol, words);
        let attempts = self.attempt;
        let message = error.to_string();
        self.end_failed(FailedReason::Model { error, attempts }, message);
    }
}

/// What those who watch are told of a piece of an answer.
fn told(event: &ModelEvent) -> Option<EventKind> {
    Some(match event.clone() {
        ModelEvent::Started { .. } => EventKind::AnswerStarted,
        ModelEvent::ItemStarted { index, id, kind } => EventKind::ItemStarted {
            index,
            id,
            item: kind,
        },
        ModelEvent::TextDelta { index, text } => EventKind::TextDelta { index, text },
        ModelEvent::RefusalDelta { index, text } => EventKind::RefusalDelta { index, text },
        ModelEvent::ReasoningDelta { index, text } => EventKind::ReasoningDelta { index, text },
        ModelEvent::ArgumentsDelta { index, text } => EventKind::ArgumentsDelta { index, text },
        ModelEvent::SummaryDelta { index, part, text } => {
            EventKind::SummaryDelta { index, part, text }
        }
        ModelEvent::ProviderEvent { index, event: body } => {
            EventKind::ProviderEvent { index, body }
        }
        ModelEvent::ItemDone { index, item } => EventKind::ItemFinished { index, item },
        _ => return None,
    })
}
