//! Statements.

use super::*;

impl Generator<'_> {
    pub(super) fn stmts(&mut self, around: &mut Around, count: usize, text: &mut String) {
        for _ in 0..count {
            let stmt = self.stmt(around);
            text.push_str(&stmt);
            text.push('\n');
        }
    }

    pub(super) fn inner(&mut self, around: &Around, most: usize) -> String {
        let mut inner = around.clone();
        inner.depth = inner.depth.saturating_sub(1);
        format!("{{ {} }}", self.block(&inner, most))
    }

    pub(super) fn stmt(&mut self, around: &mut Around) -> String {
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
                // Which loop a jump in a condition would leave is nobody's business.
                let mut before = around.clone();
                before.looping = false;
                let condition = self.expr(&before, &Ty::Bool);
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

    pub(super) fn declare(&mut self, around: &mut Around) -> String {
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

    pub(super) fn destructure(&mut self, around: &mut Around) -> String {
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

    pub(super) fn assignment(&mut self, around: &Around) -> Option<String> {
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
    pub(super) fn change(&mut self, around: &Around) -> Option<String> {
        if !around.assigns {
            return None;
        }
        let changes = |ty: &Ty| matches!(ty, Ty::Array(_) | Ty::Point | Ty::Map(_));
        let it = self.pick(around, |it| it.mutable && changes(&it.ty))?;
        let name = &it.name;
        let mut calm = around.clone();
        calm.assigns = false;
        Some(match &it.ty {
            Ty::Array(of) if **of == Ty::Point && self.one_in(2) => {
                let index = self.below(3);
                let value = self.expr(&calm, &Ty::Int);
                match self.below(4) {
                    0 => format!("println({name}[{index}].bump({value}));"),
                    1 => format!("println({name}[{index}].grow({value}));"),
                    2 => format!("{name}[{index}].list.push({value});"),
                    _ => format!("{name}[{index}].x -= {value};"),
                }
            }
            Ty::Array(of) => match self.below(4) {
                0 | 1 => format!("{name}.push({});", self.expr(&calm, of)),
                2 => format!("println({name}.pop());"),
                _ => format!("{name}.reverse();"),
            },
            Ty::Map(_) => format!("println({name}.remove(\"k\"));"),
            _ => match self.below(3) {
                2 => format!("println({name}.grow({}));", self.expr(&calm, &Ty::Int)),
                0 => format!("println({name}.bump({}));", self.expr(&calm, &Ty::Int)),
                _ => format!("{name}.list.push({});", self.expr(&calm, &Ty::Int)),
            },
        })
    }

    pub(super) fn for_loop(&mut self, around: &Around) -> String {
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

    pub(super) fn match_stmt(&mut self, around: &Around) -> String {
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

    pub(super) fn pattern(&mut self, ty: &Ty, inside: &mut Around) -> String {
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
}
