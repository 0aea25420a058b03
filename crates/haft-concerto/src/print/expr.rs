//! Expressions and patterns.

use super::{Doc, Printer, Sequence, path, quoted, type_text};
use crate::ast::{
    Argument, Call, Closure, Expr, ExprKind, MapKey, Param, Pattern, PatternKind, Postfix,
    PostfixOp, PrefixOp, StructLit, Type,
};
use crate::source::Span;

impl Printer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Doc {
        match &expr.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Nil
            | ExprKind::Str(_)
            | ExprKind::Text(_)
            | ExprKind::Continue => self.verbatim(expr.span),
            ExprKind::Path(it) => path(it),
            ExprKind::Generic(it, types) => Doc::text(it.text() + &generics(types)),
            ExprKind::Struct(it) => self.struct_doc(it, expr.span),
            ExprKind::Paren(inner) => {
                let inner = self.expr(inner);
                Doc::concat(vec![Doc::text("("), inner, Doc::text(")")])
            }
            ExprKind::Tuple(list) if list.len() == 1 => {
                let inner = self.expr(&list[0]);
                Doc::concat(vec![Doc::text("("), inner, Doc::text(",)")])
            }
            ExprKind::Tuple(list) => self.exprs(("(", ")"), list, expr.span),
            ExprKind::Array(list) => self.exprs(("[", "]"), list, expr.span),
            ExprKind::Map(entries) => self.map(entries, expr.span),
            ExprKind::Closure(it) => self.closure(it),
            ExprKind::Postfix(it) => self.postfix(it),
            ExprKind::Prefix(ops, inner) => {
                let text = |op: &PrefixOp| match op {
                    PrefixOp::Neg => "-",
                    PrefixOp::Not => "!",
                    PrefixOp::Await => "await ",
                };
                let ops: String = ops.iter().map(text).collect();
                Doc::concat(vec![Doc::text(ops), self.expr(inner)])
            }
            ExprKind::Cast(value, types) => {
                let value = self.expr(value);
                let casts = types
                    .iter()
                    .map(|ty| Doc::text(format!(" as {}", type_text(ty))));
                let casts = Doc::concat(casts.collect());
                Doc::concat(vec![value, casts])
            }
            ExprKind::Binary(it) => {
                let first = self.expr(&it.first);
                let rest = it.rest.iter().map(|(op, right)| {
                    let op = Doc::text(format!("{} ", op.text()));
                    Doc::concat(vec![Doc::line(), op, self.expr(right)])
                });
                let rest = Doc::nest(Doc::concat(rest.collect()));
                Doc::group(Doc::concat(vec![first, rest]))
            }
            ExprKind::Pipe(first, stages) => {
                let first = self.expr(first);
                let stages = stages.iter().map(|stage| {
                    let target = self.expr(&stage.target);
                    let tries = Doc::text("?".repeat(stage.tries.len()));
                    Doc::concat(vec![Doc::line(), Doc::text("|> "), target, tries])
                });
                let stages = Doc::nest(Doc::concat(stages.collect()));
                Doc::group(Doc::concat(vec![first, stages]))
            }
            ExprKind::Range {
                start,
                end,
                inclusive,
            } => {
                let start = start
                    .as_deref()
                    .map_or_else(Doc::nothing, |it| self.expr(it));
                let op = Doc::text(if *inclusive { "..=" } else { ".." });
                let end = end.as_deref().map_or_else(Doc::nothing, |it| self.expr(it));
                Doc::concat(vec![start, op, end])
            }
            ExprKind::Assign { op, target, value } => {
                let target = self.expr(target);
                let op = Doc::text(format!(" {} ", op.text()));
                Doc::concat(vec![target, op, self.expr(value)])
            }
            _ => self.control(expr),
        }
    }

    fn struct_doc(&mut self, it: &StructLit, whole: Span) -> Doc {
        let spans: Vec<Span> = it
            .fields
            .iter()
            .map(|(name, value)| name.span.to(value.span))
            .collect();
        let sequence = Self::list(&spans, whole);
        let fields = self.bracketed(("{", "}"), true, &sequence, |printer, index| {
            let (name, value) = &it.fields[index];
            let name = Doc::text(format!("{}: ", name.text));
            Doc::concat(vec![name, printer.expr(value)])
        });
        Doc::concat(vec![path(&it.path), Doc::text(" "), fields])
    }

    fn map(&mut self, entries: &[(MapKey, Expr)], whole: Span) -> Doc {
        let span = |(key, value): &(MapKey, Expr)| match key {
            MapKey::Name(name) => name.span.to(value.span),
            MapKey::Expr(key) => key.span.to(value.span),
        };
        let spans: Vec<Span> = entries.iter().map(span).collect();
        let sequence = Self::list(&spans, whole);
        self.bracketed(("{", "}"), true, &sequence, |printer, index| {
            let (key, value) = &entries[index];
            let key = match key {
                MapKey::Name(name) => Doc::text(name.text.as_str()),
                MapKey::Expr(key) => printer.expr(key),
            };
            Doc::concat(vec![key, Doc::text(": "), printer.expr(value)])
        })
    }

    fn control(&mut self, expr: &Expr) -> Doc {
        match &expr.kind {
            ExprKind::Block(block) => self.block(block),
            ExprKind::If(it) => {
                let mut parts = Vec::new();
                for (index, (condition, block)) in it.branches.iter().enumerate() {
                    parts.push(Doc::text(if index == 0 { "if " } else { " else if " }));
                    parts.push(self.expr(condition));
                    parts.push(Doc::text(" "));
                    parts.push(self.block(block));
                }
                if let Some(block) = &it.otherwise {
                    parts.push(Doc::text(" else "));
                    parts.push(self.block(block));
                }
                Doc::concat(parts)
            }
            ExprKind::Match(it) => self.match_doc(it, expr.span),
            ExprKind::For(it) => {
                let head = format!("for {} in ", self.pattern_text(&it.pattern));
                let subject = self.expr(&it.subject);
                Doc::concat(vec![
                    Doc::text(head),
                    subject,
                    Doc::text(" "),
                    self.block(&it.body),
                ])
            }
            ExprKind::While { condition, body } => {
                let condition = self.expr(condition);
                Doc::concat(vec![
                    Doc::text("while "),
                    condition,
                    Doc::text(" "),
                    self.block(body),
                ])
            }
            ExprKind::Loop(body) => Doc::concat(vec![Doc::text("loop "), self.block(body)]),
            ExprKind::Try(it) => {
                let mut parts = vec![Doc::text("try "), self.block(&it.body)];
                for catch in &it.catches {
                    let ty = catch.ty.as_ref().map(|ty| format!(" {}", type_text(ty)));
                    let name = catch
                        .binding
                        .as_ref()
                        .map(|name| format!("({})", name.text));
                    let head = format!(
                        " catch{}{} ",
                        ty.unwrap_or_default(),
                        name.unwrap_or_default()
                    );
                    parts.push(Doc::text(head));
                    parts.push(self.block(&catch.body));
                }
                Doc::concat(parts)
            }
            ExprKind::Listen(it) => {
                let head = vec![Doc::text("listen "), self.expr(&it.subject), Doc::text(" ")];
                let spans: Vec<Span> = it
                    .handlers
                    .iter()
                    .map(|it| it.span.to(it.body.span))
                    .collect();
                let sequence = Sequence {
                    spans: &spans,
                    close: it.close.start,
                    flat: false,
                };
                let handlers = self.bracketed(("{", "}"), true, &sequence, |printer, index| {
                    let handler = &it.handlers[index];
                    let head = format!("{} => |", quoted(&handler.message));
                    let param = printer.param(&handler.param);
                    let body = printer.block(&handler.body);
                    Doc::concat(vec![Doc::text(head), param, Doc::text("| "), body])
                });
                Doc::concat(vec![Doc::concat(head), handlers])
            }
            ExprKind::Return(value) => self.word("return", value.as_deref()),
            ExprKind::Break(value) => self.word("break", value.as_deref()),
            ExprKind::Throw(value) => self.word("throw", Some(value)),
            _ => self.verbatim(expr.span),
        }
    }

    fn word(&mut self, word: &str, value: Option<&Expr>) -> Doc {
        match value {
            Some(value) => Doc::concat(vec![Doc::text(format!("{word} ")), self.expr(value)]),
            None => Doc::text(word),
        }
    }

    /// As it is written. Comments in it are part of it.
    fn verbatim(&mut self, span: Span) -> Doc {
        let first = self
            .comments
            .partition_point(|it| it.span.start < span.start);
        let last = self.comments.partition_point(|it| it.span.start < span.end);
        if first < last {
            self.comments.drain(first..last);
        }
        Doc::text(self.source(span))
    }

    fn list(spans: &[Span], whole: Span) -> Sequence<'_> {
        Sequence {
            spans,
            close: whole.end.saturating_sub(1),
            flat: true,
        }
    }

    fn exprs(&mut self, brackets: (&'static str, &'static str), list: &[Expr], whole: Span) -> Doc {
        let spans: Vec<Span> = list.iter().map(|it| it.span).collect();
        let sequence = Self::list(&spans, whole);
        self.bracketed(brackets, false, &sequence, |printer, index| {
            printer.expr(&list[index])
        })
    }

    fn closure(&mut self, it: &Closure) -> Doc {
        let params: Vec<Doc> = it.params.iter().map(|param| self.param(param)).collect();
        let mut parts = vec![Doc::text("|")];
        for (index, param) in params.into_iter().enumerate() {
            if index > 0 {
                parts.push(Doc::text(", "));
            }
            parts.push(param);
        }
        let result = it
            .result
            .as_ref()
            .map(|ty| format!("-> {} ", type_text(ty)));
        parts.push(Doc::text(format!("| {}", result.unwrap_or_default())));
        parts.push(self.expr(&it.body));
        Doc::concat(parts)
    }

    pub(super) fn param(&mut self, param: &Param) -> Doc {
        let mut parts = Vec::new();
        for decorator in &param.decorators {
            parts.push(self.decorator(decorator));
            parts.push(Doc::text(" "));
        }
        let ty = param.ty.as_ref().map(|ty| format!(": {}", type_text(ty)));
        parts.push(Doc::text(format!(
            "{}{}",
            param.name.text,
            ty.unwrap_or_default()
        )));
        if let Some(default) = &param.default {
            parts.push(Doc::text(" = "));
            parts.push(self.expr(default));
        }
        Doc::concat(parts)
    }

    fn postfix(&mut self, it: &Postfix) -> Doc {
        let mut parts = vec![self.expr(&it.base)];
        let is_method = |step: &&PostfixOp| matches!(step, PostfixOp::Method { .. });
        // A long chain has each method on a line of its own.
        let chain = it.steps.iter().filter(is_method).count() > 1;
        for step in &it.steps {
            match step {
                PostfixOp::Call(call) => parts.push(self.call(call)),
                PostfixOp::Field(name) => parts.push(Doc::text(format!(".{}", name.text))),
                PostfixOp::Method { name, types, call } => {
                    if chain {
                        parts.push(Doc::soft());
                    }
                    parts.push(Doc::text(format!(".{}{}", name.text, generics(types))));
                    parts.push(self.call(call));
                }
                PostfixOp::Index(index, _) => {
                    parts.push(Doc::text("["));
                    parts.push(self.expr(index));
                    parts.push(Doc::text("]"));
                }
                PostfixOp::Try(_) => parts.push(Doc::text("?")),
                PostfixOp::Await(_) => parts.push(Doc::text(".await")),
            }
        }
        let base = parts.remove(0);
        let steps = Doc::concat(parts);
        let steps = if chain { Doc::nest(steps) } else { steps };
        Doc::group(Doc::concat(vec![base, steps]))
    }

    pub(super) fn call(&mut self, call: &Call) -> Doc {
        let span = |it: &Argument| match &it.name {
            Some(name) => name.span.to(it.value.span),
            None => it.value.span,
        };
        let spans: Vec<Span> = call.arguments.iter().map(span).collect();
        if !self.comments_within(call.span) && hugs(&call.arguments) {
            // The last argument brings its own lines.
            let mut parts = vec![Doc::text("(")];
            for (index, argument) in call.arguments.iter().enumerate() {
                if index > 0 {
                    parts.push(Doc::text(", "));
                }
                parts.push(self.argument(argument));
            }
            parts.push(Doc::text(")"));
            return Doc::concat(parts);
        }
        let sequence = Self::list(&spans, call.span);
        self.bracketed(("(", ")"), false, &sequence, |printer, index| {
            printer.argument(&call.arguments[index])
        })
    }

    fn argument(&mut self, argument: &Argument) -> Doc {
        let value = self.expr(&argument.value);
        match &argument.name {
            Some(name) => Doc::concat(vec![Doc::text(format!("{}: ", name.text)), value]),
            None => value,
        }
    }

    /// A pattern stands on one line.
    pub(super) fn pattern_text(&self, pattern: &Pattern) -> String {
        let list = |parts: &[Pattern]| {
            let parts: Vec<_> = parts.iter().map(|it| self.pattern_text(it)).collect();
            parts.join(", ")
        };
        match &pattern.kind {
            PatternKind::Wildcard => "_".to_owned(),
            PatternKind::Binding(name) => name.text.clone(),
            PatternKind::At(name, inner) => {
                format!("{} @ {}", name.text, self.inner_pattern(inner))
            }
            PatternKind::Literal(value) => self.pattern_literal(value),
            PatternKind::Range {
                start,
                end,
                inclusive,
            } => {
                let op = if *inclusive { "..=" } else { ".." };
                format!(
                    "{}{op}{}",
                    self.pattern_literal(start),
                    self.pattern_literal(end)
                )
            }
            PatternKind::Path(path) => path.text(),
            PatternKind::Call(path, parts) => format!("{}({})", path.text(), list(parts)),
            PatternKind::Struct { path, fields, rest } => {
                let mut parts: Vec<String> = Vec::new();
                for (name, part) in fields {
                    parts.push(match part {
                        Some(part) => format!("{}: {}", name.text, self.pattern_text(part)),
                        None => name.text.clone(),
                    });
                }
                if *rest {
                    parts.push("..".to_owned());
                }
                if parts.is_empty() {
                    format!("{} {{}}", path.text())
                } else {
                    format!("{} {{ {} }}", path.text(), parts.join(", "))
                }
            }
            PatternKind::Tuple(parts) => format!("({})", list(parts)),
            PatternKind::Array(parts, rest) => {
                let rest = rest.as_ref().map(|it| {
                    let name = it.name.as_ref().map_or("", |name| name.text.as_str());
                    let comma = if parts.is_empty() { "" } else { ", " };
                    format!("{comma}..{name}")
                });
                format!("[{}{}]", list(parts), rest.unwrap_or_default())
            }
            PatternKind::Or(options) => {
                let options: Vec<_> = options.iter().map(|it| self.inner_pattern(it)).collect();
                options.join(" | ")
            }
        }
    }

    fn pattern_literal(&self, value: &Expr) -> String {
        match &value.kind {
            ExprKind::Prefix(_, number) => format!("-{}", self.source(number.span)),
            _ => self.source(value.span).to_owned(),
        }
    }

    /// A pattern where alternatives need brackets.
    fn inner_pattern(&self, pattern: &Pattern) -> String {
        let text = self.pattern_text(pattern);
        match &pattern.kind {
            PatternKind::Or(_) => format!("({text})"),
            _ => text,
        }
    }
}

fn generics(types: &[Type]) -> String {
    if types.is_empty() {
        return String::new();
    }
    let types: Vec<_> = types.iter().map(type_text).collect();
    format!("<{}>", types.join(", "))
}

/// Whether only the last argument may have lines of its own.
fn hugs(arguments: &[Argument]) -> bool {
    let lines = |it: &Argument| match &it.value.kind {
        ExprKind::Closure(closure) => matches!(closure.body.kind, ExprKind::Block(_)),
        kind => matches!(
            kind,
            ExprKind::Block(_) | ExprKind::Match(_) | ExprKind::Try(_)
        ),
    };
    let last = arguments.last().is_some_and(lines);
    last && arguments.iter().filter(|it| lines(it)).count() == 1
}
