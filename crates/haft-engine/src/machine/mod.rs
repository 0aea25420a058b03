//! The loop as a state machine without I/O.
//!
//! Inputs go in (a piece of the model's answer, a tool's output, somebody's word, the time), effects
//! come out (send this request, run this call, ask this person, tell those who watch). The machine
//! has no clock, no socket and no task; whoever drives it performs the effects and reports back.
//! Between turns everything that it knows is its [`Session`], which serialises.
//!
//! Only code that the host plugged in runs inside: validators, policies, session state.

mod batch;
mod carry_out;
mod direct_load;
mod disclose;
mod effect;
mod ending;
mod environment;
mod fold;
mod gate;
mod judge;
mod limits;
mod plain_turn;
mod repeat;
mod resume;
mod settle;
mod turn;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use haft_core::{Assembly, Item, ModelError, ModelErrorKind, ToolProgress};

use crate::disclosure::Toolset;
use crate::event::{EventKind, RunEvent};
use crate::moment::Moment;
use crate::outcome::{End, Outcome};
use crate::session::{Progress, Session};
use batch::Batch;

pub use effect::{Effect, Executed, Input, Runner, Ticket, VisibilityExpansionRequired};
pub(crate) use environment::Environment;
pub(crate) use resume::Answers;
pub use resume::ResumeError;

/// One run, from its first request to its end.
///
/// A host that drives it by itself gets one from [`Run::into_machine`](crate::Run::into_machine),
/// performs every effect, and reports what came of it.
pub struct Machine {
    environment: Arc<Environment>,
    session: Session,
    /// The tools as they stand.
    tools: Toolset,
    /// What the model is told before everything else, as it stands.
    instructions: Option<Arc<str>>,
    phase: Phase,
    now: Moment,
    effects: VecDeque<Effect>,
    random: fastrand::Rng,
    /// Requests are numbered, so that late news of an abandoned one is known as such.
    request: u64,
    attempt: u32,
    /// How many items the conversation had when this leg began.
    first_item: usize,
    answer: Answer,
    end: Option<End>,
    /// How far a run that is over had come.
    finished: Progress,
}

/// What the model said last.
#[derive(Default)]
struct Answer {
    text: String,
    refusal: Option<String>,
    output: Option<serde_json::Value>,
}

/// What the attempts of one request took so far.
#[derive(Debug, Clone, Copy, Default)]
struct Took {
    /// The waits between them.
    waited: std::time::Duration,
    /// The attempts themselves.
    spent: std::time::Duration,
}

enum Phase {
    /// Nothing has begun.
    Fresh,
    /// The next request goes out once the effects so far are performed: a checkpoint among them
    /// must show the session as it is between two turns.
    Due,
    /// The model is answering.
    Requesting {
        assembly: Assembly,
        /// The ids of the calls that have begun, by their place in the answer.
        call_ids: BTreeMap<usize, String>,
        /// Whether anything came: then the request is not repeated.
        answered: bool,
        /// What the attempts before this one took.
        took: Took,
        /// When it has taken too long.
        until: Moment,
    },
    /// The request will be repeated.
    Backoff { until: Moment, took: Took },
    /// Calls are being executed.
    Executing(Batch),
    /// It is over.
    Ended,
}

impl Machine {
    /// A run on a conversation that no other run has left unfinished in a wait.
    ///
    /// A session that was put away between two turns goes on where it was.
    pub(crate) fn start(
        environment: Arc<Environment>,
        session: Session,
        now: Moment,
        seed: u64,
    ) -> Self {
        let mut machine = Self::new(environment, session, now, seed);
        machine.begin_request();
        machine
    }

    fn new(environment: Arc<Environment>, mut session: Session, now: Moment, seed: u64) -> Self {
        let run_id = environment.context.run_id.clone();
        let detection = &environment.options.loop_detection;
        session.run.get_or_insert_with(|| Progress {
            run_id,
            detector: crate::detect::LoopDetector::new(detection.clone()),
            ..Progress::default()
        });
        session.reserve_call_ids();
        let mut machine = Self {
            first_item: session.conversation.len(),
            tools: environment.tools.clone(),
            instructions: environment.instructions.clone(),
            environment,
            session,
            phase: Phase::Fresh,
            now,
            effects: VecDeque::new(),
            random: fastrand::Rng::with_seed(seed),
            request: 0,
            attempt: 1,
            answer: Answer::default(),
            end: None,
            finished: Progress::default(),
        };
        machine.begin_prompt();
        machine
    }

    /// Takes one input in. Late news of things that were given up is ignored.
    pub fn handle(&mut self, input: Input, now: Moment) {
        self.now = self.now.max(now);
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        if let Input::Cancel = input {
            return self.cancel();
        }
        // A call that came to its end did so, however late: its result counts.
        if self.deadline_passed() && !matches!(input, Input::Finished { .. }) {
            return self.expire();
        }
        match input {
            Input::Tick => self.tick(),
            Input::Model { request, event } if request == self.request => self.model_event(event),
            Input::ModelFailed { request, error } if request == self.request => {
                self.model_failed(error);
            }
            Input::Cancel | Input::Model { .. } | Input::ModelFailed { .. } => {}
            Input::Finished { call, executed } => self.call_finished(call, executed),
            Input::Answered { call, decision } => self.call_answered(call, decision),
            Input::Spilled { call, kept } => self.call_spilled(call, kept),
            Input::Progress { call_id, progress } => self.call_progress(call_id, progress),
        }
    }

    /// The next thing to do, in order.
    pub fn next_effect(&mut self) -> Option<Effect> {
        if self.effects.is_empty() && matches!(self.phase, Phase::Due) {
            self.send(Took::default());
        }
        self.effects.pop_front()
    }

    /// When the machine wants to be told the time, whatever else happens.
    pub fn wake_at(&self) -> Option<Moment> {
        let pause = match &self.phase {
            Phase::Backoff { until, .. } | Phase::Requesting { until, .. } => Some(*until),
            Phase::Ended => return None,
            _ => None,
        };
        pause.into_iter().chain(self.environment.deadline).min()
    }

    /// Whether the run is over.
    pub fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// The conversation and how far the run has come, to be put away. Ask for it when
    /// [`Effect::Checkpoint`] or [`Effect::Journal`] says so: then everything that matters is in it.
    pub fn checkpoint(&mut self) -> &Session {
        self.keep_state();
        self.note_open_calls();
        if self.environment.is_journaled && self.session.run.is_some() {
            self.note_spill_directory();
        }
        &self.session
    }

    /// What came of the run. One that is given up before its end counts as cancelled.
    pub fn into_outcome(mut self) -> Outcome {
        self.keep_state();
        let end = self.end.take().unwrap_or(End::Cancelled);
        let added = &self.session.conversation.entries()[self.first_item..];
        let items: Vec<Item> = added.iter().map(|entry| entry.item().clone()).collect();
        // A waiting run's progress stays in its session.
        let progress = match &self.session.run {
            Some(progress) => progress,
            None => &self.finished,
        };
        let tool_calls = progress.records.clone();
        let (rounds, usage, counters) = (progress.rounds, progress.usage, progress.counters);
        Outcome {
            end,
            text: self.answer.text,
            refusal: self.answer.refusal,
            output: self.answer.output,
            items,
            tool_calls,
            rounds,
            usage,
            counters,
            spill_directory: self
                .environment
                .spill
                .as_ref()
                .and_then(|spill| spill.directory().map(std::path::Path::to_owned)),
            session: self.session,
        }
    }

    /// Makes the slices' values part of the session.
    fn keep_state(&mut self) {
        match self.environment.state.to_value() {
            Ok(state) => self.session.state = state,
            Err(error) => tracing::error!(%error, "the session's state cannot be stored"),
        }
    }

    fn tick(&mut self) {
        match self.phase {
            Phase::Backoff { until, took } if self.now >= until => self.send(took),
            Phase::Requesting { until, .. } if self.now >= until => {
                let words = "the request took longer than `request_timeout`";
                self.model_failed(ModelError::new(ModelErrorKind::Timeout, words));
            }
            _ => {}
        }
    }

    /// Passes on what a running call says; those that are over have nothing more to say.
    fn call_progress(&mut self, call_id: String, progress: ToolProgress) {
        let is_running = match &self.phase {
            Phase::Executing(batch) => batch.is_running(&call_id),
            _ => false,
        };
        if is_running {
            self.emit(EventKind::ToolProgress { call_id, progress });
        }
    }

    /// How far the run has come.
    fn progress(&mut self) -> &mut Progress {
        self.session.run.get_or_insert_default()
    }

    fn emit(&mut self, kind: EventKind) {
        let event = RunEvent::new(&self.environment.context, self.attempt, self.now, kind);
        self.effects.push_back(Effect::Emit(event));
    }

    /// Makes an item part of the conversation.
    fn add_item(&mut self, item: Item) {
        self.add(item, false);
    }

    /// The same; `hidden` if only the model is to see it.
    fn add(&mut self, item: Item, hidden: bool) {
        self.session.conversation.push(item.clone());
        self.emit(EventKind::ItemAdded { item, hidden });
    }
}
