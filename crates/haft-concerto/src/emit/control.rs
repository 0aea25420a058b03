//! Blocks, conditions, loops, `match`, `try`, `listen`.

use super::Emitter;
use super::body::Loop;
use crate::ast::{
    BinaryOp, Block, Expr, ExprKind, For, If, Listen, Match, Pattern, PatternKind, PostfixOp,
    PrefixOp, Stmt, StmtKind, Try, Type,
};
use crate::ir::{HandlerIr, Instruction, Opcode};

impl Emitter<'_> {
    /// A block's value, which may be declared as a type.
    pub(super) fn block_value(&mut self, block: &Block, ty: Option<&Type>) {
        self.in_scope(|emitter| {
            for stmt in &block.stmts {
                emitter.stmt(stmt);
            }
            match &block.tail {
                Some(tail) => emitter.value_of(tail, ty),
                None => emitter.nil(),
            }
        });
    }

    /// A block whose value nobody wants.
    fn block_effect(&mut self, block: &Block) {
        self.in_scope(|emitter| {
            for stmt in &block.stmts {
                emitter.stmt(stmt);
            }
            if let Some(tail) = &block.tail {
                emitter.effect(tail);
            }
        });
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let {
                mutable,
                pattern,
                ty,
                value,
            } => {
                match value {
                    Some(value) => self.value_of(value, ty.as_ref()),
                    None => self.nil(),
                }
                self.bind_value(pattern, *mutable || value.is_none());
            }
            StmtKind::Mock(config) => {
                let name = self.symbols.resolve_name(self.module, &config.name);
                let name = name.map_or_else(|| config.name.text.clone(), |(name, _)| name);
                for entry in &config.entries {
                    self.expr(&entry.value);
                    let mock = Instruction::new(Opcode::MockModel).name(name.as_str());
                    self.push(mock.method(entry.name.text.as_str()));
                }
            }
            StmtKind::Expr(expr) => self.effect(expr),
        }
    }

    /// What is on the stack against the pattern of a `let` or `for`.
    fn bind_value(&mut self, pattern: &Pattern, mutable: bool) {
        if let PatternKind::Binding(name) = &pattern.kind {
            let slot = self.body().declare(&name.text, mutable);
            self.store(&slot);
            return;
        }
        if matches!(pattern.kind, PatternKind::Wildcard) {
            self.op(Opcode::Pop);
            return;
        }
        let slot = self.body().temporary("let");
        self.store(&slot);
        let fails = self.pattern(pattern, &slot, mutable);
        if fails.is_empty() {
            return;
        }
        let matched = self.op(Opcode::Jump);
        self.body().patch(fails);
        self.load(&slot);
        self.op_at(pattern.span, Opcode::Mismatch);
        self.body().patch([matched]);
    }

    /// An expression whose value nobody wants.
    pub(super) fn effect(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Assign { op, target, value } => self.assign(*op, target, value, expr.span),
            ExprKind::Block(block) => self.block_effect(block),
            ExprKind::If(it) => self.if_effect(it),
            ExprKind::Paren(inner) => self.effect(inner),
            _ => {
                self.expr(expr);
                self.op(Opcode::Pop);
            }
        }
    }

    fn if_effect(&mut self, it: &If) {
        let mut ends = Vec::new();
        let last = it.branches.len() - 1;
        for (index, (condition, block)) in it.branches.iter().enumerate() {
            let missed = self.branch(condition, false);
            self.block_effect(block);
            if index < last || it.otherwise.is_some() {
                let jump = self.op(Opcode::Jump);
                ends.push(jump);
            }
            self.body().patch(missed);
        }
        if let Some(block) = &it.otherwise {
            self.block_effect(block);
        }
        self.body().patch(ends);
    }

    pub(super) fn if_value(&mut self, it: &If) {
        let height = self.body().height;
        let mut ends = Vec::new();
        for (condition, block) in &it.branches {
            let missed = self.branch(condition, false);
            self.block_value(block, None);
            let jump = self.op(Opcode::Jump);
            ends.push(jump);
            self.body().patch(missed);
            self.body().height = height;
        }
        match &it.otherwise {
            Some(block) => self.block_value(block, None),
            None => self.nil(),
        }
        self.body().patch(ends);
        self.body().height = height + 1;
    }

    /// Jumps if the truth of a condition is this; otherwise goes on. The jumps.
    pub(super) fn branch(&mut self, condition: &Expr, when: bool) -> Vec<usize> {
        match &condition.kind {
            ExprKind::Paren(inner) => self.branch(inner, when),
            ExprKind::Prefix(ops, inner) if ops.iter().all(|op| *op == PrefixOp::Not) => {
                let when = when ^ (ops.len() % 2 == 1);
                self.branch(inner, when)
            }
            ExprKind::Binary(it) if matches!(it.rest[0].0, BinaryOp::And | BinaryOp::Or) => {
                // `a && b` is false as soon as one is, `a || b` true.
                let decides = it.rest[0].0 == BinaryOp::Or;
                let last = it.rest.len();
                let operands = std::iter::once(&it.first).chain(it.rest.iter().map(|(_, it)| it));
                let mut jumps = Vec::new();
                let mut skips = Vec::new();
                for (index, operand) in operands.enumerate() {
                    if decides == when || index == last {
                        jumps.extend(self.branch(operand, when));
                    } else {
                        skips.extend(self.branch(operand, decides));
                    }
                }
                self.body().patch(skips);
                jumps
            }
            _ => {
                self.expr(condition);
                let op = if when {
                    Opcode::JumpIfTrue
                } else {
                    Opcode::JumpIfFalse
                };
                vec![self.op(op)]
            }
        }
    }

    fn open_loop(&mut self, iterator: bool) {
        let body = self.body();
        let height = body.height - usize::from(iterator);
        let opened = Loop {
            start: body.here(),
            height,
            iterator,
            tries: body.tries,
            breaks: Vec::new(),
        };
        body.loops.push(opened);
    }

    /// The end of a loop: nil, unless a `break` gave something.
    fn close_loop(&mut self) {
        let Some(closed) = self.body().loops.pop() else {
            return;
        };
        self.body().height = closed.height;
        self.nil();
        self.body().patch(closed.breaks);
    }

    fn next_round(&mut self) {
        let start = self.body().loops.last().map_or(0, |it| it.start);
        let jump = self.op(Opcode::Jump);
        self.body().patch_to([jump], start);
    }

    pub(super) fn while_loop(&mut self, condition: &Expr, block: &Block) {
        self.open_loop(false);
        let done = self.branch(condition, false);
        self.block_effect(block);
        self.next_round();
        self.body().patch(done);
        self.close_loop();
    }

    pub(super) fn endless_loop(&mut self, block: &Block) {
        self.open_loop(false);
        self.block_effect(block);
        self.next_round();
        self.close_loop();
    }

    pub(super) fn for_loop(&mut self, it: &For) {
        self.expr(&it.subject);
        self.op_at(it.subject.span, Opcode::IterBegin);
        self.open_loop(true);
        let done = self.op(Opcode::IterNext);
        self.in_scope(|emitter| {
            emitter.bind_value(&it.pattern, false);
            emitter.block_effect(&it.body);
        });
        self.next_round();
        self.body().patch([done]);
        self.close_loop();
    }

    pub(super) fn break_out(&mut self, value: Option<&Expr>) {
        let before = self.body().height;
        match value {
            Some(value) => self.expr(value),
            None => self.nil(),
        }
        let Some(target) = self.body().loops.last() else {
            return;
        };
        let (height, tries) = (target.height, target.tries);
        self.leave_tries(tries);
        for _ in height..before {
            self.op(Opcode::Swap);
            self.op(Opcode::Pop);
        }
        let jump = self.op(Opcode::Jump);
        if let Some(target) = self.body().loops.last_mut() {
            target.breaks.push(jump);
        }
        self.body().height = before + 1;
    }

    pub(super) fn continue_on(&mut self) {
        let before = self.body().height;
        let Some(target) = self.body().loops.last() else {
            return self.nil();
        };
        let (height, tries) = (target.height + usize::from(target.iterator), target.tries);
        self.leave_tries(tries);
        for _ in height..before {
            self.op(Opcode::Pop);
        }
        self.next_round();
        self.body().height = before + 1;
    }

    fn leave_tries(&mut self, until: usize) {
        for _ in until..self.body().tries {
            self.op(Opcode::TryEnd);
        }
    }

    pub(super) fn match_value(&mut self, it: &Match) {
        let height = self.body().height;
        self.expr(&it.subject);
        let slot = self.body().temporary("match");
        self.store(&slot);
        let mut ends = Vec::new();
        for arm in &it.arms {
            let fails = self.in_scope(|emitter| {
                let mut fails = emitter.pattern(&arm.pattern, &slot, false);
                if let Some(guard) = &arm.guard {
                    fails.extend(emitter.branch(guard, false));
                }
                emitter.expr(&arm.body);
                fails
            });
            let jump = self.op(Opcode::Jump);
            ends.push(jump);
            self.body().patch(fails);
            self.body().height = height;
        }
        self.nil();
        self.body().patch(ends);
        self.body().height = height + 1;
    }

    pub(super) fn try_value(&mut self, it: &Try) {
        let height = self.body().height;
        let begin = self.op(Opcode::TryBegin);
        self.body().tries += 1;
        self.block_value(&it.body, None);
        self.body().tries -= 1;
        if it.catches.is_empty() {
            self.op(Opcode::WrapOk);
        }
        self.op(Opcode::TryEnd);
        let mut ends = vec![self.op(Opcode::Jump)];
        self.body().patch([begin]);
        self.body().height = height + 1;
        if it.catches.is_empty() {
            self.op(Opcode::WrapErr);
        }
        for catch in &it.catches {
            self.body().height = height + 1;
            let mut test = Instruction::new(Opcode::Catch);
            if let Some(ty) = &catch.ty {
                test = test.type_name(self.caught_type(ty));
            }
            let test = self.push(test);
            self.in_scope(|emitter| {
                match &catch.binding {
                    Some(name) => {
                        let slot = emitter.body().declare(&name.text, false);
                        emitter.store(&slot);
                    }
                    None => drop(emitter.op(Opcode::Pop)),
                }
                emitter.block_value(&catch.body, None);
            });
            let jump = self.op(Opcode::Jump);
            ends.push(jump);
            self.body().patch([test]);
        }
        // Where the last one goes if it does not take what was raised.
        if !it.catches.is_empty() {
            self.body().height = height + 1;
            self.op(Opcode::Rethrow);
        }
        self.body().patch(ends);
        self.body().height = height + 1;
    }

    /// What `typeof` calls a type: its name without what is between `<` and `>`.
    fn caught_type(&self, ty: &Type) -> String {
        let text = self.type_text(ty);
        text.split('<').next().unwrap_or_default().to_owned()
    }

    pub(super) fn listen(&mut self, it: &Listen) {
        let ExprKind::Postfix(postfix) = &it.subject.unwrapped().kind else {
            return self.expr(&it.subject);
        };
        let Some((PostfixOp::Method { call, .. }, steps)) = postfix.steps.split_last() else {
            return self.expr(&it.subject);
        };
        self.postfix(&postfix.base, steps);
        match call.arguments.first() {
            Some(prompt) => self.expr(&prompt.value),
            None => self.nil(),
        }
        let mut count = 0;
        let mut handlers = Vec::new();
        for handler in &it.handlers {
            let written = self.written(|emitter| {
                emitter.parameters(None, std::slice::from_ref(&handler.param));
                emitter.returning(&handler.body, None);
            });
            for capture in &written.captures {
                self.load(&capture.outer.slot);
                count += 1;
            }
            let param = self.params_ir(std::slice::from_ref(&handler.param));
            handlers.push(HandlerIr {
                message_type: handler.message.clone(),
                param: serde_json::to_value(&param[0]).unwrap_or_default(),
                captures: written.captures.into_iter().map(|it| it.inner).collect(),
                instructions: written.code,
                source: self.source.clone(),
            });
        }
        let name = format!("$listen_{}", self.out.listens.len() + 1);
        let agent = postfix
            .base
            .as_path()
            .map(super::super::ast::Path::text)
            .unwrap_or_default();
        self.out.listens.push(crate::ir::Listen {
            name: name.clone(),
            agent,
            handlers,
        });
        let begin = Instruction::new(Opcode::ListenBegin)
            .name(name)
            .count(count);
        self.push_at(it.subject.span, begin);
    }
}
