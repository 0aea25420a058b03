//! Calls: of functions, methods, tools, built-ins, variants; and pipes, which are calls.

use std::collections::HashMap;

use super::Emitter;
use crate::ast::{
    Argument, Call, Expr, ExprKind, Function, Param, PipeStage, PostfixOp, PrefixOp, Receiver, Type,
};
use crate::ir::{Instruction, Opcode};
use crate::source::Span;
use crate::symbols::Symbol;

/// What stands in the brackets of a call, and what a pipe puts in front of it.
#[derive(Clone, Copy)]
struct Arguments<'e> {
    /// The local that holds what comes through the pipe.
    piped: Option<&'e str>,
    list: &'e [Argument],
}

impl Arguments<'_> {
    fn count(&self) -> u32 {
        u32::try_from(self.list.len() + usize::from(self.piped.is_some())).unwrap_or(u32::MAX)
    }

    fn names(&self) -> Vec<&str> {
        let names = self.list.iter().filter_map(|it| it.name.as_ref());
        names.map(|name| name.text.as_str()).collect()
    }
}

impl Emitter<'_> {
    pub(super) fn is_emit(base: &Expr) -> bool {
        let name = base.as_path().and_then(|path| path.single());
        name.is_some_and(|name| name.text == "emit")
    }

    /// `emit(channel, payload)` by one of its opcodes; nothing is left of `EMIT`.
    pub(super) fn emit_call(&mut self, step: &PostfixOp, op: Opcode) {
        let span = step.span();
        let PostfixOp::Call(call) = step else {
            return self.nil();
        };
        for index in 0..2 {
            match call.arguments.get(index) {
                Some(argument) => self.expr(&argument.value),
                None => self.nil(),
            }
        }
        self.op_at(span, op);
    }

    pub(super) fn postfix(&mut self, base: &Expr, steps: &[PostfixOp]) {
        self.postfix_piped(base, steps, None);
    }

    /// A value and what is done with it. What comes through a pipe goes into the last call.
    fn postfix_piped(&mut self, base: &Expr, steps: &[PostfixOp], piped: Option<&str>) {
        let only = |index: usize| piped.filter(|_| index + 1 == steps.len());
        let mut next = match steps.first() {
            Some(first) if self.known_call(base, first, only(0)) => 1,
            _ => self.place_call(base, steps, piped),
        };
        if next == 0 {
            if let Some(PostfixOp::Call(call)) = steps.first() {
                self.value_call(base, call, only(0));
                next = 1;
            } else {
                self.expr(base);
            }
        }
        for (index, step) in steps.iter().enumerate().skip(next) {
            self.step(step, only(index));
        }
    }

    fn step(&mut self, step: &PostfixOp, piped: Option<&str>) {
        let span = step.span();
        match step {
            PostfixOp::Call(call) => {
                let slot = self.body().temporary("callee");
                self.store(&slot);
                let count = self.arguments(call, piped);
                self.load(&slot);
                self.finish_call(Instruction::new(Opcode::Call), call, count, span);
            }
            PostfixOp::Field(name) => {
                self.push_at(
                    span,
                    Instruction::new(Opcode::FieldGet).name(name.text.as_str()),
                );
            }
            PostfixOp::Method { name, types, call } => {
                let count = self.arguments(call, piped);
                let mut method = Instruction::new(Opcode::CallMethod).name(name.text.as_str());
                if let Some(ty) = types.first() {
                    method = method.schema(self.type_text(ty));
                }
                self.finish_call(method, call, count, span);
            }
            PostfixOp::Index(index, _) => {
                self.expr(index);
                self.op_at(span, Opcode::IndexGet);
            }
            PostfixOp::Try(_) => drop(self.op_at(span, Opcode::Propagate)),
            PostfixOp::Await(_) => drop(self.op_at(span, Opcode::Await)),
        }
    }

    /// All arguments in the order of the source. How many.
    fn arguments(&mut self, call: &Call, piped: Option<&str>) -> u32 {
        let arguments = Arguments {
            piped,
            list: &call.arguments,
        };
        if let Some(slot) = piped {
            self.load(slot);
        }
        for argument in &call.arguments {
            self.expr(&argument.value);
        }
        arguments.count()
    }

    fn finish_call(&mut self, call: Instruction, written: &Call, count: u32, span: Span) {
        let arguments = Arguments {
            piped: None,
            list: &written.arguments,
        };
        let names = arguments.names();
        let mut call = call.argc(count);
        if !names.is_empty() {
            call = call.arg(serde_json::json!({ "names": names }));
        }
        self.push_at(span, call);
    }

    /// A call of whatever an expression gives.
    fn value_call(&mut self, base: &Expr, call: &Call, piped: Option<&str>) {
        let local = base.as_path().and_then(|path| path.single());
        let local = local.and_then(|name| self.local(&name.text));
        if let Some(local) = local {
            let count = self.arguments(call, piped);
            self.load(&local.slot);
            return self.finish_call(Instruction::new(Opcode::Call), call, count, call.span);
        }
        self.expr(base);
        self.step(&PostfixOp::Call(call.clone()), piped);
    }

    /// A call whose callee is known by its path. False if this is none.
    fn known_call(&mut self, base: &Expr, step: &PostfixOp, piped: Option<&str>) -> bool {
        let (path, types): (_, &[Type]) = match &base.kind {
            ExprKind::Path(path) => (path, &[]),
            ExprKind::Generic(path, types) => (path, types),
            _ => return false,
        };
        if path
            .single()
            .is_some_and(|name| self.local(&name.text).is_some())
        {
            return false;
        }
        let Some((full, symbol)) = self.symbols.resolve(self.module, path) else {
            return false;
        };
        match (step, symbol) {
            (PostfixOp::Call(call), Symbol::Builtin(it)) => {
                self.builtin_call(it.path, types, step, call, piped);
            }
            (PostfixOp::Call(call), Symbol::Function(it) | Symbol::Method(it)) => {
                self.function_call(&full, it, call, piped);
            }
            (PostfixOp::Call(call), Symbol::ToolMethod(_, it)) => {
                let (tool, method) = full.rsplit_once("::").unwrap_or((&full, ""));
                self.tool_call(tool, method, Some(it), call, piped);
            }
            (PostfixOp::Call(call), Symbol::McpTool) => {
                let (tool, method) = full.rsplit_once("::").unwrap_or((&full, ""));
                self.tool_call(tool, method, None, call, piped);
            }
            (PostfixOp::Call(call), Symbol::Variant(..)) => {
                let (of, variant) = full.rsplit_once("::").unwrap_or(("", &full));
                let count = self.arguments(call, piped);
                let build = Instruction::new(Opcode::BuildEnum)
                    .type_name(of)
                    .name(variant);
                self.push_at(call.span, build.count(count));
            }
            (PostfixOp::Method { name, call, .. }, Symbol::Tool(tool)) => {
                let mut methods = tool.methods.iter();
                let method = methods.find(|it| it.signature.name.text == name.text);
                self.tool_call(&full, &name.text, method, call, piped);
            }
            (PostfixOp::Method { name, call, .. }, Symbol::Mcp(_)) => {
                self.tool_call(&full, &name.text, None, call, piped);
            }
            _ => return false,
        }
        true
    }

    fn builtin_call(
        &mut self,
        path: &str,
        types: &[Type],
        step: &PostfixOp,
        call: &Call,
        piped: Option<&str>,
    ) {
        match path {
            "Map::new" => drop(self.push(Instruction::new(Opcode::BuildMap).count(0))),
            "emit" if piped.is_none() => {
                self.emit_call(step, Opcode::Emit);
                self.nil();
            }
            "emit" => {
                self.arguments(call, piped);
                if call.arguments.is_empty() {
                    self.nil();
                }
                self.op_at(call.span, Opcode::Emit);
                self.nil();
            }
            _ => {
                let count = self.arguments(call, piped);
                let mut native = Instruction::new(Opcode::CallNative).name(path).argc(count);
                if let Some(ty) = types.first() {
                    native = native.schema(self.type_text(ty));
                }
                self.push_at(call.span, native);
            }
        }
    }

    fn function_call(&mut self, path: &str, function: &Function, call: &Call, piped: Option<&str>) {
        let signature = &function.signature;
        let count = self.ordered(signature.receiver, &signature.params, call, piped);
        self.global(path, call.span);
        self.push_at(call.span, Instruction::new(Opcode::Call).argc(count));
    }

    fn tool_call(
        &mut self,
        tool: &str,
        method: &str,
        function: Option<&Function>,
        call: &Call,
        piped: Option<&str>,
    ) {
        let instruction = Instruction::new(Opcode::CallTool).tool(tool).method(method);
        if let Some(function) = function {
            let count = self.ordered(None, &function.signature.params, call, piped);
            self.push_at(call.span, instruction.argc(count));
            return;
        }
        let count = self.arguments(call, piped);
        self.finish_call(instruction, call, count, call.span);
    }

    /// Arguments in the order of the parameters; what is left out in the middle is absent.
    fn ordered(
        &mut self,
        receiver: Option<Receiver>,
        params: &[Param],
        call: &Call,
        piped: Option<&str>,
    ) -> u32 {
        let named = |it: &&Argument| it.name.is_some();
        if !call.arguments.iter().any(|it| it.name.is_some()) {
            return self.arguments(call, piped);
        }
        let positional = call.arguments.iter().filter(|it| !named(it)).count();
        let mut passed = 0_usize;
        if let Some(slot) = piped {
            self.load(slot);
            passed += 1;
        }
        for argument in &call.arguments[..positional] {
            self.expr(&argument.value);
            passed += 1;
        }
        let own = usize::from(receiver.is_some());
        let rest = params.get(passed.saturating_sub(own)..).unwrap_or_default();
        let given = &call.arguments[positional..];
        let named = given.iter().enumerate();
        let named = named.filter_map(|(place, it)| Some((it.name.as_ref()?.text.as_str(), place)));
        let places: HashMap<&str, usize> = named.collect();
        let find = |param: &Param| places.get(param.name.text.as_str()).copied();
        let order: Vec<usize> = rest.iter().filter_map(find).collect();
        // They are evaluated as they are written, whatever their order is in the callee.
        let kept = if order.is_sorted() {
            Vec::new()
        } else {
            self.kept_arguments(rest, given)
        };
        let last = rest.iter().rposition(|param| find(param).is_some());
        for param in rest.iter().take(last.map_or(0, |it| it + 1)) {
            match (find(param), kept.as_slice()) {
                (Some(place), []) => self.value_of(&given[place].value, param.ty.as_ref()),
                (Some(place), kept) => self.load(&kept[place]),
                (None, _) => drop(self.op(Opcode::Absent)),
            }
            passed += 1;
        }
        u32::try_from(passed).unwrap_or(u32::MAX)
    }

    /// Named arguments, each in a temporary, in the order of the source.
    fn kept_arguments(&mut self, params: &[Param], given: &[Argument]) -> Vec<String> {
        let mut kept = Vec::new();
        let params: HashMap<&str, &Param> = params
            .iter()
            .map(|it| (it.name.text.as_str(), it))
            .collect();
        for argument in given {
            let name = argument.name.as_ref().map(|it| it.text.as_str());
            let param = name.and_then(|it| params.get(it));
            self.value_of(&argument.value, param.and_then(|it| it.ty.as_ref()));
            let slot = self.body().temporary("argument");
            self.store(&slot);
            kept.push(slot);
        }
        kept
    }

    /// A method that may change the place it is called on. How many steps were written, or none.
    fn place_call(&mut self, base: &Expr, steps: &[PostfixOp], piped: Option<&str>) -> usize {
        let root = base.as_path().and_then(|path| path.single());
        let Some(local) = root.and_then(|name| self.local(&name.text)) else {
            return 0;
        };
        let way = steps
            .iter()
            .take_while(|it| matches!(it, PostfixOp::Field(_) | PostfixOp::Index(..)));
        let way = way.count();
        let Some(PostfixOp::Method { name, call, types }) = steps.get(way) else {
            return 0;
        };
        if !local.mutable || !types.is_empty() || !self.mutators.contains(&name.text) {
            return 0;
        }
        let path = self.place_path(&steps[..way]);
        let piped = piped.filter(|_| way + 1 == steps.len());
        let count = self.arguments(call, piped);
        let mut place = Instruction::new(Opcode::PlaceCall).name(local.slot);
        place = place.method(name.text.as_str()).argc(count);
        if !path.is_empty() {
            place = place.arg(path);
        }
        self.push_at(steps[way].span(), place);
        way + 1
    }

    pub(super) fn pipe(&mut self, first: &Expr, stages: &[PipeStage]) {
        self.expr(first);
        for stage in stages {
            let slot = self.body().temporary("pipe");
            self.store(&slot);
            self.pipe_into(&stage.target, &slot);
            for span in &stage.tries {
                self.op_at(*span, Opcode::Propagate);
            }
        }
    }

    fn pipe_into(&mut self, target: &Expr, slot: &str) {
        match &target.kind {
            ExprKind::Prefix(ops, inner) if ops.iter().all(|it| *it == PrefixOp::Await) => {
                self.pipe_into(inner, slot);
                self.op_at(target.span, Opcode::Await);
            }
            ExprKind::Postfix(it) => {
                let last = it.steps.last();
                if matches!(last, Some(PostfixOp::Call(_) | PostfixOp::Method { .. })) {
                    return self.postfix_piped(&it.base, &it.steps, Some(slot));
                }
                self.pipe_into_value(target, slot);
            }
            _ => self.pipe_into_value(target, slot),
        }
    }

    /// `x |> f` is `f(x)`.
    fn pipe_into_value(&mut self, target: &Expr, slot: &str) {
        let call = Call {
            arguments: Vec::new(),
            span: target.span,
        };
        let steps = [PostfixOp::Call(call)];
        self.postfix_piped(target, &steps, Some(slot));
    }
}
