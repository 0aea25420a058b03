//! Calls: of functions, closures, methods, built-ins, tools and the host.

use std::sync::Arc;

mod receiver;

use super::fiber::{Fiber, Frame, Return};
use super::machine::Machine;
use super::operand::fill;
use super::place;
use super::{Continuation, Effect, Failure, Fault, ModelCall, Next, Outcome, Reply, Stop};
use crate::load::{Function, Op, Program, Returns};
use crate::natives::{Context, Native};
use crate::value::{Boxed, RefKind, Value};
use receiver::by_name;

/// The fault of a call with too few or too many arguments.
pub(super) fn wrong_count(function: &Function, argc: usize) -> Box<Failure> {
    let hidden = usize::from(function.has_self);
    let (least, most) = (function.required - hidden, function.arity - hidden);
    let expected = if least == most {
        most.to_string()
    } else {
        format!("{least} to {most}")
    };
    Fault::type_error(format!(
        "function '{}' expects {expected} arguments, got {}",
        function.name,
        argc.saturating_sub(hidden)
    ))
}

/// Calls a built-in that is a value: in the middle of another instruction, which cannot be done again.
fn call_native(
    machine: &mut Machine,
    native: &'static Native,
    arguments: &mut [Value],
) -> Outcome<Reply> {
    let repeats = machine.meter.repeating(false);
    let mut context = Context {
        machine,
        schema: None,
    };
    let reply = native.call(&mut context, arguments);
    machine.meter.repeating(repeats);
    reply
}

impl Fiber {
    /// Enters a function, with its registers behind all others.
    pub(super) fn enter(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        function: u32,
        arguments: Vec<Value>,
        captures: &[Value],
        ret: Return,
    ) -> Outcome<()> {
        let callee = &program.functions[function as usize];
        let argc = arguments.len();
        let base = self.frames.last().map_or(0, |frame| {
            frame.base + program.functions[frame.function as usize].registers
        });
        self.make_room(callee, machine, base, argc)?;
        self.begin(callee, function, base, arguments, captures, ret);
        Ok(())
    }

    /// Puts arguments and captures into registers, for which there is room, and begins.
    pub(super) fn begin(
        &mut self,
        callee: &Function,
        function: u32,
        base: usize,
        arguments: Vec<Value>,
        captures: &[Value],
        ret: Return,
    ) {
        let argc = arguments.len();
        for (place, argument) in arguments.into_iter().enumerate() {
            self.stack[base + place] = argument;
        }
        fill(callee, &mut self.stack[base..], argc);
        for (place, capture) in captures.iter().take(callee.captures).enumerate() {
            self.stack[base + callee.arity + place] = capture.clone();
        }
        self.frames.push(Frame {
            function,
            pc: 0,
            base,
            ret,
        });
    }

    /// Enters a function whose arguments already lie in a row: they become its first registers.
    fn enter_at(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        function: u32,
        (first, argc): (usize, usize),
        ret: Return,
    ) -> Outcome<()> {
        let callee = &program.functions[function as usize];
        self.make_room(callee, machine, first, argc)?;
        fill(callee, &mut self.stack[first..], argc);
        self.frames.push(Frame {
            function,
            pc: 0,
            base: first,
            ret,
        });
        Ok(())
    }

    /// Looks whether a function can be called so, and makes room for its registers.
    fn make_room(
        &mut self,
        callee: &Function,
        machine: &mut Machine,
        base: usize,
        argc: usize,
    ) -> Outcome<()> {
        if self.frames.len() >= machine.limits.depth {
            return Err(Failure::stop(Stop::Depth(machine.limits.depth)));
        }
        if argc > callee.arity || argc < callee.required {
            return Err(wrong_count(callee, argc));
        }
        let needed = base + callee.registers;
        if self.stack.len() < needed || self.frames.len() == self.frames.capacity() {
            // Its arguments are on their way already: what is too much is seen at the next look.
            machine.meter.forgiving(true);
            let grown = self.grow(machine, needed);
            machine.meter.forgiving(false);
            grown?;
        }
        Ok(())
    }

    /// Leaves the topmost frame with a value.
    pub(super) fn give_back(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        value: Value,
    ) -> Outcome<Option<Effect>> {
        let Some(mut frame) = self.frames.pop() else {
            return Ok(None);
        };
        if let Some(Continuation::WriteBack(back)) = frame.ret.then.as_deref() {
            let object = self.stack[frame.base].take();
            let site = &program.sites[back.site as usize];
            let mut root = self.stack[back.root].take();
            let result = place::put_back(machine, &mut root, &site.path, &back.keys, object);
            self.stack[back.root] = root;
            result?;
            frame.ret.then = None;
        }
        self.clear(program, frame.function, frame.base);
        self.deliver(program, machine, value, frame.ret)
    }

    /// Empties the registers of a frame that is left.
    pub(super) fn clear(&mut self, program: &Program, function: u32, base: usize) {
        let count = program.functions[function as usize].registers;
        let end = (base + count).min(self.stack.len());
        for register in &mut self.stack[base..end] {
            *register = Value::Nil;
        }
    }

    /// Brings a value to where it goes.
    pub(super) fn deliver(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        value: Value,
        mut ret: Return,
    ) -> Outcome<Option<Effect>> {
        match ret.then.as_mut() {
            None => {
                match self.stack.get_mut(ret.dst) {
                    Some(register) => *register = value,
                    None => self.result = Some(value),
                }
                Ok(None)
            }
            Some(then) => {
                let next = then.step(value);
                self.follow(program, machine, next, ret)
            }
        }
    }

    /// Does what a continuation asks for.
    pub(super) fn follow(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        next: Next,
        mut ret: Return,
    ) -> Outcome<Option<Effect>> {
        match next {
            Next::Done(value) => {
                ret.then = None;
                machine.meter.note(&value);
                self.deliver(program, machine, value, ret)
            }
            Next::Call(Value::Native(native), arguments) => {
                self.each_native(program, machine, native, arguments, ret)
            }
            Next::Call(function, arguments) => {
                // What is gathered grows.
                machine.meter.charge(32)?;
                self.apply(program, machine, &function, arguments, ret)
            }
            Next::Enter(function, arguments) => {
                self.fuel -= 4;
                if self.fuel < 0 || machine.meter.is_due() {
                    self.refuel(machine)?;
                }
                self.enter(program, machine, function, arguments, &[], ret)?;
                Ok(None)
            }
            Next::Effect(effect) => {
                if let Effect::Emit {
                    channel, payload, ..
                } = &effect
                {
                    machine.note_emit(channel, payload.clone());
                }
                self.pending = Some(ret);
                Ok(Some(effect))
            }
        }
    }

    /// Calls a built-in on behalf of a continuation, again and again while it asks for that: elements of
    /// an array may be many.
    fn each_native(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        native: &'static Native,
        arguments: Vec<Value>,
        mut ret: Return,
    ) -> Outcome<Option<Effect>> {
        let (mut native, mut arguments) = (native, arguments);
        loop {
            machine.meter.work(8)?;
            self.weigh(machine, ret.then.as_deref())?;
            let reply = call_native(machine, native, &mut arguments)?;
            let (value, then) = match (reply, ret.then.as_mut()) {
                (Reply::Value(value), Some(then)) => (value, then),
                (reply, _) => return self.reply(program, machine, reply, ret),
            };
            machine.meter.note(&value);
            match then.step(value) {
                Next::Call(Value::Native(next), more) => (native, arguments) = (next, more),
                next => return self.follow(program, machine, next, ret),
            }
        }
    }

    /// Calls a function value.
    fn apply(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        function: &Value,
        arguments: Vec<Value>,
        ret: Return,
    ) -> Outcome<Option<Effect>> {
        match function {
            Value::Function(closure) => {
                self.fuel -= 4;
                if self.fuel < 0 || machine.meter.is_due() {
                    self.refuel(machine)?;
                }
                let captures = &closure.captures;
                self.enter(program, machine, closure.function, arguments, captures, ret)?;
                Ok(None)
            }
            Value::Native(native) => {
                let mut arguments = arguments;
                self.weigh(machine, ret.then.as_deref())?;
                let reply = call_native(machine, native, &mut arguments)?;
                self.reply(program, machine, reply, ret)
            }
            Value::Ref(reference) if reference.kind == RefKind::Model => {
                // The arguments are not in their registers any more: this cannot be done again.
                let repeats = machine.meter.repeating(false);
                let prompt = arguments.first().map(|it| machine.meter.shown(it));
                machine.meter.repeating(repeats);
                let prompt = prompt.transpose()?.map(String::from).unwrap_or_default();
                self.pending = Some(ret);
                Ok(Some(Effect::Model(ModelCall {
                    model: reference.name.clone(),
                    method: Arc::from("execute"),
                    prompt,
                    schema: None,
                    builder: None,
                })))
            }
            other => Err(Fault::type_error(format!(
                "cannot call value of type {}",
                other.type_name()
            ))),
        }
    }

    /// Does what a built-in replied.
    fn reply(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        reply: Reply,
        mut ret: Return,
    ) -> Outcome<Option<Effect>> {
        match reply {
            Reply::Value(value) => {
                machine.meter.note_shell(&value);
                self.deliver(program, machine, value, ret)
            }
            Reply::Effect(effect) => {
                self.pending = Some(ret);
                Ok(Some(effect))
            }
            Reply::Call {
                function,
                arguments,
                then,
            } => {
                if ret.then.is_some() {
                    // A built-in that is itself called by a built-in and calls again: the inner one
                    // needs a place of its own, which only functions of the program have.
                    return Err(Fault::type_error(
                        "a built-in that calls functions cannot be passed as a function: wrap it in a closure",
                    ));
                }
                ret.then = Some(Box::new(then));
                self.apply(program, machine, &function, arguments, ret)
            }
            Reply::Pipeline(mut run) => {
                if ret.then.is_some() {
                    return Err(Fault::type_error(
                        "a pipeline cannot be passed as a function: wrap it in a closure",
                    ));
                }
                let next = run.begin();
                ret.then = Some(Box::new(Continuation::Pipeline(run)));
                self.follow(program, machine, next, ret)
            }
        }
    }

    /// Performs the instructions that may leave the frame.
    #[allow(clippy::too_many_lines)] // one arm for each instruction
    pub(super) fn call(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        op: Op,
        base: usize,
    ) -> Outcome<Option<Effect>> {
        match op {
            Op::CallNative {
                base: first,
                argc,
                site,
            } => {
                let first = base + usize::from(first);
                let site = &program.sites[site as usize];
                let Some(native) = site.native else {
                    return Ok(None);
                };
                let mut context = Context {
                    machine,
                    schema: site.schema.as_deref(),
                };
                let reply = native.call(
                    &mut context,
                    &mut self.stack[first..first + usize::from(argc)],
                )?;
                self.reply(program, machine, reply, Return::to(first))
            }
            Op::CallValue {
                base: first,
                argc,
                site,
            } => {
                let first = base + usize::from(first);
                let argc = usize::from(argc);
                let function = self.stack[first + argc].take();
                let site = &program.sites[site as usize];
                let arguments = self.row(first, argc);
                let arguments = match &function {
                    Value::Function(closure) => by_name(
                        &program.functions[closure.function as usize],
                        site,
                        arguments,
                    )?,
                    _ => arguments,
                };
                self.apply(program, machine, &function, arguments, Return::to(first))
            }
            Op::CallMethod {
                base: first,
                argc,
                site,
            } => {
                let first = base + usize::from(first);
                self.method(program, machine, first, usize::from(argc), site)
            }
            Op::PlaceCall {
                base: first,
                argc,
                root,
                site,
            } => self.place_call(
                program,
                machine,
                (base + usize::from(root), base + usize::from(first)),
                usize::from(argc),
                site,
            ),
            Op::CallTool {
                base: first,
                argc,
                site,
            } => {
                let first = base + usize::from(first);
                let site = &program.sites[site as usize];
                let arguments = self.row(first, usize::from(argc));
                let tool = site.tool.clone().unwrap_or_else(|| Arc::from(""));
                self.tool(program, machine, &tool, site, arguments, first)
            }
            Op::Emit { base: first } | Op::EmitAwait { base: first } => {
                let first = base + usize::from(first);
                let channel: String = machine.meter.shown(&self.stack[first])?.into();
                machine.meter.extent(&self.stack[first + 1])?;
                let payload = self.stack[first + 1].take();
                machine.note_emit(&channel, payload.clone());
                self.pending = Some(Return::to(first));
                let wait = matches!(op, Op::EmitAwait { .. });
                Ok(Some(Effect::Emit {
                    channel,
                    payload,
                    wait,
                }))
            }
            Op::Listen {
                base: first,
                count,
                site,
            } => {
                let first = base + usize::from(first);
                self.listen(
                    program,
                    machine,
                    first,
                    usize::from(count),
                    &program.sites[site as usize],
                )
            }
            Op::Propagate { dst, src } => {
                let function = self.frames.last().map(|frame| frame.function);
                let returns = function.map(|function| program.functions[function as usize].returns);
                let value = self.stack[base + usize::from(src)].clone();
                let value = match value {
                    Value::Ok(inner) | Value::Some(inner) => Boxed::unwrap(inner),
                    Value::Err(inner) => {
                        return Err(Box::new(Failure::Raised(Boxed::unwrap(inner))));
                    }
                    Value::None if returns == Some(Returns::Option) => {
                        return self.give_back(program, machine, Value::None);
                    }
                    Value::None => return Err(Failure::raised("value is None")),
                    other => {
                        return Err(Fault::type_error(format!(
                            "? needs a Result or an Option, got {}",
                            other.type_name()
                        )));
                    }
                };
                self.stack[base + usize::from(dst)] = value;
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}
