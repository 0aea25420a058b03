//! Blocks and statements.

use super::{Doc, Printer, Sequence, type_text};
use crate::ast::{Block, Config, Match, Stmt, StmtKind};
use crate::source::Span;

impl Printer<'_> {
    pub(super) fn block(&mut self, block: &Block) -> Doc {
        let mut spans: Vec<Span> = block.stmts.iter().map(|it| it.span).collect();
        spans.extend(block.tail.as_ref().map(|it| it.span));
        let close = block.span.end.saturating_sub(1);
        let comments = self.comments_within(block.span);
        if spans.is_empty() && !comments {
            return Doc::text("{}");
        }
        // `{ value }` may stay on its line.
        let flat = block.stmts.is_empty() && !comments && self.one_line(block.span);
        let sequence = Sequence {
            spans: &spans,
            close,
            flat,
        };
        let last = block.stmts.len().saturating_sub(1);
        let inside = self.sequence(
            &sequence,
            |_| false,
            |printer, index| {
                match (block.stmts.get(index), &block.tail) {
                    // A block at the end would be the value of this one.
                    (Some(stmt), tail) => printer.stmt(stmt, index < last || tail.is_some()),
                    (None, Some(tail)) => printer.expr(tail),
                    (None, None) => Doc::nothing(),
                }
            },
        );
        let edge = || if flat { Doc::line() } else { Doc::hard() };
        Doc::group(Doc::concat(vec![
            Doc::text("{"),
            Doc::nest(Doc::concat(vec![edge(), inside])),
            edge(),
            Doc::text("}"),
        ]))
    }

    /// A statement; `more` says that something follows it in its block.
    pub(super) fn stmt(&mut self, stmt: &Stmt, more: bool) -> Doc {
        match &stmt.kind {
            StmtKind::Let {
                mutable,
                pattern,
                ty,
                value,
            } => {
                let mutable = if *mutable { "mut " } else { "" };
                let ty = ty.as_ref().map(|ty| format!(": {}", type_text(ty)));
                let head = format!(
                    "let {mutable}{}{}",
                    self.pattern_text(pattern),
                    ty.unwrap_or_default()
                );
                let mut parts = vec![Doc::text(head)];
                if let Some(value) = value {
                    parts.push(Doc::text(" = "));
                    parts.push(self.expr(value));
                }
                parts.push(Doc::text(";"));
                Doc::concat(parts)
            }
            StmtKind::Mock(config) => {
                let head = Doc::text("mock ");
                Doc::concat(vec![head, self.config(config)])
            }
            StmtKind::Expr(expr) => {
                let doc = self.expr(expr);
                let bare = expr.is_block_like() && (more || !self.ends_with_semicolon(stmt.span));
                let end = if bare { "" } else { ";" };
                Doc::concat(vec![doc, Doc::text(end)])
            }
        }
    }

    fn ends_with_semicolon(&self, span: Span) -> bool {
        self.source(span).ends_with(';')
    }

    /// `Name { key: value }`.
    pub(super) fn config(&mut self, config: &Config) -> Doc {
        let span = |it: &crate::ast::ConfigEntry| it.name.span.to(it.value.span);
        let spans: Vec<Span> = config.entries.iter().map(span).collect();
        let flat = self.one_line(config.name.span.to(config.close));
        let sequence = Sequence {
            spans: &spans,
            close: config.close.start,
            flat,
        };
        let inside = self.bracketed(("{", "}"), true, &sequence, |printer, index| {
            let entry = &config.entries[index];
            let name = Doc::text(format!("{}: ", entry.name.text));
            Doc::concat(vec![name, printer.expr(&entry.value)])
        });
        Doc::concat(vec![Doc::text(format!("{} ", config.name.text)), inside])
    }

    pub(super) fn match_doc(&mut self, it: &Match, whole: Span) -> Doc {
        let head = Doc::concat(vec![
            Doc::text("match "),
            self.expr(&it.subject),
            Doc::text(" "),
        ]);
        let spans: Vec<Span> = it
            .arms
            .iter()
            .map(|arm| arm.pattern.span.to(arm.body.span))
            .collect();
        // The subject may have lines of its own: they say nothing about the arms.
        let arms = Span::new(it.subject.span.end, whole.end);
        let flat = self.one_line(arms) && !self.comments_within(whole);
        let sequence = Sequence {
            spans: &spans,
            close: it.close.start,
            flat,
        };
        let inside = self.sequence(
            &sequence,
            |_| true,
            |printer, index| {
                let arm = &it.arms[index];
                let mut parts = vec![Doc::text(printer.pattern_text(&arm.pattern))];
                if let Some(guard) = &arm.guard {
                    parts.push(Doc::text(" if "));
                    parts.push(printer.expr(guard));
                }
                parts.push(Doc::text(" => "));
                parts.push(printer.expr(&arm.body));
                Doc::concat(parts)
            },
        );
        if spans.is_empty() && !inside.hard {
            return Doc::concat(vec![head, Doc::text("{}")]);
        }
        let edge = || if flat { Doc::line() } else { Doc::hard() };
        let body = Doc::group(Doc::concat(vec![
            Doc::text("{"),
            Doc::nest(Doc::concat(vec![edge(), inside])),
            edge(),
            Doc::text("}"),
        ]));
        Doc::concat(vec![head, body])
    }
}
