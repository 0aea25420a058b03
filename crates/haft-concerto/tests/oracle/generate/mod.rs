//! Random programs that are well typed and end: every choice is a byte, so that a failing program
//! shrinks with its bytes. Where the bytes end, the simplest form is taken.

use std::fmt::Write as _;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Ty {
    Int,
    Float,
    Text,
    Bool,
    Array(Box<Ty>),
    Map(Box<Ty>),
    Option(Box<Ty>),
    Result(Box<Ty>),
    Point,
    Shape,
    /// `fn(Int) -> Int`.
    Step,
}

impl Ty {
    fn text(&self) -> String {
        match self {
            Self::Int => "Int".into(),
            Self::Float => "Float".into(),
            Self::Text => "String".into(),
            Self::Bool => "Bool".into(),
            Self::Array(of) => format!("Array<{}>", of.text()),
            Self::Map(of) => format!("Map<String, {}>", of.text()),
            Self::Option(of) => format!("Option<{}>", of.text()),
            Self::Result(of) => format!("Result<{}, String>", of.text()),
            Self::Point => "Point".into(),
            Self::Shape => "Shape".into(),
            Self::Step => "fn(Int) -> Int".into(),
        }
    }
}

#[derive(Clone)]
struct Variable {
    name: String,
    ty: Ty,
    mutable: bool,
}

#[derive(Clone)]
struct Declared {
    name: String,
    params: Vec<Ty>,
    result: Ty,
}

/// What may stand where something is written.
#[allow(clippy::struct_excessive_bools)] // each is a permission of its own
#[derive(Clone)]
struct Around {
    variables: Vec<Variable>,
    /// `throw` and `?` of results.
    raises: bool,
    /// `?` of options.
    options: bool,
    /// `break` and `continue`.
    looping: bool,
    /// Assignments within an expression.
    assigns: bool,
    result: Option<Ty>,
    depth: usize,
}

pub(crate) struct Generator<'b> {
    bytes: &'b [u8],
    at: usize,
    names: usize,
    functions: Vec<Declared>,
}

const DECLARED: &str = "\
struct Point { x: Int, name: String, list: Array<Int> }
enum Shape { Dot, Circle(Int), Rect { w: Int, h: Int } }
impl Point {
    fn bump(mut self, by: Int) -> Int { self.x += by; self.list.push(self.x); self.x }
    fn grow(mut self, by: Int) -> Point { self.x += by; self }
    fn sum(self) -> Int { self.list.reduce(|a, b| a + b, self.x) }
}
fn apply(f: fn(Int) -> Int, n: Int) -> Int { f(n) }
fn down(n: Int, step: Int = 1) -> Int { if n <= 0 { 0 } else { n + down(n - step, step) } }
";

/// A program made of the choices in `bytes`.
pub(crate) fn program(bytes: &[u8]) -> String {
    let mut generator = Generator {
        bytes,
        at: 0,
        names: 0,
        functions: Vec::new(),
    };
    let mut text = DECLARED.to_owned();
    for number in 0..generator.below(4) {
        text += &generator.function(number);
    }
    let around = Around {
        variables: Vec::new(),
        raises: false,
        options: false,
        looping: false,
        assigns: true,
        result: None,
        depth: 4,
    };
    let calls = generator.calls(&around);
    let body = generator.block(&around, 12);
    let _ = write!(text, "fn main() {{\n{calls}{body}}}\n");
    text
}

mod expression;
mod statement;

impl Generator<'_> {
    fn below(&mut self, limit: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % limit
    }

    fn one_in(&mut self, limit: usize) -> bool {
        self.below(limit) == limit - 1
    }

    fn name(&mut self) -> String {
        self.names += 1;
        // Few names, so that they shadow each other.
        let letter = char::from(b'a' + u8::try_from(self.below(6)).unwrap_or(0));
        if self.one_in(3) {
            letter.to_string()
        } else {
            format!("{letter}{}", self.names)
        }
    }

    fn simple_ty(&mut self) -> Ty {
        match self.below(5) {
            0 | 1 => Ty::Int,
            2 => Ty::Text,
            3 => Ty::Bool,
            _ => Ty::Float,
        }
    }

    fn ty(&mut self) -> Ty {
        match self.below(14) {
            0..=2 => Ty::Int,
            3 => Ty::Text,
            4 => Ty::Array(Box::new(self.simple_ty())),
            5 => Ty::Map(Box::new(self.simple_ty())),
            6 => Ty::Option(Box::new(self.simple_ty())),
            7 => Ty::Result(Box::new(self.simple_ty())),
            8 => Ty::Point,
            9 => Ty::Shape,
            10 => Ty::Step,
            11 => Ty::Array(Box::new(Ty::Point)),
            12 => Ty::Map(Box::new(Ty::Array(Box::new(Ty::Int)))),
            _ => Ty::Array(Box::new(Ty::Array(Box::new(Ty::Int)))),
        }
    }

    fn function(&mut self, number: usize) -> String {
        let params: Vec<(String, Ty)> = (0..self.below(4))
            .map(|at| (format!("p{at}"), self.ty()))
            .collect();
        let result = match self.below(4) {
            0 | 1 => self.ty(),
            2 => Ty::Result(Box::new(self.simple_ty())),
            _ => Ty::Option(Box::new(self.simple_ty())),
        };
        let variables = params.iter().map(|(name, ty)| Variable {
            name: name.clone(),
            ty: ty.clone(),
            mutable: false,
        });
        let around = Around {
            variables: variables.collect(),
            raises: matches!(result, Ty::Result(_)),
            options: matches!(result, Ty::Option(_) | Ty::Result(_)),
            looping: false,
            assigns: true,
            result: Some(result.clone()),
            depth: 3,
        };
        let mut text = String::new();
        let mut inner = around.clone();
        let count = self.below(4);
        self.stmts(&mut inner, count, &mut text);
        let value = self.expr(&inner, &result);
        let shown: Vec<String> = params
            .iter()
            .map(|(name, ty)| format!("{name}: {}", ty.text()))
            .collect();
        let name = format!("fun{number}");
        let head = format!("fn {name}({}) -> {}", shown.join(", "), result.text());
        self.functions.push(Declared {
            name,
            params: params.into_iter().map(|(_, ty)| ty).collect(),
            result,
        });
        format!("{head} {{\n{text}{value}\n}}\n")
    }

    /// What each function gives, where no `try` is active.
    fn calls(&mut self, around: &Around) -> String {
        let mut text = String::new();
        for it in self.functions.clone() {
            let arguments: Vec<String> = it.params.iter().map(|ty| self.leaf(around, ty)).collect();
            let call = format!("{}({})", it.name, arguments.join(", "));
            let shown = if it.result == Ty::Step {
                format!("{call}(3)")
            } else {
                call
            };
            let _ = writeln!(text, "println({shown});");
        }
        text
    }

    /// Statements, and at the end what all variables hold.
    fn block(&mut self, around: &Around, most: usize) -> String {
        let mut inner = around.clone();
        let mut text = String::new();
        let count = 1 + self.below(most);
        self.stmts(&mut inner, count, &mut text);
        let shown: Vec<&str> = Self::visible(&inner, |it| it.ty != Ty::Step)
            .into_iter()
            .take(5)
            .map(|it| it.name.as_str())
            .collect();
        if !shown.is_empty() {
            let _ = writeln!(text, "println({});", shown.join(", "));
        }
        text
    }

    /// Variables as they are seen: one that is shadowed is not.
    fn visible(around: &Around, wanted: impl Fn(&Variable) -> bool) -> Vec<&Variable> {
        let mut seen: Vec<&str> = Vec::new();
        let mut found = Vec::new();
        for it in around.variables.iter().rev() {
            if !seen.contains(&it.name.as_str()) {
                seen.push(&it.name);
                if wanted(it) {
                    found.push(it);
                }
            }
        }
        found
    }

    fn pick(&mut self, around: &Around, wanted: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let found = Self::visible(around, wanted);
        if found.is_empty() {
            return None;
        }
        let at = self.below(found.len());
        Some(found[at].clone())
    }

    fn short_text(&mut self) -> String {
        ["\"\"", "\"a\"", "\"añ\"", "\"b c\"", "\"7\"", "\"-12\""][self.below(6)].to_owned()
    }
}
