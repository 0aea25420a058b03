//! One request at work behind the gateway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haft_core::Cancel;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

use super::backend::{Backend, BackendError, CallRequest, PromptRequest, ReadRequest};
use super::caller::Caller;
use super::context::{CallContext, Client, Event};
use super::input::{Input, Reply};
use super::outcome::{CallOutcome, PromptOutcome, ReadOutcome};
use crate::log_message::LogLevel;

/// How long work that nobody wants any more may take to come to an end.
const GRACE: Duration = Duration::from_secs(5);
/// How many events may wait for the client.
const EVENTS: usize = 64;

/// A request that may take several rounds.
#[derive(Debug, Clone)]
pub(super) enum Work {
    Call(CallRequest),
    Prompt(PromptRequest),
    Read(ReadRequest),
}

/// Its result.
#[derive(Debug)]
pub(super) enum Finished {
    Call(CallOutcome),
    Prompt(PromptOutcome),
    Read(ReadOutcome),
}

impl Work {
    /// The same request in its next round.
    pub(super) fn with(&self, input: Input) -> Self {
        let mut work = self.clone();
        match &mut work {
            Self::Call(request) => request.input = input,
            Self::Prompt(request) => request.input = input,
            Self::Read(request) => request.input = input,
        }
        work
    }

    async fn run<B: Backend>(
        self,
        backend: Arc<B>,
        context: CallContext,
    ) -> Result<Reply<Finished>, BackendError> {
        match self {
            Self::Call(request) => {
                let reply = backend.call(request, context).await?;
                Ok(reply.map(Finished::Call))
            }
            Self::Prompt(request) => {
                let reply = backend.prompt(request, context).await?;
                Ok(reply.map(Finished::Prompt))
            }
            Self::Read(request) => {
                let reply = backend.read(request, context).await?;
                Ok(reply.map(Finished::Read))
            }
        }
    }
}

/// Who a job is for.
#[derive(Debug, Clone)]
pub(super) struct ForWhom {
    pub(super) caller: Caller,
    pub(super) client: Client,
    pub(super) trace: BTreeMap<String, String>,
    pub(super) log_level: Option<LogLevel>,
}

/// Work under way. Dropped before its end, it is told to stop, and stopped if it does not hear.
#[derive(Debug)]
pub(super) struct Job {
    task: JoinHandle<Result<Reply<Finished>, BackendError>>,
    events: mpsc::Receiver<Event>,
    cancel: Cancel,
    done: Option<Result<Reply<Finished>, BackendError>>,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    Event(Event),
    Done(Result<Reply<Finished>, BackendError>),
}

impl Job {
    pub(super) fn start<B: Backend>(backend: Arc<B>, work: Work, whom: ForWhom) -> Self {
        let (sender, events) = mpsc::channel(EVENTS);
        let cancel = Cancel::new();
        let context = CallContext {
            caller: whom.caller,
            client: whom.client,
            cancel: cancel.clone(),
            trace: whom.trace,
            log_level: whom.log_level,
            events: sender,
        };
        Self {
            task: tokio::spawn(work.run(backend, context)),
            events,
            cancel,
            done: None,
        }
    }

    /// What comes next: all events in their order, then the end. Nothing is lost if it is dropped
    /// while it waits.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            if let Some(done) = self.done.take() {
                // What was said before the end comes before it; whoever asks after it is not heard.
                while let Ok(event) = self.events.try_recv() {
                    if !matches!(event, Event::Ask { .. }) {
                        self.done = Some(done);
                        return Next::Event(event);
                    }
                }
                return Next::Done(done);
            }
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Next::Event(event),
                done = &mut self.task => self.done = Some(done.unwrap_or_else(|error| {
                    tracing::error!(%error, "a backend broke down in a request");
                    Err(BackendError::Failed("the request broke down inside".into()))
                })),
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.task.is_finished() {
            self.cancel.cancel();
            abort_later(self.task.abort_handle());
        }
    }
}

fn abort_later(task: AbortHandle) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => {
            runtime.spawn(async move {
                tokio::time::sleep(GRACE).await;
                task.abort();
            });
        }
        Err(_) => task.abort(),
    }
}
