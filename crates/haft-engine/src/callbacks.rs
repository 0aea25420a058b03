//! Thin readers of the event stream.

use haft_core::ToolCall;

use crate::event::{EventKind, RunEvent};
use crate::outcome::ToolResult;

type Hearer<T> = Box<dyn FnMut(&T) + Send>;
type Hear<T> = Vec<Hearer<T>>;

/// Those who hear of a run.
#[derive(Default)]
pub(crate) struct Callbacks {
    pub(crate) content: Hear<str>,
    pub(crate) reasoning: Hear<str>,
    pub(crate) tool_calls: Hear<[ToolCall]>,
    pub(crate) tool_results: Hear<[ToolResult]>,
    pub(crate) events: Hear<RunEvent>,
}

impl Callbacks {
    pub(crate) fn hear(&mut self, event: &RunEvent) {
        tell(&mut self.events, event);
        match &event.kind {
            EventKind::TextDelta { text, .. } => tell(&mut self.content, text.as_str()),
            EventKind::ReasoningDelta { text, .. } => tell(&mut self.reasoning, text.as_str()),
            EventKind::ToolCallsRequested { calls } => tell(&mut self.tool_calls, &calls[..]),
            EventKind::ToolResults { results } => tell(&mut self.tool_results, &results[..]),
            _ => {}
        }
    }
}

fn tell<T: ?Sized>(hearers: &mut [Hearer<T>], what: &T) {
    for hear in hearers {
        if let Err(panic) = haft_core::caught(|| hear(what)) {
            tracing::error!(panic, "a callback panicked");
        }
    }
}
