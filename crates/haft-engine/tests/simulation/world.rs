//! Everything outside the machine: a model, tools, people, time, and accidents.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use haft_catalog::{Binding, Catalog};
use haft_core::{
    Annotations, BoxFuture, Capabilities, Conversation, Decision, FinishReason, Item, Model,
    ModelError, ModelErrorKind, ModelEvent, ModelOptions, ModelRequest, ModelResponse, ModelStream,
    SessionState, Slice, SuspendAlways, ToolChoice, ToolDefinition, ToolError, ToolObject,
    ToolOutput, TrustPolicy, dynamic_tool, function_tool,
};
use haft_engine::{
    Effect, End, Executed, Input, LoopOptions, Machine, Moment, Outcome, Run, RunEvent, Session,
    Ticket,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::checks::Checks;

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// Nothing; only the order of things is random.
    None,
    /// The process dies at every turn boundary and another takes over.
    DiesBetweenTurns,
    /// The process dies while calls run, or just before they would have.
    DiesWithinTurns,
    /// Everything: failing requests and tools, cancels, time running out, dying processes.
    Everything,
}

/// What calls leave behind when they succeed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Committed(pub Vec<String>);

impl Slice for Committed {
    const NAME: &'static str = "committed";
}

pub struct World {
    seed: u64,
    faults: Faults,
    /// Decides in which order things happen.
    order: fastrand::Rng,
    pub plan: Plan,
    now: Moment,
    machine: Option<Machine>,
    state: SessionState,
    /// The pieces of the answer that is being given.
    answer: VecDeque<Result<ModelEvent, ModelError>>,
    request: u64,
    running: Vec<Ticket>,
    questions: Vec<usize>,
    spills: Vec<usize>,
    pub checks: Checks,
    outcome: Option<Outcome>,
}

/// The options of one simulated run, all from its seed.
#[derive(Debug, Clone)]
pub struct Plan {
    pub options: LoopOptions,
    pub choice: ToolChoice,
    pub parallel: Option<bool>,
    pub output_limit: Option<u64>,
    pub deadline: Option<Moment>,
    /// How many different arguments the model comes up with.
    pub variety: u8,
}

const START: Moment = Moment::since_epoch(Duration::from_hours(500_000));

fn chance(seed: u64, what: &str, key: &str) -> fastrand::Rng {
    // Chance that depends on what is decided, not on when.
    let mut hash = seed ^ 0x9e37_79b9_7f4a_7c15;
    for byte in what.bytes().chain([0]).chain(key.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    fastrand::Rng::with_seed(hash)
}

impl Plan {
    fn new(seed: u64, faults: Faults) -> Self {
        let mut random = chance(seed, "plan", "");
        let mut some = |most: u32| random.bool().then(|| random.u32(1..=most));
        let (calls, tokens, output) = (some(8), some(400), some(120));
        let (deadline, spill) = (some(40), some(30));
        Self {
            options: LoopOptions {
                max_rounds: random.u32(1..=6),
                // Which calls come under the limit depends on who answers questions first.
                max_tool_calls: calls.filter(|_| faults == Faults::Everything),
                max_total_tokens: tokens.map(u64::from),
                max_parallel: random.usize(1..=4),
                final_turn: random.bool(),
                spill_bytes: spill.map(|bytes| bytes as usize),
                ..LoopOptions::default()
            },
            choice: match random.u8(0..8) {
                0 => ToolChoice::Required,
                1 => ToolChoice::None,
                2 => ToolChoice::allowed(["work", "alone"]),
                3 => ToolChoice::Function("work".into()),
                _ => ToolChoice::Auto,
            },
            variety: random.u8(1..=4),
            parallel: match random.u8(0..4) {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
            output_limit: output.map(u64::from),
            deadline: deadline
                .filter(|_| faults == Faults::Everything)
                .map(|seconds| START.plus(Duration::from_secs(u64::from(seconds)))),
        }
    }
}

/// What the world's requests are answered with is decided by the world, not by this.
struct Nobody;

impl Model for Nobody {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn send(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        unreachable!("the world answers")
    }
}

/// The tools, bound once for all simulations.
fn binding() -> &'static Binding {
    static BINDING: OnceLock<Binding> = OnceLock::new();
    BINDING.get_or_init(|| {
        let builder = Catalog::new().snapshot().bind().with_tools(tools());
        builder.build().unwrap()
    })
}

fn tools() -> Vec<Arc<dyn ToolObject>> {
    let definition = |name: &str, annotations: Annotations| {
        ToolDefinition::builder(name)
            .parameters(json!({
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "additionalProperties": false
            }))
            .annotations(annotations)
            .build()
            .unwrap()
    };
    let nothing = || |_, _| async { Ok(()) };
    let sequential = Annotations {
        sequential: true,
        ..Annotations::default()
    };
    let read_only = Annotations {
        read_only: true,
        ..Annotations::default()
    };
    let destructive = Annotations {
        destructive: true,
        ..Annotations::default()
    };
    vec![
        dynamic_tool(definition("work", Annotations::default()), nothing()),
        dynamic_tool(definition("alone", sequential), nothing()),
        dynamic_tool(definition("danger", destructive), nothing()),
        dynamic_tool(definition("look", read_only), nothing()),
        function_tool(definition("ask", Annotations::default())),
    ]
}

impl World {
    pub fn new(seed: u64, faults: Faults) -> Self {
        let plan = Plan::new(seed, faults);
        let state = SessionState::builder()
            .slice::<Committed>()
            .build()
            .unwrap();
        let mut world = Self {
            seed,
            faults,
            order: chance(seed, "order", &format!("{faults:?}")),
            now: START,
            machine: None,
            state,
            answer: VecDeque::new(),
            request: 0,
            running: Vec::new(),
            questions: Vec::new(),
            spills: Vec::new(),
            checks: Checks::new(plan.clone()),
            plan,
            outcome: None,
        };
        let run = world.run().user("go");
        world.machine = Some(run.into_machine(world.now, seed).unwrap());
        world
    }

    fn run(&self) -> Run {
        let mut run = Run::new(Nobody)
            .binding(binding().clone())
            .tool_choice(self.plan.choice.clone())
            .options(self.plan.options.clone())
            .model_options(ModelOptions {
                max_output_tokens: self.plan.output_limit,
                ..ModelOptions::default()
            })
            .trust(TrustPolicy {
                approve_destructive: true,
                ..TrustPolicy::default()
            })
            .approver(SuspendAlways)
            .state(self.state.clone());
        if self.faults == Faults::DiesWithinTurns {
            run = run.journaled();
        }
        if let Some(parallel) = self.plan.parallel {
            run = run.parallel_tool_calls(parallel);
        }
        // A deadline that is over would be refused: the new process sets its own.
        if let Some(deadline) = self.plan.deadline
            && deadline.since(self.now) >= Duration::from_secs(1)
        {
            run = run.deadline(SystemTime::UNIX_EPOCH + deadline.to_duration());
        }
        run
    }

    pub fn run_to_its_end(&mut self) {
        let mut steps = 0;
        while let Some(machine) = &mut self.machine {
            steps += 1;
            assert!(steps < 20_000, "the run does not end");
            if let Some(effect) = machine.next_effect() {
                self.perform(effect);
            } else if machine.is_ended() {
                self.end_leg();
            } else {
                let input = self.happen();
                if let Some(machine) = &mut self.machine {
                    machine.handle(input, self.now);
                }
            }
        }
        self.checks
            .at_the_end(self.outcome(), &self.state, self.now);
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Emit(event) => self.checks.event(&event),
            Effect::Send { request, body } => {
                assert!(self.running.is_empty() && self.questions.is_empty());
                self.checks.request(&body);
                self.request = request;
                self.answer = self.make_answer(&body);
            }
            Effect::Abandon => self.answer.clear(),
            Effect::Run(ticket) => {
                self.checks.starts(&ticket, &self.running);
                self.running.push(ticket);
            }
            Effect::StopCalls => self.running.clear(),
            Effect::Ask { call, .. } => self.questions.push(call),
            Effect::Spill { call, .. } => self.spills.push(call),
            Effect::Checkpoint => self.checkpoint(),
            Effect::Journal => self.journal(),
            other => panic!("unknown effect {other:?}"),
        }
    }

    /// The process may die here; another goes on with what was stored.
    fn checkpoint(&mut self) {
        let dies = match self.faults {
            Faults::None | Faults::DiesWithinTurns => false,
            Faults::DiesBetweenTurns => true,
            Faults::Everything => self.order.u8(0..5) == 0,
        };
        let Some(machine) = self
            .machine
            .as_mut()
            .filter(|machine| dies && !machine.is_ended())
        else {
            return;
        };
        let stored = serde_json::to_string(machine.checkpoint()).unwrap();
        let session: Session = serde_json::from_str(&stored).unwrap();
        self.forget();
        let machine = self
            .run()
            .session(session)
            .into_machine(self.now, self.seed);
        let mut machine = machine.unwrap();
        // The first effect of the new process is the same checkpoint.
        assert!(matches!(machine.next_effect(), Some(Effect::Checkpoint)) || machine.is_ended());
        self.machine = Some(machine);
    }

    /// The process may die here, with calls under way.
    fn journal(&mut self) {
        assert_eq!(self.faults, Faults::DiesWithinTurns);
        if self.order.u8(0..3) > 0 {
            return;
        }
        let stored = serde_json::to_string(self.machine.as_mut().unwrap().checkpoint()).unwrap();
        self.running.clear();
        self.questions.clear();
        self.spills.clear();
        self.forget();
        let session: Session = serde_json::from_str(&stored).unwrap();
        let run = self.run().session(session);
        self.machine = Some(run.into_machine(self.now, self.seed).unwrap());
    }

    /// A new process knows nothing but what was stored.
    fn forget(&mut self) {
        self.state = SessionState::builder()
            .slice::<Committed>()
            .build()
            .unwrap();
        self.answer.clear();
        assert!(self.running.is_empty() && self.questions.is_empty() && self.spills.is_empty());
    }

    /// Something happens, whatever is possible now.
    fn happen(&mut self) -> Input {
        self.now = self.now.plus(Duration::from_millis(self.order.u64(1..400)));
        if self.faults == Faults::Everything {
            match self.order.u16(0..600) {
                0 | 1 => {
                    self.checks.cancelled = true;
                    return Input::Cancel;
                }
                2 => self.now = self.now.plus(Duration::from_secs(30)),
                // News of a request that was given up long ago.
                3 => {
                    let event = ModelEvent::TextDelta {
                        index: 0,
                        text: "late".into(),
                    };
                    return Input::Model { request: 0, event };
                }
                _ => {}
            }
        }
        let mut possible = Vec::new();
        possible.extend((!self.answer.is_empty()).then_some(0));
        possible.extend((!self.running.is_empty()).then_some(1));
        possible.extend((!self.questions.is_empty()).then_some(2));
        possible.extend((!self.spills.is_empty()).then_some(3));
        match self.order.choice(possible) {
            Some(0) => match self.answer.pop_front() {
                Some(Ok(event)) => Input::Model {
                    request: self.request,
                    event,
                },
                Some(Err(error)) => Input::ModelFailed {
                    request: self.request,
                    error,
                },
                None => Input::Tick,
            },
            Some(1) => {
                let at = self.order.usize(..self.running.len());
                let ticket = self.running.swap_remove(at);
                self.finish(&ticket)
            }
            Some(2) => {
                let at = self.order.usize(..self.questions.len());
                let call = self.questions.swap_remove(at);
                let decision = match chance(self.seed, "decision", &call.to_string()).u8(0..3) {
                    0 => Decision::Allow,
                    1 => Decision::Deny(None),
                    _ => Decision::Suspend,
                };
                Input::Answered { call, decision }
            }
            Some(_) => {
                let call = self.spills.swap_remove(0);
                let kept = self.faults != Faults::Everything || self.order.bool();
                Input::Spilled { call, kept }
            }
            None => {
                let wake = self.machine.as_ref().and_then(Machine::wake_at);
                self.now = self.now.max(wake.expect("something to wait for"));
                Input::Tick
            }
        }
    }

    /// A call ends, in a way that its id decides.
    fn finish(&mut self, ticket: &Ticket) -> Input {
        let id = ticket.call_id.clone();
        ticket
            .transaction
            .update::<Committed>(move |committed| committed.0.push(id.clone()))
            .unwrap();
        let mut random = chance(self.seed, "result", &ticket.call_id);
        let executed = match random.u8(0..10) {
            0 => Executed::Returned(Err(ToolError::new("kaput"))),
            1 => Executed::Returned(Ok(ToolOutput::failure("no"))),
            2 => Executed::Panicked("boom".into()),
            3 => Executed::TimedOut,
            _ => Executed::Returned(Ok(ToolOutput::text("x".repeat(random.usize(..60))))),
        };
        self.checks.finishes(&ticket.call_id, &executed);
        Input::Finished {
            call: ticket.call,
            executed,
        }
    }

    /// The answer to a request, which the length of the conversation decides.
    fn make_answer(&mut self, request: &ModelRequest) -> VecDeque<Result<ModelEvent, ModelError>> {
        let key = format!("{} {:?}", request.conversation.len(), request.tool_choice);
        let mut random = chance(self.seed, "answer", &key);
        let mut items = Vec::new();
        if random.u8(0..3) == 0 {
            items.push(Item::assistant("words"));
        }
        let calls = match random.u8(0..4) {
            0 => 0,
            _ => random.usize(1..=5),
        };
        for _ in 0..calls {
            let names = [
                "work", "work", "work", "look", "alone", "danger", "ask", "nothing",
            ];
            let name = names[random.usize(..names.len())];
            let arguments = match random.u8(0..8) {
                0 => "{broken".to_owned(),
                1 => String::new(),
                _ => format!(r#"{{"n":{}}}"#, random.u8(0..self.plan.variety)),
            };
            let id = ["", "same", "other"][random.usize(..3)];
            items.push(Item::function_call(id, name, arguments));
        }
        let finish = match random.u8(0..25) {
            0 => FinishReason::Length,
            1 => FinishReason::ContentFilter,
            _ => FinishReason::Normal,
        };
        let response = ModelResponse {
            items,
            finish,
            ..ModelResponse::default()
        }
        .with_usage(random.u64(1..30), random.u64(1..30));
        self.checks.answer(&response);
        let mut events: VecDeque<_> = response.into_events().into_iter().map(Ok).collect();
        if self.faults == Faults::Everything && self.order.u8(0..12) == 0 {
            // Broken off anywhere, the very beginning included.
            events.truncate(self.order.usize(..events.len()));
            let kind = if self.order.bool() {
                ModelErrorKind::ServerError
            } else {
                ModelErrorKind::InvalidRequest
            };
            events.push_back(Err(ModelError::new(kind, "broken")));
        }
        events
    }

    /// A leg is over: go on if the run waits, else it is done.
    fn end_leg(&mut self) {
        let outcome = self.machine.take().unwrap().into_outcome();
        self.running.clear();
        self.questions.clear();
        self.spills.clear();
        self.answer.clear();
        let End::Waiting(waiting) = &outcome.end else {
            self.outcome = Some(outcome);
            return;
        };
        self.checks.waits(&outcome, waiting);
        let stored = serde_json::to_string(&outcome.session).unwrap();
        self.forget();
        let mut run = self
            .run()
            .session(serde_json::from_str::<Session>(&stored).unwrap());
        let mut calls: Vec<_> = waiting.calls.iter().map(|call| &call.call_id).collect();
        self.order.shuffle(&mut calls);
        for call_id in calls {
            run = run.output(call_id, format!("answer to {call_id}"));
        }
        for approval in &waiting.approvals {
            let allow = chance(self.seed, "later", &approval.call_id).bool();
            run = if allow {
                run.approve(&approval.call_id)
            } else {
                run.deny(&approval.call_id, "no")
            };
        }
        self.machine = Some(run.into_machine(self.now, self.seed).unwrap());
    }

    pub fn outcome(&self) -> &Outcome {
        self.outcome.as_ref().expect("the run is over")
    }

    pub fn conversation(&self) -> &Conversation {
        self.outcome().session.conversation()
    }

    /// How it ended, in two words.
    pub fn end_name(&self) -> String {
        let summary = self.outcome().end.summary();
        let reason = summary.reason.map(|reason| format!(" {reason}"));
        summary.end + &reason.unwrap_or_default()
    }
}

/// For the checks.
pub fn kind_of(event: &RunEvent) -> String {
    let json = serde_json::to_value(&event.kind).unwrap();
    json["event"].as_str().unwrap().to_owned()
}
