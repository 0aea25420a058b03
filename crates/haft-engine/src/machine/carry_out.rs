//! Calls that an earlier run ended with, and that somebody has allowed since.

use std::sync::Arc;

use haft_core::{CallSource, FinishReason, FunctionCall, Item, RawArguments, ToolCall, ToolChoice};

use crate::event::EventKind;
use crate::moment::Moment;
use crate::session::Session;

use super::batch::{Batch, CallState};
use super::{Environment, Machine};

impl Machine {
    /// A run that executes calls of its conversation before it asks the model. `queued` is said behind
    /// their outputs.
    pub(crate) fn carry_out(
        environment: Arc<Environment>,
        session: Session,
        calls: Vec<FunctionCall>,
        queued: Vec<Item>,
        now: Moment,
        seed: u64,
    ) -> Self {
        let mut machine = Self::new(environment, session, now, seed);
        machine.progress().queued = queued;
        // What the model may call from now on says nothing about what somebody has allowed.
        let binding = machine.tools.full();
        let binding = binding.with_choice(ToolChoice::Auto);
        let binding = binding.unwrap_or_else(|_| machine.tools.full().clone());
        let mut batch = Batch::default();
        let mut requested = Vec::with_capacity(calls.len());
        for item in calls {
            let call = ToolCall {
                name: item.name.clone(),
                call_id: Some(item.call_id.clone()),
                arguments: RawArguments::Text(item.arguments.clone()),
                finish: FinishReason::Normal,
                source: Some(CallSource::default()),
            };
            // The id is the call's own already: ids are only given to new calls.
            machine.session.call_ids.release(&item.call_id);
            let hydration = machine.hydrate(&call, &binding);
            batch
                .calls
                .push(machine.batch_call(item, hydration, &binding, None));
            requested.push(call);
        }
        machine.emit(EventKind::ToolCallsRequested { calls: requested });
        for call in &mut batch.calls {
            machine.settle_refused(call);
            if matches!(call.state, CallState::Ready) {
                machine.note_verdict(call, "approved".into());
                call.state = CallState::Approved;
            }
        }
        machine.advance(batch);
        machine
    }
}
