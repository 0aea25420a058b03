//! Names that were probably meant.

use super::{Symbol, Symbols};
use crate::ast::{PatternKind, StmtKind};

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
}
