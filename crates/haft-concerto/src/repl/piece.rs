//! A piece of source, and the function that it becomes.

use super::Variable;
use crate::ast::{
    Block, Expr, ExprKind, Function, Item, ItemKind, Name, Param, Part, Path, Pattern, PatternKind,
    Program, Signature, Stmt, StmtKind, Type, TypeKind,
};
use crate::diagnostic::Diagnostics;
use crate::modules::read_program;
use crate::source::{SourceFile, SourceMap, Sources, Span};

/// What the function's result begins with, so that it is told from what a `return` gives.
pub(super) const MARK: &str = "\u{0}piece";

/// What was written.
pub(super) struct Piece {
    pub(super) items: Vec<Item>,
    pub(super) stmts: Vec<Stmt>,
    /// Whether it ends with an expression whose value is wanted: nothing but a semicolon says otherwise.
    pub(super) shows: bool,
    end: Span,
}

/// Reads a piece; nothing if it is none, which was told. The last semicolon may be missing.
pub(super) fn read(
    path: &str,
    text: &str,
    more: &dyn Sources,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<Piece> {
    let before = sources.clone();
    let mut with_semicolon = Diagnostics::default();
    let ended = format!("{text}\n;");
    let program = read_program(path, ended, more, sources, &mut with_semicolon);
    if !with_semicolon.has_errors() {
        let is_expression = ends_with_expression(&program);
        return Some(piece(program, is_expression, sources));
    }
    // As it is written.
    *sources = before;
    let program = read_program(path, text.to_owned(), more, sources, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    let is_block = last_expression(&program).is_some_and(Expr::is_block_like);
    Some(piece(program, is_block, sources))
}

fn last_expression(program: &Program) -> Option<&Expr> {
    match program.parts.last()? {
        Part::Stmt(Stmt {
            kind: StmtKind::Expr(expr),
            ..
        }) => Some(expr),
        _ => None,
    }
}

fn ends_with_expression(program: &Program) -> bool {
    last_expression(program).is_some()
}

fn piece(program: Program, shows: bool, sources: &SourceMap) -> Piece {
    let end = sources.files().last().map_or(0, SourceFile::end);
    let mut piece = Piece {
        items: Vec::new(),
        stmts: Vec::new(),
        shows,
        end: Span::new(end, end),
    };
    for part in program.parts {
        match part {
            Part::Item(item) => piece.items.push(item),
            Part::Stmt(stmt) => piece.stmts.push(stmt),
        }
    }
    piece
}

impl Piece {
    /// The function: it takes the variables that there are, and gives those that there are then.
    pub(super) fn function(
        mut self,
        name: &str,
        parameters: &[(Variable, &str)],
        variables: &[Variable],
    ) -> Item {
        let span = self.end;
        let value = match self.stmts.pop() {
            Some(Stmt {
                kind: StmtKind::Expr(expr),
                ..
            }) => expr,
            Some(stmt) => {
                self.stmts.push(stmt);
                Expr::new(ExprKind::Nil, span)
            }
            None => Expr::new(ExprKind::Nil, span),
        };
        let mutable = parameters.iter().filter(|(it, _)| it.mutable);
        let mut stmts: Vec<Stmt> = mutable.map(|(it, _)| copied(&it.name, span)).collect();
        stmts.append(&mut self.stmts);
        let mut given = vec![Expr::new(ExprKind::Str(MARK.to_owned()), span), value];
        given.extend(variables.iter().map(|it| variable(&it.name, span)));
        let param = |(it, ty): &(Variable, &str)| Param {
            decorators: Vec::new(),
            name: named(&it.name, span),
            ty: Some(type_named(ty, span)),
            default: None,
        };
        let function = Function {
            signature: Signature {
                decorators: Vec::new(),
                public: false,
                is_async: true,
                name: named(name, span),
                receiver: None,
                params: parameters.iter().map(param).collect(),
                result: Some(type_named("Any", span)),
                span,
            },
            body: Some(Block {
                stmts,
                tail: Some(Expr::new(ExprKind::Array(given), span)),
                span,
            }),
        };
        Item {
            decorators: Vec::new(),
            public: false,
            kind: ItemKind::Function(function),
            span,
        }
    }
}

/// `let mut name = name;`
fn copied(name: &str, span: Span) -> Stmt {
    let kind = StmtKind::Let {
        mutable: true,
        pattern: Pattern {
            kind: PatternKind::Binding(named(name, span)),
            span,
        },
        ty: None,
        value: Some(variable(name, span)),
    };
    Stmt { kind, span }
}

fn named(name: &str, span: Span) -> Name {
    let text = name.to_owned();
    Name { text, span }
}

fn variable(name: &str, span: Span) -> Expr {
    Expr::new(ExprKind::Path(path(name, span)), span)
}

fn path(name: &str, span: Span) -> Path {
    let segments = vec![named(name, span)];
    Path { segments, span }
}

fn type_named(name: &str, span: Span) -> Type {
    let kind = TypeKind::Named {
        path: path(name, span),
        arguments: Vec::new(),
    };
    Type { kind, span }
}
