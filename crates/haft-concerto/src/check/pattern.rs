//! Patterns: the names that they bind, and the variants that must exist.

use std::collections::HashSet;

use super::scope::Mutability;
use super::{Checker, Code, Ty};
use crate::ast::{Match, Path, Pattern, PatternKind};
use crate::symbols::{Symbol, TYPES};

impl Checker<'_> {
    /// Binds the names of a pattern whose subject has this type.
    pub(super) fn pattern(&mut self, pattern: &Pattern, ty: &Ty, mutability: Mutability) {
        let mut bound = HashSet::new();
        self.part(pattern, ty, mutability, &mut bound);
    }

    fn part<'p>(
        &mut self,
        pattern: &'p Pattern,
        ty: &Ty,
        mutability: Mutability,
        bound: &mut HashSet<&'p str>,
    ) {
        match &pattern.kind {
            PatternKind::Wildcard | PatternKind::Literal(_) | PatternKind::Range { .. } => {}
            PatternKind::Binding(name) => {
                if bound.insert(&name.text) {
                    self.bind(name, ty.clone(), mutability);
                }
            }
            PatternKind::At(name, inner) => {
                if bound.insert(&name.text) {
                    self.bind(name, ty.clone(), mutability);
                }
                self.part(inner, ty, mutability, bound);
            }
            PatternKind::Path(path) => self.variant(path, 0),
            PatternKind::Call(path, parts) => {
                self.variant(path, parts.len());
                for part in parts {
                    self.part(part, &Ty::Unknown, mutability, bound);
                }
            }
            PatternKind::Struct { path, fields, .. } => {
                self.struct_pattern(path);
                for (name, part) in fields {
                    match part {
                        Some(part) => self.part(part, &Ty::Unknown, mutability, bound),
                        None if bound.insert(&name.text) => {
                            self.bind(name, Ty::Unknown, mutability);
                        }
                        None => {}
                    }
                }
            }
            PatternKind::Tuple(parts) => {
                for part in parts {
                    self.part(part, &Ty::Unknown, mutability, bound);
                }
            }
            PatternKind::Array(parts, rest) => {
                for part in parts {
                    self.part(part, &Ty::Unknown, mutability, bound);
                }
                if let Some(name) = rest.as_ref().and_then(|it| it.name.as_ref())
                    && bound.insert(&name.text)
                {
                    self.bind(name, Ty::Unknown, mutability);
                }
            }
            PatternKind::Or(options) => {
                for option in options {
                    self.part(option, ty, mutability, bound);
                }
            }
        }
    }

    fn variant(&mut self, path: &Path, count: usize) {
        let built_in = ["Ok", "Err", "Some", "None"];
        if path
            .single()
            .is_some_and(|name| built_in.contains(&name.text.as_str()))
        {
            return;
        }
        if let Some((_, Symbol::Variant(_, variant))) = self.symbols.resolve(self.module, path) {
            let declared = super::call::payload(variant);
            if count != declared {
                let text = format!("`{}` carries {declared} values, not {count}", path.text());
                self.tell(Code::E016, path.span, text);
            }
        } else {
            self.undefined(path);
        }
    }

    fn struct_pattern(&mut self, path: &Path) {
        let own = path
            .single()
            .is_some_and(|name| TYPES.contains(&name.text.as_str()));
        match self.symbols.resolve(self.module, path) {
            Some((
                _,
                Symbol::Variant(..) | Symbol::Struct(_) | Symbol::Schema(_) | Symbol::Alias(_),
            )) => {}
            _ if own => {}
            _ => self.undefined(path),
        }
    }

    /// Tells a `match` that leaves something out.
    pub(super) fn coverage(&mut self, it: &Match) {
        let mut seen = Seen::default();
        for arm in it.arms.iter().filter(|arm| arm.guard.is_none()) {
            seen.take(&arm.pattern);
        }
        if seen.all || self.covers(&seen) {
            return;
        }
        let text = "this `match` does not say what happens with everything else";
        let help = "add `_ => …`; without a matching arm the value is nil";
        self.tell_with_help(Code::W002, it.subject.span, text, help);
    }

    fn covers(&self, seen: &Seen<'_>) -> bool {
        let names = |list: &[&str]| list.iter().all(|it| seen.names.contains(*it));
        if names(&["Ok", "Err"]) || names(&["Some", "None"]) || (seen.truths == [true, true]) {
            return true;
        }
        if let Some(least) = seen.rest_from
            && (0..least).all(|length| seen.lengths.contains(&length))
        {
            return true;
        }
        let of = seen
            .paths
            .iter()
            .find_map(|path| self.symbols.resolve(self.module, path));
        let Some((_, Symbol::Variant(of, _))) = of else {
            return false;
        };
        of.variants
            .iter()
            .all(|it| seen.names.contains(it.name.text.as_str()))
    }
}

/// What the arms of a `match` take.
#[derive(Default)]
struct Seen<'p> {
    all: bool,
    names: HashSet<&'p str>,
    paths: Vec<&'p Path>,
    truths: [bool; 2],
    lengths: HashSet<usize>,
    rest_from: Option<usize>,
}

impl<'p> Seen<'p> {
    fn take(&mut self, pattern: &'p Pattern) {
        match &pattern.kind {
            PatternKind::Wildcard | PatternKind::Binding(_) => self.all = true,
            PatternKind::At(_, inner) => self.take(inner),
            PatternKind::Or(options) => options.iter().for_each(|it| self.take(it)),
            PatternKind::Path(path)
            | PatternKind::Call(path, _)
            | PatternKind::Struct { path, .. } => {
                self.names.insert(&path.last().text);
                if path.segments.len() > 1 {
                    self.paths.push(path);
                }
            }
            PatternKind::Literal(value) => {
                if let crate::ast::ExprKind::Bool(value) = value.kind {
                    self.truths[usize::from(value)] = true;
                }
            }
            PatternKind::Tuple(parts) => {
                let plain = |it: &Pattern| {
                    matches!(it.kind, PatternKind::Wildcard | PatternKind::Binding(_))
                };
                self.all |= parts.iter().all(plain);
            }
            PatternKind::Array(parts, None) => {
                self.lengths.insert(parts.len());
            }
            PatternKind::Array(parts, Some(_)) => {
                let least = self.rest_from.map_or(parts.len(), |it| it.min(parts.len()));
                self.rest_from = Some(least);
            }
            PatternKind::Range { .. } => {}
        }
    }
}
