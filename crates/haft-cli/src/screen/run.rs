//! The events of a run in this process.

use std::io;
use std::time::Duration;

use haft::{EventKind, Item, RawArguments, RunEvent};

use super::{CallResult, Screen, Tone};
use crate::text::spoken;

impl Screen {
    /// Shows an event of a run.
    pub(crate) fn show(&mut self, event: &RunEvent) -> io::Result<()> {
        match &event.kind {
            EventKind::ReasoningDelta { text, .. } | EventKind::SummaryDelta { text, .. } => {
                self.words(text, Tone::Thought)
            }
            EventKind::TextDelta { text, .. } | EventKind::RefusalDelta { text, .. } => {
                self.words(text, Tone::Answer)
            }
            EventKind::ToolCallsRequested { calls } => {
                for call in calls {
                    let arguments = match &call.arguments {
                        RawArguments::Text(text) => text.clone(),
                        RawArguments::Json(value) => value.to_string(),
                    };
                    let id = call.call_id.as_deref().unwrap_or_default();
                    self.call_asked(id, &call.name, &arguments);
                }
                Ok(())
            }
            EventKind::ToolStarted { call_id, .. } => self.call_began(call_id),
            EventKind::ToolProgress { progress, .. } => {
                let said = progress.message.as_deref().or(progress.chunk.as_deref());
                said.map_or(Ok(()), |text| self.note(text))
            }
            EventKind::ToolInvoked {
                call_id,
                duration_ms,
                ..
            } => {
                self.call_took(call_id, Duration::from_millis(*duration_ms));
                Ok(())
            }
            EventKind::ItemAdded {
                item: Item::FunctionCallOutput(output),
                ..
            } => {
                let result = CallResult {
                    text: &output.output.to_text(),
                    is_error: output.is_error,
                };
                self.call_ended(&output.call_id, &result)
            }
            EventKind::RequestRetried {
                error, delay_ms, ..
            } => {
                let pause = spoken(Duration::from_millis(*delay_ms));
                let attempt = event.attempt;
                let next = attempt.saturating_add(1);
                self.note(&format!(
                    "attempt {attempt}: {error}; attempt {next} in {pause}"
                ))
            }
            EventKind::AnswerDiscarded { reason } => {
                self.note(&format!("this answer is not used: {reason}"))
            }
            EventKind::RepeatedCallSuppressed { tool_name, .. } => self.note(&format!(
                "suppressed a repeated call of '{tool_name}'; its result is already in the conversation"
            )),
            EventKind::LoopDetected { kind, .. } => self.note(&kind.to_string()),
            _ => Ok(()),
        }
    }
}
