//! Calls: of functions, closures, methods, built-ins, tools and the host.

use std::sync::Arc;

use super::execute::fill;
use super::fiber::{Fiber, Frame, Return};
use super::machine::Machine;
use super::operate::indexes;
use super::place::{self, WriteBack};
use super::{
    Continuation, Effect, Failure, Fault, FaultKind, Limits, ListenCall, McpCall, ModelCall, Next,
    Outcome, Reply, Stop,
};
use crate::load::{CallSite, Function, Method, Op, Program, Returns};
use crate::natives::{self, Context};
use crate::value::{Boxed, Closure, RefKind, Reference, Value};

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

impl Fiber {
    /// Enters a function, with its registers behind all others.
    pub(super) fn enter(
        &mut self,
        program: &Program,
        limits: &Limits,
        function: u32,
        arguments: Vec<Value>,
        captures: &[Value],
        ret: Return,
    ) -> Outcome<()> {
        let callee = &program.functions[function as usize];
        if self.frames.len() >= limits.depth {
            return Err(Failure::stop(Stop::Depth(limits.depth)));
        }
        let argc = arguments.len();
        if argc > callee.arity || argc < callee.required {
            return Err(wrong_count(callee, argc));
        }
        let base = self.frames.last().map_or(0, |frame| {
            frame.base + program.functions[frame.function as usize].registers
        });
        if self.stack.len() < base + callee.registers {
            self.stack.resize(base + callee.registers + 64, Value::Nil);
        }
        for (place, argument) in arguments.into_iter().enumerate() {
            self.stack[base + place] = argument;
        }
        fill(callee, &mut self.stack[base..], argc)?;
        for (place, capture) in captures.iter().take(callee.captures).enumerate() {
            self.stack[base + callee.arity + place] = capture.clone();
        }
        self.frames.push(Frame {
            function,
            pc: 0,
            base,
            ret,
        });
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
            let found = place::find(machine, &mut root, &site.path, &back.keys);
            let result = found.map(|slot| *slot = object);
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
                let next = then.step(value)?;
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
                machine.heap.note(&value);
                self.deliver(program, machine, value, ret)
            }
            Next::Call(function, arguments) => {
                self.apply(program, machine, &function, arguments, ret)
            }
            Next::Enter(function, arguments) => {
                self.enter(program, &machine.limits, function, arguments, &[], ret)?;
                Ok(None)
            }
            Next::Effect(effect) => {
                self.pending = Some(ret);
                Ok(Some(effect))
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
                if self.fuel < 0 || machine.heap.is_due() {
                    self.refuel(machine)?;
                }
                let captures = &closure.captures;
                self.enter(
                    program,
                    &machine.limits,
                    closure.function,
                    arguments,
                    captures,
                    ret,
                )?;
                Ok(None)
            }
            Value::Native(native) => {
                let mut arguments = arguments;
                let reply = native.call(
                    &mut Context {
                        machine,
                        schema: None,
                    },
                    &mut arguments,
                )?;
                self.reply(program, machine, reply, ret)
            }
            Value::Ref(reference) if reference.kind == RefKind::Model => {
                let prompt = arguments.first().map(Value::to_string).unwrap_or_default();
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
                machine.heap.note(&value);
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
                let channel = self.stack[first].take().to_string();
                let payload = self.stack[first + 1].take();
                machine.emits.push((channel.clone(), payload.clone()));
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

    /// Values out of registers in a row.
    fn row(&mut self, first: usize, count: usize) -> Vec<Value> {
        self.stack[first..first + count]
            .iter_mut()
            .map(Value::take)
            .collect()
    }

    /// `receiver.method(arguments)` on a copy; the receiver lies at `first`.
    fn method(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        first: usize,
        argc: usize,
        site: u32,
    ) -> Outcome<Option<Effect>> {
        let site = &program.sites[site as usize];
        if let Some(function) = user_method(site, &self.stack[first]) {
            let arguments = self.row(first, argc + 1);
            let arguments = by_name(&program.functions[function as usize], site, arguments)?;
            let ret = Return::to(first);
            self.fuel -= 4;
            if self.fuel < 0 || machine.heap.is_due() {
                self.refuel(machine)?;
            }
            self.enter(program, &machine.limits, function, arguments, &[], ret)?;
            return Ok(None);
        }
        let mut receiver = self.stack[first].take();
        if let Value::Ref(reference) = &receiver
            && matches!(reference.kind, RefKind::Tool | RefKind::Mcp)
        {
            let tool = reference.name.clone();
            let arguments = self.row(first + 1, argc);
            return self.tool(program, machine, &tool, site, arguments, first);
        }
        if let Some(function) = field_function(&receiver, site) {
            let arguments = self.row(first + 1, argc);
            return self.apply(program, machine, &function, arguments, Return::to(first));
        }
        let arguments = &mut self.stack[first + 1..first + 1 + argc];
        let mut context = Context {
            machine,
            schema: site.schema.as_deref(),
        };
        let reply = natives::call_method(&mut context, &mut receiver, site, arguments)?;
        self.reply(program, machine, reply, Return::to(first))
    }

    /// A method on a place, which it may change.
    fn place_call(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        (root, first): (usize, usize),
        argc: usize,
        number: u32,
    ) -> Outcome<Option<Effect>> {
        let site = &program.sites[number as usize];
        // The most frequent one by far.
        if site.path.is_empty()
            && argc == 1
            && site.method == Some(Method::Push)
            && site.functions.is_empty()
            && matches!(self.stack[root], Value::Array(_))
        {
            let item = self.stack[first].take();
            machine.heap.charge(20)?;
            if let Value::Array(array) = &mut self.stack[root] {
                Arc::make_mut(array).items_mut().push(item);
            }
            return Ok(None);
        }
        let keys = self.row(first, indexes(&site.path));
        let after = first + keys.len();
        let mut object = self.stack[root].take();
        let slot = match place::find(machine, &mut object, &site.path, &keys) {
            Ok(slot) => slot,
            Err(failure) => {
                self.stack[root] = object;
                return Err(failure);
            }
        };
        let function = user_method(site, slot);
        if let Some(function) = function
            && program.functions[function as usize].mut_self
        {
            // Moved out, so that the method changes it and no copy of it.
            let receiver = slot.take();
            self.stack[root] = object;
            let mut arguments = vec![receiver];
            arguments.extend(self.row(after, argc));
            let back = Continuation::WriteBack(WriteBack {
                root,
                site: number,
                keys,
            });
            let callee = &program.functions[function as usize];
            let ret = Return {
                dst: first,
                then: Some(Box::new(back)),
            };
            if arguments.len() > callee.arity || arguments.len() < callee.required {
                let failure = wrong_count(callee, arguments.len());
                self.restore(program, machine, ret, arguments.swap_remove(0));
                return Err(failure);
            }
            let arguments = by_name(callee, site, arguments)?;
            self.enter(program, &machine.limits, function, arguments, &[], ret)?;
            return Ok(None);
        }
        let special = function.is_some()
            || field_function(slot, site).is_some()
            || matches!(slot, Value::Ref(_) | Value::Builder(_));
        if special {
            // Nothing is changed in place: the same as on a copy.
            let receiver = slot.clone();
            self.stack[root] = object;
            let arguments = self.row(after, argc);
            self.stack[first] = receiver;
            for (place, argument) in arguments.into_iter().enumerate() {
                self.stack[first + 1 + place] = argument;
            }
            return self.method(program, machine, first, argc, number);
        }
        let mut receiver = slot.take();
        self.stack[root] = object;
        let arguments = &mut self.stack[after..after + argc];
        let mut context = Context {
            machine,
            schema: site.schema.as_deref(),
        };
        let reply = natives::call_method(&mut context, &mut receiver, site, arguments);
        let mut object = self.stack[root].take();
        let back =
            place::find(machine, &mut object, &site.path, &keys).map(|slot| *slot = receiver);
        self.stack[root] = object;
        back?;
        self.reply(program, machine, reply?, Return::to(first))
    }

    /// Puts a receiver back that was taken out for a call that did not happen.
    fn restore(&mut self, program: &Program, machine: &mut Machine, ret: Return, value: Value) {
        if let Some(then) = ret.then
            && let Continuation::WriteBack(back) = *then
        {
            let site = &program.sites[back.site as usize];
            let mut object = self.stack[back.root].take();
            if let Ok(slot) = place::find(machine, &mut object, &site.path, &back.keys) {
                *slot = value;
            }
            self.stack[back.root] = object;
        }
    }

    /// A method of a tool or an MCP server's tool, called from code.
    fn tool(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        tool: &Arc<str>,
        site: &CallSite,
        arguments: Vec<Value>,
        dst: usize,
    ) -> Outcome<Option<Effect>> {
        let Some(methods) = program.tools.get(tool) else {
            let first_named = arguments.len() - site.names.len();
            let arguments = arguments
                .into_iter()
                .enumerate()
                .map(|(place, value)| {
                    let name = place
                        .checked_sub(first_named)
                        .map(|place| site.names[place].clone());
                    (name, value)
                })
                .collect();
            self.pending = Some(Return::to(dst));
            let tool_name = site.name.clone();
            return Ok(Some(Effect::Mcp(McpCall {
                server: tool.clone(),
                tool: tool_name,
                arguments,
            })));
        };
        let Some(function) = methods.get(&site.name) else {
            let text = format!("no method '{}' on tool {tool}", site.name);
            return Err(Fault::of(FaultKind::Type, text));
        };
        let callee = &program.functions[*function as usize];
        let mut all = Vec::with_capacity(arguments.len() + 1);
        if callee.has_self {
            all.push(Value::Ref(Arc::new(Reference {
                kind: RefKind::Tool,
                name: tool.clone(),
            })));
        }
        all.extend(arguments);
        let all = by_name(callee, site, all)?;
        self.enter(
            program,
            &machine.limits,
            *function,
            all,
            &[],
            Return::to(dst),
        )?;
        Ok(None)
    }

    fn listen(
        &mut self,
        program: &Program,
        first: usize,
        count: usize,
        site: &CallSite,
    ) -> Outcome<Option<Effect>> {
        let (target, builder) = match self.stack[first].take() {
            Value::Ref(reference) if reference.kind == RefKind::Agent => (reference, None),
            Value::Builder(builder) => (builder.target.clone(), Some(builder)),
            other => {
                return Err(Fault::type_error(format!(
                    "cannot listen to {}",
                    other.type_name()
                )));
            }
        };
        let prompt = self.stack[first + 1].take().to_string();
        let mut captures = self.row(first + 2, count).into_iter();
        let declared = program
            .listens
            .get(&site.name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let handlers = declared
            .iter()
            .map(|(kind, function, count)| {
                let closure = Closure {
                    function: *function,
                    name: program.functions[*function as usize].name.clone(),
                    captures: captures.by_ref().take(*count).collect(),
                };
                (kind.clone(), Value::Function(Arc::new(closure)))
            })
            .collect();
        self.pending = Some(Return::to(first));
        Ok(Some(Effect::Listen(ListenCall {
            call: ModelCall {
                model: target.name.clone(),
                method: Arc::from("execute"),
                prompt,
                schema: None,
                builder,
            },
            listen: site.name.clone(),
            handlers,
        })))
    }
}

/// The program's own method for a receiver.
fn user_method(site: &CallSite, receiver: &Value) -> Option<u32> {
    if site.functions.is_empty() {
        return None;
    }
    let name = match receiver {
        Value::Ref(reference) => &*reference.name,
        other => other.type_name(),
    };
    site.functions
        .iter()
        .find(|(kind, _)| **kind == *name)
        .map(|(_, function)| *function)
}

/// A function in a field that is called like a method.
fn field_function(receiver: &Value, site: &CallSite) -> Option<Value> {
    let field = match receiver {
        Value::Struct(object) => object.get(&site.name)?,
        Value::Map(map) if site.method.is_none() => map.get(&site.name)?,
        _ => return None,
    };
    matches!(field, Value::Function(_) | Value::Native(_)).then(|| field.clone())
}

/// Puts named arguments where they belong.
fn by_name(function: &Function, site: &CallSite, arguments: Vec<Value>) -> Outcome<Vec<Value>> {
    if site.names.is_empty() {
        return Ok(arguments);
    }
    let positional = arguments.len() - site.names.len();
    let mut ordered: Vec<Value> = Vec::with_capacity(function.arity);
    let mut arguments = arguments.into_iter();
    ordered.extend(arguments.by_ref().take(positional));
    ordered.resize(function.arity.max(positional), Value::Absent);
    for (name, value) in site.names.iter().zip(arguments) {
        let place = function.params.iter().position(|param| param == name);
        match place {
            Some(place) if place >= positional => ordered[place] = value,
            _ => {
                return Err(Fault::type_error(format!(
                    "function '{}' has no further parameter '{name}'",
                    function.name
                )));
            }
        }
    }
    if ordered
        .iter()
        .take(function.required)
        .any(|value| matches!(value, Value::Absent))
    {
        return Err(wrong_count(function, positional));
    }
    Ok(ordered)
}
