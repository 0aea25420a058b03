//! Calls, members and places.

use super::*;

impl Oracle<'_> {
    pub(super) fn assign(&mut self, op: AssignOp, target: &Expr, value: &Expr) -> Result<(), Flow> {
        let (root, steps) = self.place(target)?;
        let value = match op {
            AssignOp::Set => self.expr(value)?,
            AssignOp::Compute(op) => {
                let right = self.expr(value)?;
                let before = place::get(self.root(&root), &steps)?;
                crate::operate::binary(op, before, right)?
            }
        };
        place::set(self.root(&root), &steps, value)
    }

    /// The variable and the way from there that an expression names.
    pub(super) fn place(&mut self, target: &Expr) -> Result<(String, Vec<Step>), Flow> {
        match &target.unwrapped().kind {
            ExprKind::Path(path) => Ok((path.text(), Vec::new())),
            ExprKind::Postfix(it) => {
                let (root, mut way) = self.place(&it.base)?;
                for step in &it.steps {
                    way.push(self.step(step)?);
                }
                Ok((root, way))
            }
            other => panic!("{other:?} is no place"),
        }
    }

    pub(super) fn step(&mut self, step: &PostfixOp) -> Result<Step, Flow> {
        match step {
            PostfixOp::Field(name) => Ok(Step::Field(name.text.clone())),
            PostfixOp::Index(index, _) => Ok(Step::Index(self.expr(index)?)),
            other => panic!("{other:?} in a place"),
        }
    }

    pub(super) fn root(&mut self, name: &str) -> &mut Value {
        let found = self.env.iter_mut().rev().find(|(it, _)| it == name);
        &mut found.expect("the variable is there").1
    }

    pub(super) fn postfix(&mut self, base: &Expr, steps: &[PostfixOp]) -> Outcome {
        // A call that changes its receiver, where the receiver is a place.
        if let Some((PostfixOp::Method { name, call, .. }, way)) = steps.split_last()
            && matches!(base.unwrapped().kind, ExprKind::Path(_))
            && way
                .iter()
                .all(|it| matches!(it, PostfixOp::Field(_) | PostfixOp::Index(..)))
            && self.changes(base, &name.text)
        {
            let (root, mut steps) = self.place(base)?;
            for step in way {
                steps.push(self.step(step)?);
            }
            let arguments = self.arguments(call)?;
            let mut receiver = place::get(self.root(&root), &steps)?;
            let method = self
                .methods
                .get(&(receiver.type_name(), &*name.text))
                .copied();
            let value = match method {
                Some(method) => {
                    let (value, left) = self.call_with(method, Some(receiver), arguments)?;
                    receiver = left.expect("it has a receiver");
                    value
                }
                None => crate::operate::change(&mut receiver, &name.text, arguments),
            };
            place::set(self.root(&root), &steps, receiver)?;
            return Ok(value);
        }
        let (mut value, rest) = match (base.as_path(), steps) {
            (Some(path), [PostfixOp::Call(call), rest @ ..]) => {
                let arguments = self.arguments(call)?;
                (self.call_path(path, arguments)?, rest)
            }
            _ => (self.expr(base)?, steps),
        };
        for step in rest {
            value = match step {
                PostfixOp::Field(_) | PostfixOp::Index(..) => {
                    let step = self.step(step)?;
                    place::get(&value, &[step])?
                }
                PostfixOp::Try(_) => self.question(value)?,
                PostfixOp::Call(call) => {
                    let arguments = self.arguments(call)?;
                    self.apply(&value, arguments)?
                }
                PostfixOp::Method { name, call, .. } => {
                    let arguments = self.arguments(call)?;
                    match self.methods.get(&(value.type_name(), &*name.text)).copied() {
                        Some(method) => self.call_with(method, Some(value), arguments)?.0,
                        None => crate::operate::method(self, value, &name.text, arguments)?,
                    }
                }
                PostfixOp::Await(_) => value,
            };
        }
        Ok(value)
    }

    pub(super) fn arguments(&mut self, call: &Call) -> Result<Vec<Value>, Flow> {
        let values = call.arguments.iter().map(|it| self.expr(&it.value));
        values.collect()
    }

    /// Whether a method changes its receiver.
    fn changes(&self, base: &Expr, name: &str) -> bool {
        let is_variable = base
            .unwrapped()
            .as_path()
            .is_some_and(|path| self.env.iter().any(|(it, _)| *it == path.text()));
        let mut methods = self.methods.iter();
        let known = methods.any(|((_, it), method)| {
            *it == name && method.signature.receiver == Some(Receiver::Mut)
        });
        is_variable && (known || crate::operate::is_change(name))
    }

    pub(super) fn call_path(&mut self, path: &Path, arguments: Vec<Value>) -> Outcome {
        let text = path.text();
        if self.env.iter().any(|(name, _)| *name == text) {
            let callee = self.name(path);
            return self.apply(&callee, arguments);
        }
        if let Some(function) = self.functions.get(text.as_str()) {
            return self.call(function, arguments);
        }
        let mut arguments = arguments;
        let mut boxed = || Box::new(arguments.remove(0));
        match text.as_str() {
            "Ok" => Ok(Value::Ok(boxed())),
            "Err" => Ok(Value::Err(boxed())),
            "Some" => Ok(Value::Some(boxed())),
            "println" => {
                let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
                self.printed += &shown.join(" ");
                self.printed += "\n";
                Ok(Value::Nil)
            }
            "typeof" => Ok(Value::text(arguments[0].type_name())),
            "panic" => Err(Flow::Stop(format!("panic: {}", arguments[0]))),
            other => {
                let (of, name) = other.split_once("::").expect("a variant");
                let fields = Fields::Places(arguments);
                Ok(Value::Variant(of.to_owned(), name.to_owned(), fields))
            }
        }
    }
}
