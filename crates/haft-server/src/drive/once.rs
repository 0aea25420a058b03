//! The short way of a response: a request without tools whose answer nobody hears in pieces.

use haft_core::{Conversation, Usage};
use haft_engine::{Asked, ask_once};

use super::Job;

impl Job {
    /// Asks the model once, without the loop, where only the loop's first answer could come of it. Gives what
    /// that cost if it was the end; otherwise the loop that follows hears what the model said.
    pub(super) async fn ask_once(&mut self, conversation: &Conversation) -> Option<Usage> {
        let request = self.plan.plain_request(conversation)?;
        self.watch.asks();
        let timeout = self.plan.request_timeout();
        let asked = ask_once(&self.plan.model, request, timeout, &self.plan.cancel).await;
        match asked {
            Asked::Answered(response) => {
                self.watch.answered(&response);
                let usage = Usage {
                    requests: 1,
                    ..response.usage.unwrap_or_default()
                };
                self.translator.take_answer(response.items);
                Some(usage)
            }
            Asked::Otherwise(model) => {
                self.plan.model = model;
                None
            }
        }
    }
}
