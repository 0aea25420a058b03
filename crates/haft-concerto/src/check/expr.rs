//! Expressions: what they use, and what is known of their values.

use super::scope::{Context, Mutability, Raising};
use super::{Checker, Code, Ty};
use crate::ast::{
    AssignOp, Binary, BinaryOp, Closure, Expr, ExprKind, MapKey, Path, PostfixOp, PrefixOp,
    TextPiece, VariantData,
};
use crate::diagnostic::did_you_mean;
use crate::source::Span;
use crate::symbols::Symbol;

impl Checker<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Ty {
        match &expr.kind {
            ExprKind::Int(_) => Ty::Int,
            ExprKind::Float(_) => Ty::Float,
            ExprKind::Bool(_) => Ty::Bool,
            ExprKind::Nil => Ty::Nil,
            ExprKind::Str(_) => Ty::Text,
            ExprKind::Text(pieces) => {
                for piece in pieces {
                    if let TextPiece::Expr(expr) = piece {
                        self.expr(expr);
                    }
                }
                Ty::Text
            }
            ExprKind::Path(path) => self.path(path),
            ExprKind::Generic(path, types) => {
                self.schema_types(types);
                self.path(path)
            }
            ExprKind::Struct(lit) => self.struct_literal(lit),
            ExprKind::Paren(inner) => self.expr(inner),
            ExprKind::Tuple(list) => {
                for item in list {
                    self.expr(item);
                }
                Ty::array(Ty::Unknown)
            }
            ExprKind::Array(list) => {
                let mut types = list
                    .iter()
                    .map(|it| self.expr(it))
                    .collect::<Vec<_>>()
                    .into_iter();
                let first = types.next().unwrap_or(Ty::Unknown);
                Ty::array(types.fold(first, |inner, it| inner.common(&it)))
            }
            ExprKind::Map(entries) => {
                for (key, value) in entries {
                    if let MapKey::Expr(key) = key {
                        self.expr(key);
                    }
                    self.expr(value);
                }
                Ty::Map
            }
            ExprKind::Closure(closure) => self.closure(closure),
            ExprKind::Assign { op, target, value } => self.assign(*op, target, value),
            ExprKind::Postfix(it) => self.postfix(&it.base, &it.steps),
            ExprKind::Prefix(ops, inner) => self.prefix(ops, inner, expr.span),
            ExprKind::Cast(value, types) => {
                self.expr(value);
                let mut target = Ty::Unknown;
                for ty in types {
                    target = self.declared(ty);
                }
                target
            }
            ExprKind::Binary(it) => self.binary(it),
            ExprKind::Range { start, end, .. } => {
                for side in [start, end].into_iter().flatten() {
                    let ty = self.expr(side);
                    if ty.is_known() && ty != Ty::Int {
                        let text = format!("the ends of a range are Int, and this is `{ty}`");
                        self.tell(Code::E014, side.span, text);
                    }
                }
                Ty::Range
            }
            ExprKind::Pipe(first, stages) => self.pipe(first, stages),
            _ => self.control(expr),
        }
    }

    fn control(&mut self, expr: &Expr) -> Ty {
        match &expr.kind {
            ExprKind::Block(block) => drop(self.block(block)),
            ExprKind::If(it) => self.if_expr(it),
            ExprKind::Match(it) => self.match_expr(it),
            ExprKind::For(it) => self.for_expr(it),
            ExprKind::While { condition, body } => {
                self.looping(|checker| {
                    checker.condition(condition);
                    checker.block(body);
                });
            }
            ExprKind::Loop(body) => self.looping(|checker| drop(checker.block(body))),
            ExprKind::Try(it) => self.try_expr(it),
            ExprKind::Listen(it) => self.listen(it),
            ExprKind::Return(Some(value)) => {
                let found = self.expr(value);
                let declared = self.context.result.clone();
                self.expect_type(&found, &declared, value.span, "what is returned");
            }
            ExprKind::Break(value) => {
                self.in_loop(expr.span, "break");
                if let Some(value) = value {
                    self.expr(value);
                }
            }
            ExprKind::Continue => self.in_loop(expr.span, "continue"),
            ExprKind::Throw(value) => {
                self.raising(expr.span, false);
                self.expr(value);
            }
            _ => {}
        }
        Ty::Unknown
    }

    /// A name as a value.
    fn path(&mut self, path: &Path) -> Ty {
        if let Some(variable) = path.single().and_then(|name| self.scopes.find(&name.text)) {
            return variable.read();
        }
        if let Some((full, symbol)) = self.symbols.resolve(self.module, path) {
            self.symbol(path, &full, symbol)
        } else {
            self.undefined(path);
            Ty::Unknown
        }
    }

    fn symbol(&mut self, path: &Path, full: &str, symbol: Symbol<'_>) -> Ty {
        match symbol {
            Symbol::Test(_) => {
                let text = format!("`{}` is a test and cannot be called", path.text());
                self.tell(Code::E031, path.span, text);
                Ty::Unknown
            }
            Symbol::Const(it) => {
                if let Some(reads) = &mut self.reads {
                    reads.push((full.to_owned(), path.span));
                }
                self.meaning_in(self.symbols.home(full), &it.ty)
            }
            Symbol::Model(_) => Ty::Model,
            Symbol::Agent(_) => Ty::Agent,
            Symbol::Tool(_) | Symbol::Mcp(_) => Ty::Tool,
            Symbol::Variant(_, variant) if matches!(variant.data, VariantData::None) => {
                let of = full.rsplit_once("::").map_or(full, |(of, _)| of);
                Ty::Named(of.to_owned())
            }
            Symbol::Builtin(it) if it.path == "None" => Ty::option(Ty::Unknown),
            Symbol::Builtin(it) => {
                self.only_for_stores(it.path, path.span);
                Ty::Function
            }
            Symbol::Function(_) | Symbol::Method(_) | Symbol::ToolMethod(..) => Ty::Function,
            _ => Ty::Unknown,
        }
    }

    /// What begins a store is nothing that code could use.
    pub(super) fn only_for_stores(&mut self, path: &str, span: Span) {
        let form = match path {
            "HashMap::new" => "hashmap NAME: HashMap<String, Int> = HashMap::new();",
            "Memory::new" => "memory NAME: Memory = Memory::new();",
            "Ledger::new" => "ledger NAME: Ledger = Ledger::new();",
            _ => return,
        };
        if !self.is_store {
            let text = format!("`{path}` makes no value");
            let help = format!("a store is declared, outside of functions: `{form}`");
            self.tell_with_help(Code::E010, span, text, help);
        }
    }

    pub(super) fn undefined(&mut self, path: &Path) {
        if self.diagnostics.is_full() {
            return;
        }
        let mut told = self.symbols.undefined(&path.text(), path.span, self.module);
        if let Some(name) = path.single() {
            let near = did_you_mean(&name.text, self.scopes.names());
            if let Some(near) = near {
                told = told.help(format!("did you mean `{near}`?"));
            }
            if !self.is_script && self.symbols.is_of_script(&name.text) {
                told = told.help(
                    "functions do not see the `let`s of a script: make it a `const`, or give it as an argument",
                );
            }
            if name.text == "self" {
                told = told.help("`self` is the first parameter of a method: `fn m(self)`");
            }
        }
        self.diagnostics.push(told);
    }

    fn closure(&mut self, closure: &Closure) -> Ty {
        let result = self.optional_declared(closure.result.as_ref());
        let raising = match (&result, closure.result.is_some(), self.context.raising) {
            (Ty::Result(..), ..) => Raising::Result,
            (Ty::Option(_), ..) => Raising::Option,
            (_, false, Raising::Boundary) => Raising::Boundary,
            _ => Raising::Nowhere,
        };
        let context = Context {
            raising,
            loops: 0,
            result: result.clone(),
            ..self.context.clone()
        };
        // What a closure reads, it reads when it is called.
        let reads = self.reads.take();
        self.in_context(context, |checker| {
            checker.in_scope(|checker| {
                for param in &closure.params {
                    let ty = checker.optional_declared(param.ty.as_ref());
                    checker.bind(&param.name, ty, Mutability::Fixed);
                }
                let found = checker.expr(&closure.body);
                if !super::control::is_empty_braces(&closure.body) {
                    checker.expect_type(
                        &found,
                        &result,
                        closure.body.span,
                        "what the closure gives",
                    );
                }
            });
        });
        self.reads = reads;
        Ty::Function
    }

    /// `?` and `throw` need somebody who takes what they raise.
    pub(super) fn raising(&mut self, span: Span, question: bool) {
        let context = &self.context;
        let fine = context.tries > 0
            || matches!(context.raising, Raising::Result | Raising::Boundary)
            || (question && context.raising == Raising::Option);
        if fine {
            return;
        }
        let word = if question { "?" } else { "throw" };
        let text = format!("nobody takes what `{word}` raises here");
        let help = "put it in `try { … } catch { … }`, or let the function return `Result<…, …>`";
        self.tell_with_help(Code::E018, span, text, help);
    }

    pub(super) fn awaiting(&mut self, span: Span) {
        if !self.context.awaiting {
            let text =
                "`await` stands outside of an `async fn`, a tool's method, a stage or a test";
            self.tell_with_help(Code::E019, span, text, "write `async fn`");
        }
    }

    fn prefix(&mut self, ops: &[PrefixOp], inner: &Expr, span: Span) -> Ty {
        let mut ty = self.expr(inner);
        for op in ops.iter().rev() {
            ty = match op {
                PrefixOp::Not => Ty::Bool,
                PrefixOp::Await => {
                    self.awaiting(span);
                    Ty::Unknown
                }
                PrefixOp::Neg if ty.is_known() && !ty.is_number() => {
                    self.tell(Code::E014, span, format!("`-` is not defined for `{ty}`"));
                    Ty::Unknown
                }
                PrefixOp::Neg => ty,
            };
        }
        ty
    }

    fn binary(&mut self, it: &Binary) -> Ty {
        let mut left = self.expr(&it.first);
        for (op, right) in &it.rest {
            let span = it.first.span.to(right.span);
            let right = self.expr(right);
            left = self.operator(*op, left, &right, span);
        }
        left
    }

    fn operator(&mut self, op: BinaryOp, left: Ty, right: &Ty, span: Span) -> Ty {
        let both_known = left.is_known() && right.is_known();
        let texts = left == Ty::Text && *right == Ty::Text;
        let numbers = left.is_number() && right.is_number();
        let undefined = match op {
            BinaryOp::Eq | BinaryOp::NotEq => return Ty::Bool,
            BinaryOp::And | BinaryOp::Or => return left.common(right),
            BinaryOp::Coalesce => {
                return match left {
                    Ty::Option(inner) => inner.common(right),
                    _ => Ty::Unknown,
                };
            }
            BinaryOp::Add if texts => return Ty::Text,
            BinaryOp::Less | BinaryOp::Greater | BinaryOp::LessEq | BinaryOp::GreaterEq => {
                if !both_known || numbers || texts {
                    return Ty::Bool;
                }
                true
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => {
                let fits = |ty: &Ty| {
                    !ty.is_known() || ty.is_number() || (op == BinaryOp::Add && *ty == Ty::Text)
                };
                !(fits(&left) && fits(right)) || (both_known && !numbers)
            }
        };
        if !undefined {
            return match (&left, right) {
                (Ty::Int, Ty::Int) => Ty::Int,
                (Ty::Float, Ty::Int | Ty::Float) | (Ty::Int, Ty::Float) => Ty::Float,
                _ => Ty::Unknown,
            };
        }
        let text = format!("`{}` is not defined for `{left}` and `{right}`", op.text());
        if op == BinaryOp::Add && (left == Ty::Text || *right == Ty::Text) {
            let help = "interpolate: `\"… ${x}\"`, or convert: `x as String`";
            self.tell_with_help(Code::E014, span, text, help);
        } else {
            self.tell(Code::E014, span, text);
        }
        Ty::Unknown
    }

    fn assign(&mut self, op: AssignOp, target: &Expr, value: &Expr) -> Ty {
        let found = self.expr(value);
        match &target.kind {
            ExprKind::Path(path) => {
                let declared = self.assigned(path, op == AssignOp::Set);
                match op {
                    AssignOp::Set if super::control::is_empty_braces(value) => {}
                    AssignOp::Set => {
                        self.expect_type(&found, &declared, value.span, "the variable");
                    }
                    AssignOp::Compute(op) => {
                        self.operator(op, declared, &found, target.span.to(value.span));
                    }
                }
            }
            ExprKind::Postfix(it) => {
                for step in &it.steps {
                    if let PostfixOp::Index(index, _) = step {
                        self.expr(index);
                    }
                }
                if let Some(path) = it.base.as_path() {
                    let ty = self.assigned(path, false);
                    if let Some(PostfixOp::Field(name)) = it.steps.first() {
                        self.field(name, &ty);
                    }
                    if let Some(variable) = path.single().and_then(|it| self.scopes.find(&it.text))
                    {
                        variable.read();
                    }
                }
            }
            // The parser lets nothing else through.
            _ => {}
        }
        Ty::Nil
    }

    /// The root of a place that is changed; its type.
    pub(super) fn assigned(&mut self, path: &Path, whole: bool) -> Ty {
        let current = self.scopes.current();
        let name = path.text();
        let single = path.single();
        let Some(variable) = single.and_then(|name| self.scopes.find(&name.text)) else {
            if self.symbols.resolve(self.module, path).is_some() {
                let text = format!("`{name}` cannot be assigned to");
                self.tell_with_help(Code::E012, path.span, text, "only variables change");
            } else {
                self.undefined(path);
            }
            return Ty::Unknown;
        };
        if !whole {
            variable.read();
        }
        let ty = variable.ty.clone();
        let fine = match variable.mutability {
            Mutability::Mutable => true,
            Mutability::Once(None) if whole => {
                variable.mutability = Mutability::Once(Some(current));
                true
            }
            Mutability::Fixed | Mutability::Once(None) => false,
            Mutability::Once(Some(scope)) => {
                if whole && !self.scopes.is_open(scope) {
                    // Assigned in another branch.
                    if let Some(variable) = self.scopes.find(&name) {
                        variable.mutability = Mutability::Once(Some(current));
                    }
                    true
                } else {
                    false
                }
            }
        };
        if !fine {
            let text = format!("`{name}` cannot be changed: it is not `mut`");
            let help = match name.as_str() {
                "self" => "write `mut self`".to_owned(),
                name => format!("declare it with `let mut {name}`"),
            };
            self.tell_with_help(Code::E012, path.span, text, help);
        }
        ty
    }
}
