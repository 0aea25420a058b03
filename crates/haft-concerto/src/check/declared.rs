//! Types as they are written.

use super::{Checker, Code, Ty};
use crate::ast::{Type, TypeKind};
use crate::diagnostic::did_you_mean;
use crate::symbols::{Symbol, TYPES};

impl Checker<'_> {
    /// What a declared type means; names that do not exist are told.
    pub(super) fn declared(&mut self, ty: &Type) -> Ty {
        self.type_names(ty);
        self.meaning(self.module, ty, 0)
    }

    pub(super) fn optional_declared(&mut self, ty: Option<&Type>) -> Ty {
        ty.map_or(Ty::Unknown, |ty| self.declared(ty))
    }

    /// Whether a type is a single name in small letters that nothing has: a variable, probably.
    pub(super) fn is_name_of_nothing(&self, ty: &Type) -> bool {
        let path = match &ty.kind {
            TypeKind::Tuple(types) => match types.as_slice() {
                [only] => return self.is_name_of_nothing(only),
                _ => return false,
            },
            TypeKind::Named { path, .. } => path,
            _ => return false,
        };
        let name = path.single().map_or("", |it| it.text.as_str());
        name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && self.symbols.resolve(self.module, path).is_none()
    }

    fn type_names(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Union(_) => {}
            TypeKind::Named { path, arguments } => {
                for argument in arguments {
                    self.type_names(argument);
                }
                let own = path
                    .single()
                    .is_some_and(|name| TYPES.contains(&name.text.as_str()));
                if own || self.symbols.resolve(self.module, path).is_some() {
                    return;
                }
                if !self.diagnostics.takes_warnings() {
                    return;
                }
                let name = path.text();
                let text = format!("the type `{name}` is not known");
                let near = did_you_mean(&name, TYPES.iter().copied().chain(self.symbols.names()));
                match near.map(str::to_owned) {
                    Some(near) => {
                        self.tell_with_help(
                            Code::W006,
                            path.span,
                            text,
                            format!("did you mean `{near}`?"),
                        );
                    }
                    None => self.tell(Code::W006, path.span, text),
                }
            }
            TypeKind::Tuple(types) => types.iter().for_each(|it| self.type_names(it)),
            TypeKind::Function { parameters, result } => {
                for parameter in parameters {
                    self.type_names(parameter);
                }
                if let Some(result) = result {
                    self.type_names(result);
                }
            }
        }
    }

    /// What a type means that was written in this module; nothing is told about its names.
    pub(super) fn meaning_in(&self, module: usize, ty: &Type) -> Ty {
        self.meaning(module, ty, 0)
    }

    fn meaning(&self, module: usize, ty: &Type, depth: usize) -> Ty {
        // Types nest no deeper than the parser goes, but aliases may mean themselves.
        if depth > 64 {
            return Ty::Unknown;
        }
        let (path, arguments) = match &ty.kind {
            TypeKind::Union(_) => return Ty::Text,
            TypeKind::Tuple(_) => return Ty::array(Ty::Unknown),
            TypeKind::Function { .. } => return Ty::Function,
            TypeKind::Named { path, arguments } => (path, arguments),
        };
        let inner = |index: usize| {
            let argument = arguments.get(index);
            argument.map_or(Ty::Unknown, |it| self.meaning(module, it, depth + 1))
        };
        match self.symbols.resolve(module, path) {
            Some((full, Symbol::Struct(_) | Symbol::Schema(_) | Symbol::Enum(_))) => {
                return Ty::Named(full);
            }
            // An alias means what it means where it is declared.
            Some((full, Symbol::Alias(alias))) if arguments.is_empty() => {
                return self.meaning(self.symbols.home(&full), &alias.ty, depth + 1);
            }
            Some(_) => return Ty::Unknown,
            None => {}
        }
        match path.text().as_str() {
            "Int" => Ty::Int,
            "Float" => Ty::Float,
            "String" => Ty::Text,
            "Bool" => Ty::Bool,
            "Nil" => Ty::Nil,
            "Map" => Ty::Map,
            "Array" => Ty::array(inner(0)),
            "Option" => Ty::option(inner(0)),
            "Result" => Ty::result(inner(0), inner(1)),
            _ => Ty::Unknown,
        }
    }
}
