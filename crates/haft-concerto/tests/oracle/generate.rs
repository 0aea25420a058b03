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
    let body = generator.block(&around, 12);
    let _ = write!(text, "fn main() {{\n{body}}}\n");
    text
}

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
        match self.below(12) {
            0..=2 => Ty::Int,
            3 => Ty::Text,
            4 => Ty::Array(Box::new(self.simple_ty())),
            5 => Ty::Map(Box::new(self.simple_ty())),
            6 => Ty::Option(Box::new(self.simple_ty())),
            7 => Ty::Result(Box::new(self.simple_ty())),
            8 => Ty::Point,
            9 => Ty::Shape,
            10 => Ty::Step,
            _ => Ty::Array(Box::new(Ty::Array(Box::new(Ty::Int)))),
        }
    }

    fn function(&mut self, number: usize) -> String {
        let params: Vec<(String, Ty)> = (0..self.below(4))
            .map(|at| (format!("p{at}"), self.ty()))
            .collect();
        let result = self.ty();
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

    fn stmts(&mut self, around: &mut Around, count: usize, text: &mut String) {
        for _ in 0..count {
            let stmt = self.stmt(around);
            text.push_str(&stmt);
            text.push('\n');
        }
    }

    fn inner(&mut self, around: &Around, most: usize) -> String {
        let mut inner = around.clone();
        inner.depth = inner.depth.saturating_sub(1);
        format!("{{ {} }}", self.block(&inner, most))
    }

    fn stmt(&mut self, around: &mut Around) -> String {
        let kind = if around.depth == 0 {
            self.below(6)
        } else {
            self.below(22)
        };
        match kind {
            0..=2 => self.declare(around),
            3..=5 => self
                .assignment(around)
                .unwrap_or_else(|| self.declare(around)),
            6 => {
                let ty = self.ty();
                if ty == Ty::Step {
                    return self.declare(around);
                }
                format!("println({});", self.expr(around, &ty))
            }
            7 => {
                let condition = self.expr(around, &Ty::Bool);
                let mut text = format!("if {condition} {}", self.inner(around, 3));
                if self.one_in(2) {
                    text += &format!(" else {}", self.inner(around, 3));
                }
                text
            }
            8..=10 => self.for_loop(around),
            11 => {
                let counter = format!("n{}", self.names);
                self.names += 1;
                let mut inside = around.clone();
                inside.looping = true;
                let condition = self.expr(around, &Ty::Bool);
                let body = self.inner(&inside, 3);
                let bound = 1 + self.below(4);
                format!(
                    "let mut {counter} = 0; while {counter} < {bound} && ({condition} || true) {{ {counter} += 1; {body} }}"
                )
            }
            12 | 13 => self.match_stmt(around),
            14 if around.looping => {
                let condition = self.expr(around, &Ty::Bool);
                let jump = if self.one_in(2) { "continue" } else { "break" };
                format!("if {condition} {{ {jump}; }}")
            }
            15 if around.raises => {
                let condition = self.expr(around, &Ty::Bool);
                let value = self.expr(around, &Ty::Text);
                format!("if {condition} {{ throw {value}; }}")
            }
            16 if around.result.is_some() => {
                let condition = self.expr(around, &Ty::Bool);
                let result = around.result.clone().unwrap_or(Ty::Int);
                let value = self.expr(around, &result);
                format!("if {condition} {{ return {value}; }}")
            }
            17 | 18 => {
                let mut inside = around.clone();
                inside.raises = true;
                let body = self.inner(&inside, 3);
                let mut text = format!("try {body}");
                if self.one_in(3) {
                    text += &format!(
                        " catch RuntimeError(fault) {{ println(fault.message); {} }}",
                        self.inner(around, 2)
                    );
                }
                if self.one_in(2) {
                    text += &format!(
                        " catch String(said) {{ println(said); {} }}",
                        self.inner(around, 2)
                    );
                }
                if self.one_in(4) {
                    return text + " catch Int { println(0); }";
                }
                text + " catch { println(\"caught\"); }"
            }
            19 => self.inner(around, 3),
            20 => self.destructure(around),
            _ => self.change(around).unwrap_or_else(|| self.declare(around)),
        }
    }

    fn declare(&mut self, around: &mut Around) -> String {
        let ty = self.ty();
        let value = self.expr(around, &ty);
        let name = self.name();
        let mutable = !self.one_in(3);
        let marked = if mutable { "mut " } else { "" };
        let typed = if self.one_in(3) {
            format!(": {}", ty.text())
        } else {
            String::new()
        };
        around.variables.push(Variable {
            name: name.clone(),
            ty,
            mutable,
        });
        format!("let {marked}{name}{typed} = {value};")
    }

    fn destructure(&mut self, around: &mut Around) -> String {
        let (a, b) = (self.name(), self.name());
        if a == b {
            return self.declare(around);
        }
        let mut bind = |name: &str, ty: Ty| {
            around.variables.push(Variable {
                name: name.to_owned(),
                ty,
                mutable: false,
            });
        };
        match self.below(3) {
            0 => {
                let value = (
                    self.expr(&around.clone(), &Ty::Int),
                    self.expr(&around.clone(), &Ty::Text),
                );
                let mut bind = |name: &str, ty: Ty| {
                    around.variables.push(Variable {
                        name: name.to_owned(),
                        ty,
                        mutable: false,
                    });
                };
                bind(&a, Ty::Int);
                bind(&b, Ty::Text);
                format!("let ({a}, {b}) = ({}, {});", value.0, value.1)
            }
            1 => {
                bind(&a, Ty::Int);
                bind(&b, Ty::Array(Box::new(Ty::Int)));
                format!(
                    "let Point {{ x: {a}, list: {b}, .. }} = Point {{ name: \"d\", list: [1, 2], x: 3 }};"
                )
            }
            _ => {
                bind(&a, Ty::Int);
                bind(&b, Ty::Array(Box::new(Ty::Int)));
                format!("let [{a}, ..{b}] = [4, 5, 6];")
            }
        }
    }

    /// Variables as they are seen: one that is shadowed is not.
    fn visible<'a>(around: &'a Around, wanted: impl Fn(&Variable) -> bool) -> Vec<&'a Variable> {
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

    fn assignment(&mut self, around: &Around) -> Option<String> {
        if !around.assigns {
            return None;
        }
        let it = self.pick(around, |it| it.mutable)?;
        let name = &it.name;
        let mut calm = around.clone();
        calm.assigns = false;
        Some(match &it.ty {
            Ty::Int if self.one_in(2) => {
                let op = ["+=", "-=", "*=", "/=", "%="][self.below(5)];
                format!("{name} {op} {};", self.expr(&calm, &Ty::Int))
            }
            Ty::Text if self.one_in(2) => format!("{name} += {};", self.expr(&calm, &Ty::Text)),
            Ty::Array(of) if self.one_in(2) => {
                let index = self.below(4);
                match &**of {
                    Ty::Int if self.one_in(2) => {
                        format!("{name}[{index}] += {};", self.expr(&calm, &Ty::Int))
                    }
                    Ty::Array(_) => format!("{name}[{index}][0] = {};", self.expr(&calm, &Ty::Int)),
                    of => format!("{name}[{index}] = {};", self.expr(&calm, of)),
                }
            }
            Ty::Map(of) if self.one_in(2) => {
                let key = ["k", "l", "m"][self.below(3)];
                format!("{name}[\"{key}\"] = {};", self.expr(&calm, of))
            }
            Ty::Point if self.one_in(2) => match self.below(3) {
                0 => format!("{name}.x += {};", self.expr(&calm, &Ty::Int)),
                1 => format!("{name}.name = {};", self.expr(&calm, &Ty::Text)),
                _ => format!(
                    "{name}.list[{}] = {};",
                    self.below(3),
                    self.expr(&calm, &Ty::Int)
                ),
            },
            ty => format!("{name} = {};", self.expr(around, ty)),
        })
    }

    /// A call that changes what it is called on.
    fn change(&mut self, around: &Around) -> Option<String> {
        if !around.assigns {
            return None;
        }
        let changes = |ty: &Ty| matches!(ty, Ty::Array(_) | Ty::Point | Ty::Map(_));
        let it = self.pick(around, |it| it.mutable && changes(&it.ty))?;
        let name = &it.name;
        let mut calm = around.clone();
        calm.assigns = false;
        Some(match &it.ty {
            Ty::Array(of) => match self.below(4) {
                0 | 1 => format!("{name}.push({});", self.expr(&calm, of)),
                2 => format!("println({name}.pop());"),
                _ => format!("{name}.reverse();"),
            },
            Ty::Map(_) => format!("println({name}.remove(\"k\"));"),
            _ => match self.below(2) {
                0 => format!("println({name}.bump({}));", self.expr(&calm, &Ty::Int)),
                _ => format!("{name}.list.push({});", self.expr(&calm, &Ty::Int)),
            },
        })
    }

    fn for_loop(&mut self, around: &Around) -> String {
        let mut inside = around.clone();
        inside.looping = true;
        let (pattern, subject) = match self.below(4) {
            0 => {
                let name = self.name();
                inside.variables.push(Variable {
                    name: name.clone(),
                    ty: Ty::Int,
                    mutable: false,
                });
                let dots = if self.one_in(2) { "..=" } else { ".." };
                (name, format!("{}{dots}{}", self.below(3), self.below(5)))
            }
            1 => {
                let name = self.name();
                let of = self.simple_ty();
                let subject = self.expr(around, &Ty::Array(Box::new(of.clone())));
                inside.variables.push(Variable {
                    name: name.clone(),
                    ty: of,
                    mutable: false,
                });
                (name, subject)
            }
            2 => {
                let name = self.name();
                inside.variables.push(Variable {
                    name: name.clone(),
                    ty: Ty::Text,
                    mutable: false,
                });
                (name, format!("({})", self.short_text()))
            }
            _ => {
                let of = self.simple_ty();
                let subject = self.expr(around, &Ty::Map(Box::new(of.clone())));
                let variable = |name: &str, ty| Variable {
                    name: name.to_owned(),
                    ty,
                    mutable: false,
                };
                inside.variables.push(variable("key", Ty::Text));
                inside.variables.push(variable("value", of));
                ("(key, value)".to_owned(), subject)
            }
        };
        format!("for {pattern} in {subject} {}", self.inner(&inside, 3))
    }

    fn match_stmt(&mut self, around: &Around) -> String {
        let ty = [
            Ty::Int,
            Ty::Shape,
            Ty::Point,
            Ty::Option(Box::new(Ty::Int)),
            Ty::Result(Box::new(Ty::Int)),
            Ty::Array(Box::new(Ty::Int)),
        ][self.below(6)]
        .clone();
        let subject = self.expr(around, &ty);
        let mut text = format!("match ({subject}) {{ ");
        for _ in 0..self.below(4) {
            let mut inside = around.clone();
            let pattern = self.pattern(&ty, &mut inside);
            let guard = if self.one_in(3) {
                format!(" if {}", self.expr(&inside, &Ty::Bool))
            } else {
                String::new()
            };
            let _ = write!(text, "{pattern}{guard} => {}, ", self.inner(&inside, 2));
        }
        text + "_ => { println(\"else\"); } }"
    }

    fn pattern(&mut self, ty: &Ty, inside: &mut Around) -> String {
        let mut bind = |name: String, ty: Ty| {
            inside.variables.push(Variable {
                name: name.clone(),
                ty,
                mutable: false,
            });
            name
        };
        let a = self.name();
        match ty {
            Ty::Int => match self.below(5) {
                0 => self.below(5).to_string(),
                1 => format!("{}..{}", self.below(3), self.below(9)),
                2 => format!("-{} | {}", self.below(3), self.below(5)),
                3 => format!("{} @ 0..=3", bind(a, Ty::Int)),
                _ => bind(a, Ty::Int),
            },
            Ty::Shape => match self.below(5) {
                0 => "Shape::Dot".to_owned(),
                1 => format!("Shape::Circle({})", bind(a, Ty::Int)),
                2 => format!("Shape::Circle({})", self.below(4)),
                3 => format!("Shape::Rect {{ w: {}, .. }}", bind(a, Ty::Int)),
                _ => format!(
                    "Shape::Rect {{ h: {0}, w: _ }} | Shape::Circle({0})",
                    bind(a, Ty::Int)
                ),
            },
            Ty::Point => match self.below(2) {
                0 => format!("Point {{ x: {}, .. }}", bind(a, Ty::Int)),
                _ => format!(
                    "Point {{ x: 0..9, list: [{}, ..], name: _ }}",
                    bind(a, Ty::Int)
                ),
            },
            Ty::Option(_) => match self.below(3) {
                0 => "None".to_owned(),
                1 => format!("Some({})", bind(a, Ty::Int)),
                _ => format!("Some({})", self.below(4)),
            },
            Ty::Result(_) => match self.below(3) {
                0 => format!("Err({})", bind(a, Ty::Text)),
                1 => format!("Ok({})", bind(a, Ty::Int)),
                _ => format!("Ok({} | 1)", self.below(4)),
            },
            _ => match self.below(4) {
                0 => "[]".to_owned(),
                1 => format!("[{}]", bind(a, Ty::Int)),
                2 => format!("[{}, ..rest]", bind(a, Ty::Int)),
                _ => format!("[_, {}, ..]", bind(a, Ty::Int)),
            },
        }
    }

    fn short_text(&mut self) -> String {
        ["\"\"", "\"a\"", "\"añ\"", "\"b c\"", "\"7\"", "\"-12\""][self.below(6)].to_owned()
    }
}

mod expression {
    use super::*;

    impl Generator<'_> {
        pub(super) fn expr(&mut self, around: &Around, ty: &Ty) -> String {
            if around.depth == 0 || self.one_in(4) {
                return self.leaf(around, ty);
            }
            let mut inner = around.clone();
            inner.depth -= 1;
            let inner = &inner;
            if self.one_in(3) {
                return self.form(inner, ty);
            }
            match ty {
                Ty::Int => self.int(inner),
                Ty::Float => self.float(inner),
                Ty::Text => self.text(inner),
                Ty::Bool => self.bool(inner),
                Ty::Array(of) => self.array(inner, of),
                Ty::Map(of) => format!(
                    "{{ k: {}, \"l\": {} }}",
                    self.expr(inner, of),
                    self.expr(inner, of)
                ),
                Ty::Option(of) => match self.below(3) {
                    0 => format!("Some({})", self.expr(inner, of)),
                    1 => format!(
                        "{}.get({})",
                        self.expr(inner, &Ty::Array(of.clone())),
                        self.below(3)
                    ),
                    _ => format!("({}).get(\"k\")", self.expr(inner, &Ty::Map(of.clone()))),
                },
                Ty::Result(of) => match self.below(4) {
                    0 => format!("Ok({})", self.expr(inner, of)),
                    1 => format!("Err({})", self.expr(inner, &Ty::Text)),
                    2 => {
                        let mut inside = inner.clone();
                        inside.raises = true;
                        format!("(try {{ Ok({}) }})", self.expr(&inside, of))
                    }
                    _ => format!("({}).map(|v| v)", self.expr(inner, ty)),
                },
                Ty::Point => format!(
                    "Point {{ name: {}, x: {}, list: {} }}",
                    self.expr(inner, &Ty::Text),
                    self.expr(inner, &Ty::Int),
                    self.expr(inner, &Ty::Array(Box::new(Ty::Int)))
                ),
                Ty::Shape => match self.below(3) {
                    0 => "Shape::Dot".to_owned(),
                    1 => format!("Shape::Circle({})", self.expr(inner, &Ty::Int)),
                    _ => format!(
                        "Shape::Rect {{ h: {}, w: {} }}",
                        self.expr(inner, &Ty::Int),
                        self.expr(inner, &Ty::Int)
                    ),
                },
                Ty::Step => self.closure(inner),
            }
        }

        fn leaf(&mut self, around: &Around, ty: &Ty) -> String {
            if self.below(3) > 0
                && let Some(it) = self.pick(around, |it| it.ty == *ty)
            {
                return it.name;
            }
            match ty {
                Ty::Int => [
                    "0",
                    "1",
                    "2",
                    "7",
                    "-3",
                    "100",
                    "9223372036854775807",
                    "(-9223372036854775807 - 1)",
                ][self.below(8)]
                .to_owned(),
                Ty::Float => ["0.5", "1.0", "-2.25", "0.0", "100.0"][self.below(5)].to_owned(),
                Ty::Text => self.short_text(),
                Ty::Bool => ["true", "false"][self.below(2)].to_owned(),
                Ty::Array(of) => format!("[{}]", self.leaf(around, of)),
                Ty::Map(of) => format!("{{ k: {} }}", self.leaf(around, of)),
                Ty::Option(of) => match self.below(2) {
                    0 => "None".to_owned(),
                    _ => format!("Some({})", self.leaf(around, of)),
                },
                Ty::Result(of) => match self.below(2) {
                    0 => "Err(\"bad\")".to_owned(),
                    _ => format!("Ok({})", self.leaf(around, of)),
                },
                Ty::Point => "Point { x: 1, name: \"p\", list: [3] }".to_owned(),
                Ty::Shape => "Shape::Circle(2)".to_owned(),
                Ty::Step => "(|n: Int| n + 1)".to_owned(),
            }
        }

        /// Forms that every type has.
        fn form(&mut self, around: &Around, ty: &Ty) -> String {
            match self.below(11) {
                0 => format!(
                    "(if {} {{ {} }} else {{ {} }})",
                    self.expr(around, &Ty::Bool),
                    self.expr(around, ty),
                    self.expr(around, ty)
                ),
                1 => {
                    let mut inside = around.clone();
                    let mut text = String::new();
                    let count = self.below(3);
                    self.stmts(&mut inside, count, &mut text);
                    format!("({{ {text} {} }})", self.expr(&inside, ty))
                }
                2 => {
                    let mut inside = around.clone();
                    inside.raises = true;
                    let value = self.expr(&inside, ty);
                    format!("(try {{ {value} }} catch {{ {} }})", self.expr(around, ty))
                }
                3 => {
                    let of = [
                        Ty::Int,
                        Ty::Shape,
                        Ty::Option(Box::new(Ty::Int)),
                        Ty::Array(Box::new(Ty::Int)),
                    ][self.below(4)]
                    .clone();
                    let subject = self.expr(around, &of);
                    let mut inside = around.clone();
                    let pattern = self.pattern(&of, &mut inside);
                    let value = self.expr(&inside, ty);
                    format!(
                        "(match ({subject}) {{ {pattern} => {value}, _ => {} }})",
                        self.expr(around, ty)
                    )
                }
                4 => {
                    let mut inside = around.clone();
                    inside.looping = true;
                    let value = self.expr(&inside, ty);
                    let condition = self.expr(&inside, &Ty::Bool);
                    format!(
                        "(loop {{ if {condition} {{ break {value}; }} break {}; }})",
                        self.expr(around, ty)
                    )
                }
                5 if around.raises => {
                    let result = Ty::Result(Box::new(ty.clone()));
                    format!("({})?", self.expr(around, &result))
                }
                6 if around.options => {
                    let option = Ty::Option(Box::new(ty.clone()));
                    format!("({})?", self.expr(around, &option))
                }
                7 if !matches!(ty, Ty::Option(_)) => {
                    let option = Ty::Option(Box::new(ty.clone()));
                    format!(
                        "(({}) ?? {})",
                        self.expr(around, &option),
                        self.leaf(around, ty)
                    )
                }
                8 if !matches!(ty, Ty::Option(_)) => {
                    let array = self.expr(around, &Ty::Array(Box::new(ty.clone())));
                    format!("({array})[{}]", self.below(3))
                }
                9 => {
                    let wrapped = if self.one_in(2) {
                        Ty::Option(Box::new(ty.clone()))
                    } else {
                        Ty::Result(Box::new(ty.clone()))
                    };
                    format!(
                        "({}).unwrap_or({})",
                        self.expr(around, &wrapped),
                        self.leaf(around, ty)
                    )
                }
                _ => self
                    .call(around, ty)
                    .unwrap_or_else(|| self.leaf(around, ty)),
            }
        }

        fn call(&mut self, around: &Around, ty: &Ty) -> Option<String> {
            let fitting: Vec<Declared> = self
                .functions
                .iter()
                .filter(|it| it.result == *ty)
                .cloned()
                .collect();
            if fitting.is_empty() {
                return None;
            }
            let it = fitting[self.below(fitting.len())].clone();
            let arguments: Vec<String> = it.params.iter().map(|ty| self.expr(around, ty)).collect();
            Some(match arguments.split_first() {
                Some((first, rest)) if self.one_in(3) => {
                    format!("({first} |> {}({}))", it.name, rest.join(", "))
                }
                _ => format!("{}({})", it.name, arguments.join(", ")),
            })
        }

        fn int(&mut self, around: &Around) -> String {
            let array = Ty::Array(Box::new(Ty::Int));
            match self.below(14) {
                0..=3 => self.chain(around, &["+", "-", "*", "/", "%"], &Ty::Int),
                4 => format!("(-({}))", self.expr(around, &Ty::Int)),
                5 => format!("({}).len()", self.expr(around, &array)),
                6 => format!("({}).len()", self.expr(around, &Ty::Text)),
                7 => format!("(({}) as Int)", self.expr(around, &Ty::Float)),
                8 => format!("(({}) as Int)", self.expr(around, &Ty::Bool)),
                9 => format!(
                    "({}).{}",
                    self.expr(around, &Ty::Point),
                    ["x", "sum()"][self.below(2)]
                ),
                10 => format!(
                    "({}).reduce(|s, v| s + v, {})",
                    self.expr(around, &array),
                    self.leaf(around, &Ty::Int)
                ),
                11 => match self.below(3) {
                    0 => format!(
                        "apply({}, {})",
                        self.expr(around, &Ty::Step),
                        self.expr(around, &Ty::Int)
                    ),
                    1 => format!("down({})", self.below(6)),
                    _ => format!(
                        "({})({})",
                        self.closure(around),
                        self.expr(around, &Ty::Int)
                    ),
                },
                12 => format!(
                    "((for v in {} {{ if v > {} {{ break v; }} }}) ?? {})",
                    self.expr(around, &array),
                    self.leaf(around, &Ty::Int),
                    self.leaf(around, &Ty::Int)
                ),
                _ if around.raises => format!("({} as Int)", self.short_text()),
                _ => self.leaf(around, &Ty::Int),
            }
        }

        /// Operands with operators between them, by precedence.
        fn chain(&mut self, around: &Around, ops: &[&str], ty: &Ty) -> String {
            let mut text = format!("({}", self.expr(around, ty));
            for _ in 0..=self.below(3) {
                let op = ops[self.below(ops.len())];
                let _ = write!(text, " {op} {}", self.operand(around, ty));
            }
            text + ")"
        }

        fn operand(&mut self, around: &Around, ty: &Ty) -> String {
            if self.one_in(3) {
                self.expr(around, ty)
            } else {
                self.leaf(around, ty)
            }
        }

        fn float(&mut self, around: &Around) -> String {
            match self.below(4) {
                0 | 1 => self.chain(around, &["+", "-", "*", "/"], &Ty::Float),
                2 => format!("(({}) as Float)", self.expr(around, &Ty::Int)),
                _ => format!(
                    "({} * {})",
                    self.expr(around, &Ty::Float),
                    self.expr(around, &Ty::Int)
                ),
            }
        }

        fn text(&mut self, around: &Around) -> String {
            match self.below(7) {
                0 => self.chain(around, &["+"], &Ty::Text),
                1 | 2 => {
                    let (one, two) = (self.shown(around), self.shown(around));
                    format!("\"<${{{one}}} ${{{two}}}>\"")
                }
                3 => format!("(({}) as String)", self.shown(around)),
                4 => format!("({}).to_upper()", self.expr(around, &Ty::Text)),
                5 => format!(
                    "({}).join(\"-\")",
                    self.expr(around, &Ty::Array(Box::new(Ty::Text)))
                ),
                _ => format!("typeof({})", self.shown(around)),
            }
        }

        /// Something that can be shown.
        fn shown(&mut self, around: &Around) -> String {
            let ty = self.ty();
            let ty = if ty == Ty::Step { Ty::Int } else { ty };
            self.expr(around, &ty)
        }

        fn bool(&mut self, around: &Around) -> String {
            match self.below(8) {
                0 | 1 => {
                    let op = ["<", ">", "<=", ">=", "==", "!="][self.below(6)];
                    let ty = [Ty::Int, Ty::Text, Ty::Float][self.below(3)].clone();
                    format!(
                        "({} {op} {})",
                        self.expr(around, &ty),
                        self.expr(around, &ty)
                    )
                }
                2 => {
                    let ty = self.ty();
                    let ty = if ty == Ty::Step { Ty::Point } else { ty };
                    let op = ["==", "!="][self.below(2)];
                    format!(
                        "({} {op} {})",
                        self.expr(around, &ty),
                        self.expr(around, &ty)
                    )
                }
                3 => self.chain(around, &["&&"], &Ty::Bool),
                4 => self.chain(around, &["||", "&&"], &Ty::Bool),
                5 => format!("(!{})", self.expr(around, &Ty::Bool)),
                6 => format!(
                    "({}).is_some()",
                    self.expr(around, &Ty::Option(Box::new(Ty::Int)))
                ),
                _ => format!(
                    "({}).contains({})",
                    self.expr(around, &Ty::Array(Box::new(Ty::Int))),
                    self.leaf(around, &Ty::Int)
                ),
            }
        }

        fn array(&mut self, around: &Around, of: &Ty) -> String {
            let own = Ty::Array(Box::new(of.clone()));
            match self.below(6) {
                0 | 1 => {
                    let count = self.below(4);
                    let items: Vec<String> = (0..=count).map(|_| self.expr(around, of)).collect();
                    format!("[{}]", items.join(", "))
                }
                2 => format!(
                    "({}).concat({})",
                    self.expr(around, &own),
                    self.leaf(around, &own)
                ),
                3 => format!(
                    "({})[{}..{}]",
                    self.expr(around, &own),
                    self.below(3),
                    self.below(5)
                ),
                4 => {
                    let mut inside = self.captured(around);
                    inside.variables.push(Variable {
                        name: "it".to_owned(),
                        ty: Ty::Int,
                        mutable: false,
                    });
                    let list = self.expr(around, &Ty::Array(Box::new(Ty::Int)));
                    format!("({list}).map(|it| {})", self.expr(&inside, of))
                }
                _ => {
                    let mut inside = self.captured(around);
                    inside.variables.push(Variable {
                        name: "it".to_owned(),
                        ty: of.clone(),
                        mutable: false,
                    });
                    let list = self.expr(around, &own);
                    format!("({list}).filter(|it| {})", self.expr(&inside, &Ty::Bool))
                }
            }
        }

        /// What a closure sees: copies, which it does not change.
        fn captured(&self, around: &Around) -> Around {
            let mut inside = around.clone();
            for it in &mut inside.variables {
                it.mutable = false;
            }
            inside.raises = false;
            inside.options = false;
            inside.looping = false;
            inside.result = None;
            inside
        }

        fn closure(&mut self, around: &Around) -> String {
            let mut inside = self.captured(around);
            inside.variables.push(Variable {
                name: "n".to_owned(),
                ty: Ty::Int,
                mutable: false,
            });
            inside.result = Some(Ty::Int);
            format!("(|n: Int| {})", self.expr(&inside, &Ty::Int))
        }
    }
}
