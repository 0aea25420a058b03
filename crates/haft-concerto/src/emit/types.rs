//! Types as text.

use super::Emitter;
use crate::ast::{Type, TypeKind};

impl Emitter<'_> {
    /// `Array<Int>`, `"a" | "b"`; aliases are expanded, declared types have their full path.
    pub(super) fn type_text(&self, ty: &Type) -> String {
        self.type_text_inner(ty, 0)
    }

    fn type_text_inner(&self, ty: &Type, depth: usize) -> String {
        // An alias that means itself ends here.
        if depth > 64 {
            return "Any".to_owned();
        }
        let list = |types: &[Type]| {
            let texts: Vec<_> = types
                .iter()
                .map(|it| self.type_text_inner(it, depth + 1))
                .collect();
            texts.join(", ")
        };
        match &self.symbols.expand(self.module, ty).kind {
            TypeKind::Union(options) => {
                let quoted = options
                    .iter()
                    .map(|it| serde_json::Value::from(it.as_str()).to_string());
                quoted.collect::<Vec<_>>().join(" | ")
            }
            TypeKind::Named { path, arguments } => {
                let name = self.symbols.resolve(self.module, path);
                let name = name.map_or_else(|| path.text(), |(name, _)| name);
                match arguments.as_slice() {
                    [] => name,
                    arguments => format!("{name}<{}>", list(arguments)),
                }
            }
            TypeKind::Tuple(types) => format!("({})", list(types)),
            TypeKind::Function { parameters, result } => {
                let result = result
                    .as_deref()
                    .map(|it| self.type_text_inner(it, depth + 1));
                let result = result.map_or_else(String::new, |it| format!(" -> {it}"));
                format!("fn({}){result}", list(parameters))
            }
        }
    }

    pub(super) fn optional_type(&self, ty: Option<&Type>, missing: &str) -> String {
        ty.map_or_else(|| missing.to_owned(), |ty| self.type_text(ty))
    }

    /// Whether a type is declared as a map, so that `{}` is an empty one.
    pub(super) fn is_map(&self, ty: &Type) -> bool {
        let TypeKind::Named { path, .. } = &self.symbols.expand(self.module, ty).kind else {
            return false;
        };
        path.single().is_some_and(|name| name.text == "Map")
    }

    /// Whether a field of `of` is an option, so that a literal may leave it out.
    pub(super) fn is_option(&self, of: &str, ty: &Type) -> bool {
        let home = self.symbols.home(of);
        super::schema::option_of(self.symbols.expand(home, ty)).is_some()
    }
}
