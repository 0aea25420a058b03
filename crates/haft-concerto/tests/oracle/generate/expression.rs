//! Expressions of a type.

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
                    // What is caught may be a fault: as text it is of the declared type.
                    let value = self.expr(&inside, of);
                    format!("(try {{ Ok({value}) }}).map_err(|e| \"${{e}}\")")
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

    pub(super) fn leaf(&mut self, around: &Around, ty: &Ty) -> String {
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
                // A `break` without a value would give the loop another type.
                inside.looping = false;
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
        match self.below(9) {
            8 => {
                let op = ["<", ">", "<=", ">=", "==", "!="][self.below(6)];
                format!(
                    "({} {op} {})",
                    self.leaf(around, &Ty::Int),
                    self.leaf(around, &Ty::Int)
                )
            }
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
                let mut inside = Self::captured(around);
                inside.variables.push(Variable {
                    name: "it".to_owned(),
                    ty: Ty::Int,
                    mutable: false,
                });
                let list = self.expr(around, &Ty::Array(Box::new(Ty::Int)));
                format!("({list}).map(|it| {})", self.expr(&inside, of))
            }
            _ => {
                let mut inside = Self::captured(around);
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
    fn captured(around: &Around) -> Around {
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
        let mut inside = Self::captured(around);
        inside.variables.push(Variable {
            name: "n".to_owned(),
            ty: Ty::Int,
            mutable: false,
        });
        inside.result = Some(Ty::Int);
        format!("(|n: Int| {})", self.expr(&inside, &Ty::Int))
    }
}
