//! A program as it was written (concerto.md §2).
//!
//! Chains are flat: `a + b + c` is one node with three operands, `a.b(c)[d]` one with three steps. So
//! the depth of a tree is bounded by how deep the parser went, and every pass may recurse.

mod expr;
mod item;
mod pattern;

pub use expr::{
    Argument, AssignOp, Binary, BinaryOp, Block, Call, Catch, Closure, Expr, ExprKind, For,
    Handler, If, Listen, MapKey, Match, MatchArm, PipeStage, Postfix, PostfixOp, PrefixOp, Stmt,
    StmtKind, StructLit, TextPiece, Try,
};
pub use item::{
    Config, ConfigEntry, Const, Decorator, Enum, Field, Fields, Function, Impl, Item, ItemKind,
    Mcp, Mod, Param, Pipeline, Receiver, Signature, Stage, Store, StoreKind, Tool, ToolState,
    Trait, TypeAlias, Use, UseTail, Variant, VariantData,
};
pub use pattern::{Pattern, PatternKind, RestPattern};

use crate::source::Span;

/// A name and its place.
#[derive(Clone, Debug)]
pub struct Name {
    /// What it says.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// Names joined by `::`, at least one.
#[derive(Clone, Debug)]
pub struct Path {
    /// The names.
    pub segments: Vec<Name>,
    /// All of it.
    pub span: Span,
}

impl Path {
    /// The name, if it is only one.
    pub fn single(&self) -> Option<&Name> {
        match self.segments.as_slice() {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The last name.
    pub fn last(&self) -> &Name {
        // The parser makes no path without a name.
        &self.segments[self.segments.len() - 1]
    }

    /// As it is written.
    pub fn text(&self) -> String {
        let names: Vec<&str> = self.segments.iter().map(|it| it.text.as_str()).collect();
        names.join("::")
    }
}

/// A type as it is written.
#[derive(Clone, Debug)]
pub struct Type {
    /// Which.
    pub kind: TypeKind,
    /// Where.
    pub span: Span,
}

/// The forms of a type.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `"a" | "b"`.
    Union(Vec<String>),
    /// `Array<Int>`, `shop::Item`.
    Named {
        /// What is in front of the brackets.
        path: Path,
        /// What is between them.
        arguments: Vec<Type>,
    },
    /// `(Int, String)`.
    Tuple(Vec<Type>),
    /// `fn(Int) -> String`.
    Function {
        /// What goes in.
        parameters: Vec<Type>,
        /// What comes out.
        result: Option<Box<Type>>,
    },
}

/// A file: items and, in script mode, statements.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// In source order.
    pub parts: Vec<Part>,
}

/// One piece of a file.
#[derive(Clone, Debug)]
pub enum Part {
    /// A declaration.
    Item(Item),
    /// A statement of a script.
    Stmt(Stmt),
}
