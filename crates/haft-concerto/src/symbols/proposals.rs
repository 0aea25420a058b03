//! Names that were probably meant.

use super::elsewhere::instead_of;
use super::{BUILTINS, STANDARD, Symbol, Symbols, standard_by_name};
use crate::ast::{PatternKind, StmtKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

impl Symbols<'_> {
    /// Whether a script has a variable of this name, which its functions do not see.
    pub fn is_of_script(&self, name: &str) -> bool {
        self.script.iter().any(|it| match &it.kind {
            StmtKind::Let { pattern, .. } => {
                matches!(&pattern.kind, PatternKind::Binding(it) if it.text == name)
            }
            _ => false,
        })
    }

    /// The path of a variant with this name, the first by its path.
    pub fn variant_named(&self, name: &str) -> Option<&str> {
        let variants = self.table.iter().filter(|(path, symbol)| {
            let last = path.rsplit("::").next();
            last == Some(name) && matches!(symbol, Symbol::Variant(..))
        });
        variants.map(|(path, _)| path.as_str()).min()
    }

    /// What an undefined path is told as, with the name that was probably meant.
    pub fn undefined(&self, path: &str, span: Span, module: usize) -> Diagnostic {
        let told = Diagnostic::new(Code::E010, span, format!("`{path}` is not defined"));
        let scope = &self.modules[module];
        let table = self.table.keys().chain(self.uses.keys());
        let visible = table.filter_map(|it| {
            let inside = it
                .strip_prefix(scope.as_str())
                .map(|rest| rest.trim_start_matches("::"));
            inside.or(Some(it.as_str()))
        });
        if let Some(instead) = instead_of(path) {
            return told.help(instead);
        }
        let built_in = BUILTINS.iter().chain(STANDARD).map(|it| it.path);
        let modules = STANDARD.iter().filter_map(|it| it.path.rsplit_once("::"));
        let built_in = built_in.chain(modules.map(|(module, _)| module));
        let near = crate::diagnostic::did_you_mean(path, visible.chain(built_in));
        match near.or_else(|| standard_by_name(path)) {
            Some(near) => told.help(format!("did you mean `{near}`?")),
            None => told,
        }
    }

    /// The names of the methods of a type, those of its traits too, for proposals.
    pub fn methods_of(&self, path: &str) -> Vec<String> {
        let own = self
            .table
            .iter()
            .filter(|(_, it)| matches!(it, Symbol::Method(_)));
        let all = own.map(|(name, _)| name).chain(self.aliases.keys());
        let inside = all.filter_map(|it| it.strip_prefix(path)?.strip_prefix("::"));
        let mut names: Vec<String> = inside
            .filter(|it| !it.contains("::"))
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    }
}
