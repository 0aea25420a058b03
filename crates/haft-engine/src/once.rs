//! The short way: a model that is asked once, without the loop around it.
//!
//! A run without tools, budget and demanded form nearly always ends with the first answer. Then nothing that
//! the machine could do would change what comes of it, and a host for which every microsecond counts may
//! leave it out. Whatever else comes (a failure, a call, an answer that was cut) is for the machine to judge:
//! a run with the model of [`Asked::Otherwise`] hears the same once more and goes on from there.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use haft_core::{
    Assembly, BoxFuture, Cancel, Capabilities, ContentPart, Conversation, FinishReason, Item,
    Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelResponse, ModelStream, Role,
    UnsupportedContent,
};

use crate::driver::panicked;
use crate::options::LoopOptions;

/// What came of asking once.
pub enum Asked {
    /// The whole answer: thoughts and messages of text. A run would be completed by it.
    Answered(ModelResponse),
    /// Anything else. A run with this model hears it as the answer to its first request.
    Otherwise(Arc<dyn Model>),
}

/// Whether a run without tools on this conversation can be more than one request and its answer only by what
/// the model says.
///
/// ```
/// use haft_core::{Conversation, Item};
/// use haft_engine::{LoopOptions, may_ask_once};
///
/// let conversation = Conversation::from(vec![Item::user("hello")]);
/// assert!(may_ask_once(&LoopOptions::default(), &conversation));
/// let thrifty = LoopOptions { max_total_tokens: Some(100), ..LoopOptions::default() };
/// assert!(!may_ask_once(&thrifty, &conversation));
/// ```
pub fn may_ask_once(options: &LoopOptions, conversation: &Conversation) -> bool {
    let is_unbounded = options.deadline.is_none()
        && options.max_input_tokens.is_none()
        && options.max_output_tokens.is_none()
        && options.max_total_tokens.is_none();
    let is_talk = |item: &Item| matches!(item, Item::Message(_) | Item::Reasoning(_));
    is_unbounded && !conversation.is_empty() && conversation.items().all(is_talk)
}

/// Asks a model once.
///
/// Until `timeout` is over or `cancel` says so; a run with what this gives then comes to its end as if it had
/// asked by itself.
pub async fn ask_once(
    model: &Arc<dyn Model>,
    request: ModelRequest,
    timeout: Duration,
    cancel: &Cancel,
) -> Asked {
    let mut heard = Vec::new();
    let gathered = AssertUnwindSafe(gather(&**model, request, &mut heard)).catch_unwind();
    let gathered = tokio::select! {
        biased;
        // Nothing starts after the signal: the run sends nothing.
        () = cancel.cancelled() => return Asked::Otherwise(Arc::clone(model)),
        gathered = tokio::time::timeout(timeout, gathered) => gathered,
    };
    let failure = match gathered {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(error))) => Some(error),
        Ok(Err(panic)) => Some(panicked(&*panic)),
        Err(_) => Some(ModelError::new(
            ModelErrorKind::Timeout,
            "the request took longer than `request_timeout`",
        )),
    };
    if failure.is_none() && heard.iter().all(is_plain) {
        let mut assembly = Assembly::default();
        let said = heard
            .iter()
            .any(|event| matches!(event, ModelEvent::ItemDone { .. }));
        if said {
            for event in heard {
                assembly.add(event);
            }
            return match assembly.take_finished() {
                Some(response) => Asked::Answered(response),
                // Only what ends with `Finished` is gathered without a failure.
                None => Asked::Otherwise(Arc::clone(model)),
            };
        }
    }
    Asked::Otherwise(Arc::new(Heard {
        model: Arc::clone(model),
        first: Mutex::new(Some((heard, failure))),
    }))
}

/// Takes an answer in, to its end.
async fn gather(
    model: &dyn Model,
    request: ModelRequest,
    heard: &mut Vec<ModelEvent>,
) -> Result<(), ModelError> {
    let mut stream = model.send(request).await?;
    while let Some(event) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        let event = event?;
        let is_end = matches!(event, ModelEvent::Finished { .. });
        heard.push(event);
        if is_end {
            return Ok(());
        }
    }
    Err(ModelError::new(
        ModelErrorKind::Protocol,
        "the stream ended before the answer did",
    ))
}

/// Whether a piece leaves no question open: words of the model's own that are shown as they are.
fn is_plain(event: &ModelEvent) -> bool {
    match event {
        ModelEvent::Finished { finish, .. } => *finish == FinishReason::Normal,
        ModelEvent::ItemDone { item, .. } => match item {
            Item::Message(message) => {
                let is_text = |part: &ContentPart| matches!(part, ContentPart::OutputText { .. });
                message.role == Role::Assistant
                    && message.content.iter().all(is_text)
                    && message
                        .content
                        .iter()
                        .filter_map(ContentPart::text)
                        .any(|it| !it.is_empty())
            }
            Item::Reasoning(reasoning) => {
                !reasoning.content.is_empty()
                    || !reasoning.summary.is_empty()
                    || reasoning.encrypted_content.is_some()
            }
            _ => false,
        },
        _ => true,
    }
}

/// A model that has been heard: it says the same again to the first who asks.
struct Heard {
    model: Arc<dyn Model>,
    first: Mutex<Option<(Vec<ModelEvent>, Option<ModelError>)>>,
}

impl Model for Heard {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    fn unsupported(&self, item: &Item) -> Option<UnsupportedContent> {
        self.model.unsupported(item)
    }

    fn reads_compaction(&self) -> bool {
        self.model.reads_compaction()
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        match first.take() {
            None => self.model.send(request),
            // Nothing was answered: it may be asked again.
            Some((heard, Some(error))) if heard.is_empty() => Box::pin(async { Err(error) }),
            Some((heard, failure)) => {
                let pieces = heard.into_iter().map(Ok).chain(failure.map(Err));
                let pieces: ModelStream = Box::pin(futures_util::stream::iter(pieces));
                Box::pin(async { Ok(pieces) })
            }
        }
    }
}
