//! Walks the tree of a program and does what it says: slowly, by recursion, with copies everywhere.
//! Nothing of the compiler behind the parser and nothing of the machine is used.

use std::collections::HashMap;
use std::rc::Rc;

use haft_concerto::ast::{
    AssignOp, Block, Call, Expr, ExprKind, Function, Item, ItemKind, MapKey, Match, Part, Path,
    PipeStage, PostfixOp, PrefixOp, Program, Receiver, Stmt, StmtKind, TextPiece, Try, Type,
    TypeKind, VariantData,
};

use crate::pattern;
use crate::place::{self, Step};
use crate::value::{Fields, Value};

/// Why an expression has no value.
#[derive(Debug)]
pub(crate) enum Flow {
    Break(Value),
    Continue,
    Return(Value),
    Raise(Value),
    Fault(&'static str, String),
    /// Nobody catches it.
    Stop(String),
    /// The program takes longer than a test may.
    TooLong,
}

pub(crate) type Outcome = Result<Value, Flow>;

/// What a function is declared to return, as far as raising asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returns {
    Result,
    Option,
    Other,
}

pub(crate) struct Oracle<'p> {
    functions: HashMap<&'p str, &'p Function>,
    methods: HashMap<(&'p str, &'p str), &'p Function>,
    /// Fields of structs and of variants (`E::A`) in their order.
    shapes: HashMap<String, Vec<&'p str>>,
    pub(crate) printed: String,
    pub(crate) env: Vec<(String, Value)>,
    returns: Returns,
    /// How many `try` blocks are active.
    tries: usize,
    steps: usize,
    depth: usize,
}

mod expression;
mod postfix;

const MAX_STEPS: usize = 20_000;

impl<'p> Oracle<'p> {
    pub(crate) fn new(program: &'p Program) -> Self {
        let mut oracle = Self {
            functions: HashMap::new(),
            methods: HashMap::new(),
            shapes: HashMap::new(),
            printed: String::new(),
            env: Vec::new(),
            returns: Returns::Other,
            tries: 0,
            steps: 0,
            depth: 0,
        };
        for part in &program.parts {
            if let Part::Item(item) = part {
                oracle.declare(item);
            }
        }
        oracle
    }

    fn declare(&mut self, item: &'p Item) {
        match &item.kind {
            ItemKind::Function(it) => {
                self.functions.insert(&it.signature.name.text, it);
            }
            ItemKind::Struct(it) => {
                let names = it.fields.iter().map(|it| it.name.text.as_str()).collect();
                self.shapes.insert(it.name.text.clone(), names);
            }
            ItemKind::Enum(it) => {
                for variant in &it.variants {
                    if let VariantData::Fields(fields, _) = &variant.data {
                        let names = fields.iter().map(|it| it.name.text.as_str()).collect();
                        let name = format!("{}::{}", it.name.text, variant.name.text);
                        self.shapes.insert(name, names);
                    }
                }
            }
            ItemKind::Impl(it) => {
                for method in &it.methods {
                    let key = (
                        it.receiver_type().text.as_str(),
                        method.signature.name.text.as_str(),
                    );
                    self.methods.insert(key, method);
                }
            }
            other => panic!("the oracle does not know {other:?}"),
        }
    }

    /// Runs `main`: what it printed, and the error that it ended with; `None` if it takes too long.
    pub(crate) fn run(mut self) -> Option<(String, String)> {
        let main = self.functions["main"];
        let ended = match self.call(main, Vec::new()) {
            Ok(Value::Err(error)) => Err(Flow::Raise(*error)),
            other => other,
        };
        let error = match ended {
            Ok(_) => String::new(),
            Err(Flow::Raise(value)) => format!("unhandled error: {value}"),
            Err(Flow::Fault(_, message) | Flow::Stop(message)) => message,
            Err(Flow::TooLong) => return None,
            Err(other) => panic!("{other:?} leaves main"),
        };
        Some((self.printed, error))
    }

    fn call(&mut self, function: &Function, arguments: Vec<Value>) -> Outcome {
        self.call_with(function, None, arguments)
            .map(|(value, _)| value)
    }

    /// Calls a function; gives its receiver back as it was left.
    fn call_with(
        &mut self,
        function: &Function,
        receiver: Option<Value>,
        arguments: Vec<Value>,
    ) -> Result<(Value, Option<Value>), Flow> {
        let mut env = Vec::new();
        let with_self = receiver.is_some();
        env.extend(receiver.map(|it| ("self".to_owned(), it)));
        let body = function.body.as_ref().expect("it has a body");
        let mut arguments = arguments.into_iter();
        let outer = std::mem::replace(&mut self.env, env);
        let result = returns(function.signature.result.as_ref());
        let outer_returns = std::mem::replace(&mut self.returns, result);
        for param in &function.signature.params {
            let value = match (arguments.next(), &param.default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.expr(default)?,
                (None, None) => panic!("`{}` is not given", param.name.text),
            };
            self.env.push((param.name.text.clone(), value));
        }
        let ended = self.body(|oracle| oracle.block(body));
        let env = std::mem::replace(&mut self.env, outer);
        self.returns = outer_returns;
        let left = env.into_iter().next().filter(|_| with_self);
        Ok((ended?, left.map(|(_, value)| value)))
    }

    fn body(&mut self, run: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        self.depth += 1;
        if self.depth > 60 {
            return Err(Flow::TooLong);
        }
        let ended = run(self);
        self.depth -= 1;
        match ended {
            Err(Flow::Return(value)) => Ok(value),
            other => other,
        }
    }

    /// Calls a value.
    pub(crate) fn apply(&mut self, callee: &Value, arguments: Vec<Value>) -> Outcome {
        match callee {
            Value::Function(name) => {
                let function = self.functions[name.as_str()];
                self.call(function, arguments)
            }
            Value::Closure(closure, captured) => {
                let outer = std::mem::replace(&mut self.env, captured.clone());
                let result = returns(closure.result.as_ref());
                let outer_returns = std::mem::replace(&mut self.returns, result);
                for (param, value) in closure.params.iter().zip(arguments) {
                    self.env.push((param.name.text.clone(), value));
                }
                let ended = self.body(|oracle| oracle.expr(&closure.body));
                self.env = outer;
                self.returns = outer_returns;
                ended
            }
            other => panic!("{other} is called"),
        }
    }

    pub(crate) fn block(&mut self, block: &Block) -> Outcome {
        let height = self.env.len();
        let ended = self.statements(block);
        self.env.truncate(height);
        ended
    }

    fn statements(&mut self, block: &Block) -> Outcome {
        for stmt in &block.stmts {
            self.stmt(stmt)?;
        }
        block
            .tail
            .as_ref()
            .map_or(Ok(Value::Nil), |it| self.expr(it))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Flow> {
        match &stmt.kind {
            StmtKind::Let { pattern, value, .. } => {
                let value = value.as_ref().map_or(Ok(Value::Nil), |it| self.expr(it))?;
                assert!(
                    pattern::matches(self, pattern, &value),
                    "a `let` that does not match"
                );
            }
            StmtKind::Expr(expr) => {
                self.expr(expr)?;
            }
            StmtKind::Mock(_) => panic!("no models here"),
        }
        Ok(())
    }
}

fn returns(ty: Option<&Type>) -> Returns {
    match ty.map(type_name) {
        Some("Result") => Returns::Result,
        Some("Option") => Returns::Option,
        _ => Returns::Other,
    }
}

fn type_name(ty: &Type) -> &str {
    match &ty.kind {
        TypeKind::Named { path, .. } => &path.last().text,
        _ => "",
    }
}

fn elements(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list.clone(),
        Value::Text(text) => text.chars().map(|c| Value::Text(c.to_string())).collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| Value::Array(vec![Value::text(key), value.clone()]))
            .collect(),
        Value::Range(Some(from), Some(to), false) => (*from..*to).map(Value::Int).collect(),
        Value::Range(Some(from), Some(to), true) => (*from..=*to).map(Value::Int).collect(),
        other => panic!("`for` over {other}"),
    }
}
