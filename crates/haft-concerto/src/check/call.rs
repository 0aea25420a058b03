//! Calls: who is called, and with what.

use super::arguments::{Given, Piped, arguments_text};
use super::{Checker, Code, Ty};
use crate::ast::{
    Call, Expr, ExprKind, Path, PipeStage, PostfixOp, Type, TypeKind, Variant, VariantData,
};
use crate::source::Span;
use crate::symbols::{Symbol, TYPES};

/// How many values a variant carries in round brackets.
pub(super) fn payload(variant: &Variant) -> usize {
    match &variant.data {
        VariantData::Tuple(types) => types.len(),
        _ => 0,
    }
}

impl Checker<'_> {
    pub(super) fn postfix(&mut self, base: &Expr, steps: &[PostfixOp]) -> Ty {
        self.postfix_piped(base, steps, None)
    }

    /// A value and what is done with it. A pipe puts one more argument into the last call.
    fn postfix_piped(&mut self, base: &Expr, steps: &[PostfixOp], piped: Option<&Piped>) -> Ty {
        let last = steps.len() - 1;
        let more = |index: usize| piped.filter(|_| index == last);
        let mut next = 0;
        let mut ty = Ty::Unknown;
        if let Some(first) = steps.first()
            && let Some(found) = self.known_call(base, first, more(0))
        {
            ty = found;
            next = 1;
        } else {
            ty = match self.expr(base) {
                Ty::Unknown => ty,
                known => known,
            };
        }
        for (index, step) in steps.iter().enumerate().skip(next) {
            // Of what is further in, the type is not known.
            let root = base.as_path().filter(|_| index == 0);
            ty = self.step(step, &ty, root, more(index));
        }
        ty
    }

    fn step(
        &mut self,
        step: &PostfixOp,
        ty: &Ty,
        root: Option<&Path>,
        piped: Option<&Piped>,
    ) -> Ty {
        match step {
            PostfixOp::Call(call) => {
                self.arguments(call);
                Ty::Unknown
            }
            PostfixOp::Field(name) => {
                self.field(name, ty);
                Ty::Unknown
            }
            PostfixOp::Index(index, _) => {
                self.expr(index);
                Ty::Unknown
            }
            PostfixOp::Try(span) => {
                self.raising(*span, true);
                match ty {
                    Ty::Option(inner) | Ty::Result(inner, _) => inner.as_ref().clone(),
                    _ => Ty::Unknown,
                }
            }
            PostfixOp::Await(span) => {
                self.awaiting(*span);
                Ty::Unknown
            }
            PostfixOp::Method { name, types, call } => {
                self.schema_types(types);
                let given = Given {
                    types: self.arguments(call),
                    call,
                    piped,
                };
                match name.text.as_str() {
                    "with_tools" | "without_tools" => self.binding(&name.text, name.span, call, ty),
                    "with_memory" | "with_context" if matches!(ty, Ty::Model | Ty::Agent) => {
                        ty.clone()
                    }
                    _ => {
                        self.method_call(name, &given, ty, root);
                        Ty::Unknown
                    }
                }
            }
        }
    }

    /// What the arguments are, each on its own.
    fn arguments(&mut self, call: &Call) -> Vec<Ty> {
        let arguments = call.arguments.iter();
        arguments.map(|it| self.expr(&it.value)).collect()
    }

    pub(super) fn schema_types(&mut self, types: &[Type]) {
        for ty in types {
            self.schema_type(ty);
        }
    }

    /// A type that names a schema or a type of values.
    fn schema_type(&mut self, ty: &Type) {
        if let TypeKind::Named { path, .. } = &ty.kind {
            let own = path
                .single()
                .is_some_and(|it| TYPES.contains(&it.text.as_str()));
            if !own && self.symbols.resolve(self.module, path).is_none() {
                self.undefined(path);
            }
        }
    }

    /// A call whose callee is known by its path: what it gives. None if this is no such call.
    fn known_call(&mut self, base: &Expr, step: &PostfixOp, piped: Option<&Piped>) -> Option<Ty> {
        let path = match &base.kind {
            ExprKind::Path(path) => path,
            ExprKind::Generic(path, types) => {
                self.schema_types(types);
                path
            }
            _ => return None,
        };
        if path
            .single()
            .is_some_and(|name| self.scopes.find(&name.text).is_some())
        {
            return None;
        }
        let (full, symbol) = self.symbols.resolve(self.module, path)?;
        let mut name = path.text();
        let (call, symbol) = match (step, symbol) {
            (
                PostfixOp::Method {
                    name: method, call, ..
                },
                Symbol::Tool(tool),
            ) => {
                let mut methods = tool.methods.iter();
                let Some(method) = methods.find(|it| it.signature.name.text == method.text) else {
                    self.arguments(call);
                    let names = tool.methods.iter();
                    let names = names.map(|it| it.signature.name.text.as_str());
                    let near = self.near(&method.text, names);
                    let text = format!("the tool `{name}` has no method `{}`", method.text);
                    self.tell_near(Code::E010, method.span, text, near);
                    return Some(Ty::Unknown);
                };
                name = format!("{name}.{}", method.signature.name.text);
                (call, Symbol::ToolMethod(tool, method))
            }
            (PostfixOp::Call(call), symbol) => (call, symbol),
            _ => return None,
        };
        let given = Given {
            types: self.arguments(call),
            call,
            piped,
        };
        Some(self.called(&name, path.span, &full, symbol, &given))
    }

    /// What a call of something declared gives; whether the arguments fit.
    fn called(
        &mut self,
        name: &str,
        start: Span,
        full: &str,
        symbol: Symbol<'_>,
        given: &Given<'_>,
    ) -> Ty {
        let span = start.to(given.call.span);
        let home = self.symbols.home(full);
        match symbol {
            Symbol::Test(_) => {
                let text = format!("`{name}` is a test and cannot be called");
                self.tell(Code::E031, start, text);
                Ty::Unknown
            }
            Symbol::Function(it) | Symbol::ToolMethod(_, it) => {
                let signature = &it.signature;
                self.fit(name, &signature.params, home, given, 0, span);
                if signature.is_async {
                    return Ty::Unknown;
                }
                let result = signature.result.as_ref();
                result.map_or(Ty::Unknown, |ty| self.meaning_in(home, ty))
            }
            Symbol::Method(it) => {
                let signature = &it.signature;
                let own = usize::from(signature.receiver.is_some());
                // `T::m(v, …)`: the receiver is the first argument.
                self.fit(name, &signature.params, home, given, own, span);
                if signature.is_async {
                    return Ty::Unknown;
                }
                let result = signature.result.as_ref();
                result.map_or(Ty::Unknown, |ty| self.meaning_in(home, ty))
            }
            Symbol::Variant(_, variant) => {
                let (carried, count) = (payload(variant), given.count());
                if carried != count {
                    let text = format!("`{name}` carries {carried} values, not {count}");
                    self.tell(Code::E016, span, text);
                } else if let VariantData::Tuple(types) = &variant.data {
                    self.fit_variant(name, types, home, given);
                }
                let of = full.rsplit_once("::").map_or(full, |(of, _)| of);
                Ty::Named(of.to_owned())
            }
            Symbol::Builtin(it) => {
                self.only_for_stores(it.path, span);
                let count = given.count();
                if count < it.least || count > it.most {
                    let wanted = if it.least == it.most {
                        arguments_text(it.least)
                    } else {
                        format!("{} to {} arguments", it.least, it.most)
                    };
                    let text = format!("`{name}` takes {wanted}, not {count}");
                    self.tell(Code::E016, span, text);
                }
                wrapped(it.path, given)
            }
            _ => Ty::Unknown,
        }
    }

    pub(super) fn pipe(&mut self, first: &Expr, stages: &[PipeStage]) -> Ty {
        let mut piped = Piped {
            ty: self.expr(first),
            span: first.span,
        };
        for stage in stages {
            piped.ty = self.pipe_into(&stage.target, &piped);
            piped.span = stage.target.span;
            for span in &stage.tries {
                self.raising(*span, true);
                piped.ty = match piped.ty {
                    Ty::Option(inner) | Ty::Result(inner, _) => *inner,
                    _ => Ty::Unknown,
                };
            }
        }
        piped.ty
    }

    fn pipe_into(&mut self, target: &Expr, piped: &Piped) -> Ty {
        match &target.kind {
            ExprKind::Prefix(_, inner) => {
                self.awaiting(target.span);
                self.pipe_into(inner, piped);
                Ty::Unknown
            }
            ExprKind::Postfix(it)
                if matches!(
                    it.steps.last(),
                    Some(PostfixOp::Call(_) | PostfixOp::Method { .. })
                ) =>
            {
                self.postfix_piped(&it.base, &it.steps, Some(piped))
            }
            _ => {
                let call = Call {
                    arguments: Vec::new(),
                    span: target.span,
                };
                self.postfix_piped(target, &[PostfixOp::Call(call)], Some(piped))
            }
        }
    }
}

/// What the built-ins make of a literal; the rest is not known.
fn wrapped(path: &str, given: &Given<'_>) -> Ty {
    let literal = match given.call.arguments.first() {
        Some(argument) if given.piped.is_none() => literal_type(&argument.value),
        _ => Ty::Unknown,
    };
    match path {
        "Ok" => Ty::result(literal, Ty::Unknown),
        "Err" => Ty::result(Ty::Unknown, literal),
        "Some" => Ty::option(literal),
        "Map::new" => Ty::Map,
        _ => Ty::Unknown,
    }
}

/// The type of a literal; the rest was checked already and is not known.
fn literal_type(expr: &Expr) -> Ty {
    match &expr.kind {
        ExprKind::Int(_) => Ty::Int,
        ExprKind::Float(_) => Ty::Float,
        ExprKind::Bool(_) => Ty::Bool,
        ExprKind::Str(_) | ExprKind::Text(_) => Ty::Text,
        _ => Ty::Unknown,
    }
}
