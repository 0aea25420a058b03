//! Expressions: each leaves one value.

use std::collections::{HashMap, HashSet};

use super::Emitter;
use super::constant::Key;
use super::item::default_name;
use crate::ast::{
    AssignOp, Binary, BinaryOp, Expr, ExprKind, Field, MapKey, Path, PostfixOp, PrefixOp,
    StructLit, TextPiece, Type,
};
use crate::ir::{Instruction, Opcode};
use crate::source::Span;
use crate::symbols::Symbol;

fn count(list: usize) -> u32 {
    u32::try_from(list).unwrap_or(u32::MAX)
}

pub(super) fn opcode(op: BinaryOp) -> Opcode {
    match op {
        BinaryOp::Mul => Opcode::Mul,
        BinaryOp::Div => Opcode::Div,
        BinaryOp::Mod => Opcode::Mod,
        BinaryOp::Add => Opcode::Add,
        BinaryOp::Sub => Opcode::Sub,
        BinaryOp::Less => Opcode::Lt,
        BinaryOp::Greater => Opcode::Gt,
        BinaryOp::LessEq => Opcode::Lte,
        BinaryOp::GreaterEq => Opcode::Gte,
        BinaryOp::Eq => Opcode::Eq,
        BinaryOp::NotEq => Opcode::Neq,
        BinaryOp::And => Opcode::And,
        BinaryOp::Or => Opcode::Or,
        BinaryOp::Coalesce => Opcode::NilCoalescePrep,
    }
}

impl Emitter<'_> {
    /// A value where a type is declared: `{}` is an empty map where that type is one.
    pub(super) fn value_of(&mut self, expr: &Expr, ty: Option<&Type>) {
        if let ExprKind::Block(block) = &expr.kind {
            let empty = block.stmts.is_empty() && block.tail.is_none();
            if empty && ty.is_some_and(|ty| self.is_map(ty)) {
                self.push(Instruction::new(Opcode::BuildMap).count(0));
                return;
            }
        }
        self.expr(expr);
    }

    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int(value) => self.constant(Key::Int(*value)),
            ExprKind::Float(value) => self.constant(Key::Float(value.to_bits())),
            ExprKind::Bool(value) => self.constant(Key::Bool(*value)),
            ExprKind::Nil => self.nil(),
            ExprKind::Str(text) => self.text(text),
            ExprKind::Text(pieces) => self.interpolated(pieces),
            ExprKind::Path(path) | ExprKind::Generic(path, _) => self.path(path),
            ExprKind::Struct(lit) => self.struct_value(lit, expr.span),
            ExprKind::Paren(inner) => self.expr(inner),
            ExprKind::Tuple(list) | ExprKind::Array(list) => {
                for item in list {
                    self.expr(item);
                }
                self.push(Instruction::new(Opcode::BuildArray).count(count(list.len())));
            }
            ExprKind::Map(entries) => {
                for (key, value) in entries {
                    match key {
                        MapKey::Name(name) => self.text(&name.text),
                        MapKey::Expr(key) => self.expr(key),
                    }
                    self.expr(value);
                }
                self.push(Instruction::new(Opcode::BuildMap).count(count(entries.len())));
            }
            ExprKind::Closure(closure) => self.closure(closure),
            ExprKind::Block(block) => self.block_value(block, None),
            ExprKind::If(it) => self.if_value(it),
            ExprKind::Match(it) => self.match_value(it),
            ExprKind::For(it) => self.for_loop(it),
            ExprKind::While { condition, body } => self.while_loop(condition, body),
            ExprKind::Loop(body) => self.endless_loop(body),
            ExprKind::Try(it) => self.try_value(it),
            ExprKind::Listen(it) => self.listen(it),
            ExprKind::Return(value) => {
                let height = self.body().height;
                match value {
                    Some(value) => self.expr(value),
                    None => self.nil(),
                }
                self.op(Opcode::Return);
                self.body().height = height + 1;
            }
            ExprKind::Break(value) => self.break_out(value.as_deref()),
            ExprKind::Continue => self.continue_on(),
            ExprKind::Throw(value) => {
                let height = self.body().height;
                self.expr(value);
                self.op_at(expr.span, Opcode::Throw);
                self.body().height = height + 1;
            }
            ExprKind::Postfix(it) => self.postfix(&it.base, &it.steps),
            ExprKind::Prefix(ops, inner) => self.prefix(ops, inner, expr.span),
            ExprKind::Cast(value, types) => {
                self.expr(value);
                for ty in types {
                    let cast = Instruction::new(Opcode::Cast).type_name(self.type_text(ty));
                    self.push_at(ty.span, cast);
                }
            }
            ExprKind::Binary(it) => self.binary(it, expr.span),
            ExprKind::Range {
                start,
                end,
                inclusive,
            } => {
                for side in [start, end] {
                    match side {
                        Some(side) => self.expr(side),
                        None => self.nil(),
                    }
                }
                self.constant(Key::Bool(*inclusive));
                self.op_at(expr.span, Opcode::BuildRange);
            }
            ExprKind::Pipe(first, stages) => self.pipe(first, stages),
            ExprKind::Assign { op, target, value } => {
                self.assign(*op, target, value, expr.span);
                self.nil();
            }
        }
    }

    fn interpolated(&mut self, pieces: &[TextPiece]) {
        for piece in pieces {
            match piece {
                TextPiece::Text(text) => self.text(text),
                TextPiece::Expr(expr) => self.expr(expr),
            }
        }
        self.push(Instruction::new(Opcode::BuildString).count(count(pieces.len())));
    }

    /// A name as a value.
    fn path(&mut self, path: &Path) {
        if let Some(local) = path.single().and_then(|name| self.local(&name.text)) {
            return self.load(&local.slot);
        }
        match self.symbols.resolve(self.module, path) {
            Some((full, Symbol::Variant(..))) => {
                let (of, variant) = full.rsplit_once("::").unwrap_or(("", &full));
                let build = Instruction::new(Opcode::BuildEnum)
                    .type_name(of)
                    .name(variant);
                self.push(build.count(0));
            }
            Some((full, _)) => self.global(&full, path.span),
            None => self.global(&path.text(), path.span),
        }
    }

    fn struct_value(&mut self, lit: &StructLit, span: Span) {
        let found = self.symbols.resolve(self.module, &lit.path);
        let declared = match &found {
            Some((_, Symbol::Struct(it) | Symbol::Schema(it))) => Some(it.fields.as_slice()),
            Some((_, Symbol::Variant(_, it))) => match &it.data {
                crate::ast::VariantData::Fields(fields, _) => Some(fields.as_slice()),
                _ => None,
            },
            _ => None,
        };
        let fields = declared.unwrap_or_default().iter();
        let fields: HashMap<&str, &Field> = fields.map(|it| (it.name.text.as_str(), it)).collect();
        for (name, value) in &lit.fields {
            let field = fields.get(name.text.as_str());
            self.value_of(value, field.map(|it| &it.ty));
        }
        let mut names: Vec<&str> = lit
            .fields
            .iter()
            .map(|(name, _)| name.text.as_str())
            .collect();
        if let (Some((full, _)), Some(declared)) = (&found, declared) {
            self.left_out(full, declared, &mut names, span);
        }
        let build = if let Some((full, Symbol::Variant(..))) = &found {
            let (of, variant) = full.rsplit_once("::").unwrap_or(("", full));
            Instruction::new(Opcode::BuildEnum)
                .type_name(of)
                .name(variant)
        } else {
            let name = self.struct_name(&lit.path, found);
            Instruction::new(Opcode::BuildStruct).type_name(name)
        };
        self.push_at(span, build.count(count(names.len())).arg(names));
    }

    /// The fields that a literal leaves out and that have a value nevertheless: their default, or `None`.
    fn left_out<'f>(
        &mut self,
        of: &str,
        declared: &'f [Field],
        names: &mut Vec<&'f str>,
        span: Span,
    ) {
        let given: HashSet<&str> = names.iter().copied().collect();
        for field in declared {
            let name = field.name.text.as_str();
            if field.optional && field.default.is_none() || given.contains(name) {
                continue;
            }
            if field.default.is_some() {
                self.global(&default_name(of, name), span);
                self.push_at(span, Instruction::new(Opcode::Call).argc(0));
            } else if self.is_option(of, &field.ty) {
                self.global("None", span);
            } else {
                continue;
            }
            names.push(name);
        }
    }

    fn prefix(&mut self, ops: &[PrefixOp], inner: &Expr, span: Span) {
        let mut ops = ops;
        if let Some((PrefixOp::Await, outer)) = ops.split_last() {
            match &inner.unwrapped().kind {
                // `await (a, b)` waits for all of them.
                ExprKind::Tuple(list) => {
                    for item in list {
                        self.expr(item);
                    }
                    let all = Instruction::new(Opcode::AwaitAll).count(count(list.len()));
                    self.push_at(span, all);
                    ops = outer;
                }
                ExprKind::Postfix(it) if Self::is_emit(&it.base) && it.steps.len() == 1 => {
                    self.emit_call(&it.steps[0], Opcode::EmitAwait);
                    ops = outer;
                }
                _ => self.expr(inner),
            }
        } else {
            self.expr(inner);
        }
        for op in ops.iter().rev() {
            let op = match op {
                PrefixOp::Neg => Opcode::Neg,
                PrefixOp::Not => Opcode::Not,
                PrefixOp::Await => Opcode::Await,
            };
            self.op_at(span, op);
        }
    }

    fn binary(&mut self, it: &Binary, span: Span) {
        self.expr(&it.first);
        let mut decided = Vec::new();
        for (op, right) in &it.rest {
            match op {
                BinaryOp::And => decided.push(self.op(Opcode::JumpIfFalseOrPop)),
                BinaryOp::Or => decided.push(self.op(Opcode::JumpIfTrueOrPop)),
                BinaryOp::Coalesce => {
                    // `a ?? b ?? c` is `(a ?? b) ?? c`: what was decided is looked at again.
                    let before = std::mem::take(&mut decided);
                    self.body().patch(before);
                    self.op(Opcode::NilCoalescePrep);
                    decided.push(self.op(Opcode::JumpIfNotNilOrPop));
                }
                _ => {
                    self.expr(right);
                    self.op_at(span, opcode(*op));
                    continue;
                }
            }
            self.expr(right);
        }
        self.body().patch(decided);
    }

    pub(super) fn assign(&mut self, op: AssignOp, target: &Expr, value: &Expr, span: Span) {
        match &target.kind {
            ExprKind::Path(path) => {
                let local = path.single().and_then(|name| self.local(&name.text));
                let Some(local) = local else {
                    return;
                };
                if let AssignOp::Compute(op) = op {
                    self.load(&local.slot);
                    self.expr(value);
                    self.op_at(span, opcode(op));
                } else {
                    self.expr(value);
                }
                self.store(&local.slot);
            }
            ExprKind::Postfix(it) => {
                let root = it.base.as_path().and_then(Path::single);
                let Some(local) = root.and_then(|name| self.local(&name.text)) else {
                    return;
                };
                let path = self.place_path(&it.steps);
                self.expr(value);
                let mut set = Instruction::new(Opcode::PlaceSet)
                    .name(local.slot)
                    .arg(path);
                if let AssignOp::Compute(op) = op {
                    let name = serde_json::to_value(opcode(op)).unwrap_or_default();
                    set = set.method(name.as_str().unwrap_or_default());
                }
                self.push_at(span, set);
            }
            // The parser lets nothing else through.
            _ => {}
        }
    }

    /// The path of a place; its indexes are put on the stack.
    pub(super) fn place_path(&mut self, steps: &[PostfixOp]) -> Vec<serde_json::Value> {
        let mut path = Vec::new();
        for step in steps {
            match step {
                PostfixOp::Field(name) => path.push(name.text.as_str().into()),
                PostfixOp::Index(index, _) => {
                    self.expr(index);
                    path.push(serde_json::Value::Null);
                }
                _ => {}
            }
        }
        path
    }
}
