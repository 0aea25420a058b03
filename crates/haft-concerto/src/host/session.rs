//! A machine and the fibers that run on it.
//!
//! Code runs on a blocking thread, a slice at a time; whoever runs has the machine, and it is handed on
//! in the order in which it was asked for. While a fiber waits for the world it has nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use haft_core::BoxFuture;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::course::Course;
use super::house::House;
use super::{Place, RunFailure, agents, models};
use crate::value::Value;
use crate::vm::{Effect, Failure, Fiber, Legacy, Limits, Machine, Output, Step, Stop, Watch};

/// How many steps a fiber makes before it looks whether others wait: some milliseconds. What one
/// instruction does beyond its step counts too.
const SLICE: u64 = 500_000;

/// A machine on which what comes first has run.
pub(super) struct Session {
    pub(super) house: Arc<House>,
    machine: Arc<Mutex<Machine>>,
    /// How many fibers wait for the machine.
    waiting: Arc<AtomicUsize>,
    /// What computed system prompts came to, by model.
    prompts: OnceLock<HashMap<String, String>>,
}

/// For whom a machine is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Program,
    Test,
    /// Its tools are called from outside, each call with limits of its own.
    Tools,
}

/// How a fiber failed, and where.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) failure: Failure,
    pub(super) place: Option<Place>,
}

impl From<Ended> for RunFailure {
    fn from(ended: Ended) -> Self {
        Self {
            text: ended.failure.to_string(),
            is_cancelled: matches!(ended.failure, Failure::Stop(Stop::Cancelled)),
            place: ended.place,
        }
    }
}

/// How a fiber goes on.
enum Go {
    On,
    With(Value),
    Fail(Failure),
}

impl Session {
    /// Makes a machine and runs what comes before everything else: constants, state, system prompts.
    pub(super) async fn open(
        house: &Arc<House>,
        output: Box<dyn Output>,
        for_: Use,
    ) -> Result<Arc<Self>, Ended> {
        let limits = Limits {
            // Of served tools each call has its own.
            steps: house.setup.limits.steps.filter(|_| for_ != Use::Tools),
            ..house.setup.limits
        };
        let permissions = house.setup.permissions.clone();
        let mut machine = Machine::new(Arc::clone(&house.program), permissions, limits, output);
        match for_ {
            Use::Test => machine.keep_emits(),
            Use::Tools => machine.keep_room_for_calls(),
            Use::Program => {}
        }
        let init = machine.init();
        let session = Arc::new(Self {
            house: Arc::clone(house),
            machine: Arc::new(Mutex::new(machine)),
            waiting: Arc::default(),
            prompts: OnceLock::new(),
        });
        let course = Course::new(house.cancel.child());
        if let Some(init) = init {
            session.drive(init, course.clone()).await?;
        }
        let prompts = session.system_prompts(&course).await?;
        // Nobody else has it yet.
        let _ = session.prompts.set(prompts);
        Ok(session)
    }

    /// A machine that goes on with what another one left. What comes first runs only if it is wanted; if
    /// it fails, what was left is given back.
    pub(super) async fn resumed(
        house: &Arc<House>,
        output: Box<dyn Output>,
        legacy: Legacy,
        initialises: bool,
    ) -> Result<Arc<Self>, (Ended, Legacy)> {
        let setup = &house.setup;
        let program = Arc::clone(&house.program);
        let machine = Machine::new(program, setup.permissions.clone(), setup.limits, output);
        let init = machine.init().filter(|_| initialises);
        let session = Arc::new(Self {
            house: Arc::clone(house),
            machine: Arc::new(Mutex::new(machine)),
            waiting: Arc::default(),
            prompts: OnceLock::new(),
        });
        let course = Course::new(house.cancel.child());
        if let Some(init) = init
            && let Err(ended) = session.drive(init, course.clone()).await
        {
            return Err((ended, legacy));
        }
        session.machine().await.inherit(legacy);
        match session.system_prompts(&course).await {
            Ok(prompts) => {
                // Nobody else has it yet.
                let _ = session.prompts.set(prompts);
                Ok(session)
            }
            Err(ended) => Err((ended, session.machine().await.leave())),
        }
    }

    async fn system_prompts(
        self: &Arc<Self>,
        course: &Course,
    ) -> Result<HashMap<String, String>, Ended> {
        let mut prompts = HashMap::new();
        let program = Arc::clone(&self.house.program);
        for model in &program.ir().models {
            let Some(function) = &model.config.system_prompt_fn else {
                continue;
            };
            let fiber = self.machine().await.function(function, Vec::new());
            let fiber = fiber.map_err(|error| internal(&error.to_string()))?;
            let prompt = self.drive(fiber, course.clone()).await?;
            let prompt = self.machine().await.shown(&prompt);
            let prompt = prompt.map_err(|failure| Ended {
                failure: *failure,
                place: None,
            })?;
            prompts.insert(model.name.clone(), prompt.into());
        }
        Ok(prompts)
    }

    /// The computed system prompt of a model.
    pub(super) fn system_prompt(&self, model: &str) -> Option<&str> {
        self.prompts.get()?.get(model).map(String::as_str)
    }

    /// The machine, when its turn has come.
    pub(super) async fn machine(&self) -> OwnedMutexGuard<Machine> {
        let _waiting = Waiting::new(&self.waiting);
        Arc::clone(&self.machine).lock_owned().await
    }

    /// Runs a fiber to its end.
    pub(super) fn drive(
        self: &Arc<Self>,
        fiber: Fiber,
        course: Course,
    ) -> BoxFuture<'static, Result<Value, Ended>> {
        let session = Arc::clone(self);
        // A fiber may lead to others.
        Box::pin(async move { session.drive_on(fiber, course).await })
    }

    async fn drive_on(self: Arc<Self>, fiber: Fiber, course: Course) -> Result<Value, Ended> {
        let gone = Gone::default();
        let mut fiber = fiber.in_slices(SLICE);
        let mut go = Go::On;
        loop {
            let turn = self.turn(fiber, go, &course, &gone).await?;
            fiber = turn.fiber;
            go = match turn.step {
                Step::Done(value) => return Ok(value),
                Step::Failed(failure) => {
                    let place = turn.place;
                    return Err(Ended { failure, place });
                }
                Step::Paused => match self.stop(&course) {
                    Some(stop) => Go::Fail(Failure::Stop(stop)),
                    None => Go::On,
                },
                Step::Effect(_) if let Some(stop) = self.stop(&course) => {
                    Go::Fail(Failure::Stop(stop))
                }
                Step::Effect(effect) => tokio::select! {
                    biased;
                    () = self.stopped(&course) => Go::Fail(Failure::Stop(Stop::Cancelled)),
                    performed = self.perform(effect, &course) => match performed {
                        Ok(value) => Go::With(value),
                        Err(failure) => Go::Fail(failure),
                    },
                    // It knows by itself what is over.
                    () = overdue(&fiber) => Go::With(Value::Nil),
                },
            };
        }
    }

    /// Whether a fiber may keep the machine: nobody waits for it, and nothing stops the fiber.
    fn may_go_on(&self, course: &Course, gone: &AtomicBool) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
            && !gone.load(Ordering::Relaxed)
            && self.stop(course).is_none()
    }

    fn stop(&self, course: &Course) -> Option<Stop> {
        match course.stop() {
            None if self.house.cancel.is_cancelled() => Some(Stop::Cancelled),
            stop => stop,
        }
    }

    async fn stopped(&self, course: &Course) {
        tokio::select! {
            () = course.cancel.cancelled() => {}
            () = self.house.cancel.cancelled() => {}
        }
    }

    /// One turn of a fiber at the machine: until it needs the world, is over, or others wait.
    async fn turn(
        self: &Arc<Self>,
        fiber: Fiber,
        go: Go,
        course: &Course,
        gone: &Gone,
    ) -> Result<Turn, Ended> {
        let machine = self.machine().await;
        let session = Arc::clone(self);
        let course = course.clone();
        let gone = Arc::clone(&gone.0);
        let slice = move || session.slice(fiber, go, machine, &course, &gone);
        let ran = tokio::task::spawn_blocking(slice).await;
        ran.map_err(|error| internal(&format!("the machine failed: {error}")))
    }

    fn slice(
        &self,
        mut fiber: Fiber,
        go: Go,
        mut machine: OwnedMutexGuard<Machine>,
        course: &Course,
        gone: &Arc<AtomicBool>,
    ) -> Turn {
        let (mut began, mut steps) = (Instant::now(), fiber.spent());
        machine.watched(Some(self.watch(course, gone)));
        let mut step = match go {
            Go::On => fiber.run(&mut machine),
            Go::With(value) => resume(&mut fiber, &mut machine, value),
            Go::Fail(failure) => fail(&mut fiber, &mut machine, failure),
        };
        loop {
            course.spend(began.elapsed(), fiber.spent() - steps);
            (began, steps) = (Instant::now(), fiber.spent());
            machine.watched(Some(self.watch(course, gone)));
            step = match step {
                Step::Paused if gone.load(Ordering::Relaxed) => {
                    // Nobody waits for it any more; what it changed goes back to its place.
                    fail(&mut fiber, &mut machine, Failure::Stop(Stop::Cancelled))
                }
                Step::Paused if self.may_go_on(course, gone) => fiber.run(&mut machine),
                Step::Effect(Effect::Emit {
                    channel, payload, ..
                }) if !self.house.hears(&channel) && self.may_go_on(course, gone) => {
                    self.house.show(&mut machine, &channel, &payload);
                    resume(&mut fiber, &mut machine, Value::Nil)
                }
                step => {
                    let place = match &step {
                        Step::Failed(_) => {
                            let ir = self.house.program.ir();
                            fiber.place(&machine).map(|place| Place::of(ir, place))
                        }
                        _ => None,
                    };
                    machine.watched(None);
                    return Turn { fiber, step, place };
                }
            };
        }
    }

    /// Whom an instruction that takes long asks whether to stop: as between slices, in the middle of it.
    fn watch(&self, course: &Course, gone: &Arc<AtomicBool>) -> Watch {
        let (house, course) = (Arc::clone(&self.house), course.clone());
        let (gone, began) = (Arc::clone(gone), Instant::now());
        Box::new(move |steps| {
            if gone.load(Ordering::Relaxed) || house.cancel.is_cancelled() {
                return Some(Stop::Cancelled);
            }
            course.stop_with(began.elapsed(), steps)
        })
    }

    /// Does what a fiber waits for.
    async fn perform(self: &Arc<Self>, effect: Effect, course: &Course) -> Result<Value, Failure> {
        let house = &self.house;
        match effect {
            Effect::Emit {
                channel,
                payload,
                wait,
            } => {
                house.show(&mut *self.machine().await, &channel, &payload);
                let answer = house.handled(&channel, payload).await;
                Ok(answer.filter(|_| wait).unwrap_or_default())
            }
            Effect::Sleep(time) => {
                tokio::time::sleep(time).await;
                Ok(Value::Nil)
            }
            Effect::Model(call) => models::call(self, course, &call).await,
            Effect::Agent(call) => agents::call(self, &call).await,
            Effect::Listen(listen) => agents::listen(self, course, &listen).await,
            Effect::Mcp(call) => Ok(house.partners.servers.call(house, course, &call).await),
            Effect::Http(request) => Ok(house.partners.web.send(&house.setup, &request).await),
        }
    }

    /// An emit that the host makes itself.
    pub(super) async fn emit(&self, channel: &str, payload: Value) {
        let mut machine = self.machine().await;
        machine.note_emit(channel, payload.clone());
        self.house.show(&mut machine, channel, &payload);
        drop(machine);
        self.house.handled(channel, payload).await;
    }
}

/// What a turn came to.
struct Turn {
    fiber: Fiber,
    step: Step,
    place: Option<Place>,
}

fn resume(fiber: &mut Fiber, machine: &mut Machine, value: Value) -> Step {
    match fiber.resume(machine, value) {
        Some(step) => step,
        None => fiber.run(machine),
    }
}

fn fail(fiber: &mut Fiber, machine: &mut Machine, failure: Failure) -> Step {
    match fiber.fail(machine, failure) {
        Some(step) => step,
        None => fiber.run(machine),
    }
}

/// Waits until a stage that the fiber is in has taken too long.
async fn overdue(fiber: &Fiber) {
    match fiber.time_left() {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

pub(super) fn internal(text: &str) -> Ended {
    Ended {
        failure: Failure::Stop(Stop::Panic(text.to_owned())),
        place: None,
    }
}

/// Somebody waits for the machine.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells a slice on its thread that nobody waits for it any more.
#[derive(Default)]
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
