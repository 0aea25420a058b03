//! Functions, closures, methods: whatever has a body.

use super::{Body, Emitter};
use crate::ast::{Block, Closure, Expr, Function, Param, Receiver, Signature, Type};
use crate::ir::{self, Instruction, Opcode};

/// A body that was written.
pub(super) struct Written {
    pub(super) code: Vec<Instruction>,
    pub(super) locals: Vec<serde_json::Value>,
    pub(super) captures: Vec<super::body::Capture>,
}

impl Emitter<'_> {
    /// Writes a body of its own.
    pub(super) fn written(&mut self, inner: impl FnOnce(&mut Self)) -> Written {
        self.bodies.push(Body::new());
        inner(self);
        // `inner` leaves the bodies as it found them.
        let body = self.bodies.pop().unwrap_or_default();
        Written {
            code: body.code,
            locals: body.locals.into_iter().map(Into::into).collect(),
            captures: body.captures,
        }
    }

    /// Parameters and what they are by default.
    pub(super) fn parameters(&mut self, receiver: Option<Receiver>, params: &[Param]) {
        if let Some(receiver) = receiver {
            self.body().parameter("self", receiver == Receiver::Mut);
        }
        for param in params {
            self.body().parameter(&param.name.text, false);
        }
        for param in params {
            let Some(default) = &param.default else {
                continue;
            };
            let name = param.name.text.as_str();
            let jump = self.push(Instruction::new(Opcode::ParamDefault).name(name));
            self.value_of(default, param.ty.as_ref());
            self.store(name);
            self.body().patch([jump]);
        }
    }

    pub(super) fn params_ir(&self, params: &[Param]) -> Vec<ir::Param> {
        let one = |param: &Param| ir::Param {
            name: param.name.text.clone(),
            kind: self.optional_type(param.ty.as_ref(), "Any").into(),
            optional: param.default.is_some(),
        };
        params.iter().map(one).collect()
    }

    /// The body of a function, and that it returns its value.
    pub(super) fn returning(&mut self, block: &Block, result: Option<&Type>) {
        self.block_value(block, result);
        self.op(Opcode::Return);
    }

    pub(super) fn function(&mut self, name: String, function: &Function) -> ir::Function {
        let signature = &function.signature;
        let written = self.written(|emitter| {
            emitter.parameters(signature.receiver, &signature.params);
            if let Some(body) = &function.body {
                emitter.returning(body, signature.result.as_ref());
            }
        });
        self.function_ir(name, signature, written)
    }

    fn function_ir(&self, name: String, signature: &Signature, written: Written) -> ir::Function {
        ir::Function {
            aliases: self.symbols.aliases_of(&name),
            name,
            module: self.module_name(),
            visibility: if signature.public {
                "public"
            } else {
                "private"
            }
            .to_owned(),
            params: self.params_ir(&signature.params),
            return_type: self.optional_type(signature.result.as_ref(), "nil").into(),
            is_async: signature.is_async,
            locals: written.locals,
            instructions: written.code,
            receiver: signature.receiver.map(|it| match it {
                Receiver::Value => ir::Receiver::Value,
                Receiver::Mut => ir::Receiver::Mut,
            }),
            captures: Vec::new(),
            source: self.source.clone(),
        }
    }

    /// A function without parameters that the emitter made.
    pub(super) fn plain_function(&self, name: impl Into<String>, written: Written) -> ir::Function {
        ir::Function {
            name: name.into(),
            module: self.module_name(),
            visibility: "private".to_owned(),
            params: Vec::new(),
            return_type: "nil".into(),
            is_async: false,
            locals: written.locals,
            instructions: written.code,
            receiver: None,
            captures: Vec::new(),
            aliases: Vec::new(),
            source: self.source.clone(),
        }
    }

    /// A function that gives the value of an expression, for defaults and the like. Its name.
    pub(super) fn thunk(&mut self, name: String, value: &Expr, ty: Option<&Type>) -> String {
        let written = self.written(|emitter| {
            emitter.value_of(value, ty);
            emitter.op(Opcode::Return);
        });
        let function = self.plain_function(name.clone(), written);
        self.out.functions.push(function);
        name
    }

    pub(super) fn module_name(&self) -> String {
        let path = &self.symbols.modules[self.module];
        crate::symbols::join(&self.out.module, path)
            .trim_end_matches("::")
            .to_owned()
    }

    pub(super) fn closure(&mut self, closure: &Closure) {
        self.closures += 1;
        let name = format!("$closure_{}", self.closures);
        let written = self.written(|emitter| {
            emitter.parameters(None, &closure.params);
            emitter.value_of(&closure.body, closure.result.as_ref());
            emitter.op(Opcode::Return);
        });
        let count = u32::try_from(written.captures.len()).unwrap_or(u32::MAX);
        let captures = written.captures.iter().map(|it| it.inner.clone()).collect();
        for capture in &written.captures {
            let slot = capture.outer.slot.clone();
            self.load(&slot);
        }
        let mut function = self.plain_function(name.clone(), written);
        function.params = self.params_ir(&closure.params);
        function.return_type = self.optional_type(closure.result.as_ref(), "nil").into();
        function.captures = captures;
        self.out.functions.push(function);
        self.push(
            Instruction::new(Opcode::MakeClosure)
                .name(name)
                .count(count),
        );
    }
}
