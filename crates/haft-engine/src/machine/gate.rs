//! Which calls of a turn may start, and who is asked about them.

use std::sync::Arc;

use haft_core::{Access, Decision, PolicyCall, Verdict};

use crate::event::EventKind;
use crate::executor::ExecutorCall;
use crate::outcome::CallStatus;
use crate::policies::check_all;
use crate::texts::{self, NotExecuted};

use super::batch::{Batch, BatchCall, CallState, Who};
use super::effect::{Effect, Runner, Ticket};
use super::settle::Settled;
use super::{Machine, Phase};

impl Machine {
    /// Starts whatever may start, and closes the turn when nothing is left to wait for here.
    pub(super) fn advance(&mut self, mut batch: Batch) {
        let journal_at = self.effects.len();
        let limit = self.environment.options.max_parallel.max(1);
        let mut busy = batch.calls.iter().filter(|call| call.is_busy()).count();
        let mut all_past = true;
        for (at, call) in batch.calls.iter_mut().enumerate() {
            if matches!(call.state, CallState::Ready | CallState::Approved) {
                if busy >= limit || (call.is_barrier && !all_past) {
                    break;
                }
                if self.start_call(call, at) == Started::LimitReached {
                    batch.call_limit_hit = true;
                }
                busy += usize::from(call.is_busy());
            }
            all_past &= call.is_past();
            if call.is_barrier && !call.is_past() {
                break;
            }
        }
        if batch.calls.iter().any(BatchCall::is_busy) {
            self.phase = Phase::Executing(batch);
            if self.environment.is_journaled {
                // In front of the starts, behind the news of what has ended.
                self.effects.insert(journal_at, Effect::Journal);
            }
        } else {
            self.close_turn(batch);
        }
    }

    /// The checks of one call, in their order, and its start if it passes them.
    fn start_call(&mut self, call: &mut BatchCall, at: usize) -> Started {
        let Some(definition) = call.definition.clone() else {
            self.settle_early(call);
            return Started::Done;
        };
        let for_caller = matches!(call.who, Who::Caller);
        let policy_call = PolicyCall {
            hydration: &call.hydration,
            definition: &definition,
        };
        let environment = Arc::clone(&self.environment);
        let policies = environment.policies_for(&definition);
        let verdict = check_all(&policies, &policy_call, &environment.state);
        match verdict {
            Verdict::Deny(reason) => {
                self.note_verdict(call, format!("denied: {reason}"));
                self.settle(call, Settled::error(CallStatus::Denied, reason));
                Started::Done
            }
            // What the caller executes is the caller's to approve; the record says what it is worth.
            _ if for_caller => {
                self.pick_called(call);
                call.state = CallState::Pending;
                self.set_status(call, CallStatus::Pending);
                Started::Done
            }
            Verdict::NeedApproval(reason) if !matches!(call.state, CallState::Approved) => {
                self.ask(call, at, reason);
                Started::Done
            }
            Verdict::NeedApproval(_) => self.run_call(call, at, Access::Full),
            Verdict::Allow(access) => self.run_call(call, at, access),
        }
    }

    fn ask(&mut self, call: &mut BatchCall, at: usize, reason: String) {
        let question = call
            .question(&reason)
            .filter(|_| self.environment.has_approver);
        let Some(question) = question else {
            return self.refuse(call, None);
        };
        self.emit(EventKind::ApprovalRequested {
            tool_name: call.item.name.clone(),
            call_id: call.item.call_id.clone(),
            arguments: question.arguments.clone(),
            reason: reason.clone(),
        });
        self.effects.push_back(Effect::Ask {
            call: at,
            question: Box::new(question),
            timeout: self.environment.options.approval_timeout,
        });
        call.state = CallState::Asking(reason);
    }

    /// Nobody approved the call.
    pub(super) fn refuse(&mut self, call: &mut BatchCall, reason: Option<&str>) {
        let words = reason.map_or_else(
            || "not approved".into(),
            |why| format!("not approved: {why}"),
        );
        self.note_verdict(call, words);
        let text = texts::not_approved(&call.item.name, reason);
        self.settle(call, Settled::error(CallStatus::NotApproved, text));
    }

    fn run_call(&mut self, call: &mut BatchCall, at: usize, access: Access) -> Started {
        let counts = !self.tools.is_search(&call.item.name);
        if counts && self.call_limit_reached() {
            self.settle_unexecuted(call, NotExecuted::CallLimit);
            return Started::LimitReached;
        }
        let runner = match (&call.who, call.hydration.tool.take()) {
            (Who::Executor(executor), _) => Runner::Executor(
                Arc::clone(executor),
                ExecutorCall {
                    call_id: call.item.call_id.clone(),
                    name: call.item.name.clone(),
                    arguments: call.arguments(),
                },
            ),
            (_, Some(tool)) => Runner::Tool(tool),
            // Hydrated calls have their tool until somebody takes it, and nobody else does.
            (_, None) => return Started::Done,
        };
        self.progress().calls_executed += u32::from(counts);
        self.pick_called(call);
        let transaction = self
            .environment
            .state
            .begin(&call.item.call_id, &call.item.name);
        call.transaction = Some(transaction.clone());
        call.started = Some(self.now);
        call.is_approved = matches!(call.state, CallState::Approved);
        call.state = CallState::Running;
        if let Some(deadline) = self.environment.deadline {
            call.timeout = call.timeout.min(deadline.since(self.now));
        }
        self.effects.push_back(Effect::Run(Ticket {
            call: at,
            call_id: call.item.call_id.clone(),
            tool_name: call.item.name.clone(),
            runner,
            access,
            timeout: call.timeout,
            transaction,
        }));
        // Told behind it: whoever hears of the start can rely on it.
        self.emit(EventKind::ToolStarted {
            tool_name: call.item.name.clone(),
            call_id: call.item.call_id.clone(),
        });
        Started::Done
    }

    /// Somebody decided about a call.
    pub(super) fn call_answered(&mut self, at: usize, decision: Decision) {
        let Phase::Executing(batch) = &mut self.phase else {
            return;
        };
        let mut batch = std::mem::take(batch);
        if let Some(call) = batch.calls.get_mut(at)
            && let CallState::Asking(reason) = &call.state
        {
            let reason = reason.clone();
            match decision {
                Decision::Allow => {
                    self.note_verdict(call, "approved".into());
                    call.state = CallState::Approved;
                }
                Decision::Deny(why) => self.refuse(call, why.as_deref()),
                Decision::Suspend => {
                    call.state = CallState::Suspended(reason);
                    self.set_status(call, CallStatus::Suspended);
                }
            }
        }
        self.advance(batch);
    }
}

#[derive(PartialEq, Eq)]
enum Started {
    Done,
    LimitReached,
}
