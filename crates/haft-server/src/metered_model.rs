//! A model whose answers count against the memory budget while they are collected.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use haft_core::{
    BoxFuture, Capabilities, Item, Model, ModelError, ModelErrorKind, ModelEvent, ModelOptions,
    ModelRequest, ModelStream, UnsupportedContent,
};

use crate::access::{FREE_BYTES, MemoryBudget, MemoryPermit};

/// How often the server holds each byte of an answer: in the conversation, in the response, in its events and in the
/// record that is stored.
const COPIES: usize = 4;

/// The same model for one run. Its answers are released when it is dropped with the run.
pub(crate) fn metered(model: Arc<dyn Model>, budget: &MemoryBudget) -> Arc<dyn Model> {
    let answers = Arc::new(Answers {
        budget: budget.clone(),
        collected: Mutex::default(),
    });
    Arc::new(MeteredModel { model, answers })
}

/// Passes the events of a model on and counts them.
struct MeteredModel {
    model: Arc<dyn Model>,
    answers: Arc<Answers>,
}

/// What was collected of the answers of one run.
struct Answers {
    budget: MemoryBudget,
    collected: Mutex<Collected>,
}

#[derive(Default)]
struct Collected {
    /// Of all answers, with their copies.
    bytes: usize,
    /// Of the answer that is being received.
    answer: usize,
    permit: MemoryPermit,
}

impl Answers {
    /// Another answer begins. Those before it stay part of the conversation.
    fn begin(&self) {
        self.collected().answer = 0;
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event; fails when there is no room for what was collected.
    fn count(&self, event: &ModelEvent) -> Result<(), ModelError> {
        let size = match event {
            ModelEvent::TextDelta { text, .. }
            | ModelEvent::RefusalDelta { text, .. }
            | ModelEvent::ReasoningDelta { text, .. }
            | ModelEvent::SummaryDelta { text, .. }
            | ModelEvent::ArgumentsDelta { text, .. } => text.len(),
            // Their items come whole, without deltas that were counted.
            ModelEvent::ItemDone {
                item: Item::Other(members),
                ..
            } => serde_json::to_string(members).map_or(0, |json| json.len()),
            _ => return Ok(()),
        };
        let mut collected = self.collected();
        let Collected {
            bytes,
            answer,
            permit,
        } = &mut *collected;
        let size = size.saturating_mul(COPIES);
        *bytes = bytes.saturating_add(size);
        *answer = answer.saturating_add(size);
        if *bytes <= FREE_BYTES {
            return Ok(());
        }
        let most = self.budget.max_answer_bytes();
        if *answer > most {
            let message = format!(
                "the model's answer has more than {} bytes of content, the limit that follows from \
                 `max_pending_bytes` of this server",
                most / COPIES
            );
            return Err(ModelError::new(ModelErrorKind::Protocol, message));
        }
        self.budget.grow(permit, *bytes).map_err(|_| {
            let message = "memory budget exhausted while receiving the model's answer; retry later";
            ModelError::new(ModelErrorKind::ServerError, message)
        })
    }
}

impl Model for MeteredModel {
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

    fn ignored_options(&self, options: &ModelOptions) -> Vec<&'static str> {
        self.model.ignored_options(options)
    }

    fn send(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let sent = self.model.send(request);
        let answers = Arc::clone(&self.answers);
        answers.begin();
        Box::pin(async move {
            let events = sent.await?;
            let counted = events.map(move |event| {
                let event = event?;
                answers.count(&event)?;
                Ok(event)
            });
            Ok(Box::pin(counted) as ModelStream)
        })
    }
}
