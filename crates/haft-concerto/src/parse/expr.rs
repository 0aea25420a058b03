//! Expressions: operators by rank, and what follows a value.

use super::{Parsed, Parser};
use crate::ast::{
    Argument, AssignOp, Binary, BinaryOp, Call, Expr, ExprKind, PipeStage, Postfix, PostfixOp,
    PrefixOp,
};
use crate::lex::{Keyword, Punct, TokenKind};

/// The rank of `..`, between comparing and adding.
const RANGE: u8 = 5;

/// An operator between two operands and its rank; the higher, the tighter.
fn binary_op(kind: TokenKind) -> Option<(BinaryOp, u8)> {
    let TokenKind::Punct(punct) = kind else {
        return None;
    };
    Some(match punct {
        Punct::Coalesce => (BinaryOp::Coalesce, 0),
        Punct::OrOr => (BinaryOp::Or, 1),
        Punct::AndAnd => (BinaryOp::And, 2),
        Punct::EqEq => (BinaryOp::Eq, 3),
        Punct::NotEq => (BinaryOp::NotEq, 3),
        Punct::Less => (BinaryOp::Less, 4),
        Punct::Greater => (BinaryOp::Greater, 4),
        Punct::LessEq => (BinaryOp::LessEq, 4),
        Punct::GreaterEq => (BinaryOp::GreaterEq, 4),
        Punct::Plus => (BinaryOp::Add, 6),
        Punct::Minus => (BinaryOp::Sub, 6),
        Punct::Star => (BinaryOp::Mul, 7),
        Punct::Slash => (BinaryOp::Div, 7),
        Punct::Percent => (BinaryOp::Mod, 7),
        _ => return None,
    })
}

/// The rank of an operator, for whoever joins operands of one rank.
fn rank(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Coalesce => 0,
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        BinaryOp::Eq | BinaryOp::NotEq => 3,
        BinaryOp::Less | BinaryOp::Greater | BinaryOp::LessEq | BinaryOp::GreaterEq => 4,
        BinaryOp::Add | BinaryOp::Sub => 6,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => 7,
    }
}

fn assign_op(kind: TokenKind) -> Option<AssignOp> {
    let TokenKind::Punct(punct) = kind else {
        return None;
    };
    Some(match punct {
        Punct::Eq => AssignOp::Set,
        Punct::PlusEq => AssignOp::Compute(BinaryOp::Add),
        Punct::MinusEq => AssignOp::Compute(BinaryOp::Sub),
        Punct::StarEq => AssignOp::Compute(BinaryOp::Mul),
        Punct::SlashEq => AssignOp::Compute(BinaryOp::Div),
        Punct::PercentEq => AssignOp::Compute(BinaryOp::Mod),
        _ => return None,
    })
}

impl Parser<'_> {
    /// Any expression.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.deeper(|parser| parser.assignment(None))
    }

    /// Any expression, in brackets of whatever kind.
    pub(super) fn free_expr(&mut self) -> Parsed<Expr> {
        self.with_struct_literals(true, Self::expr)
    }

    /// An expression in front of a block: `Name {}` is a name and the block.
    pub(super) fn head(&mut self) -> Parsed<Expr> {
        if self.is_keyword(Keyword::Let) {
            // `if let`: told once, and read to its block.
            self.unexpected("an expression");
            self.bump();
            self.pattern()?;
            self.expect(Punct::Eq, "after a pattern")?;
        }
        self.with_struct_literals(false, Self::expr)
    }

    /// What follows an expression that stands at the beginning of a statement.
    pub(super) fn expr_from(&mut self, left: Expr) -> Parsed<Expr> {
        self.deeper(|parser| parser.assignment(Some(left)))
    }

    fn assignment(&mut self, left: Option<Expr>) -> Parsed<Expr> {
        let target = self.pipe(left)?;
        let Some(op) = assign_op(self.kind()) else {
            return Ok(target);
        };
        if !is_place(&target) {
            let text = format!("nothing can be assigned to this by `{}`", op.text());
            let help = "a place is a name, `a[i]`, `m[\"k\"]`, `p.f`, or nested ones";
            return Err(self.fail_with_help(target.span, text, help));
        }
        self.bump();
        let value = Box::new(self.expr()?);
        let span = target.span.to(value.span);
        let target = Box::new(target);
        let kind = ExprKind::Assign { op, target, value };
        Ok(Expr::new(kind, span))
    }

    fn pipe(&mut self, left: Option<Expr>) -> Parsed<Expr> {
        let first = self.binary(0, left)?;
        if !self.is(Punct::PipeTo) {
            return Ok(first);
        }
        let start = first.span;
        let mut stages = Vec::new();
        while self.take(Punct::PipeTo) {
            let target = self.binary(0, None)?;
            stages.push(self.pipe_stage(target)?);
        }
        let span = self.since(start);
        let kind = ExprKind::Pipe(Box::new(first), stages);
        Ok(Expr::new(kind, span))
    }

    fn pipe_stage(&mut self, target: Expr) -> Parsed<PipeStage> {
        match &target.kind {
            ExprKind::Path(_)
            | ExprKind::Postfix(_)
            | ExprKind::Paren(_)
            | ExprKind::Closure(_)
            | ExprKind::Prefix(..) => {}
            _ => {
                let text = "the right side of `|>` is a function, a call or a method";
                let help =
                    "to go on with what the pipe gives, put it in brackets: `(a |> f()) + 1`";
                return Err(self.fail_with_help(target.span, text, help));
            }
        }
        let (target, tries) = without_tries(target);
        Ok(PipeStage { target, tries })
    }

    /// Operators that bind at least as tight as this rank.
    fn binary(&mut self, least: u8, left: Option<Expr>) -> Parsed<Expr> {
        self.deeper(|parser| parser.binary_inner(least, left))
    }

    fn binary_inner(&mut self, least: u8, left: Option<Expr>) -> Parsed<Expr> {
        let open = left.is_none() && least <= RANGE && self.range_follows();
        let mut left = if open {
            let start = self.token().span;
            let (end, inclusive) = self.range_end()?;
            let kind = ExprKind::Range {
                start: None,
                end,
                inclusive,
            };
            Expr::new(kind, self.since(start))
        } else {
            self.cast(left)?
        };
        loop {
            if self.range_follows() && least <= RANGE {
                left = self.range_from(left)?;
                continue;
            }
            let Some((op, rank)) = binary_op(self.kind()).filter(|(_, rank)| *rank >= least) else {
                return Ok(left);
            };
            self.bump();
            let right = self.binary(rank + 1, None)?;
            left = join(left, op, right);
        }
    }

    fn range_follows(&self) -> bool {
        self.is(Punct::DotDot) || self.is(Punct::DotDotEq)
    }

    fn range_from(&mut self, start: Expr) -> Parsed<Expr> {
        if matches!(start.kind, ExprKind::Range { .. }) {
            let span = self.token().span;
            return Err(self.fail(span, "a range has two ends"));
        }
        let first = start.span;
        let (end, inclusive) = self.range_end()?;
        let kind = ExprKind::Range {
            start: Some(Box::new(start)),
            end,
            inclusive,
        };
        Ok(Expr::new(kind, self.since(first)))
    }

    /// What follows `..`; nothing where no operand can stand, as in front of a block.
    fn range_end(&mut self) -> Parsed<(Option<Box<Expr>>, bool)> {
        let inclusive = self.bump().kind == TokenKind::Punct(Punct::DotDotEq);
        if self.is(Punct::BraceOpen) || self.range_follows() || !self.expr_follows() {
            return Ok((None, inclusive));
        }
        let end = self.binary(RANGE + 1, None)?;
        Ok((Some(Box::new(end)), inclusive))
    }

    fn cast(&mut self, left: Option<Expr>) -> Parsed<Expr> {
        let value = self.prefix(left)?;
        if !self.is_keyword(Keyword::As) {
            return Ok(value);
        }
        let start = value.span;
        let mut types = Vec::new();
        while self.take_keyword(Keyword::As) {
            types.push(self.ty()?);
        }
        let kind = ExprKind::Cast(Box::new(value), types);
        Ok(Expr::new(kind, self.since(start)))
    }

    fn prefix(&mut self, left: Option<Expr>) -> Parsed<Expr> {
        if let Some(left) = left {
            return self.postfix(left);
        }
        let mut ops = Vec::new();
        let mut starts = Vec::new();
        loop {
            let op = match self.kind() {
                TokenKind::Punct(Punct::Minus) => PrefixOp::Neg,
                TokenKind::Punct(Punct::Not) => PrefixOp::Not,
                TokenKind::Keyword(Keyword::Await) => PrefixOp::Await,
                _ => break,
            };
            starts.push(self.bump().span);
            ops.push(op);
        }
        let operand = self.primary()?;
        let operand = self.postfix(operand)?;
        let awaits = ops
            .iter()
            .rev()
            .take_while(|op| **op == PrefixOp::Await)
            .count();
        let awaits = ops.split_off(ops.len() - awaits);
        let operand = match starts.get(ops.len()) {
            Some(start) if !awaits.is_empty() => awaited(awaits, *start, operand),
            _ => operand,
        };
        match starts.first() {
            Some(start) if !ops.is_empty() => {
                let span = start.to(operand.span);
                Ok(Expr::new(ExprKind::Prefix(ops, Box::new(operand)), span))
            }
            _ => Ok(operand),
        }
    }

    /// What is done with a value: calls, fields, indexes, `?`.
    fn postfix(&mut self, base: Expr) -> Parsed<Expr> {
        let mut steps = Vec::new();
        loop {
            let start = self.token().span;
            let step = match self.kind() {
                TokenKind::Punct(Punct::ParenOpen) => PostfixOp::Call(self.call()?),
                TokenKind::Punct(Punct::BracketOpen) => {
                    self.bump();
                    let index = self.free_expr()?;
                    self.expect(Punct::BracketClose, "after an index")?;
                    PostfixOp::Index(index, self.since(start))
                }
                TokenKind::Punct(Punct::Question) => PostfixOp::Try(self.bump().span),
                TokenKind::Punct(Punct::Dot) => {
                    self.bump();
                    self.member()?
                }
                _ => break,
            };
            steps.push(step);
        }
        if steps.is_empty() {
            return Ok(base);
        }
        let span = self.since(base.span);
        let postfix = Box::new(Postfix { base, steps });
        Ok(Expr::new(ExprKind::Postfix(postfix), span))
    }

    fn member(&mut self) -> Parsed<PostfixOp> {
        if self.is_keyword(Keyword::Await) && !self.is_ahead(1, Punct::ParenOpen) {
            return Ok(PostfixOp::Await(self.bump().span));
        }
        let name = self.name("a field or a method after `.`")?;
        let types = if self.generic_call_follows() {
            self.type_arguments()?
        } else {
            Vec::new()
        };
        if !self.is(Punct::ParenOpen) {
            return Ok(PostfixOp::Field(name));
        }
        let call = self.call()?;
        Ok(PostfixOp::Method { name, types, call })
    }

    pub(super) fn call(&mut self) -> Parsed<Call> {
        let start = self.expect(Punct::ParenOpen, "before arguments")?;
        let arguments = self.with_struct_literals(true, |parser| {
            parser.list(Punct::ParenClose, Self::argument)
        })?;
        let mut named = arguments.iter().skip_while(|it| it.name.is_none());
        if let Some(late) = named.find(|it| it.name.is_none()) {
            let text = "a positional argument stands behind a named one";
            let help = "put named arguments last";
            return Err(self.fail_with_help(late.value.span, text, help));
        }
        let span = self.since(start);
        Ok(Call { arguments, span })
    }

    fn argument(&mut self) -> Parsed<Argument> {
        let mut name = None;
        if self.is_name(0) && self.is_ahead(1, Punct::Colon) {
            name = Some(self.name("a name")?);
            self.bump();
        }
        let value = self.expr()?;
        Ok(Argument { name, value })
    }
}

/// `a + b` and `c` by an operator of the same rank are one chain.
fn join(left: Expr, op: BinaryOp, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    let binary = match left.kind {
        ExprKind::Binary(mut binary) if rank(binary.rest[0].0) == rank(op) => {
            binary.rest.push((op, right));
            binary
        }
        kind => Box::new(Binary {
            first: Expr::new(kind, left.span),
            rest: vec![(op, right)],
        }),
    };
    Expr::new(ExprKind::Binary(binary), span)
}

/// `await f()?` is `(await f())?`.
fn awaited(ops: Vec<PrefixOp>, start: crate::source::Span, operand: Expr) -> Expr {
    let (operand, tries) = without_tries(operand);
    let base = Expr::new(ExprKind::Prefix(ops, Box::new(operand)), start);
    let inner = match &base.kind {
        ExprKind::Prefix(_, operand) => start.to(operand.span),
        _ => start,
    };
    let base = Expr {
        span: inner,
        ..base
    };
    let Some(last) = tries.last() else {
        return base;
    };
    let span = start.to(*last);
    let steps = tries.into_iter().map(PostfixOp::Try).collect();
    let postfix = Box::new(Postfix { base, steps });
    Expr::new(ExprKind::Postfix(postfix), span)
}

/// An expression without the `?` at its end, and these.
fn without_tries(expr: Expr) -> (Expr, Vec<crate::source::Span>) {
    let ExprKind::Postfix(mut postfix) = expr.kind else {
        return (expr, Vec::new());
    };
    let mut tries = Vec::new();
    while let Some(PostfixOp::Try(span)) = postfix.steps.last() {
        tries.push(*span);
        postfix.steps.pop();
    }
    tries.reverse();
    let Some(last) = postfix.steps.last() else {
        return (postfix.base, tries);
    };
    let span = expr.span.to(last.span());
    let expr = Expr::new(ExprKind::Postfix(postfix), span);
    (expr, tries)
}

/// Whether something can be assigned to it.
fn is_place(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Path(_) => true,
        ExprKind::Postfix(postfix) => {
            let steps = postfix.steps.iter();
            let mut steps =
                steps.map(|it| matches!(it, PostfixOp::Field(_) | PostfixOp::Index(..)));
            matches!(postfix.base.kind, ExprKind::Path(_)) && steps.all(|it| it)
        }
        _ => false,
    }
}
