//! Calls on something: methods, places, tools, agents.

use std::sync::Arc;

use super::wrong_count;
use crate::load::{CallSite, Function, Method, Program};
use crate::natives::{self, Context};
use crate::value::{Array, Closure, RefKind, Reference, Value, grow, own_array};
use crate::vm::fiber::{Fiber, Return};
use crate::vm::machine::Machine;
use crate::vm::operate::indexes;
use crate::vm::place::{self, WriteBack};
use crate::vm::{
    Continuation, Effect, Failure, Fault, FaultKind, ListenCall, McpCall, Meter, ModelCall, Outcome,
};

impl Fiber {
    /// Values out of registers in a row.
    pub(super) fn row(&mut self, first: usize, count: usize) -> Vec<Value> {
        self.stack[first..first + count]
            .iter_mut()
            .map(Value::take)
            .collect()
    }

    /// Puts values back into registers in a row.
    fn put(&mut self, first: usize, values: Vec<Value>) {
        for (register, value) in self.stack[first..].iter_mut().zip(values) {
            *register = value;
        }
    }

    /// `receiver.method(arguments)` on a copy; the receiver lies at `first`.
    pub(super) fn method(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        first: usize,
        argc: usize,
        site: u32,
    ) -> Outcome<Option<Effect>> {
        let site = &program.sites[site as usize];
        if let Some(function) = user_method(site, &self.stack[first]) {
            let ret = Return::to(first);
            if site.names.is_empty() {
                self.enter_at(program, machine, function, (first, argc + 1), ret)?;
                return Ok(None);
            }
            let arguments = self.row(first, argc + 1);
            let arguments = by_name(&program.functions[function as usize], site, arguments)?;
            self.enter(program, machine, function, arguments, &[], ret)?;
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
        let reply = natives::call_method(&mut context, &mut receiver, site, arguments);
        if reply.is_err() {
            // It may be done again.
            self.stack[first] = receiver;
        }
        self.reply(program, machine, reply?, Return::to(first))
    }

    /// A method on a place, which it may change.
    pub(super) fn place_call(
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
            if let Value::Array(array) = &mut self.stack[root]
                && let Err((failure, item)) = push(array, item, &mut machine.meter)
            {
                self.stack[first] = item;
                return Err(failure);
            }
            return Ok(None);
        }
        let keys = self.row(first, indexes(&site.path));
        let after = first + keys.len();
        let mut object = self.stack[root].take();
        let slot = match place::find(machine, &mut object, &site.path, &keys) {
            Ok((slot, _)) => slot,
            Err(failure) => {
                self.stack[root] = object;
                self.put(first, keys);
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
            if argc + 1 > callee.arity || site.names.is_empty() && argc + 1 < callee.required {
                self.restore(program, machine, ret, receiver);
                return Err(wrong_count(callee, argc + 1));
            }
            if site.names.is_empty() && self.frames.len() < machine.limits.depth {
                for place in (0..argc).rev() {
                    self.stack[first + 1 + place] = self.stack[after + place].take();
                }
                self.stack[first] = receiver;
                self.enter_at(program, machine, function, (first, argc + 1), ret)?;
                return Ok(None);
            }
            let mut arguments = vec![receiver.clone()];
            arguments.extend(self.row(after, argc));
            let arguments = match by_name(callee, site, arguments) {
                Ok(arguments) => arguments,
                Err(failure) => {
                    self.restore(program, machine, ret, receiver);
                    return Err(failure);
                }
            };
            drop(receiver);
            self.enter(program, machine, function, arguments, &[], ret)?;
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
            self.put(first + 1, arguments);
            return self.method_once(program, machine, first, argc, number);
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
        let back = place::put_back(machine, &mut object, &site.path, &keys, receiver);
        self.stack[root] = object;
        back?;
        if reply.is_err() {
            // It may be done again.
            self.put(first, keys);
        }
        self.reply(program, machine, reply?, Return::to(first))
    }

    /// A method on a copy whose registers are not as they were: it cannot be done again.
    fn method_once(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        first: usize,
        argc: usize,
        number: u32,
    ) -> Outcome<Option<Effect>> {
        self.weigh(machine, None)?;
        let repeats = machine.meter.repeating(false);
        let called = self.method(program, machine, first, argc, number);
        machine.meter.repeating(repeats);
        called
    }

    /// Puts a receiver back that was taken out for a call that did not happen.
    pub(super) fn restore(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        ret: Return,
        value: Value,
    ) {
        if let Some(then) = ret.then
            && let Continuation::WriteBack(back) = *then
        {
            let site = &program.sites[back.site as usize];
            let mut object = self.stack[back.root].take();
            // It was there when it was taken out.
            let _ = place::put_back(machine, &mut object, &site.path, &back.keys, value);
            self.stack[back.root] = object;
        }
    }

    /// A method of a tool or an MCP server's tool, called from code.
    pub(super) fn tool(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        tool: &Arc<str>,
        site: &CallSite,
        arguments: Vec<Value>,
        dst: usize,
    ) -> Outcome<Option<Effect>> {
        let Some(methods) = program.tools.get(tool) else {
            // Whoever sends them has no meter.
            for argument in &arguments {
                machine.meter.extent(argument)?;
            }
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
        self.enter(program, machine, *function, all, &[], Return::to(dst))?;
        Ok(None)
    }

    pub(super) fn listen(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        first: usize,
        count: usize,
        site: &CallSite,
    ) -> Outcome<Option<Effect>> {
        let (target, builder) = match &self.stack[first] {
            Value::Ref(reference) if reference.kind == RefKind::Agent => (reference.clone(), None),
            Value::Builder(builder) => (builder.target.clone(), Some(builder.clone())),
            other => {
                return Err(Fault::type_error(format!(
                    "cannot listen to {}",
                    other.type_name()
                )));
            }
        };
        let prompt = machine.meter.shown(&self.stack[first + 1])?.into();
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

/// Appends to an array; gives the item back if there is no room.
#[inline]
fn push(
    array: &mut Arc<Array>,
    item: Value,
    meter: &mut Meter,
) -> Result<(), (Box<Failure>, Value)> {
    if let Some(array) = Arc::get_mut(array)
        && array.items().len() < array.items_mut().capacity()
    {
        array.items_mut().push(item);
        return Ok(());
    }
    let ready = own_array(array, meter).and_then(|array| {
        let items = array.items_mut();
        if items.len() == items.capacity() {
            grow(items, meter)?;
        }
        Ok(items)
    });
    match ready {
        Ok(items) => {
            items.push(item);
            Ok(())
        }
        Err(failure) => Err((failure, item)),
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
pub(super) fn by_name(
    function: &Function,
    site: &CallSite,
    arguments: Vec<Value>,
) -> Outcome<Vec<Value>> {
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
