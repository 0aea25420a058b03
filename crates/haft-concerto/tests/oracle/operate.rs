//! Operators and methods.

use haft_concerto::ast::{BinaryOp, Expr};

use crate::interpret::{Flow, Oracle, Outcome};
use crate::value::Value;

impl Oracle<'_> {
    pub(crate) fn binary(&mut self, first: &Expr, rest: &[(BinaryOp, Expr)]) -> Outcome {
        let mut left = self.expr(first)?;
        for (op, right) in rest {
            left = match op {
                BinaryOp::And if !left.truthy() => left,
                BinaryOp::Or if left.truthy() => left,
                BinaryOp::And | BinaryOp::Or => self.expr(right)?,
                BinaryOp::Coalesce => match left {
                    Value::Nil | Value::None => self.expr(right)?,
                    Value::Some(value) => *value,
                    value => value,
                },
                op => {
                    let right = self.expr(right)?;
                    binary(*op, left, right)?
                }
            };
        }
        Ok(left)
    }
}

#[allow(clippy::cast_precision_loss)] // what mixed arithmetic is
pub(crate) fn binary(op: BinaryOp, left: Value, right: Value) -> Outcome {
    use BinaryOp::*;
    match op {
        Eq => return Ok(Value::Bool(left.same(&right))),
        NotEq => return Ok(Value::Bool(!left.same(&right))),
        _ => {}
    }
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => ints(op, a, b),
        (Value::Float(a), Value::Float(b)) => Ok(floats(op, a, b)),
        (Value::Int(a), Value::Float(b)) => Ok(floats(op, a as f64, b)),
        (Value::Float(a), Value::Int(b)) => Ok(floats(op, a, b as f64)),
        (Value::Text(a), Value::Text(b)) => Ok(match op {
            Add => Value::Text(a + &b),
            Less => Value::Bool(a < b),
            Greater => Value::Bool(a > b),
            LessEq => Value::Bool(a <= b),
            GreaterEq => Value::Bool(a >= b),
            op => panic!("{op:?} of texts"),
        }),
        (left, right) => panic!("{left} {op:?} {right}"),
    }
}

fn ints(op: BinaryOp, a: i64, b: i64) -> Outcome {
    use BinaryOp::*;
    Ok(match op {
        Add => Value::Int(a.wrapping_add(b)),
        Sub => Value::Int(a.wrapping_sub(b)),
        Mul => Value::Int(a.wrapping_mul(b)),
        Div | Mod if b == 0 => {
            return Err(Flow::Fault("division_by_zero", "division by zero".into()));
        }
        Div => Value::Int(a.wrapping_div(b)),
        Mod => Value::Int(a.wrapping_rem(b)),
        Less => Value::Bool(a < b),
        Greater => Value::Bool(a > b),
        LessEq => Value::Bool(a <= b),
        GreaterEq => Value::Bool(a >= b),
        op => panic!("{op:?} of Ints"),
    })
}

fn floats(op: BinaryOp, a: f64, b: f64) -> Value {
    use BinaryOp::*;
    match op {
        Add => Value::Float(a + b),
        Sub => Value::Float(a - b),
        Mul => Value::Float(a * b),
        Div => Value::Float(a / b),
        Mod => Value::Float(a % b),
        Less => Value::Bool(a < b),
        Greater => Value::Bool(a > b),
        LessEq => Value::Bool(a <= b),
        GreaterEq => Value::Bool(a >= b),
        op => panic!("{op:?} of Floats"),
    }
}

pub(crate) fn is_change(name: &str) -> bool {
    matches!(name, "push" | "pop" | "reverse" | "sort" | "set" | "remove")
}

/// Methods that change what they are called on.
pub(crate) fn change(receiver: &mut Value, name: &str, mut arguments: Vec<Value>) -> Value {
    match (receiver, name) {
        (Value::Array(list), "push") => {
            list.push(arguments.remove(0));
            Value::Nil
        }
        (Value::Array(list), "pop") => Value::some(list.pop()),
        (Value::Array(list), "reverse") => {
            list.reverse();
            Value::Nil
        }
        (Value::Map(entries), "remove") => {
            let key = arguments.remove(0).to_string();
            let found = entries.iter().position(|(it, _)| *it == key);
            Value::some(found.map(|place| entries.remove(place).1))
        }
        (receiver, name) => panic!("{receiver}.{name}"),
    }
}

/// Methods that do not.
#[allow(clippy::cast_possible_wrap)] // lists of a few elements
pub(crate) fn method(
    oracle: &mut Oracle<'_>,
    receiver: Value,
    name: &str,
    mut arguments: Vec<Value>,
) -> Outcome {
    let first = if arguments.is_empty() {
        Value::Nil
    } else {
        arguments.remove(0)
    };
    Ok(match (receiver, name) {
        (Value::Text(text), "len") => Value::Int(text.len() as i64),
        (Value::Array(list), "len") => Value::Int(list.len() as i64),
        (Value::Map(entries), "len") => Value::Int(entries.len() as i64),
        (Value::Array(list), "is_empty") => Value::Bool(list.is_empty()),
        (Value::Text(text), "to_upper") => Value::Text(text.to_uppercase()),
        (Value::Text(text), "contains") => Value::Bool(text.contains(&first.to_string())),
        (Value::Text(text), "chars") => {
            Value::Array(text.chars().map(|c| Value::Text(c.to_string())).collect())
        }
        (Value::Array(list), "contains") => Value::Bool(list.iter().any(|it| it.same(&first))),
        (Value::Array(list), "get") => match first {
            Value::Int(at) => Value::some(
                usize::try_from(at)
                    .ok()
                    .and_then(|at| list.get(at).cloned()),
            ),
            other => panic!("get({other})"),
        },
        (Value::Array(list), "first") => Value::some(list.first().cloned()),
        (Value::Array(list), "last") => Value::some(list.last().cloned()),
        (Value::Array(mut list), "concat") => match first {
            Value::Array(more) => {
                list.extend(more);
                Value::Array(list)
            }
            other => panic!("concat({other})"),
        },
        (Value::Array(list), "join") => {
            let shown: Vec<String> = list.iter().map(ToString::to_string).collect();
            Value::Text(shown.join(&first.to_string()))
        }
        (Value::Map(entries), "get") => {
            let key = first.to_string();
            let found = entries.into_iter().find(|(it, _)| *it == key);
            Value::some(found.map(|(_, value)| value))
        }
        (Value::Map(entries), "has") => {
            Value::Bool(entries.iter().any(|(it, _)| *it == first.to_string()))
        }
        (Value::Map(entries), "keys") => Value::Array(
            entries
                .into_iter()
                .map(|(key, _)| Value::Text(key))
                .collect(),
        ),
        (Value::Map(entries), "values") => {
            Value::Array(entries.into_iter().map(|(_, value)| value).collect())
        }
        (Value::Array(list), "map") => {
            let mut all = Vec::new();
            for it in list {
                all.push(oracle.apply(&first, vec![it])?);
            }
            Value::Array(all)
        }
        (Value::Array(list), "filter") => {
            let mut all = Vec::new();
            for it in list {
                if oracle.apply(&first, vec![it.clone()])?.truthy() {
                    all.push(it);
                }
            }
            Value::Array(all)
        }
        (Value::Array(list), "reduce") => {
            let mut sum = arguments.remove(0);
            for it in list {
                sum = oracle.apply(&first, vec![sum, it])?;
            }
            sum
        }
        (value @ (Value::Some(_) | Value::None), "is_some") => {
            Value::Bool(matches!(value, Value::Some(_)))
        }
        (value @ (Value::Ok(_) | Value::Err(_)), "is_ok") => {
            Value::Bool(matches!(value, Value::Ok(_)))
        }
        (Value::Some(value) | Value::Ok(value), "unwrap_or" | "unwrap") => *value,
        (Value::None | Value::Err(_), "unwrap_or") => first,
        (Value::Some(value), "map") => Value::Some(Box::new(oracle.apply(&first, vec![*value])?)),
        (Value::None, "map") => Value::None,
        (Value::Ok(value), "map") => Value::Ok(Box::new(oracle.apply(&first, vec![*value])?)),
        (value @ Value::Err(_), "map") | (value @ Value::Ok(_), "map_err") => value,
        (Value::Err(value), "map_err") => Value::Err(Box::new(oracle.apply(&first, vec![*value])?)),
        (value @ (Value::None | Value::Err(_)), "unwrap") => {
            return Err(Flow::Stop(match value {
                Value::Err(error) => format!("unhandled error: called unwrap() on Err({error})"),
                _ => "unhandled error: called unwrap() on None".to_owned(),
            }));
        }
        (receiver, name) => panic!("{receiver}.{name}"),
    })
}
