//! Statements, blocks, conditions, loops, `try`, `listen`.

use super::scope::{Context, Mutability, Raising};
use super::{Checker, Code, Ty};
use crate::ast::{
    Block, Config, Expr, ExprKind, For, If, Listen, Match, PostfixOp, Stmt, StmtKind, Try,
};
use crate::source::Span;
use crate::symbols::Symbol;

impl Checker<'_> {
    pub(super) fn block(&mut self, block: &Block) -> Ty {
        self.in_scope(|checker| checker.open_block(block))
    }

    /// A block in the scope that is open: the body of a function with its parameters.
    pub(super) fn open_block(&mut self, block: &Block) -> Ty {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
        match &block.tail {
            Some(tail) => self.expr(tail),
            None => Ty::Unknown,
        }
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let {
                mutable,
                pattern,
                ty,
                value,
            } => {
                let found = value.as_ref().map(|value| self.expr(value));
                let declared = ty.as_ref().map(|ty| self.declared(ty));
                if let (Some(found), Some(declared), Some(value)) = (&found, &declared, value)
                    && !is_empty_braces(value)
                {
                    self.expect_type(found, declared, value.span, "the variable");
                }
                let mutability = match (mutable, value) {
                    (true, _) => Mutability::Mutable,
                    (false, Some(_)) => Mutability::Fixed,
                    (false, None) => Mutability::Once(None),
                };
                // A variable that begins as nil is going to be something else.
                let found = found.filter(|it| *it != Ty::Nil);
                let ty = declared.or(found).unwrap_or(Ty::Unknown);
                self.pattern(pattern, &ty, mutability);
            }
            StmtKind::Mock(config) => self.mock(config, stmt.span),
            StmtKind::Expr(expr) => drop(self.expr(expr)),
        }
    }

    fn mock(&mut self, config: &Config, span: Span) {
        for entry in &config.entries {
            self.expr(&entry.value);
        }
        if !self.context.testing {
            self.tell(Code::E030, span, "`mock` stands only in a test");
            return;
        }
        let found = self.symbols.resolve_name(self.module, &config.name);
        if !matches!(found, Some((_, Symbol::Model(_)))) {
            let text = format!("`{}` is no model and cannot be mocked", config.name.text);
            self.tell(Code::E030, config.name.span, text);
        }
        let settings = ["response", "error"];
        let known = |entry: &&crate::ast::ConfigEntry| settings.contains(&entry.name.text.as_str());
        if config.entries.len() != 1 || config.entries.iter().filter(known).count() != 1 {
            let text = "a mock has one setting: `response` or `error`";
            self.tell(Code::E030, config.name.span, text);
        }
    }

    pub(super) fn condition(&mut self, condition: &Expr) {
        let ty = self.expr(condition);
        if ty.is_known() && ty != Ty::Bool {
            let text = format!("a condition is a Bool, and this is `{ty}`");
            let help = match ty {
                Ty::Option(_) => "compare it: `x.is_some()`",
                Ty::Result(..) => "compare it: `x.is_ok()`",
                Ty::Int | Ty::Float => "compare it: `x != 0`",
                _ => "compare it with something",
            };
            self.tell_with_help(Code::E015, condition.span, text, help);
        }
    }

    pub(super) fn if_expr(&mut self, it: &If) {
        for (condition, block) in &it.branches {
            self.condition(condition);
            self.block(block);
        }
        if let Some(block) = &it.otherwise {
            self.block(block);
        }
    }

    pub(super) fn match_expr(&mut self, it: &Match) {
        let subject = self.expr(&it.subject);
        for arm in &it.arms {
            self.in_scope(|checker| {
                checker.pattern(&arm.pattern, &subject, Mutability::Fixed);
                if let Some(guard) = &arm.guard {
                    checker.condition(guard);
                }
                checker.expr(&arm.body);
            });
        }
        self.coverage(it);
    }

    pub(super) fn looping(&mut self, inner: impl FnOnce(&mut Self)) {
        self.context.loops += 1;
        inner(self);
        self.context.loops -= 1;
    }

    pub(super) fn for_expr(&mut self, it: &For) {
        let subject = self.expr(&it.subject);
        let item = match &subject {
            Ty::Unknown | Ty::Map => Ty::Unknown,
            Ty::Array(inner) => inner.as_ref().clone(),
            Ty::Range => Ty::Int,
            Ty::Text => Ty::Text,
            _ => {
                let text = format!("`for` cannot run over `{subject}`");
                let help = "it runs over arrays, ranges, strings and maps";
                self.tell_with_help(Code::E020, it.subject.span, text, help);
                Ty::Unknown
            }
        };
        self.in_scope(|checker| {
            checker.pattern(&it.pattern, &item, Mutability::Fixed);
            checker.looping(|checker| drop(checker.block(&it.body)));
        });
    }

    pub(super) fn in_loop(&mut self, span: Span, word: &str) {
        if self.context.loops == 0 {
            self.tell(
                Code::E017,
                span,
                format!("`{word}` stands outside of a loop"),
            );
        }
    }

    pub(super) fn try_expr(&mut self, it: &Try) {
        self.context.tries += 1;
        self.block(&it.body);
        self.context.tries -= 1;
        for catch in &it.catches {
            let ty = match &catch.ty {
                Some(ty) if catch.binding.is_none() && self.is_name_of_nothing(ty) => {
                    let text = "`catch` is followed by a type";
                    let help = "write `catch String(e)` to name what was caught, or `catch` for everything";
                    self.tell_with_help(Code::W006, ty.span, text, help);
                    Ty::Unknown
                }
                ty => self.optional_declared(ty.as_ref()),
            };
            self.in_scope(|checker| {
                if let Some(name) = &catch.binding {
                    checker.bind(name, ty, Mutability::Fixed);
                }
                checker.block(&catch.body);
            });
        }
    }

    pub(super) fn listen(&mut self, it: &Listen) {
        self.expr(&it.subject);
        let is_call = match &it.subject.unwrapped().kind {
            ExprKind::Postfix(postfix) => matches!(
                postfix.steps.last(),
                Some(PostfixOp::Method { name, call, .. })
                    if name.text == "execute" && call.arguments.len() == 1
            ),
            _ => false,
        };
        if !is_call {
            let text = "`listen` needs the call of an agent";
            self.tell_with_help(
                Code::E002,
                it.subject.span,
                text,
                "write `listen A.execute(prompt) { … }`",
            );
        }
        for handler in &it.handlers {
            let context = Context {
                raising: Raising::Boundary,
                tries: 0,
                loops: 0,
                result: Ty::Unknown,
                ..self.context.clone()
            };
            let ty = self.optional_declared(handler.param.ty.as_ref());
            self.in_context(context, |checker| {
                checker.in_scope(|checker| {
                    checker.bind(&handler.param.name, ty, Mutability::Fixed);
                    checker.block(&handler.body);
                });
            });
        }
    }
}

/// `{}`, which is an empty map where a map is declared.
pub(super) fn is_empty_braces(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Block(block) => block.stmts.is_empty() && block.tail.is_none(),
        _ => false,
    }
}
