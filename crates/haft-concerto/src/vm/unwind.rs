//! Raises and faults find their way (§6).

use super::fiber::Fiber;
use super::machine::Machine;
use super::pipeline::PipelineRun;
use super::{Continuation, Failure, Next, Outcome, place};
use crate::load::{Program, Returns};
use crate::value::Value;

/// Where a failure goes.
enum Target {
    /// A `try` in the frame of this number.
    Handler(usize),
    /// A pipeline that the frame of this number is a stage of.
    Pipeline(usize),
    None,
}

impl Fiber {
    /// Brings a failure to where it is handled; if nothing handles it, it is the fiber's.
    pub(super) fn unwind(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        failure: Box<Failure>,
    ) -> Outcome<()> {
        let mut failure = failure;
        loop {
            match self.handle(program, machine, failure) {
                Ok(()) => return Ok(()),
                // A continuation that failed in turn.
                Err((again, true)) => failure = again,
                Err((failure, false)) => return Err(failure),
            }
        }
    }

    fn handle(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        failure: Box<Failure>,
    ) -> Result<(), (Box<Failure>, bool)> {
        if self.failed_at.is_none() {
            self.failed_at = self.place(machine);
        }
        if matches!(*failure, Failure::Stop(_)) {
            self.leave(program, machine, 0);
            return Err((failure, false));
        }
        // Nothing in a stage whose time is over catches that.
        let expired = self.expired.take();
        let target = match expired {
            Some(depth) => Target::Pipeline(depth),
            None => self.target(program),
        };
        match target {
            Target::Handler(depth) => {
                self.failed_at = None;
                self.leave(program, machine, depth + 1);
                let value = match *failure {
                    Failure::Raised(value) => value,
                    Failure::Fault(fault) => fault.to_value(),
                    Failure::Stop(_) => Value::Nil, // went out above
                };
                if let Some(frame) = self.frames.last_mut() {
                    let function = &program.functions[frame.function as usize];
                    if let Some(handler) = function.handler(frame.pc.saturating_sub(1)) {
                        frame.pc = handler.target as usize;
                        let register = frame.base + usize::from(handler.register);
                        self.stack[register] = value;
                    }
                }
                Ok(())
            }
            Target::Pipeline(depth) => {
                // A stage that returns a Result returns `Err`, which says the same.
                self.failed_at = None;
                self.leave(program, machine, depth + 1);
                let Some(mut frame) = self.frames.pop() else {
                    return Err((failure, false));
                };
                self.clear(program, frame.function, frame.base);
                let next = match frame.ret.then.as_deref_mut() {
                    Some(Continuation::Pipeline(run)) if expired.is_some() => run.expired(),
                    Some(Continuation::Pipeline(run)) => run.failed(&failure),
                    _ => Next::Done(Value::Nil),
                };
                match self.follow(program, machine, next, frame.ret) {
                    Ok(effect) => {
                        self.queued = effect;
                        Ok(())
                    }
                    Err(failure) => Err((failure, true)),
                }
            }
            Target::None => {
                let returns_result = self.frames.last().is_some_and(|frame| {
                    program.functions[frame.function as usize].returns == Returns::Result
                });
                match *failure {
                    Failure::Raised(value) if returns_result => {
                        self.failed_at = None;
                        match self.give_back(program, machine, Value::err(value)) {
                            Ok(effect) => {
                                self.queued = effect;
                                Ok(())
                            }
                            Err(failure) => Err((failure, true)),
                        }
                    }
                    other => {
                        self.leave(program, machine, 0);
                        Err((Box::new(other), false))
                    }
                }
            }
        }
    }

    /// The innermost `try` or boundary.
    fn target(&self, program: &Program) -> Target {
        for (depth, frame) in self.frames.iter().enumerate().rev() {
            let function = &program.functions[frame.function as usize];
            if !function.handlers.is_empty()
                && function.handler(frame.pc.saturating_sub(1)).is_some()
            {
                return Target::Handler(depth);
            }
            if let Some(Continuation::Pipeline(PipelineRun { .. })) = frame.ret.then.as_deref() {
                // Rule 2 comes first for the stage itself, and gives the same.
                return Target::Pipeline(depth);
            }
        }
        Target::None
    }

    /// Leaves frames until so many are left. A changed `self` goes back even so: it was taken out of
    /// its place, and must not be lost.
    fn leave(&mut self, program: &Program, machine: &mut Machine, depth: usize) {
        while self.frames.len() > depth {
            let Some(frame) = self.frames.pop() else {
                return;
            };
            if let Some(then) = frame.ret.then
                && let Continuation::WriteBack(back) = *then
            {
                let object = self.stack[frame.base].take();
                let site = &program.sites[back.site as usize];
                let mut root = self.stack[back.root].take();
                // It was there when it was taken out.
                let _ = place::put_back(machine, &mut root, &site.path, &back.keys, object);
                self.stack[back.root] = root;
            }
            self.clear(program, frame.function, frame.base);
        }
    }
}
