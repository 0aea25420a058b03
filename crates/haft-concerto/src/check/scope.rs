//! Variables and where they are seen, and what is allowed where.

use std::collections::HashMap;

use super::ty::Ty;
use super::{Checker, Code};
use crate::ast::Name;
use crate::source::Span;

/// Whether a variable may be assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutability {
    /// Never.
    Fixed,
    /// Always.
    Mutable,
    /// `let x;`: once. Assigned in the scope of this number, if it was.
    Once(Option<usize>),
}

pub(super) struct Variable {
    pub(super) ty: Ty,
    pub(super) mutability: Mutability,
    name: String,
    span: Span,
    used: bool,
}

struct Scope {
    /// No two scopes have the same.
    number: usize,
    names: HashMap<String, usize>,
    /// All that were bound here, shadowed ones too.
    bound: Vec<usize>,
}

/// The variables that are seen.
#[derive(Default)]
pub(super) struct Scopes {
    variables: Vec<Variable>,
    open: Vec<Scope>,
    next: usize,
}

impl Scopes {
    pub(super) fn open(&mut self) {
        self.next += 1;
        self.open.push(Scope {
            number: self.next,
            names: HashMap::new(),
            bound: Vec::new(),
        });
    }

    /// The number of the innermost scope.
    pub(super) fn current(&self) -> usize {
        self.open.last().map_or(0, |it| it.number)
    }

    pub(super) fn is_open(&self, number: usize) -> bool {
        self.open.iter().any(|it| it.number == number)
    }

    pub(super) fn find(&mut self, name: &str) -> Option<&mut Variable> {
        let mut scopes = self.open.iter().rev();
        let index = scopes.find_map(|scope| scope.names.get(name).copied())?;
        self.variables.get_mut(index)
    }

    pub(super) fn bind(&mut self, name: &Name, ty: Ty, mutability: Mutability) {
        let index = self.variables.len();
        self.variables.push(Variable {
            ty,
            mutability,
            name: name.text.clone(),
            span: name.span,
            used: name.text.starts_with('_') || name.text == "self",
        });
        if let Some(scope) = self.open.last_mut() {
            scope.names.insert(name.text.clone(), index);
            scope.bound.push(index);
        }
    }

    pub(super) fn mark_used(&mut self, name: &str) {
        if let Some(variable) = self.find(name) {
            variable.used = true;
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let scopes = self.open.iter().rev();
        scopes.flat_map(|scope| scope.names.keys().map(String::as_str))
    }
}

impl Variable {
    pub(super) fn read(&mut self) -> Ty {
        self.used = true;
        self.ty.clone()
    }
}

/// Who takes what is raised, beside a `try`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Raising {
    /// Nobody.
    #[default]
    Nowhere,
    /// The function returns a Result.
    Result,
    /// The function returns an Option: `?` only.
    Option,
    /// A stage, a handler or a test ends.
    Boundary,
}

/// What is allowed where the code stands.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) raising: Raising,
    /// How many `try` are around it.
    pub(super) tries: usize,
    pub(super) awaiting: bool,
    pub(super) testing: bool,
    /// The method of a tool.
    pub(super) tool: bool,
    pub(super) loops: usize,
    /// What the function is declared to return.
    pub(super) result: Ty,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            raising: Raising::Nowhere,
            tries: 0,
            awaiting: false,
            testing: false,
            tool: false,
            loops: 0,
            result: Ty::Unknown,
        }
    }
}

impl Checker<'_> {
    /// A scope; at its end unused variables are told.
    pub(super) fn in_scope<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.open();
        let result = inner(self);
        let Some(scope) = self.scopes.open.pop() else {
            return result;
        };
        for index in scope.bound {
            let variable = &self.scopes.variables[index];
            if !variable.used {
                let text = format!("the variable `{}` is never used", variable.name);
                let help = match self.symbols.variant_named(&variable.name) {
                    Some(variant) => {
                        format!("a bare name takes anything: did you mean `{variant}`?")
                    }
                    None => format!("call it `_{}` if that is meant", variable.name),
                };
                let span = variable.span;
                self.tell_with_help(Code::W001, span, text, help);
            }
        }
        result
    }

    /// Code in a context of its own.
    pub(super) fn in_context<T>(
        &mut self,
        context: Context,
        inner: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = std::mem::replace(&mut self.context, context);
        let result = inner(self);
        self.context = before;
        result
    }

    pub(super) fn bind(&mut self, name: &Name, ty: Ty, mutability: Mutability) {
        self.scopes.bind(name, ty, mutability);
    }
}
