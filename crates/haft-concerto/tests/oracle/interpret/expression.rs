//! Expressions.

use super::*;

impl Oracle<'_> {
    /// The rule for what is raised.
    pub(super) fn raise(&self, value: Value) -> Flow {
        if self.tries == 0 && self.returns == Returns::Result {
            Flow::Return(Value::Err(Box::new(value)))
        } else {
            Flow::Raise(value)
        }
    }

    pub(crate) fn expr(&mut self, expr: &Expr) -> Outcome {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Flow::TooLong);
        }
        match &expr.kind {
            ExprKind::Int(value) => Ok(Value::Int(*value)),
            ExprKind::Float(value) => Ok(Value::Float(*value)),
            ExprKind::Bool(value) => Ok(Value::Bool(*value)),
            ExprKind::Nil => Ok(Value::Nil),
            ExprKind::Str(text) => Ok(Value::text(text)),
            ExprKind::Text(pieces) => self.text(pieces),
            ExprKind::Path(path) => Ok(self.name(path)),
            ExprKind::Struct(it) => {
                let mut fields = Vec::new();
                for (name, value) in &it.fields {
                    fields.push((name.text.clone(), self.expr(value)?));
                }
                Ok(self.built(&it.path, fields))
            }
            ExprKind::Paren(inner) => self.expr(inner),
            ExprKind::Tuple(list) | ExprKind::Array(list) => Ok(Value::Array(self.list(list)?)),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Closure(closure) => Ok(Value::Closure(
                Rc::new((**closure).clone()),
                self.env.clone(),
            )),
            ExprKind::Block(block) => self.block(block),
            ExprKind::If(it) => {
                for (condition, block) in &it.branches {
                    if self.expr(condition)?.truthy() {
                        return self.block(block);
                    }
                }
                it.otherwise
                    .as_ref()
                    .map_or(Ok(Value::Nil), |block| self.block(block))
            }
            ExprKind::Match(it) => self.match_expr(it),
            ExprKind::For(_) | ExprKind::While { .. } | ExprKind::Loop(_) => self.looped(expr),
            ExprKind::Try(it) => self.try_block(it),
            ExprKind::Return(value) => Err(Flow::Return(self.optional(value.as_deref())?)),
            ExprKind::Break(value) => Err(Flow::Break(self.optional(value.as_deref())?)),
            ExprKind::Continue => Err(Flow::Continue),
            ExprKind::Throw(value) => {
                let value = self.expr(value)?;
                Err(self.raise(value))
            }
            ExprKind::Postfix(it) => self.postfix(&it.base, &it.steps),
            ExprKind::Prefix(ops, inner) => self.prefix(ops, inner),
            ExprKind::Cast(inner, types) => {
                let mut value = self.expr(inner)?;
                for ty in types {
                    value = self.cast(value, type_name(ty))?;
                }
                Ok(value)
            }
            ExprKind::Binary(it) => self.binary(&it.first, &it.rest),
            ExprKind::Range {
                start,
                end,
                inclusive,
            } => {
                let start = self.optional(start.as_deref())?;
                let end = self.optional(end.as_deref())?;
                let side = |value| match value {
                    Value::Int(value) => Some(value),
                    _ => None,
                };
                Ok(Value::Range(side(start), side(end), *inclusive))
            }
            ExprKind::Pipe(first, stages) => self.pipe(first, stages),
            ExprKind::Assign { op, target, value } => {
                self.assign(*op, target, value)?;
                Ok(Value::Nil)
            }
            ExprKind::Generic(..) | ExprKind::Listen(_) => panic!("not of a pure program"),
        }
    }

    fn match_expr(&mut self, it: &Match) -> Outcome {
        let subject = self.expr(&it.subject)?;
        for arm in &it.arms {
            let height = self.env.len();
            let fits = pattern::matches(self, &arm.pattern, &subject)
                && match &arm.guard {
                    Some(guard) => self.expr(guard)?.truthy(),
                    None => true,
                };
            if fits {
                let ended = self.expr(&arm.body);
                self.env.truncate(height);
                return ended;
            }
            self.env.truncate(height);
        }
        Ok(Value::Nil)
    }

    fn pipe(&mut self, first: &Expr, stages: &[PipeStage]) -> Outcome {
        let mut value = self.expr(first)?;
        for stage in stages {
            let (callee, mut arguments) = match &stage.target.unwrapped().kind {
                ExprKind::Postfix(it) if let [PostfixOp::Call(call)] = it.steps.as_slice() => {
                    (self.expr(&it.base)?, self.arguments(call)?)
                }
                _ => (self.expr(&stage.target)?, Vec::new()),
            };
            arguments.insert(0, value);
            value = self.apply(&callee, arguments)?;
            for _ in &stage.tries {
                value = self.question(value)?;
            }
        }
        Ok(value)
    }

    fn prefix(&mut self, ops: &[PrefixOp], inner: &Expr) -> Outcome {
        let mut value = self.expr(inner)?;
        for op in ops.iter().rev() {
            value = match (op, value) {
                (PrefixOp::Neg, Value::Int(value)) => Value::Int(value.wrapping_neg()),
                (PrefixOp::Neg, Value::Float(value)) => Value::Float(-value),
                (PrefixOp::Not, value) => Value::Bool(!value.truthy()),
                (_, value) => value,
            };
        }
        Ok(value)
    }

    pub(super) fn optional(&mut self, expr: Option<&Expr>) -> Outcome {
        expr.map_or(Ok(Value::Nil), |it| self.expr(it))
    }

    pub(super) fn list(&mut self, list: &[Expr]) -> Result<Vec<Value>, Flow> {
        list.iter().map(|it| self.expr(it)).collect()
    }

    pub(super) fn text(&mut self, pieces: &[TextPiece]) -> Outcome {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                TextPiece::Text(piece) => text += piece,
                TextPiece::Expr(expr) => text += &self.expr(expr)?.to_string(),
            }
        }
        Ok(Value::Text(text))
    }

    pub(super) fn map(&mut self, entries: &[(MapKey, Expr)]) -> Outcome {
        let mut map = Value::Map(Vec::new());
        for (key, value) in entries {
            let key = match key {
                MapKey::Name(name) => name.text.clone(),
                MapKey::Expr(expr) => self.expr(expr)?.to_string(),
            };
            let value = self.expr(value)?;
            place::set(&mut map, &[Step::Index(Value::Text(key))], value)?;
        }
        Ok(map)
    }

    pub(super) fn name(&self, path: &Path) -> Value {
        let text = path.text();
        if let Some((_, value)) = self.env.iter().rev().find(|(name, _)| *name == text) {
            return value.clone();
        }
        match text.as_str() {
            "None" => Value::None,
            other => match other.split_once("::") {
                Some((of, name)) => {
                    Value::Variant(of.to_owned(), name.to_owned(), Fields::Places(Vec::new()))
                }
                None => Value::Function(text),
            },
        }
    }

    /// A struct or variant with its fields in declared order.
    pub(super) fn built(&self, path: &Path, given: Vec<(String, Value)>) -> Value {
        let name = path.text();
        let order = &self.shapes[&name];
        let mut given = given;
        given.sort_by_key(|(name, _)| order.iter().position(|it| it == name));
        match name.split_once("::") {
            Some((of, name)) => {
                Value::Variant(of.to_owned(), name.to_owned(), Fields::Names(given))
            }
            None => Value::Struct(name, given),
        }
    }

    pub(super) fn looped(&mut self, expr: &Expr) -> Outcome {
        let mut items = match &expr.kind {
            ExprKind::For(it) => Some(elements(&self.expr(&it.subject)?).into_iter()),
            _ => None,
        };
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(Flow::TooLong);
            }
            let height = self.env.len();
            let ended = match &expr.kind {
                ExprKind::For(it) => {
                    let Some(item) = items.as_mut().and_then(Iterator::next) else {
                        return Ok(Value::Nil);
                    };
                    assert!(
                        pattern::matches(self, &it.pattern, &item),
                        "a `for` pattern"
                    );
                    self.block(&it.body)
                }
                ExprKind::While { condition, body } => {
                    if !self.expr(condition)?.truthy() {
                        return Ok(Value::Nil);
                    }
                    self.block(body)
                }
                ExprKind::Loop(body) => self.block(body),
                _ => unreachable!(),
            };
            self.env.truncate(height);
            match ended {
                Ok(_) | Err(Flow::Continue) => {}
                Err(Flow::Break(value)) => return Ok(value),
                Err(other) => return Err(other),
            }
        }
    }

    pub(super) fn try_block(&mut self, it: &Try) -> Outcome {
        let (height, depth, returns) = (self.env.len(), self.depth, self.returns);
        self.tries += 1;
        let ended = self.block(&it.body);
        self.tries -= 1;
        let (caught, again) = match ended {
            Ok(value @ (Value::Ok(_) | Value::Err(_))) if it.catches.is_empty() => {
                return Ok(value);
            }
            Ok(value) if it.catches.is_empty() => return Ok(Value::Ok(Box::new(value))),
            Err(Flow::Raise(value)) => (value.clone(), Flow::Raise(value)),
            Err(Flow::Fault(kind, message)) => {
                (Value::fault(kind, &message), Flow::Fault(kind, message))
            }
            other => return other,
        };
        self.env.truncate(height);
        (self.depth, self.returns) = (depth, returns);
        if it.catches.is_empty() {
            return Ok(Value::Err(Box::new(caught)));
        }
        for clause in &it.catches {
            let takes = clause
                .ty
                .as_ref()
                .is_none_or(|ty| type_name(ty) == caught.type_name());
            if takes {
                if let Some(name) = &clause.binding {
                    self.env.push((name.text.clone(), caught));
                }
                let ended = self.block(&clause.body);
                self.env.truncate(height);
                return ended;
            }
        }
        Err(match again {
            Flow::Raise(value) => self.raise(value),
            fault => fault,
        })
    }

    pub(super) fn question(&mut self, value: Value) -> Outcome {
        match value {
            Value::Ok(value) | Value::Some(value) => Ok(*value),
            Value::Err(value) => Err(self.raise(*value)),
            Value::None if self.returns == Returns::Option => Err(Flow::Return(Value::None)),
            Value::None => Err(self.raise(Value::text("value is None"))),
            other => panic!("`?` on {other}"),
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // what the cast says
    pub(super) fn cast(&mut self, value: Value, to: &str) -> Outcome {
        Ok(match (to, value) {
            ("String", value) => Value::Text(value.to_string()),
            ("Bool", value) => Value::Bool(value.truthy()),
            ("Int", Value::Int(value)) => Value::Int(value),
            ("Int", Value::Float(value)) => Value::Int(value as i64),
            ("Int", Value::Bool(value)) => Value::Int(i64::from(value)),
            ("Float", Value::Int(value)) => Value::Float(value as f64),
            ("Float", Value::Float(value)) => Value::Float(value),
            ("Int", Value::Text(text)) => {
                let Ok(value) = text.trim().parse() else {
                    let text = format!("cannot cast String \"{text}\" to Int");
                    return Err(self.raise(Value::Text(text)));
                };
                Value::Int(value)
            }
            (to, value) => panic!("{value} as {to}"),
        })
    }
}
