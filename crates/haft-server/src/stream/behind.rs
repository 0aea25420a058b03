//! Calls that the model made behind a search of this server. They are shown when the search is over, so that
//! all calls stand in the order in which they were made; what becomes of them in the meantime is told then.

use haft_core::CallOutput;
use haft_engine::EventKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::items::HostedEnd;
use super::translator::Translator;

/// What became of a call that is not shown yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Behind {
    call_id: String,
    news: News,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum News {
    Started,
    Asked { arguments: Value },
    Invoked(Invoked),
}

/// How a call that ran here ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Invoked {
    pub(super) success: bool,
    pub(super) error_kind: Option<String>,
    pub(super) duration_ms: u64,
    pub(super) repaired: bool,
    pub(super) output: CallOutput,
}

impl Translator {
    /// Keeps news of a call that is not shown yet; gives back everything else.
    pub(super) fn put_behind(&mut self, event: EventKind) -> Option<EventKind> {
        let (EventKind::ToolStarted { call_id, .. }
        | EventKind::ApprovalRequested { call_id, .. }
        | EventKind::ToolInvoked { call_id, .. }) = &event
        else {
            return Some(event);
        };
        if !self.answer.waits(call_id) {
            return Some(event);
        }
        let call_id = call_id.clone();
        let news = match event {
            EventKind::ToolStarted { .. } => {
                self.has_run_tools = true;
                News::Started
            }
            EventKind::ApprovalRequested { arguments, .. } => News::Asked { arguments },
            EventKind::ToolInvoked {
                success,
                error_kind,
                duration_ms,
                repaired,
                output,
                ..
            } => News::Invoked(Invoked {
                success,
                error_kind: error_kind.map(str::to_owned),
                duration_ms,
                repaired,
                output,
            }),
            event => return Some(event),
        };
        self.behind.push(Behind { call_id, news });
        None
    }

    /// Tells what became of calls that are shown by now.
    pub(super) fn tell_behind(&mut self) {
        for behind in std::mem::take(&mut self.behind) {
            let Behind { call_id, news } = &behind;
            if self.answer.waits(call_id) {
                self.behind.push(behind);
                continue;
            }
            match news {
                News::Started => self.show_held(call_id),
                News::Asked { arguments } => self.ask(call_id, arguments),
                // It may be a search itself.
                News::Invoked(invoked) => {
                    if !self.search_done(call_id, &invoked.output) {
                        self.invoked(call_id, invoked);
                    }
                }
            }
        }
    }

    /// No search will come to its end any more: shows what waits for one.
    pub(super) fn release(&mut self) {
        self.searches.clear();
        self.answer.settle_all();
        self.show();
        self.tell_behind();
    }

    /// A call that is shown is over.
    pub(super) fn invoked(&mut self, call_id: &str, invoked: &Invoked) {
        self.show_held(call_id);
        let end = HostedEnd {
            is_error: !invoked.success,
            error_kind: invoked.error_kind.as_deref(),
            output: &invoked.output,
            duration_ms: invoked.duration_ms,
            is_repaired: invoked.repaired,
            turn: self.turn,
            record: self.translation.calls.take(call_id),
        };
        self.hosted_done(call_id, &end);
    }
}
