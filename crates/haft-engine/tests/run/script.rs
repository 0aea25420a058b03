//! A model that answers from a list and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, stream};
use haft_core::{
    BoxFuture, Capabilities, FinishReason, ForcedChoice, Item, Model, ModelError, ModelEvent,
    ModelRequest, ModelResponse, ModelStream,
};

/// What comes back to one request.
#[derive(Clone)]
pub enum Reply {
    /// An answer.
    Answer(ModelResponse),
    /// No answer at all.
    Fails(ModelError),
    /// So many events of an answer, then a failure.
    BreaksOff(ModelResponse, usize, ModelError),
    /// Nothing, ever.
    Hangs,
}

#[derive(Clone)]
pub struct Script(Arc<Inner>);

struct Inner {
    replies: Mutex<VecDeque<Reply>>,
    received: Mutex<Vec<ModelRequest>>,
    capabilities: Capabilities,
}

impl Script {
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let capabilities = Capabilities {
            supports_dynamic_tools: true,
            parallel_calls: true,
            forced_choice: ForcedChoice::Named,
            none_choice: true,
            image_input: true,
            ..Capabilities::default()
        };
        Self::with_capabilities(replies, capabilities)
    }

    pub fn with_capabilities(
        replies: impl IntoIterator<Item = Reply>,
        capabilities: Capabilities,
    ) -> Self {
        Self(Arc::new(Inner {
            replies: Mutex::new(replies.into_iter().collect()),
            received: Mutex::default(),
            capabilities,
        }))
    }

    /// What it was asked, in order.
    pub fn received(&self) -> Vec<ModelRequest> {
        self.0.received.lock().unwrap().clone()
    }

    /// How many of its answers were not asked for.
    pub fn left(&self) -> usize {
        self.0.replies.lock().unwrap().len()
    }
}

impl Model for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities.clone()
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        self.0.received.lock().unwrap().push(request);
        let reply = self.0.replies.lock().unwrap().pop_front();
        Box::pin(async move {
            match reply.expect("the script has an answer to every request") {
                Reply::Answer(response) => Ok(response.into_stream()),
                Reply::Fails(error) => Err(error),
                Reply::BreaksOff(response, events, error) => {
                    let mut pieces: Vec<Result<ModelEvent, ModelError>> = response
                        .into_events()
                        .into_iter()
                        .take(events)
                        .map(Ok)
                        .collect();
                    pieces.push(Err(error));
                    Ok(stream::iter(pieces).boxed())
                }
                Reply::Hangs => Ok(stream::pending().boxed()),
            }
        })
    }
}

/// An answer in words.
pub fn says(text: &str) -> Reply {
    Reply::Answer(ModelResponse::text(text))
}

/// An answer in words that cost something.
pub fn says_for(text: &str, input: u64, output: u64) -> Reply {
    Reply::Answer(ModelResponse::text(text).with_usage(input, output))
}

/// An answer of calls, each `(id, name, arguments)`.
pub fn calls<const N: usize>(calls: [(&str, &str, &str); N]) -> Reply {
    Reply::Answer(calling(calls))
}

pub fn calling<const N: usize>(calls: [(&str, &str, &str); N]) -> ModelResponse {
    ModelResponse::of(calls.map(|(id, name, arguments)| Item::function_call(id, name, arguments)))
}

/// An answer that the token limit cut.
pub fn cut(mut response: ModelResponse) -> Reply {
    response.finish = FinishReason::Length;
    Reply::Answer(response)
}
