//! Declarations.

use super::{Block, Expr, Name, Path, Type};
use crate::source::Span;

/// `@name(arguments)`.
#[derive(Clone, Debug)]
pub struct Decorator {
    /// What follows the `@`.
    pub name: Name,
    /// The arguments; `None` without brackets.
    pub arguments: Option<Vec<(Option<Name>, Expr)>>,
    /// All of it.
    pub span: Span,
}

/// A declaration with what stands in front of it.
#[derive(Clone, Debug)]
pub struct Item {
    /// `@…`, in order.
    pub decorators: Vec<Decorator>,
    /// Whether `pub` stands there.
    pub public: bool,
    /// What is declared.
    pub kind: ItemKind,
    /// All of it, decorators included.
    pub span: Span,
}

/// What is declared.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "each holds the declaration that it is named for"
)]
pub enum ItemKind {
    Function(Function),
    Model(Config),
    Agent(Config),
    Tool(Tool),
    Mcp(Mcp),
    Schema(Fields),
    Struct(Fields),
    Enum(Enum),
    Trait(Trait),
    Impl(Impl),
    Pipeline(Pipeline),
    Use(Use),
    Mod(Mod),
    Const(Const),
    TypeAlias(TypeAlias),
    Store(Store),
}

/// How a method gets what it is called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// `self`.
    Value,
    /// `mut self`.
    Mut,
}

/// A function without its body.
#[derive(Clone, Debug)]
pub struct Signature {
    /// `@…`, in order.
    pub decorators: Vec<Decorator>,
    /// Whether `pub` stands there.
    pub public: bool,
    /// Whether `async` stands there.
    pub is_async: bool,
    /// What it is called.
    pub name: Name,
    /// `self`, if there is one.
    pub receiver: Option<Receiver>,
    /// The parameters beside `self`.
    pub params: Vec<Param>,
    /// What it returns.
    pub result: Option<Type>,
    /// All of it, decorators included, the body not.
    pub span: Span,
}

/// A function. In a trait or an `mcp` block the body may be missing.
#[derive(Clone, Debug)]
pub struct Function {
    /// Everything but the body.
    pub signature: Signature,
    /// What it does.
    pub body: Option<Block>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// `@param(…)`.
    pub decorators: Vec<Decorator>,
    /// What it is called.
    pub name: Name,
    /// Its type.
    pub ty: Option<Type>,
    /// What it is if the caller does not say.
    pub default: Option<Expr>,
}

/// `NAME: value`.
#[derive(Clone, Debug)]
pub struct ConfigEntry {
    /// Which setting.
    pub name: Name,
    /// What it is set to.
    pub value: Expr,
}

/// A name and its settings: `model`, `agent` and `mock`.
#[derive(Clone, Debug)]
pub struct Config {
    /// What it is called.
    pub name: Name,
    /// The settings, in order.
    pub entries: Vec<ConfigEntry>,
    /// The closing bracket.
    pub close: Span,
}

/// A tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// What it is called.
    pub name: Name,
    /// The settings, in order.
    pub entries: Vec<ConfigEntry>,
    /// The state that it keeps.
    pub state: Vec<ToolState>,
    /// The methods, in order.
    pub methods: Vec<Function>,
    /// The closing bracket.
    pub close: Span,
}

/// `name: Type = value` in a tool.
#[derive(Clone, Debug)]
pub struct ToolState {
    /// What it is called.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// What it is at the beginning.
    pub value: Expr,
}

/// An MCP server.
#[derive(Clone, Debug)]
pub struct Mcp {
    /// What it is called.
    pub name: Name,
    /// The settings, in order.
    pub entries: Vec<ConfigEntry>,
    /// What its tools look like.
    pub signatures: Vec<Function>,
    /// The closing bracket.
    pub close: Span,
}

/// A field of a struct, a schema or a variant.
#[derive(Clone, Debug)]
pub struct Field {
    /// Whether `pub` stands there.
    pub public: bool,
    /// What it is called.
    pub name: Name,
    /// Whether `?` says that it may be missing.
    pub optional: bool,
    /// Its type.
    pub ty: Type,
    /// What it is if nobody says.
    pub default: Option<Expr>,
}

/// A name and its fields: `struct` and `schema`.
#[derive(Clone, Debug)]
pub struct Fields {
    /// What it is called.
    pub name: Name,
    /// The fields, in order.
    pub fields: Vec<Field>,
    /// The closing bracket.
    pub close: Span,
}

/// An enum.
#[derive(Clone, Debug)]
pub struct Enum {
    /// What it is called.
    pub name: Name,
    /// The variants, in order.
    pub variants: Vec<Variant>,
    /// The closing bracket.
    pub close: Span,
}

/// A variant of an enum.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What it is called.
    pub name: Name,
    /// What it carries.
    pub data: VariantData,
}

/// What a variant carries.
#[derive(Clone, Debug)]
pub enum VariantData {
    /// Nothing.
    None,
    /// `(Float, Int)`.
    Tuple(Vec<Type>),
    /// `{ w: Float }`.
    Fields(Vec<Field>, Span),
}

/// A trait.
#[derive(Clone, Debug)]
pub struct Trait {
    /// What it is called.
    pub name: Name,
    /// What it asks for, with bodies that are defaults.
    pub methods: Vec<Function>,
    /// The closing bracket.
    pub close: Span,
}

/// Methods of a type.
#[derive(Clone, Debug)]
pub struct Impl {
    /// The type, or with `for` the trait.
    pub name: Name,
    /// `for` which type.
    pub target: Option<Name>,
    /// The methods.
    pub methods: Vec<Function>,
    /// The closing bracket.
    pub close: Span,
}

impl Impl {
    /// The type that gets the methods.
    pub fn receiver_type(&self) -> &Name {
        self.target.as_ref().unwrap_or(&self.name)
    }
}

/// A pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// What it is called.
    pub name: Name,
    /// What goes in.
    pub param: Option<Param>,
    /// What comes out.
    pub result: Option<Type>,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The closing bracket.
    pub close: Span,
}

/// A stage of a pipeline: a function that is no function.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Everything but the body.
    pub signature: Signature,
    /// What it does.
    pub body: Block,
}

/// `use path …;`
#[derive(Clone, Debug)]
pub struct Use {
    /// What is used.
    pub path: Path,
    /// What follows it.
    pub tail: UseTail,
}

/// What follows the path of a `use`.
#[derive(Clone, Debug)]
pub enum UseTail {
    /// Nothing.
    None,
    /// `as name`.
    As(Name),
    /// `::{a, b}`.
    Group(Vec<Name>),
}

/// A module.
#[derive(Clone, Debug)]
pub struct Mod {
    /// What it is called.
    pub name: Name,
    /// What is in it; `None` for `mod name;`, whose file the loader puts in.
    pub items: Option<Vec<Item>>,
    /// The closing bracket, or the semicolon.
    pub close: Span,
}

/// `const NAME: Type = value;`
#[derive(Clone, Debug)]
pub struct Const {
    /// What it is called.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// What it is.
    pub value: Expr,
}

/// `type Name = Type;`
#[derive(Clone, Debug)]
pub struct TypeAlias {
    /// What it is called.
    pub name: Name,
    /// What it means.
    pub ty: Type,
}

/// The kinds of named stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// `hashmap`.
    HashMap,
    /// `memory`.
    Memory,
    /// `ledger`.
    Ledger,
}

/// A named store.
#[derive(Clone, Debug)]
pub struct Store {
    /// Of which kind.
    pub kind: StoreKind,
    /// What it is called.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// How it is made.
    pub value: Expr,
}
