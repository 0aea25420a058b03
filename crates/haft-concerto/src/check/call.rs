//! Calls: who is called, and with how many arguments.

use super::{Checker, Code, Ty};
use crate::ast::{
    Argument, Call, Expr, ExprKind, Name, Param, Path, PipeStage, PostfixOp, Receiver, Type,
    TypeKind, Variant, VariantData,
};
use crate::diagnostic::did_you_mean;
use crate::source::Span;
use crate::symbols::{Symbol, TYPES};

/// How many values a variant carries in round brackets.
pub(super) fn payload(variant: &Variant) -> usize {
    match &variant.data {
        VariantData::Tuple(types) => types.len(),
        _ => 0,
    }
}

impl<'a> Checker<'a> {
    pub(super) fn postfix(&mut self, base: &Expr, steps: &[PostfixOp]) -> Ty {
        self.postfix_piped(base, steps, false)
    }

    /// A value and what is done with it. A pipe puts one more argument into the last call.
    fn postfix_piped(&mut self, base: &Expr, steps: &[PostfixOp], piped: bool) -> Ty {
        let more = |index: usize| usize::from(piped && index + 1 == steps.len());
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

    fn step(&mut self, step: &PostfixOp, ty: &Ty, root: Option<&Path>, more: usize) -> Ty {
        match step {
            PostfixOp::Call(call) => {
                self.arguments(call);
                Ty::Unknown
            }
            PostfixOp::Field(_) => Ty::Unknown,
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
                self.arguments(call);
                match name.text.as_str() {
                    "with_tools" | "without_tools" => self.binding(&name.text, name.span, call, ty),
                    "with_memory" | "with_context" if matches!(ty, Ty::Model | Ty::Agent) => {
                        ty.clone()
                    }
                    _ => {
                        self.method_call(name, call, more, ty, root);
                        Ty::Unknown
                    }
                }
            }
        }
    }

    fn arguments(&mut self, call: &Call) {
        for argument in &call.arguments {
            self.expr(&argument.value);
        }
    }

    /// A method of a value whose type is known.
    fn method_call(
        &mut self,
        method: &Name,
        call: &Call,
        more: usize,
        ty: &Ty,
        root: Option<&Path>,
    ) {
        let name = method.text.as_str();
        let span = method.span.to(call.span);
        let changes = match ty {
            Ty::Array(_) => matches!(name, "push" | "pop" | "insert" | "remove" | "clear"),
            Ty::Map => matches!(name, "set" | "remove" | "clear" | "insert"),
            Ty::Named(of) => {
                let segments = format!("{of}::{name}");
                let Some(method) = self.method_of(&segments) else {
                    return;
                };
                let signature = &method.signature;
                self.count(name, &signature.params, &call.arguments, more, span);
                signature.receiver == Some(Receiver::Mut)
            }
            _ => false,
        };
        if changes && let Some(path) = root {
            self.assigned(path, false);
        }
    }

    fn method_of(&self, full: &str) -> Option<&'a crate::ast::Function> {
        let names = full.split("::").map(|text| Name {
            text: text.to_owned(),
            span: Span::default(),
        });
        let path = Path {
            segments: names.collect(),
            span: Span::default(),
        };
        match self.symbols.resolve(0, &path)? {
            (_, Symbol::Method(method)) => Some(method),
            _ => None,
        }
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
    fn known_call(&mut self, base: &Expr, step: &PostfixOp, more: usize) -> Option<Ty> {
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
        let name = path.text();
        let (call, symbol) = match (step, symbol) {
            (PostfixOp::Method { name, call, .. }, Symbol::Tool(tool)) => {
                let mut methods = tool.methods.iter();
                let Some(method) = methods.find(|it| it.signature.name.text == name.text) else {
                    self.arguments(call);
                    let names = tool
                        .methods
                        .iter()
                        .map(|it| it.signature.name.text.as_str());
                    let near = did_you_mean(&name.text, names).map(str::to_owned);
                    let text = format!(
                        "the tool `{}` has no method `{}`",
                        tool.name.text, name.text
                    );
                    match near {
                        Some(near) => {
                            self.tell_with_help(
                                Code::E010,
                                name.span,
                                text,
                                format!("did you mean `{near}`?"),
                            );
                        }
                        None => self.tell(Code::E010, name.span, text),
                    }
                    return Some(Ty::Unknown);
                };
                (call, Symbol::ToolMethod(tool, method))
            }
            (PostfixOp::Call(call), symbol) => (call, symbol),
            _ => return None,
        };
        self.arguments(call);
        let span = path.span.to(call.span);
        Some(match symbol {
            Symbol::Test(_) => {
                let text = format!("`{name}` is a test and cannot be called");
                self.tell(Code::E031, path.span, text);
                Ty::Unknown
            }
            Symbol::Function(it) | Symbol::ToolMethod(_, it) => {
                let signature = &it.signature;
                self.count(&name, &signature.params, &call.arguments, more, span);
                if signature.is_async {
                    return Some(Ty::Unknown);
                }
                signature
                    .result
                    .as_ref()
                    .map_or(Ty::Unknown, |ty| self.quiet(ty))
            }
            Symbol::Method(it) => {
                let signature = &it.signature;
                let own = usize::from(signature.receiver.is_some());
                // `T::m(v, …)`: the receiver is the first argument.
                self.count_after(&name, &signature.params, &call.arguments, more, own, span);
                signature
                    .result
                    .as_ref()
                    .map_or(Ty::Unknown, |ty| self.quiet(ty))
            }
            Symbol::Variant(_, variant) => {
                let (carried, given) = (payload(variant), call.arguments.len() + more);
                if carried != given {
                    let text = format!("`{name}` carries {carried} values, not {given}");
                    self.tell(Code::E016, span, text);
                }
                let of = full.rsplit_once("::").map_or(full.as_str(), |(of, _)| of);
                Ty::Named(of.to_owned())
            }
            Symbol::Builtin(it) => {
                let given = call.arguments.len() + more;
                if given < it.least || given > it.most {
                    let wanted = if it.least == it.most {
                        arguments_text(it.least)
                    } else {
                        format!("{} to {} arguments", it.least, it.most)
                    };
                    let text = format!("`{name}` takes {wanted}, not {given}");
                    self.tell(Code::E016, span, text);
                }
                Self::wrapped(it.path, call, more)
            }
            _ => Ty::Unknown,
        })
    }

    /// What a declared type means, without telling its names again at each call.
    fn quiet(&mut self, ty: &Type) -> Ty {
        let mut ignored = crate::diagnostic::Diagnostics::default();
        std::mem::swap(self.diagnostics, &mut ignored);
        let ty = self.declared(ty);
        std::mem::swap(self.diagnostics, &mut ignored);
        ty
    }

    fn wrapped(path: &str, call: &Call, more: usize) -> Ty {
        let literal = match call.arguments.first() {
            Some(argument) if more == 0 => literal_type(&argument.value),
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

    fn count(
        &mut self,
        name: &str,
        params: &[Param],
        arguments: &[Argument],
        more: usize,
        span: Span,
    ) {
        self.count_after(name, params, arguments, more, 0, span);
    }

    /// Whether the arguments fit the parameters; `own` is 1 if the receiver is an argument.
    fn count_after(
        &mut self,
        name: &str,
        params: &[Param],
        arguments: &[Argument],
        more: usize,
        own: usize,
        span: Span,
    ) {
        let positional = arguments.iter().filter(|it| it.name.is_none()).count() + more;
        let most = params.len() + own;
        if positional > most || positional < own {
            let text = format!(
                "`{name}` takes {}, not {}",
                arguments_text(most),
                arguments.len() + more
            );
            self.tell(Code::E016, span, text);
            return;
        }
        let taken = positional - own;
        let mut named = Vec::new();
        for given in arguments.iter().filter_map(|it| it.name.as_ref()) {
            let index = params.iter().position(|it| it.name.text == given.text);
            let text = match index {
                None => format!("`{name}` has no parameter `{}`", given.text),
                Some(index) if index < taken || named.contains(&index) => {
                    format!("the parameter `{}` is given twice", given.text)
                }
                Some(index) => {
                    named.push(index);
                    continue;
                }
            };
            self.tell(Code::E016, given.span, text);
        }
        let missing = params.iter().enumerate().skip(taken);
        let mut missing =
            missing.filter(|(index, it)| it.default.is_none() && !named.contains(index));
        if let Some((_, param)) = missing.next() {
            let text = format!("`{name}` is called without `{}`", param.name.text);
            let required = params.iter().filter(|it| it.default.is_none()).count() + own;
            self.tell_with_help(
                Code::E016,
                span,
                text,
                format!("it needs {}", arguments_text(required)),
            );
        }
    }

    pub(super) fn pipe(&mut self, first: &Expr, stages: &[PipeStage]) -> Ty {
        let mut ty = self.expr(first);
        for stage in stages {
            ty = self.pipe_into(&stage.target);
            for span in &stage.tries {
                self.raising(*span, true);
                ty = match ty {
                    Ty::Option(inner) | Ty::Result(inner, _) => *inner,
                    _ => Ty::Unknown,
                };
            }
        }
        ty
    }

    fn pipe_into(&mut self, target: &Expr) -> Ty {
        match &target.kind {
            ExprKind::Prefix(_, inner) => {
                self.awaiting(target.span);
                self.pipe_into(inner);
                Ty::Unknown
            }
            ExprKind::Postfix(it)
                if matches!(
                    it.steps.last(),
                    Some(PostfixOp::Call(_) | PostfixOp::Method { .. })
                ) =>
            {
                self.postfix_piped(&it.base, &it.steps, true)
            }
            _ => {
                let call = Call {
                    arguments: Vec::new(),
                    span: target.span,
                };
                self.postfix_piped(target, &[PostfixOp::Call(call)], true)
            }
        }
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

fn arguments_text(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        count => format!("{count} arguments"),
    }
}
