//! Expressions and statements.

use super::{Config, Name, Param, Path, Pattern, Type};
use crate::source::Span;

/// An expression and its place.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

impl Expr {
    /// An expression at a place.
    pub fn new(kind: ExprKind, span: Span) -> Self {
        Self { kind, span }
    }

    /// What stands in the round brackets around it, however many there are.
    pub fn unwrapped(&self) -> &Self {
        let mut expr = self;
        while let ExprKind::Paren(inner) = &expr.kind {
            expr = inner;
        }
        expr
    }

    /// The path that it is, if it is one.
    pub fn as_path(&self) -> Option<&Path> {
        match &self.kind {
            ExprKind::Path(path) => Some(path),
            _ => None,
        }
    }

    /// The text that it is, if it is a string without interpolation.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it ends with a block and so needs no semicolon.
    pub fn is_block_like(&self) -> bool {
        matches!(
            self.kind,
            ExprKind::Block(_)
                | ExprKind::If(_)
                | ExprKind::Match(_)
                | ExprKind::For(_)
                | ExprKind::While { .. }
                | ExprKind::Loop(_)
                | ExprKind::Try(_)
        )
    }
}

/// The forms of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true`, `false`.
    Bool(bool),
    /// `nil`.
    Nil,
    /// A string.
    Str(String),
    /// A string with expressions in it.
    Text(Vec<TextPiece>),
    /// A name, or names joined by `::`. `self` and `emit` are such names.
    Path(Path),
    /// A path with types, `parse_as<Ticket>`, which is called.
    Generic(Path, Vec<Type>),
    /// `Point { x: 1 }`.
    Struct(Box<StructLit>),
    /// `(a)`.
    Paren(Box<Expr>),
    /// `(a, b)`, `(a,)`, `()`.
    Tuple(Vec<Expr>),
    /// `[a, b]`.
    Array(Vec<Expr>),
    /// `{ "a": 1, b: 2 }`.
    Map(Vec<(MapKey, Expr)>),
    /// `|a| a + 1`.
    Closure(Box<Closure>),
    /// `{ … }`.
    Block(Box<Block>),
    /// `if`.
    If(Box<If>),
    /// `match`.
    Match(Box<Match>),
    /// `for`.
    For(Box<For>),
    /// `while`.
    While {
        /// As long as this holds.
        condition: Box<Expr>,
        /// What is repeated.
        body: Box<Block>,
    },
    /// `loop`.
    Loop(Box<Block>),
    /// `try`.
    Try(Box<Try>),
    /// `listen`.
    Listen(Box<Listen>),
    /// `return`.
    Return(Option<Box<Expr>>),
    /// `break`.
    Break(Option<Box<Expr>>),
    /// `continue`.
    Continue,
    /// `throw`.
    Throw(Box<Expr>),
    /// `a.b(c)[d]?`.
    Postfix(Box<Postfix>),
    /// `-a`, `!a`, `await a`; the outermost operator first.
    Prefix(Vec<PrefixOp>, Box<Expr>),
    /// `a as Int as Float`.
    Cast(Box<Expr>, Vec<Type>),
    /// Operators of one rank: `a + b - c`.
    Binary(Box<Binary>),
    /// `a..b`, `a..=b`, `..b`, `a..`.
    Range {
        /// The first.
        start: Option<Box<Expr>>,
        /// The last, or the one after it.
        end: Option<Box<Expr>>,
        /// Whether `end` belongs to it.
        inclusive: bool,
    },
    /// `a |> f(b) |> g`.
    Pipe(Box<Expr>, Vec<PipeStage>),
    /// `a = b`, `a += b`.
    Assign {
        /// How.
        op: AssignOp,
        /// What is changed.
        target: Box<Expr>,
        /// What it becomes.
        value: Box<Expr>,
    },
}

/// A piece of an interpolated string.
#[derive(Clone, Debug)]
pub enum TextPiece {
    /// Text, decoded.
    Text(String),
    /// `${expr}`.
    Expr(Expr),
}

/// `Point { x: 1 }`.
#[derive(Clone, Debug)]
pub struct StructLit {
    /// Of which type or variant.
    pub path: Path,
    /// The fields, in the order in which they are written.
    pub fields: Vec<(Name, Expr)>,
}

/// The key of a map's entry.
#[derive(Clone, Debug)]
pub enum MapKey {
    /// `a: 1`, the same as `"a": 1`.
    Name(Name),
    /// Any expression.
    Expr(Expr),
}

/// `|a: Int| -> Int a + 1`.
#[derive(Clone, Debug)]
pub struct Closure {
    /// The parameters.
    pub params: Vec<Param>,
    /// What it returns.
    pub result: Option<Type>,
    /// What it does.
    pub body: Expr,
}

/// Statements and a value.
#[derive(Clone, Debug)]
pub struct Block {
    /// What is done, in order.
    pub stmts: Vec<Stmt>,
    /// What the block gives; nil without it.
    pub tail: Option<Expr>,
    /// All of it, with its brackets.
    pub span: Span,
}

/// A statement and its place.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Which.
    pub kind: StmtKind,
    /// Where.
    pub span: Span,
}

/// The forms of a statement.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `let`.
    Let {
        /// Whether `mut` stands there.
        mutable: bool,
        /// What is bound.
        pattern: Pattern,
        /// Its type.
        ty: Option<Type>,
        /// What it is.
        value: Option<Expr>,
    },
    /// `mock M { … }`.
    Mock(Config),
    /// An expression whose value is not used.
    Expr(Expr),
}

/// `if … else if … else …`.
#[derive(Clone, Debug)]
pub struct If {
    /// Conditions and what is done if one is the first that holds; at least one.
    pub branches: Vec<(Expr, Block)>,
    /// What is done if none holds.
    pub otherwise: Option<Block>,
}

/// `match`.
#[derive(Clone, Debug)]
pub struct Match {
    /// What is looked at.
    pub subject: Expr,
    /// The arms, in order.
    pub arms: Vec<MatchArm>,
    /// The closing bracket.
    pub close: Span,
}

/// An arm of a `match`.
#[derive(Clone, Debug)]
pub struct MatchArm {
    /// What it takes.
    pub pattern: Pattern,
    /// What must hold beside.
    pub guard: Option<Expr>,
    /// What it gives.
    pub body: Expr,
}

/// `for`.
#[derive(Clone, Debug)]
pub struct For {
    /// What each element is called.
    pub pattern: Pattern,
    /// What is run over.
    pub subject: Expr,
    /// What is repeated.
    pub body: Block,
}

/// `try`.
#[derive(Clone, Debug)]
pub struct Try {
    /// What may raise.
    pub body: Block,
    /// Who takes what is raised; without any, the whole is a Result.
    pub catches: Vec<Catch>,
}

/// `catch String(e) { … }`.
#[derive(Clone, Debug)]
pub struct Catch {
    /// What it takes; everything without it.
    pub ty: Option<Type>,
    /// What that is called.
    pub binding: Option<Name>,
    /// What is done.
    pub body: Block,
}

/// `listen`.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The call of an agent.
    pub subject: Expr,
    /// What is done with messages, by their type.
    pub handlers: Vec<Handler>,
    /// The closing bracket.
    pub close: Span,
}

/// `"type" => |m| { … }`.
#[derive(Clone, Debug)]
pub struct Handler {
    /// The type of message.
    pub message: String,
    /// Where the type stands.
    pub span: Span,
    /// What the message is called.
    pub param: Param,
    /// What is done.
    pub body: Block,
}

/// A value and what is done with it, step by step.
#[derive(Clone, Debug)]
pub struct Postfix {
    /// The value.
    pub base: Expr,
    /// The steps, at least one.
    pub steps: Vec<PostfixOp>,
}

/// A step.
#[derive(Clone, Debug)]
pub enum PostfixOp {
    /// `(a, b)`.
    Call(Call),
    /// `.name`.
    Field(Name),
    /// `.name<T>(a)`.
    Method {
        /// Which method.
        name: Name,
        /// The types between `<` and `>`.
        types: Vec<Type>,
        /// What it is called with.
        call: Call,
    },
    /// `[a]`.
    Index(Expr, Span),
    /// `?`.
    Try(Span),
    /// `.await`.
    Await(Span),
}

impl PostfixOp {
    /// Where the step stands.
    pub fn span(&self) -> Span {
        match self {
            Self::Call(call) => call.span,
            Self::Field(name) => name.span,
            Self::Method { name, call, .. } => name.span.to(call.span),
            Self::Index(_, span) | Self::Try(span) | Self::Await(span) => *span,
        }
    }
}

/// `(a, b, name: c)`.
#[derive(Clone, Debug)]
pub struct Call {
    /// What stands in the brackets.
    pub arguments: Vec<Argument>,
    /// The brackets and what is in them.
    pub span: Span,
}

/// An argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// `name:`.
    pub name: Option<Name>,
    /// What is given.
    pub value: Expr,
}

/// An operator in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixOp {
    /// `-`.
    Neg,
    /// `!`.
    Not,
    /// `await`.
    Await,
}

/// Operators of one rank.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The first operand.
    pub first: Expr,
    /// The operators with what is to the right of them, at least one.
    pub rest: Vec<(BinaryOp, Expr)>,
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named for what it does")]
#[rustfmt::skip]
pub enum BinaryOp {
    Mul, Div, Mod, Add, Sub, Less, Greater, LessEq, GreaterEq, Eq, NotEq, And, Or, Coalesce,
}

impl BinaryOp {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Less => "<",
            Self::Greater => ">",
            Self::LessEq => "<=",
            Self::GreaterEq => ">=",
            Self::Eq => "==",
            Self::NotEq => "!=",
            Self::And => "&&",
            Self::Or => "||",
            Self::Coalesce => "??",
        }
    }
}

/// `|> target`, with the `?` that follow and belong to the pipe so far.
#[derive(Clone, Debug)]
pub struct PipeStage {
    /// What is called with the value so far in front of its arguments.
    pub target: Expr,
    /// The `?` behind it.
    pub tries: Vec<Span>,
}

/// How a place is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`.
    Set,
    /// `+=` and its like.
    Compute(BinaryOp),
}

impl AssignOp {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Set => "=",
            Self::Compute(BinaryOp::Add) => "+=",
            Self::Compute(BinaryOp::Sub) => "-=",
            Self::Compute(BinaryOp::Mul) => "*=",
            Self::Compute(BinaryOp::Div) => "/=",
            Self::Compute(_) => "%=",
        }
    }
}
