//! Patterns: tests that jump away, and names that are bound.

use std::collections::HashMap;

use super::Emitter;
use crate::ast::{Name, Path, Pattern, PatternKind};
use crate::ir::{Instruction, Opcode};
use crate::symbols::Symbol;

impl Emitter<'_> {
    /// Tests what lies in a local against a pattern and binds its names. The jumps that are taken if
    /// it does not match.
    pub(super) fn pattern(
        &mut self,
        pattern: &Pattern,
        subject: &str,
        mutable: bool,
    ) -> Vec<usize> {
        let before = self.body().pattern.replace(HashMap::new());
        let mut fails = Vec::new();
        self.part(pattern, subject, mutable, &mut fails);
        self.body().pattern = before;
        fails
    }

    fn part(&mut self, pattern: &Pattern, subject: &str, mutable: bool, fails: &mut Vec<usize>) {
        match &pattern.kind {
            PatternKind::Wildcard => {}
            PatternKind::Binding(name) => self.bind(name, subject, mutable),
            PatternKind::At(name, inner) => {
                self.part(inner, subject, mutable, fails);
                self.bind(name, subject, mutable);
            }
            PatternKind::Literal(value) => {
                self.load(subject);
                self.expr(value);
                self.op(Opcode::Eq);
                self.fail(fails);
            }
            PatternKind::Range {
                start,
                end,
                inclusive,
            } => {
                self.load(subject);
                self.expr(start);
                self.expr(end);
                self.push(Instruction::new(Opcode::InRange).arg(*inclusive));
                self.fail(fails);
            }
            PatternKind::Path(path) => self.variant_test(path, subject, fails),
            PatternKind::Call(path, parts) => {
                self.variant_test(path, subject, fails);
                for (index, part) in parts.iter().enumerate() {
                    let take = Instruction::new(Opcode::Payload).arg(index);
                    self.taken(part, subject, vec![take], mutable, fails);
                }
            }
            PatternKind::Struct { path, fields, .. } => {
                self.struct_test(path, subject, fails);
                for (name, part) in fields {
                    let take = Instruction::new(Opcode::FieldGet).name(name.text.as_str());
                    if let Some(part) = part {
                        self.taken(part, subject, vec![take], mutable, fails);
                    } else {
                        self.load(subject);
                        self.push(take);
                        let slot = self.body().declare(&name.text, mutable);
                        self.store(&slot);
                    }
                }
            }
            PatternKind::Tuple(parts) => self.elements(parts, false, subject, mutable, fails),
            PatternKind::Array(parts, rest) => {
                self.elements(parts, rest.is_some(), subject, mutable, fails);
                if let Some(name) = rest.as_ref().and_then(|it| it.name.as_ref()) {
                    self.load(subject);
                    self.push(Instruction::new(Opcode::Rest).count(length(parts)));
                    let slot = self.body().declare(&name.text, mutable);
                    self.store(&slot);
                }
            }
            PatternKind::Or(options) => self.alternatives(options, subject, mutable, fails),
        }
    }

    fn bind(&mut self, name: &Name, subject: &str, mutable: bool) {
        self.load(subject);
        let slot = self.body().declare(&name.text, mutable);
        self.store(&slot);
    }

    fn fail(&mut self, fails: &mut Vec<usize>) {
        let jump = self.op(Opcode::JumpIfFalse);
        fails.push(jump);
    }

    /// A part of the subject against a pattern.
    fn taken(
        &mut self,
        part: &Pattern,
        subject: &str,
        take: Vec<Instruction>,
        mutable: bool,
        fails: &mut Vec<usize>,
    ) {
        if matches!(part.kind, PatternKind::Wildcard) {
            return;
        }
        self.load(subject);
        for instruction in take {
            self.push(instruction);
        }
        let slot = match &part.kind {
            PatternKind::Binding(name) => self.body().declare(&name.text, mutable),
            _ => self.body().temporary("part"),
        };
        self.store(&slot);
        if !matches!(part.kind, PatternKind::Binding(_)) {
            self.part(part, &slot, mutable, fails);
        }
    }

    fn elements(
        &mut self,
        parts: &[Pattern],
        more: bool,
        subject: &str,
        mutable: bool,
        fails: &mut Vec<usize>,
    ) {
        self.load(subject);
        self.push(
            Instruction::new(Opcode::HasLength)
                .count(length(parts))
                .arg(more),
        );
        self.fail(fails);
        for (index, part) in parts.iter().enumerate() {
            let index = Instruction::new(Opcode::Push).arg(index);
            let take = Instruction::new(Opcode::IndexGet);
            self.taken(part, subject, vec![index, take], mutable, fails);
        }
    }

    fn alternatives(
        &mut self,
        options: &[Pattern],
        subject: &str,
        mutable: bool,
        fails: &mut Vec<usize>,
    ) {
        let mut matched = Vec::new();
        for (index, option) in options.iter().enumerate() {
            let mut missed = Vec::new();
            self.part(option, subject, mutable, &mut missed);
            if index + 1 == options.len() {
                fails.append(&mut missed);
            } else {
                let jump = self.op(Opcode::Jump);
                matched.push(jump);
                self.body().patch(missed);
            }
        }
        self.body().patch(matched);
    }

    fn variant_test(&mut self, path: &Path, subject: &str, fails: &mut Vec<usize>) {
        self.load(subject);
        let test = Instruction::new(Opcode::IsVariant).name(path.last().text.as_str());
        let test = match self.symbols.resolve(self.module, path) {
            Some((full, Symbol::Variant(..))) => {
                let (of, _) = full.rsplit_once("::").unwrap_or((&full, ""));
                test.type_name(of)
            }
            _ => test,
        };
        self.push(test);
        self.fail(fails);
    }

    fn struct_test(&mut self, path: &Path, subject: &str, fails: &mut Vec<usize>) {
        match self.symbols.resolve(self.module, path) {
            Some((_, Symbol::Variant(..))) => return self.variant_test(path, subject, fails),
            found => {
                let name = self.struct_name(path, found);
                self.load(subject);
                self.push(Instruction::new(Opcode::CheckType).type_name(name));
            }
        }
        self.fail(fails);
    }

    /// The name of a struct's type; an alias is what it means.
    pub(super) fn struct_name(&self, path: &Path, found: Option<(String, Symbol<'_>)>) -> String {
        match found {
            Some((_, Symbol::Alias(alias))) => self.type_text(&alias.ty),
            Some((full, _)) => full,
            None => path.text(),
        }
    }
}

fn length(parts: &[Pattern]) -> u32 {
    u32::try_from(parts.len()).unwrap_or(u32::MAX)
}
