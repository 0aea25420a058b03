//! Functions, methods, tests and stages.

use super::scope::{Context, Mutability, Raising};
use super::settings::Place;
use super::{Checker, Code, Ty};
use crate::ast::{
    Block, Decorator, ExprKind, Function, Name, Param, Pipeline, Receiver, Signature, StmtKind,
};
use crate::source::Span;

impl Checker<'_> {
    /// What a signature alone can have wrong; a function's parameters have types.
    pub(super) fn signature(&mut self, signature: &Signature) {
        for param in &signature.params {
            if param.ty.is_none() {
                let text = format!("the parameter `{}` has no type", param.name.text);
                let help = format!("write `{}: Type`", param.name.text);
                self.tell_with_help(Code::E021, param.name.span, text, help);
            }
            self.decorators(&param.decorators, Place::Param);
        }
        self.twice(signature.params.iter().map(|it| &it.name), "parameter");
        if let Some(ty) = &signature.result {
            self.declared(ty);
        }
    }

    pub(super) fn twice<'n>(&mut self, names: impl Iterator<Item = &'n Name>, what: &str) {
        let mut seen = std::collections::HashSet::new();
        for name in names {
            if !seen.insert(name.text.as_str()) {
                let text = format!("the {what} `{}` is there twice", name.text);
                self.tell(Code::E011, name.span, text);
            }
        }
    }

    fn raising_of(result: &Ty) -> Raising {
        match result {
            Ty::Result(..) => Raising::Result,
            Ty::Option(_) => Raising::Option,
            _ => Raising::Nowhere,
        }
    }

    pub(super) fn function_item(&mut self, function: &Function) {
        let signature = &function.signature;
        self.signature(signature);
        self.decorators(&signature.decorators, Place::Function);
        let is_test = self.test_decorators(signature);
        let needed = signature.params.iter().find(|it| it.default.is_none());
        if let ("main", 0, Some(param)) = (signature.name.text.as_str(), self.module, needed) {
            let text = "`main` is called without arguments";
            let help = "leave the parameter out, or give it a default";
            self.tell_with_help(Code::W010, param.name.span, text, help);
        }
        let result = self.result(signature);
        let context = Context {
            raising: if is_test {
                Raising::Boundary
            } else {
                Self::raising_of(&result)
            },
            awaiting: is_test || signature.is_async,
            testing: is_test,
            result,
            ..Context::default()
        };
        self.body(signature, function.body.as_ref(), context, None);
    }

    fn result(&mut self, signature: &Signature) -> Ty {
        // Its names were told with the signature.
        let before = std::mem::take(self.diagnostics);
        let result = self.optional_declared(signature.result.as_ref());
        *self.diagnostics = before;
        result
    }

    /// A method of a type or a trait.
    pub(super) fn method(&mut self, function: &Function, own: Option<Ty>) {
        let signature = &function.signature;
        self.signature(signature);
        self.decorators(&signature.decorators, Place::Method);
        self.no_test(&signature.decorators);
        let result = self.result(signature);
        let context = Context {
            raising: Self::raising_of(&result),
            awaiting: signature.is_async,
            result,
            ..Context::default()
        };
        self.body(signature, function.body.as_ref(), context, own);
    }

    pub(super) fn tool_method(&mut self, function: &Function) {
        let signature = &function.signature;
        self.signature(signature);
        self.no_test(&signature.decorators);
        let result = self.result(signature);
        let context = Context {
            raising: Self::raising_of(&result),
            awaiting: true,
            tool: true,
            result,
            ..Context::default()
        };
        self.body(signature, function.body.as_ref(), context, None);
    }

    fn body(
        &mut self,
        signature: &Signature,
        block: Option<&Block>,
        context: Context,
        own: Option<Ty>,
    ) {
        let Some(block) = block else {
            return;
        };
        let context_is_tool = context.tool;
        let result = context.result.clone();
        self.in_context(context, |checker| {
            checker.in_scope(|checker| {
                checker.params(signature, own);
                if context_is_tool && signature.public {
                    // The model sees these names: they are part of the tool, used or not.
                    signature
                        .params
                        .iter()
                        .for_each(|it| checker.scopes.mark_used(&it.name.text));
                }
                let found = checker.open_block(block);
                if let Some(tail) = &block.tail
                    && !super::control::is_empty_braces(tail)
                {
                    checker.expect_type(&found, &result, tail.span, "what the function returns");
                }
                checker.dropped(block, &result);
            });
        });
    }

    /// A function that declares a value, ends with one, and drops it by a semicolon.
    fn dropped(&mut self, block: &Block, result: &Ty) {
        let (None, Some(last)) = (&block.tail, block.stmts.last()) else {
            return;
        };
        let StmtKind::Expr(value) = &last.kind else {
            return;
        };
        let is_value = match &value.kind {
            ExprKind::Postfix(it) => {
                let base = it.base.as_path().and_then(|it| it.single());
                base.is_none_or(|it| it.text != "panic")
            }
            ExprKind::Assign { .. }
            | ExprKind::Return(_)
            | ExprKind::Throw(_)
            | ExprKind::Break(_)
            | ExprKind::Continue
            | ExprKind::Listen(_) => false,
            _ => !value.is_block_like(),
        };
        if is_value && result.is_known() && *result != Ty::Nil {
            let text = format!("the function is declared to return `{result}` and returns nil");
            let help = "the `;` drops the value of the last line: leave it out";
            self.tell_with_help(Code::W009, value.span, text, help);
        }
    }

    fn params(&mut self, signature: &Signature, own: Option<Ty>) {
        if let Some(receiver) = signature.receiver {
            let name = Name {
                text: "self".to_owned(),
                span: signature.name.span,
            };
            let mutability = match receiver {
                Receiver::Mut => Mutability::Mutable,
                Receiver::Value => Mutability::Fixed,
            };
            self.bind(&name, own.unwrap_or(Ty::Unknown), mutability);
        }
        for param in &signature.params {
            let ty = self.optional_declared(param.ty.as_ref());
            self.default_of(param, &ty);
            self.bind(&param.name, ty, Mutability::Fixed);
        }
    }

    fn default_of(&mut self, param: &Param, ty: &Ty) {
        let Some(default) = &param.default else {
            return;
        };
        let found = self.in_context(Context::default(), |checker| checker.expr(default));
        if !super::control::is_empty_braces(default) {
            self.expect_type(&found, ty, default.span, "the parameter");
        }
    }

    /// Whether a function is a test, and whether it may be one.
    fn test_decorators(&mut self, signature: &Signature) -> bool {
        let find = |name: &str| signature.decorators.iter().find(|it| it.name.text == name);
        let (test, failing) = (find("test"), find("expect_fail"));
        for decorator in [test, failing].into_iter().flatten() {
            let allowed = match decorator.arguments.as_deref() {
                None | Some([]) => true,
                Some([(None, only)]) => only.as_text().is_some(),
                Some(_) => false,
            };
            if !allowed {
                let wrong = format!("`@{}` takes one text or nothing", decorator.name.text);
                self.tell(Code::E031, decorator.span, wrong);
            }
        }
        if let (None, Some(failing)) = (test, failing) {
            self.tell(
                Code::E031,
                failing.span,
                "`@expect_fail` stands only beside `@test`",
            );
        }
        if test.is_some() && (!signature.params.is_empty() || signature.receiver.is_some()) {
            self.tell(Code::E031, signature.name.span, "a test has no parameters");
        }
        if let (Some(_), Some(result)) = (test, &signature.result) {
            self.tell(Code::E031, result.span, "a test returns nothing");
        }
        test.is_some()
    }

    /// Tests are functions outside of everything else.
    pub(super) fn no_test(&mut self, decorators: &[Decorator]) {
        for decorator in decorators {
            if matches!(decorator.name.text.as_str(), "test" | "expect_fail") {
                let text = format!("`@{}` stands only above a function", decorator.name.text);
                self.tell(Code::E031, decorator.span, text);
            }
        }
    }

    pub(super) fn pipeline(&mut self, it: &Pipeline) {
        if it.stages.is_empty() {
            let text = format!("the pipeline `{}` has no stages", it.name.text);
            self.tell(Code::W003, it.name.span, text);
        }
        self.twice(it.stages.iter().map(|it| &it.signature.name), "stage");
        let param = it.param.as_ref();
        let mut flowing = match param.and_then(|it| it.ty.as_ref()) {
            Some(ty) => self.declared(ty),
            None => Ty::Unknown,
        };
        let mut from = format!("the pipeline `{}`", it.name.text);
        for stage in &it.stages {
            let signature = &stage.signature;
            let name = &signature.name;
            self.twice(signature.params.iter().map(|it| &it.name), "parameter");
            self.no_test(&signature.decorators);
            self.decorators(&signature.decorators, Place::Stage);
            let taken = match signature.params.first().and_then(|it| it.ty.as_ref()) {
                Some(ty) => self.declared(ty),
                None => Ty::Unknown,
            };
            self.flows(
                &flowing,
                &taken,
                &from,
                &format!("the stage `{}`", name.text),
                name.span,
            );
            if signature.result.is_none() {
                let text = format!("the stage `{}` has no return type", name.text);
                self.tell_with_help(Code::E032, name.span, text, "write `-> Type`");
            }
            let result = self.optional_declared(signature.result.as_ref());
            let context = Context {
                raising: Raising::Boundary,
                awaiting: true,
                result: result.clone(),
                ..Context::default()
            };
            self.body(signature, Some(&stage.body), context, None);
            flowing = unwrapped(result);
            from = format!("the stage `{}`", name.text);
        }
        if let Some(ty) = &it.result {
            let declared = unwrapped(self.declared(ty));
            let to = format!("the pipeline `{}`", it.name.text);
            if !it.stages.is_empty() {
                self.flows(&flowing, &declared, &from, &to, ty.span);
            }
        }
    }

    fn flows(&mut self, given: &Ty, taken: &Ty, from: &str, to: &str, span: Span) {
        if !given.fits(taken) {
            let text = format!("{from} gives `{given}`, and {to} takes `{taken}`");
            self.tell(Code::E033, span, text);
        }
    }
}

/// What a stage hands on: a Result is unwrapped.
fn unwrapped(ty: Ty) -> Ty {
    match ty {
        Ty::Result(ok, _) => *ok,
        ty => ty,
    }
}
