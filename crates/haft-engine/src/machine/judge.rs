//! What an answer means for the run.

use haft_core::{
    ContentPart, FinishReason, FunctionCall, HydrationError, Item, ItemStatus, ModelResponse, Role,
    ToolChoice, is_provider_item, open_provider_calls,
};
use serde_json::Value;

use crate::answer::{AnswerContract, OnMismatch};
use crate::event::EventKind;
use crate::outcome::{End, FailedReason, IncompleteReason};
use crate::session::LastTurn;
use crate::texts::NotExecuted;

use super::Machine;

impl Machine {
    /// Takes a whole answer in and decides how the run goes on.
    pub(super) fn judge(&mut self, mut response: ModelResponse) {
        response.items.retain(is_of_a_model);
        self.progress().is_nudged = false;
        if response.finish == FinishReason::Error {
            return self.broken_answer("the answer broke off");
        }
        if self.deadline_passed() {
            self.keep_unexecuted(response, NotExecuted::Deadline);
            return self.expire();
        }
        if let Some(message) = self.exceeded_budget() {
            self.keep_unexecuted(response, NotExecuted::Budget);
            return self.end_by_budget(message);
        }
        if response.finish == FinishReason::ContentFilter {
            self.keep_unexecuted(response, NotExecuted::ContentFilter);
            return self.end_incomplete(
                IncompleteReason::ContentFilter,
                "The provider's content filter cut the answer off.",
            );
        }
        if self.is_cut_short(&response) {
            self.keep_unexecuted(response, NotExecuted::OutputLimit);
            return self.end_incomplete(
                IncompleteReason::MaxOutputTokens,
                "The answer reached its token limit.",
            );
        }
        if let Some(last) = self.progress().last_turn {
            return self.take_last_answer(response, last);
        }
        if self.progress().invalid_outputs > 0 {
            // Calls were withdrawn; an answer of nothing else misses the form as any other.
            return self.take_answer(without_calls(response));
        }
        if !self.follows_choice(&response) {
            return self.reject_choice(&response);
        }
        self.progress().choice_broken = 0;
        if calls(&response).next().is_none() {
            let open: Vec<_> = open_provider_calls(response.items.iter())
                .into_iter()
                .cloned()
                .collect();
            if open.is_empty() {
                return self.take_answer(response);
            }
            self.keep(response);
            return self.wait_for_provider_calls(open);
        }
        let (rounds, limit) = (self.progress().rounds, self.environment.options.max_rounds);
        if rounds >= limit {
            self.keep_unexecuted(response, NotExecuted::RoundLimit);
            return self.reach_limit(LastTurn::Rounds);
        }
        if let Some(response) = self.without_repeated_calls(response) {
            self.begin_batch(response);
        }
    }

    /// Whether the token limit leaves nothing of this answer to go on with: it fell into text or
    /// into a call for the caller, or no room is left for another answer.
    fn is_cut_short(&mut self, response: &ModelResponse) -> bool {
        if response.finish != FinishReason::Length {
            return false;
        }
        let Some(Item::FunctionCall(last)) = response.items.last() else {
            return true;
        };
        let for_caller = is_cut(last) && self.is_for_caller(&last.name);
        for_caller || self.has_no_room()
    }

    fn is_for_caller(&self, name: &str) -> bool {
        match self.binding().admit(name) {
            Ok(tool) => {
                !tool.tool().runs_here()
                    && self.environment.executors.find(tool.definition()).is_none()
            }
            Err(_) => false,
        }
    }

    fn follows_choice(&mut self, response: &ModelResponse) -> bool {
        let mut calls = calls(response);
        // The provider's own tools fulfil a demand for any tool.
        let mut items = response.items.iter();
        let has_own = items.any(|item| is_provider_item(item.kind()));
        match self.choice() {
            None | Some(ToolChoice::Auto) => true,
            Some(ToolChoice::None) => calls.next().is_none(),
            Some(ToolChoice::Required) => has_own || calls.next().is_some(),
            Some(ToolChoice::Function(name)) => calls.any(|call| call.name == name),
            Some(ToolChoice::Allowed(allowed)) => match allowed.mode {
                haft_core::AllowedMode::Auto => true,
                haft_core::AllowedMode::Required => has_own || calls.next().is_some(),
                haft_core::AllowedMode::None => calls.next().is_none(),
            },
        }
    }

    /// One more try; then it is the model's fault.
    fn reject_choice(&mut self, response: &ModelResponse) {
        // Calls that were forbidden do not matter where there is an answer beside them.
        let demands = self.choice().is_some_and(|choice| choice.demands_call());
        let has_text = response.items.iter().any(|item| !item.text().is_empty());
        if !demands && has_text {
            self.emit(EventKind::AnswerDiscarded {
                reason: "its calls break `tool_choice`; its text is used".into(),
            });
            let answer = without_calls(response.clone());
            return self.take_answer(answer);
        }
        self.emit(EventKind::AnswerDiscarded {
            reason: "it does not follow `tool_choice`".into(),
        });
        self.progress().choice_broken += 1;
        if self.progress().choice_broken <= 1 {
            return self.begin_request();
        }
        let message = if demands {
            "The model did not call the tool that `tool_choice` demands."
        } else {
            "The model called tools although `tool_choice` forbids it."
        };
        self.end_failed(FailedReason::ToolChoiceNotFollowed, message);
    }

    /// The answer after the tools were withdrawn.
    fn take_last_answer(&mut self, response: ModelResponse, last: LastTurn) {
        let answer = without_calls(response);
        match last {
            LastTurn::ForbiddenCalls => self.take_answer(answer),
            LastTurn::Rounds | LastTurn::ToolCalls | LastTurn::Loop => {
                let read = self.read_answer(answer);
                self.answer.output = read.and_then(Result::ok);
                self.end_at(last);
            }
        }
    }

    /// A cap was reached: one last request without tools, if the run grants it.
    pub(super) fn reach_limit(&mut self, last: LastTurn) {
        if self.environment.options.final_turn {
            self.progress().last_turn = Some(last);
            self.begin_request();
        } else {
            self.end_at(last);
        }
    }

    pub(super) fn end_at(&mut self, last: LastTurn) {
        let options = &self.environment.options;
        match last {
            LastTurn::ToolCalls => {
                let limit = options.max_tool_calls.unwrap_or_default();
                let message = format!("Budget exceeded: tool_calls {} > {limit}", limit + 1);
                self.end_incomplete(IncompleteReason::MaxToolCalls, message);
            }
            LastTurn::Loop => {
                let message = self.progress().loop_message.take().unwrap_or_default();
                self.end_incomplete(IncompleteReason::LoopDetected, message);
            }
            LastTurn::Rounds | LastTurn::ForbiddenCalls => {
                let message = format!("The limit of {} rounds was reached.", options.max_rounds);
                self.end_incomplete(IncompleteReason::MaxTurns, message);
            }
        }
    }

    /// An answer without calls: the end, if it has the demanded form.
    fn take_answer(&mut self, response: ModelResponse) {
        let Some(read) = self.read_answer(response) else {
            return self.finish(End::Completed);
        };
        if self.answer.refusal.is_some() && self.answer.text.is_empty() {
            return self.finish(End::Completed);
        }
        match read {
            Ok(value) => {
                self.answer.output = Some(value);
                self.finish(End::Completed);
            }
            Err(errors) => {
                let complaint = AnswerContract::complaint(&errors);
                let Some(OnMismatch::Retry { tries }) = self.on_mismatch() else {
                    // The complaint quotes the answer.
                    tracing::info!(
                        errors = errors.len(),
                        "answer accepted although it does not match its schema"
                    );
                    return self.finish(End::Completed);
                };
                self.progress().invalid_outputs += 1;
                if self.progress().invalid_outputs >= tries {
                    return self.end_failed(FailedReason::OutputInvalid, complaint);
                }
                self.add_item(Item::user(format!(
                    "{complaint} Answer again with JSON only."
                )));
                self.begin_request();
            }
        }
    }

    fn on_mismatch(&self) -> Option<OnMismatch> {
        let contract = self.environment.answer.as_ref()?;
        Some(contract.on_mismatch)
    }

    /// Makes the answer part of the conversation and reads its value; none where no form is demanded.
    /// A text that must have the form loses the code fence around it.
    fn read_answer(
        &mut self,
        mut response: ModelResponse,
    ) -> Option<Result<Value, Vec<HydrationError>>> {
        let Some(contract) = self.environment.answer.clone() else {
            self.keep(response);
            return None;
        };
        let text: String = response.items.iter().map(Item::text).collect();
        let read = contract.read(&text).map(|read| {
            if let Some(text) = read.unfenced.filter(|_| contract.format().strict) {
                replace_text(&mut response.items, &text);
                self.emit(EventKind::FenceRemoved { text });
            }
            read.value
        });
        self.keep(response);
        Some(read)
    }

    /// Makes the answer part of the conversation.
    pub(super) fn keep(&mut self, response: ModelResponse) {
        self.note_words(&response);
        for item in response.items {
            self.add_item(item);
        }
    }

    /// Remembers what the model said, for the outcome.
    pub(super) fn note_words(&mut self, response: &ModelResponse) {
        self.answer.text = response.items.iter().map(Item::text).collect();
        self.answer.refusal = response.items.iter().find_map(refusal_of);
    }
}

/// Whether a model can have said this. Nobody answers a call, or speaks for the host or the user, by
/// saying so in an answer.
fn is_of_a_model(item: &Item) -> bool {
    let is_its_own = match item {
        Item::Message(message) => message.role == Role::Assistant,
        Item::FunctionCallOutput(_) => false,
        _ => true,
    };
    if !is_its_own {
        tracing::warn!(
            kind = item.kind(),
            "an answer holds an item that no model can give"
        );
    }
    is_its_own
}

/// Puts this text into the first message, in place of all that the messages say.
fn replace_text(items: &mut Vec<Item>, text: &str) {
    let mut text = Some(text);
    items.retain_mut(|item| match item {
        Item::Message(message) => {
            let text = text.take();
            message.content = text.map(ContentPart::output_text).into_iter().collect();
            text.is_some()
        }
        _ => true,
    });
}

fn refusal_of(item: &Item) -> Option<String> {
    let Item::Message(message) = item else {
        return None;
    };
    message.content.iter().find_map(|part| match part {
        ContentPart::Refusal { refusal } => Some(refusal.clone()),
        _ => None,
    })
}

fn calls(response: &ModelResponse) -> impl Iterator<Item = &FunctionCall> {
    response.items.iter().filter_map(|item| match item {
        Item::FunctionCall(call) => Some(call),
        _ => None,
    })
}

fn without_calls(mut response: ModelResponse) -> ModelResponse {
    response
        .items
        .retain(|item| !matches!(item, Item::FunctionCall(_)));
    response
}

/// Whether a call's arguments break off.
fn is_cut(call: &FunctionCall) -> bool {
    call.status == Some(ItemStatus::Incomplete)
        || serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_err()
}
