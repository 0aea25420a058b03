//! The names that declarations and statements make.

use super::Variable;
use crate::ast::{Item, ItemKind, Pattern, PatternKind, Stmt, StmtKind, UseTail};

/// What an item declares. Of an `impl` it is what nobody can call it.
pub(super) fn declared_by(item: &Item) -> Vec<String> {
    let one = match &item.kind {
        ItemKind::Function(it) => &it.signature.name,
        ItemKind::Model(it) | ItemKind::Agent(it) => &it.name,
        ItemKind::Tool(it) => &it.name,
        ItemKind::Mcp(it) => &it.name,
        ItemKind::Schema(it) | ItemKind::Struct(it) => &it.name,
        ItemKind::Enum(it) => &it.name,
        ItemKind::Trait(it) => &it.name,
        ItemKind::Pipeline(it) => &it.name,
        ItemKind::Mod(it) => &it.name,
        ItemKind::Const(it) => &it.name,
        ItemKind::TypeAlias(it) => &it.name,
        ItemKind::Store(it) => &it.name,
        ItemKind::Impl(it) => {
            let target = it.target.as_ref().map_or("", |it| it.text.as_str());
            return vec![format!(" impl {} for {target}", it.name.text)];
        }
        ItemKind::Use(it) => {
            let names = match &it.tail {
                UseTail::None => vec![it.path.last().text.clone()],
                UseTail::As(name) => vec![name.text.clone()],
                UseTail::Group(names) => names.iter().map(|it| it.text.clone()).collect(),
            };
            return names;
        }
    };
    vec![one.text.clone()]
}

/// What a statement makes, if it is a `let`.
pub(super) fn bound_by(stmt: &Stmt) -> Vec<Variable> {
    let StmtKind::Let {
        mutable, pattern, ..
    } = &stmt.kind
    else {
        return Vec::new();
    };
    let mut names = Vec::new();
    of_pattern(pattern, &mut names);
    names.dedup();
    let variable = |name| Variable {
        name,
        mutable: *mutable,
    };
    names.into_iter().map(variable).collect()
}

fn of_pattern(pattern: &Pattern, names: &mut Vec<String>) {
    match &pattern.kind {
        PatternKind::Binding(name) => names.push(name.text.clone()),
        PatternKind::At(name, inner) => {
            names.push(name.text.clone());
            of_pattern(inner, names);
        }
        PatternKind::Call(_, inner) | PatternKind::Tuple(inner) => {
            for it in inner {
                of_pattern(it, names);
            }
        }
        PatternKind::Struct { fields, .. } => {
            for (name, inner) in fields {
                match inner {
                    Some(inner) => of_pattern(inner, names),
                    None => names.push(name.text.clone()),
                }
            }
        }
        PatternKind::Array(inner, rest) => {
            for it in inner {
                of_pattern(it, names);
            }
            let rest = rest.as_ref().and_then(|it| it.name.as_ref());
            names.extend(rest.map(|it| it.text.clone()));
        }
        // All alternatives bind the same.
        PatternKind::Or(inner) => {
            if let Some(first) = inner.first() {
                of_pattern(first, names);
            }
        }
        PatternKind::Wildcard
        | PatternKind::Literal(_)
        | PatternKind::Range { .. }
        | PatternKind::Path(_) => {}
    }
}
