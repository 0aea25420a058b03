//! One course of execution.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::calls::wrong_count;
use super::execute::Exit;
use super::machine::Machine;
use super::{Continuation, Effect, Failure, Outcome, PipelineRun, Stop};
use crate::value::{Sizer, Value};

/// One course of execution: calls within each other, and their registers.
#[derive(Debug)]
pub struct Fiber {
    pub(super) frames: Vec<Frame>,
    /// Registers of all frames. Those above the topmost frame hold nothing that matters.
    pub(super) stack: Vec<Value>,
    /// Where the value goes that the host was asked for.
    pub(super) pending: Option<Return>,
    /// What is left until the next look at the limits, and how much it was.
    pub(super) fuel: i64,
    pub(super) granted: i64,
    /// How many steps it may make before it gives the machine away, and how many are left.
    pub(super) slice: Option<u64>,
    pub(super) left: u64,
    /// Whether it shall give the machine away at the next good place.
    pub(super) is_due: bool,
    /// The steps that it made.
    pub(super) spent: u64,
    /// How it could not begin.
    pub(super) refused: Option<Box<Failure>>,
    /// What the host is asked next, before anything else is done.
    pub(super) queued: Option<Effect>,
    /// What was given when the last frame was left.
    pub(super) result: Option<Value>,
    /// Where it failed: function, line and column.
    pub(super) failed_at: Option<(String, Option<[u32; 2]>)>,
    /// The frame of a stage whose time is over.
    pub(super) expired: Option<usize>,
    /// Where an instruction was done again because memory was short: steps, fuel, frames, place.
    again: Option<(u64, i64, usize, usize)>,
    /// What it held when it was measured last, for others that are measured.
    holds: Arc<AtomicUsize>,
}

/// A call.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) function: u32,
    pub(super) pc: usize,
    pub(super) base: usize,
    pub(super) ret: Return,
}

/// Where a value goes.
#[derive(Debug)]
pub(super) struct Return {
    /// A register, counted from the bottom; past the end for the fiber's own result.
    pub(super) dst: usize,
    /// What is done with it before.
    pub(super) then: Option<Box<Continuation>>,
}

impl Return {
    pub(super) const RESULT: usize = usize::MAX;

    pub(super) fn to(dst: usize) -> Self {
        Self { dst, then: None }
    }
}

/// What a fiber has come to.
#[derive(Debug)]
pub enum Step {
    /// It is over, with this value.
    Done(Value),
    /// It failed. At a boundary (§6) the host makes of it what it is there.
    Failed(Failure),
    /// It waits for the host.
    Effect(Effect),
    /// Its slice is over ([`Fiber::in_slices`]); it goes on when it is run again.
    Paused,
}

impl Fiber {
    pub(super) fn new(machine: &Machine, function: u32, arguments: Vec<Value>) -> Self {
        Self::with_captures(machine, function, arguments, &[])
    }

    pub(super) fn with_captures(
        machine: &Machine,
        function: u32,
        arguments: Vec<Value>,
        captures: &[Value],
    ) -> Self {
        let mut fiber = Self {
            frames: Vec::new(),
            stack: Vec::new(),
            pending: None,
            fuel: 0,
            granted: 0,
            slice: None,
            left: 0,
            is_due: false,
            spent: 0,
            refused: None,
            queued: None,
            result: None,
            failed_at: None,
            expired: None,
            again: None,
            holds: Arc::default(),
        };
        let callee = &machine.program.functions[function as usize];
        let argc = arguments.len();
        if machine.limits.depth == 0 {
            fiber.refused = Some(Failure::stop(Stop::Depth(0)));
        } else if argc > callee.arity || argc < callee.required {
            fiber.refused = Some(wrong_count(callee, argc));
        } else {
            fiber.stack.resize(callee.registers + 64, Value::Nil);
            let ret = Return::to(Return::RESULT);
            fiber.begin(callee, function, 0, arguments, captures, ret);
        }
        fiber
    }

    /// Lets it run for about so many steps at a time, so that others come to their turn: then
    /// [`run`](Self::run) gives [`Step::Paused`].
    #[must_use]
    pub fn in_slices(mut self, steps: u64) -> Self {
        self.slice = Some(steps);
        self
    }

    /// How many steps it has made, as far as they were counted.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Goes on until it is over, has failed, or needs the host, or until its slice is over.
    pub fn run(&mut self, machine: &mut Machine) -> Step {
        if self.left == 0 {
            self.left = self.slice.unwrap_or_default();
        }
        if let Some(failure) = self.refused.take() {
            return Step::Failed(*failure);
        }
        let program = machine.program.clone();
        loop {
            if let Some(effect) = self.queued.take() {
                return Step::Effect(self.in_time(effect));
            }
            if let Some(value) = self.result.take() {
                self.settle_fuel(machine);
                return Step::Done(value);
            }
            match self.execute(&program, machine) {
                Ok(Exit::Frame) => {
                    if self.pauses() {
                        self.settle_fuel(machine);
                        return Step::Paused;
                    }
                }
                Ok(Exit::Effect(effect)) => {
                    if machine.meter.has_work() {
                        self.settle_fuel(machine);
                    }
                    return Step::Effect(self.in_time(effect));
                }
                Ok(Exit::Pause) => {
                    self.settle_fuel(machine);
                    return Step::Paused;
                }
                Err(failure) => {
                    let is_short = machine.meter.was_short()
                        && matches!(*failure, Failure::Stop(Stop::Memory(_) | Stop::Stores(_)));
                    let failure = if is_short {
                        match self.once_more(machine, failure) {
                            Ok(()) => continue,
                            Err(failure) => failure,
                        }
                    } else {
                        failure
                    };
                    if let Err(failure) = self.unwind(&program, machine, failure) {
                        self.settle_fuel(machine);
                        self.stack.clear();
                        return Step::Failed(*failure);
                    }
                }
            }
        }
    }

    /// Gives the value that the host was asked for; [`run`](Self::run) goes on with it. A fiber that
    /// asked for nothing stays as it is.
    pub fn resume(&mut self, machine: &mut Machine, value: Value) -> Option<Step> {
        let ret = self.pending.take()?;
        machine.meter.note(&value);
        let program = machine.program.clone();
        let delivered = match self.overdue() {
            Some(failure) => Err(failure),
            None => self.deliver(&program, machine, value, ret),
        };
        match delivered {
            Ok(None) => None,
            Ok(Some(effect)) => Some(Step::Effect(self.in_time(effect))),
            Err(failure) => match self.unwind(&program, machine, failure) {
                Ok(()) => None,
                Err(failure) => Some(Step::Failed(*failure)),
            },
        }
    }

    /// Lets what the fiber waits for fail: as if the instruction itself had.
    pub fn fail(&mut self, machine: &mut Machine, failure: Failure) -> Option<Step> {
        self.pending = None;
        let program = machine.program.clone();
        match self.unwind(&program, machine, Box::new(failure)) {
            Ok(()) => None,
            Err(failure) => Some(Step::Failed(*failure)),
        }
    }

    /// Where it failed, or is: the function's name, line and column.
    pub fn place(&self, machine: &Machine) -> Option<(String, Option<[u32; 2]>)> {
        if let Some(place) = &self.failed_at {
            return Some(place.clone());
        }
        let frame = self.frames.last()?;
        let function = &machine.program.functions[frame.function as usize];
        Some((
            function.name.to_string(),
            function.span(frame.pc.saturating_sub(1)),
        ))
    }

    /// Looks at the limits, and lets it run until the next look.
    pub(super) fn refuel(&mut self, machine: &mut Machine) -> Result<(), Box<Failure>> {
        self.settle_fuel(machine);
        machine.meter.tick()?;
        if let Some(failure) = self.overdue() {
            return Err(failure);
        }
        if machine.meter.is_full() {
            self.measure(machine, None)?;
        }
        self.granted = machine.meter.allowance();
        if self.slice.is_some() {
            // Where it cannot be interrupted it runs on, to the next loop or call.
            self.is_due |= self.left == 0;
            let left = i64::try_from(self.left.max(64)).unwrap_or(i64::MAX);
            self.granted = self.granted.min(left);
        }
        self.fuel = self.granted;
        Ok(())
    }

    /// Looks what is held, if it is time: before something that cannot be done again.
    pub(super) fn weigh(
        &mut self,
        machine: &mut Machine,
        more: Option<&Continuation>,
    ) -> Outcome<()> {
        if machine.meter.is_filled() {
            self.measure(machine, more)?;
        }
        Ok(())
    }

    /// Measures what is held: by what all share, by this fiber, what it has in its hands, and the others.
    fn measure(&mut self, machine: &mut Machine, more: Option<&Continuation>) -> Outcome<()> {
        let mut sizer = Sizer::default();
        machine.measure(&mut sizer);
        let shared = sizer.total();
        sizer.bytes(16 * self.stack.capacity() + size_of::<Frame>() * self.frames.capacity());
        sizer.add(&self.stack);
        let pending = self.pending.iter();
        let returns = self.frames.iter().map(|frame| &frame.ret).chain(pending);
        for then in returns.filter_map(|ret| ret.then.as_deref()).chain(more) {
            then.measure(&mut sizer);
        }
        self.holds.store(sizer.total() - shared, Ordering::Relaxed);
        machine.meter.measured_shared(shared);
        // Others come to their turn the sooner.
        let looks = sizer.looks() as u64;
        self.left = self.left.saturating_sub(looks);
        let held = shared.saturating_add(machine.held_by_fibers(&self.holds));
        machine.meter.measured(held, looks)
    }

    /// Does the instruction again that asked for more memory than was known to be free: now it is known
    /// what is still held. The second time its failure is final.
    fn once_more(&mut self, machine: &mut Machine, failure: Box<Failure>) -> Outcome<()> {
        let here = |fiber: &Self, machine: &Machine| {
            let place = fiber.frames.last().map_or(0, |frame| frame.pc);
            let steps = machine.meter.steps();
            (steps, fiber.fuel, fiber.frames.len(), place)
        };
        if self.again == Some(here(self, machine)) {
            return Err(failure);
        }
        self.measure(machine, None)?;
        self.refuel(machine)?;
        self.again = Some(here(self, machine));
        if let Some(frame) = self.frames.last_mut() {
            frame.pc = frame.pc.saturating_sub(1);
        }
        Ok(())
    }

    /// Room for registers and frames of one call more, before they are taken.
    #[cold]
    pub(super) fn grow(&mut self, machine: &mut Machine, needed: usize) -> Outcome<()> {
        if needed > self.stack.len() {
            let length = needed + 64;
            if length > self.stack.capacity() {
                let more = length.max(2 * self.stack.capacity()) - self.stack.len();
                machine.meter.ask(16 * more)?;
                self.stack.reserve_exact(more);
            }
            self.stack.resize(length, Value::Nil);
        }
        if self.frames.len() == self.frames.capacity() {
            let more = self.frames.len().max(16);
            machine.meter.ask(size_of::<Frame>() * more)?;
            self.frames.reserve_exact(more);
        }
        Ok(())
    }

    /// The stages that run, with the numbers of their frames.
    fn stages(&self) -> impl Iterator<Item = (usize, &PipelineRun)> {
        let frames = self.frames.iter().enumerate();
        frames.filter_map(|(depth, frame)| match frame.ret.then.as_deref() {
            Some(Continuation::Pipeline(run)) => Some((depth, run)),
            _ => None,
        })
    }

    /// How long the host may take for what the fiber waits for: a stage with `@timeout` has only so
    /// much time left. What comes later is not looked at any more.
    pub fn time_left(&self) -> Option<Duration> {
        self.stages().filter_map(|(_, run)| run.left()).min()
    }

    /// A failure if the time of a stage is over.
    fn overdue(&mut self) -> Option<Box<Failure>> {
        let over = |(_, run): &(usize, &PipelineRun)| run.left() == Some(Duration::ZERO);
        let (depth, _) = self.stages().find(over)?;
        self.expired = Some(depth);
        Some(Failure::raised("timeout exceeded"))
    }

    /// Nobody sleeps longer than a stage has time.
    fn in_time(&self, effect: Effect) -> Effect {
        match effect {
            Effect::Sleep(time) => {
                Effect::Sleep(self.time_left().map_or(time, |left| time.min(left)))
            }
            other => other,
        }
    }

    /// Whether it shall stop here for others, asked where it can.
    pub(super) fn pauses(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    fn settle_fuel(&mut self, machine: &mut Machine) {
        let spent = u64::try_from(self.granted - self.fuel).unwrap_or(0);
        let spent = machine.meter.settle(spent);
        self.spent = self.spent.saturating_add(spent);
        self.left = self.left.saturating_sub(spent);
        self.granted = 0;
        self.fuel = 0;
    }
}
