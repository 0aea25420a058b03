//! Performs what the machine asks for.
//!
//! One poll function and no logic about tools: requests go to the model, calls to tasks of their
//! own, questions to the approver, long results to files; whatever comes back goes into the machine.
//! Dropping the driver drops the request and aborts the calls.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use futures_core::Stream;
use futures_util::FutureExt as _;
use futures_util::stream::FuturesUnordered;
use haft_core::{
    Approver, BoxFuture, Cancel, Decision, Model, ModelError, ModelErrorKind, ModelRequest,
    ModelStream, ToolContext, panic_text,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};
use tracing::Instrument as _;

use crate::event::RunEvent;
use crate::machine::{Effect, Executed, Input, Machine, Runner, Ticket};
use crate::moment::Moment;
use crate::progress_board::{Heard, ProgressBoard};
use crate::session::Session;
use crate::spill::SpillStore;

/// How long stopped calls are waited for before the run is over without them.
const GRACE: Duration = Duration::from_secs(2);

/// What the driver performs effects with.
pub(crate) struct Means {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) context: ToolContext,
    pub(crate) cancel: Cancel,
    pub(crate) spill: Option<Arc<SpillStore>>,
    pub(crate) on_checkpoint: Option<Box<OnCheckpoint>>,
}

/// What a run that is under way comes to next.
#[derive(Debug)]
#[non_exhaustive]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every step is an event, and none is kept"
)]
pub enum Step {
    /// Something happened.
    Event(RunEvent),
    /// The run is at a turn boundary: nothing is under way.
    Checkpoint,
    /// Calls are about to begin, or one of several has ended; only where the run is
    /// [journaled](crate::Run::journaled).
    Journal,
}

/// Hears of the session at every turn boundary.
pub(crate) type OnCheckpoint = dyn FnMut(&Session) + Send;

pub(crate) struct Driver {
    machine: Machine,
    means: Means,
    /// Tells the calls to stop; given with the run's own signal, and when this is dropped.
    stop: StopOnDrop,
    clock: Clock,
    answer: Answering,
    calls: JoinSet<Input>,
    /// Which call each task runs: its place in the turn, and its id.
    tasks: HashMap<tokio::task::Id, (usize, String)>,
    /// What came in and waits for its turn.
    inbox: Option<Input>,
    /// Questions and long results.
    errands: FuturesUnordered<BoxFuture<'static, Input>>,
    progress: Arc<ProgressBoard>,
    cancelled: Option<BoxFuture<'static, ()>>,
    timer: Option<(Moment, Pin<Box<Sleep>>)>,
    hearing: Option<Pin<Box<Sleep>>>,
    grace: Option<Pin<Box<Sleep>>>,
}

/// A signal that is given at the latest when nobody can give it any more.
struct StopOnDrop(Cancel);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The request that is under way.
enum Answering {
    Nothing,
    Opening(u64, BoxFuture<'static, Result<ModelStream, ModelError>>),
    Streaming(u64, ModelStream),
}

/// The wall clock at the start, and monotonic time since.
struct Clock {
    started: Moment,
    running: Instant,
}

impl Clock {
    fn now(&self) -> Moment {
        self.started.plus(self.running.elapsed())
    }
}

impl Driver {
    pub(crate) fn new(machine: Machine, means: Means) -> Self {
        let cancel = means.cancel.clone();
        Self {
            stop: StopOnDrop(cancel.child()),
            machine,
            means,
            clock: Clock {
                started: Moment::from(SystemTime::now()),
                running: Instant::now(),
            },
            answer: Answering::Nothing,
            calls: JoinSet::new(),
            tasks: HashMap::new(),
            inbox: None,
            errands: FuturesUnordered::new(),
            progress: Arc::default(),
            cancelled: Some(Box::pin(async move { cancel.cancelled().await })),
            timer: None,
            hearing: None,
            grace: None,
        }
    }

    /// The machine, with whatever it knows by now.
    pub(crate) fn into_machine(self) -> Machine {
        self.machine
    }

    /// The session as it is to be put away.
    pub(crate) fn checkpoint(&mut self) -> &Session {
        self.machine.checkpoint()
    }

    /// The next step; none after the last.
    pub(crate) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        loop {
            // Before anything that is waiting to be done: nothing starts after the signal.
            if self.cancelled.is_some() && self.means.cancel.is_cancelled() {
                self.cancelled = None;
                self.machine.handle(Input::Cancel, self.clock.now());
            }
            if let Some(effect) = self.machine.next_effect() {
                if let Some(step) = self.perform(effect) {
                    return Poll::Ready(Some(step));
                }
            } else if self.machine.is_ended() {
                ready!(self.poll_quiet(cx));
                return Poll::Ready(None);
            } else {
                let input = ready!(self.poll_input(cx));
                self.machine.handle(input, self.clock.now());
            }
        }
    }

    /// Waits until stopped calls are gone, but not for long: one that blocks its thread cannot be
    /// stopped.
    fn poll_quiet(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.calls.is_empty() {
            let grace = self.grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
            if grace.as_mut().poll(cx).is_ready() {
                break;
            }
            ready!(self.calls.poll_join_next(cx));
        }
        Poll::Ready(())
    }

    fn perform(&mut self, effect: Effect) -> Option<Step> {
        match effect {
            Effect::Emit(event) => return Some(Step::Event(event)),
            Effect::Journal => return Some(Step::Journal),
            Effect::Send { request, body } => {
                let model = Arc::clone(&self.means.model);
                self.answer = Answering::Opening(request, Box::pin(open(model, *body)));
            }
            Effect::Abandon => self.answer = Answering::Nothing,
            // Every request carries its prompt, its tools and the whole history: the next one is the
            // new beginning.
            Effect::Restart(_) => {}
            Effect::Run(ticket) => {
                let context = self
                    .means
                    .context
                    .for_call(&ticket.tool_name, &ticket.call_id, ticket.access)
                    .with_cancel(self.stop.0.child())
                    .with_long_results(self.means.spill.is_some())
                    .with_progress(Arc::clone(&self.progress) as _)
                    .with_transaction(ticket.transaction.clone());
                let identity = (ticket.call, ticket.call_id.clone());
                // What it logs belongs to whoever runs this.
                let task = self.calls.spawn(execute(ticket, context).in_current_span());
                self.tasks.insert(task.id(), identity);
            }
            Effect::StopCalls => {
                self.stop.0.cancel();
                self.calls.abort_all();
            }
            Effect::Ask {
                call,
                question,
                timeout,
            } => {
                let approver = self.means.approver.clone();
                self.errands.push(Box::pin(async move {
                    let asked = async {
                        match approver {
                            Some(approver) => approver.ask(*question).await,
                            None => Decision::Deny(None),
                        }
                    };
                    let asked = std::panic::AssertUnwindSafe(asked).catch_unwind();
                    let decision = match tokio::time::timeout(timeout, asked).await {
                        Ok(Ok(decision)) => decision,
                        Ok(Err(_)) => Decision::Deny(Some("the approver failed".into())),
                        Err(_) => Decision::Deny(Some("nobody answered in time".into())),
                    };
                    Input::Answered { call, decision }
                }));
            }
            Effect::Spill {
                call,
                call_id,
                text,
            } => {
                let spill = self.means.spill.clone();
                self.errands.push(Box::pin(async move {
                    let kept = match spill {
                        Some(spill) => spill.write(&call_id, &text).await.is_ok(),
                        None => false,
                    };
                    Input::Spilled { call, kept }
                }));
            }
            Effect::Checkpoint => {
                if let Some(keep) = &mut self.means.on_checkpoint {
                    let session = self.machine.checkpoint();
                    if let Err(panic) = haft_core::caught(|| keep(session)) {
                        tracing::error!(panic, "the checkpoint panicked");
                    }
                }
                // Behind the end there is nothing to go on with.
                if !self.machine.is_ended() {
                    return Some(Step::Checkpoint);
                }
            }
        }
        None
    }

    /// The next thing that happened outside.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        if let Some(cancelled) = &mut self.cancelled
            && cancelled.as_mut().poll(cx).is_ready()
        {
            self.cancelled = None;
            return Poll::Ready(Input::Cancel);
        }
        if let Some(input) = self.inbox.take() {
            return Poll::Ready(input);
        }
        if let Poll::Ready(input) = self.poll_progress(cx) {
            return Poll::Ready(input);
        }
        if let Poll::Ready(input) = self.poll_calls(cx) {
            return Poll::Ready(input);
        }
        if let Poll::Ready(Some(input)) = Pin::new(&mut self.errands).poll_next(cx) {
            return Poll::Ready(input);
        }
        if let Poll::Ready(input) = self.answer.poll(cx) {
            return Poll::Ready(input);
        }
        self.poll_timer(cx).map(|()| Input::Tick)
    }

    /// The end of a call, whatever became of its task.
    fn poll_calls(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        loop {
            let Some(ended) = ready!(self.calls.poll_join_next_with_id(cx)) else {
                return Poll::Pending;
            };
            let task = match &ended {
                Ok((task, _)) => *task,
                Err(error) => error.id(),
            };
            let Some((call, call_id)) = self.tasks.remove(&task) else {
                continue;
            };
            let finished = match ended {
                Ok((_, finished)) => finished,
                // A tool that panics while it is dropped takes its task with it.
                Err(error) => Input::Finished {
                    call,
                    executed: Executed::Panicked(match error.try_into_panic() {
                        Ok(panic) => panic_text(&*panic),
                        Err(_) => "its task was aborted".to_owned(),
                    }),
                },
            };
            // What it said last comes before its end.
            return Poll::Ready(match self.progress.last_words(&call_id) {
                Some(progress) => {
                    self.inbox = Some(finished);
                    Input::Progress { call_id, progress }
                }
                None => finished,
            });
        }
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        loop {
            match self.progress.hear(cx) {
                Heard::Call(call_id, progress) => {
                    return Poll::Ready(Input::Progress { call_id, progress });
                }
                Heard::Nothing => return Poll::Pending,
                Heard::Later(delay) => {
                    let hearing = self.hearing.get_or_insert_with(|| Box::pin(sleep(delay)));
                    ready!(hearing.as_mut().poll(cx));
                    self.hearing = None;
                }
            }
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.machine.wake_at() else {
            self.timer = None;
            return Poll::Pending;
        };
        if !matches!(&self.timer, Some((set, _)) if *set == at) {
            let delay = at.since(self.clock.now());
            self.timer = Some((at, Box::pin(sleep(delay))));
        }
        match &mut self.timer {
            Some((_, timer)) => {
                ready!(timer.as_mut().poll(cx));
                self.timer = None;
                Poll::Ready(())
            }
            None => Poll::Pending,
        }
    }
}

impl Answering {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        loop {
            match self {
                Self::Nothing => return Poll::Pending,
                Self::Opening(request, opening) => {
                    let request = *request;
                    match ready!(opening.as_mut().poll(cx)) {
                        Ok(stream) => *self = Self::Streaming(request, stream),
                        Err(error) => {
                            *self = Self::Nothing;
                            return Poll::Ready(Input::ModelFailed { request, error });
                        }
                    }
                }
                Self::Streaming(request, stream) => {
                    let request = *request;
                    let next = std::panic::AssertUnwindSafe(|| stream.as_mut().poll_next(cx));
                    let error = match std::panic::catch_unwind(next) {
                        Ok(Poll::Pending) => return Poll::Pending,
                        Ok(Poll::Ready(Some(Ok(event)))) => {
                            return Poll::Ready(Input::Model { request, event });
                        }
                        Ok(Poll::Ready(Some(Err(error)))) => error,
                        Ok(Poll::Ready(None)) => ModelError::new(
                            ModelErrorKind::Protocol,
                            "the stream ended before the answer did",
                        ),
                        Err(panic) => panicked(&*panic),
                    };
                    *self = Self::Nothing;
                    return Poll::Ready(Input::ModelFailed { request, error });
                }
            }
        }
    }
}

async fn open(model: Arc<dyn Model>, request: ModelRequest) -> Result<ModelStream, ModelError> {
    let opening = async { model.send(request).await };
    let opening = std::panic::AssertUnwindSafe(opening).catch_unwind();
    opening.await.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> ModelError {
    let words = format!("the adapter panicked: {}", panic_text(panic));
    ModelError::new(ModelErrorKind::Protocol, words)
}

/// Runs one call to its end, whatever that is.
async fn execute(ticket: Ticket, context: ToolContext) -> Input {
    let Ticket {
        call,
        runner,
        timeout,
        ..
    } = ticket;
    let stop = context.cancel().clone();
    let running = async {
        match runner {
            Runner::Tool(tool) => tool.run(&context).await,
            Runner::Executor(executor, call) => executor.run(call, &context).await,
        }
    };
    let running = std::panic::AssertUnwindSafe(running).catch_unwind();
    let executed = match tokio::time::timeout(timeout, running).await {
        Ok(Ok(returned)) => Executed::Returned(returned),
        Ok(Err(panic)) => Executed::Panicked(panic_text(&*panic)),
        Err(_) => Executed::TimedOut,
    };
    // What the call started elsewhere shall know that nobody waits for it.
    stop.cancel();
    Input::Finished { call, executed }
}
