//! Every way in which a run ends.

use crate::event::EventKind;
use crate::outcome::{CallStatus, End, FailedReason, IncompleteReason, RunPhase};
use crate::texts::NotExecuted;

use super::batch::{Batch, CallState, Unsettled};
use super::{Effect, Machine, Phase};

impl Machine {
    pub(super) fn end_incomplete(&mut self, reason: IncompleteReason, message: impl Into<String>) {
        self.finish(End::Incomplete {
            reason,
            message: message.into(),
            phase: RunPhase::Request,
        });
    }

    pub(super) fn end_failed(&mut self, reason: FailedReason, message: impl Into<String>) {
        self.finish(End::Failed {
            reason,
            message: message.into(),
        });
    }

    /// Somebody wants the run to stop.
    pub(super) fn cancel(&mut self) {
        self.effects.push_back(Effect::Abandon);
        self.break_off(Unsettled {
            waiting: NotExecuted::Cancelled,
            running: CallStatus::Stopped,
        });
        self.finish(End::Cancelled);
    }

    /// The deadline has passed.
    pub(super) fn expire(&mut self) {
        self.effects.push_back(Effect::Abandon);
        let was_running = self.break_off(Unsettled {
            waiting: NotExecuted::Deadline,
            running: CallStatus::TimedOut,
        });
        let (phase, message) = if was_running {
            (RunPhase::Tool, "Deadline exceeded while a tool ran.")
        } else {
            (RunPhase::Request, "Deadline exceeded.")
        };
        self.finish(End::Incomplete {
            reason: IncompleteReason::TimeLimit,
            message: message.into(),
            phase,
        });
    }

    /// Gives every unsettled call of the turn its result, so that the history stays whole.
    /// Says whether one of them was running.
    fn break_off(&mut self, how: Unsettled) -> bool {
        let Phase::Executing(batch) = &mut self.phase else {
            return false;
        };
        let mut batch = std::mem::take(batch);
        self.take_back_starts(&mut batch);
        let was_running = self.settle_all(&mut batch, how);
        if was_running {
            self.effects.push_back(Effect::StopCalls);
        }
        self.record_outputs(&mut batch);
        was_running
    }

    /// Calls whose start nobody has performed yet do not start, and nobody is asked any more.
    fn take_back_starts(&mut self, batch: &mut Batch) {
        let mut taken_back = Vec::new();
        self.effects.retain(|effect| match effect {
            Effect::Run(ticket) => {
                taken_back.push(ticket.call);
                false
            }
            Effect::Ask { .. } => false,
            _ => true,
        });
        for at in taken_back {
            let Some(call) = batch.calls.get_mut(at) else {
                continue;
            };
            call.state = CallState::Ready;
            call.started = None;
            call.transaction = None;
            let counts = !self.tools.is_search(&call.item.name);
            self.progress().calls_executed -= u32::from(counts);
            let id = &call.item.call_id;
            self.effects.retain(|effect| match effect {
                Effect::Emit(event) => !matches!(
                    &event.kind,
                    EventKind::ToolStarted { call_id, .. } if call_id == id
                ),
                _ => true,
            });
        }
    }

    pub(super) fn finish(&mut self, end: End) {
        self.phase = Phase::Ended;
        if matches!(end, End::Completed) {
            self.forget_picks();
        }
        let progress = self.progress();
        let finished = EventKind::RunFinished {
            outcome: end.summary(),
            rounds: progress.rounds,
            requests: progress.usage.requests,
            usage: progress.usage,
        };
        // Only a run that waits for answers of its own is resumed; others leave a conversation behind.
        let resumes = matches!(
            &end,
            End::Waiting(waiting) if !waiting.calls.is_empty() || !waiting.approvals.is_empty()
        );
        if !resumes {
            self.finished = self.session.run.take().unwrap_or_default();
        }
        self.effects.push_back(Effect::Checkpoint);
        self.emit(finished);
        self.end = Some(end);
    }
}
