//! Built-in functions and methods (§11), the standard library (§12), and stores (§8, §18).

mod array;
mod builtins;
mod collections;
mod crypto;
mod environment;
mod files;
mod format;
mod http;
mod json;
mod ledger;
mod map;
mod math;
mod md5;
mod methods;
mod models;
mod option;
mod permissions;
mod prompt;
mod stores;
mod string;
mod text;
mod time;

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

pub use permissions::{Grant, GrantedBy, Permissions};
pub use stores::{Message, Stores};

pub(crate) use methods::call_method;

use crate::value::Value;
use crate::vm::{Fault, FaultKind, Machine, Meter, Outcome, Reply};

/// A built-in function.
pub struct Native {
    /// Its path: `println`, `std::math::abs`.
    pub name: &'static str,
    /// The least and the most arguments that it takes.
    arguments: (usize, usize),
    run: fn(&mut Context<'_>, &mut [Value]) -> Outcome<Reply>,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Native({})", self.name)
    }
}

/// What a built-in may use.
pub(crate) struct Context<'a> {
    pub(crate) machine: &'a mut Machine,
    /// The schema of `parse_as` and of calls of models.
    pub(crate) schema: Option<&'a str>,
}

impl Context<'_> {
    /// What is charged and asked.
    fn meter(&mut self) -> &mut Meter {
        &mut self.machine.meter
    }

    /// An argument that must be text, and that will be read to its end.
    fn read<'v>(&mut self, function: &str, value: &'v Value) -> Outcome<&'v str> {
        let text = text_of(function, value)?;
        self.meter().read(text.len())?;
        Ok(text)
    }

    /// A copy of a part of a text.
    fn part(&mut self, text: &str) -> Outcome<Value> {
        self.meter().ask(text.len())?;
        Ok(Value::from(text))
    }
}

/// Any number of arguments.
const MANY: usize = usize::MAX;

impl Native {
    const fn new(
        name: &'static str,
        arguments: (usize, usize),
        run: fn(&mut Context<'_>, &mut [Value]) -> Outcome<Reply>,
    ) -> Self {
        Self {
            name,
            arguments,
            run,
        }
    }

    /// Calls it; the arguments are taken.
    pub(crate) fn call(
        &self,
        context: &mut Context<'_>,
        arguments: &mut [Value],
    ) -> Outcome<Reply> {
        let (least, most) = self.arguments;
        if arguments.len() < least || arguments.len() > most {
            let expected = match (least, most) {
                (least, MANY) => format!("at least {least}"),
                (least, most) if least == most => least.to_string(),
                (least, most) => format!("{least} to {most}"),
            };
            return Err(Fault::type_error(format!(
                "{} expects {expected} arguments, got {}",
                self.name,
                arguments.len()
            )));
        }
        let reply = (self.run)(context, arguments)?;
        for argument in arguments {
            *argument = Value::Nil;
        }
        Ok(reply)
    }
}

/// The built-in of a path.
pub(crate) fn find(name: &str) -> Option<&'static Native> {
    static ALL: LazyLock<HashMap<&'static str, &'static Native>> = LazyLock::new(|| {
        [
            builtins::ALL,
            math::ALL,
            string::ALL,
            json::ALL,
            format::ALL,
            time::ALL,
            environment::ALL,
            collections::ALL,
            prompt::ALL,
            crypto::ALL,
            files::ALL,
            http::ALL,
        ]
        .into_iter()
        .flatten()
        .map(|native| (native.name, native))
        .collect()
    });
    ALL.get(name).copied()
}

/// The names of all built-in functions.
pub fn names() -> impl Iterator<Item = &'static str> {
    [
        builtins::ALL,
        math::ALL,
        string::ALL,
        json::ALL,
        format::ALL,
        time::ALL,
        environment::ALL,
        collections::ALL,
        prompt::ALL,
        crypto::ALL,
        files::ALL,
        http::ALL,
    ]
    .into_iter()
    .flatten()
    .map(|native| native.name)
}

/// A value as a reply.
#[allow(clippy::unnecessary_wraps)] // what every built-in gives
fn give(value: impl Into<Value>) -> Outcome<Reply> {
    Ok(Reply::Value(value.into()))
}

/// The fault of a program that may not do something.
fn refused(denied: &str) -> Box<crate::vm::Failure> {
    let text = denied.strip_prefix(permissions::DENIED).unwrap_or(denied);
    Fault::of(FaultKind::Permission, text)
}

fn wrong(function: &str, expected: &str, got: &Value) -> Box<crate::vm::Failure> {
    Fault::type_error(format!(
        "{function} expects {expected}, got {}",
        got.type_name()
    ))
}

/// An argument that must be text.
fn text_of<'v>(function: &str, value: &'v Value) -> Outcome<&'v str> {
    value
        .as_text()
        .ok_or_else(|| wrong(function, "String", value))
}

/// An argument that must be an Int.
fn int_of(function: &str, value: &Value) -> Outcome<i64> {
    match value {
        Value::Int(value) => Ok(*value),
        other => Err(wrong(function, "Int", other)),
    }
}

/// An argument that must be an Int not below zero.
fn count_of(function: &str, value: &Value) -> Outcome<usize> {
    let count = int_of(function, value)?;
    Ok(usize::try_from(count.max(0)).unwrap_or(usize::MAX))
}

/// An argument that must be an array.
fn array_of<'v>(function: &str, value: &'v Value) -> Outcome<&'v [Value]> {
    match value {
        Value::Array(array) => Ok(array.items()),
        other => Err(wrong(function, "Array", other)),
    }
}
