//! Walks the tree of a program and does what it says: slowly, by recursion, with copies everywhere.
//! Nothing of the compiler behind the parser and nothing of the machine is used.

use std::collections::HashMap;
use std::rc::Rc;

use haft_concerto::ast::{
    AssignOp, Block, Expr, ExprKind, Function, Item, ItemKind, MapKey, Part, Path, PostfixOp,
    PrefixOp, Program, Receiver, Stmt, StmtKind, TextPiece, Try, Type, TypeKind, VariantData,
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

    /// The rule for what is raised.
    fn raise(&self, value: Value) -> Flow {
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
            ExprKind::Match(it) => {
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
            ExprKind::Prefix(ops, inner) => {
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
            ExprKind::Pipe(first, stages) => {
                let mut value = self.expr(first)?;
                for stage in stages {
                    let (callee, mut arguments) = match &stage.target.unwrapped().kind {
                        ExprKind::Postfix(it)
                            if matches!(it.steps.as_slice(), [PostfixOp::Call(_)]) =>
                        {
                            let [PostfixOp::Call(call)] = it.steps.as_slice() else {
                                unreachable!()
                            };
                            let mut list = Vec::new();
                            for argument in &call.arguments {
                                list.push(self.expr(&argument.value)?);
                            }
                            (self.expr(&it.base)?, list)
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
            ExprKind::Assign { op, target, value } => {
                self.assign(*op, target, value)?;
                Ok(Value::Nil)
            }
            ExprKind::Generic(..) | ExprKind::Listen(_) => panic!("not of a pure program"),
        }
    }

    fn optional(&mut self, expr: Option<&Expr>) -> Outcome {
        expr.map_or(Ok(Value::Nil), |it| self.expr(it))
    }

    fn list(&mut self, list: &[Expr]) -> Result<Vec<Value>, Flow> {
        list.iter().map(|it| self.expr(it)).collect()
    }

    fn text(&mut self, pieces: &[TextPiece]) -> Outcome {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                TextPiece::Text(piece) => text += piece,
                TextPiece::Expr(expr) => text += &self.expr(expr)?.to_string(),
            }
        }
        Ok(Value::Text(text))
    }

    fn map(&mut self, entries: &[(MapKey, Expr)]) -> Outcome {
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

    fn name(&self, path: &Path) -> Value {
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
    fn built(&self, path: &Path, given: Vec<(String, Value)>) -> Value {
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

    fn looped(&mut self, expr: &Expr) -> Outcome {
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

    fn try_block(&mut self, it: &Try) -> Outcome {
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

    fn question(&mut self, value: Value) -> Outcome {
        match value {
            Value::Ok(value) | Value::Some(value) => Ok(*value),
            Value::Err(value) => Err(self.raise(*value)),
            Value::None if self.returns == Returns::Option => Err(Flow::Return(Value::None)),
            Value::None => Err(self.raise(Value::text("value is None"))),
            other => panic!("`?` on {other}"),
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // what the cast says
    fn cast(&mut self, value: Value, to: &str) -> Outcome {
        Ok(match (to, value) {
            ("String", value) => Value::Text(value.to_string()),
            ("Bool", value) => Value::Bool(value.truthy()),
            ("Int", Value::Int(value)) => Value::Int(value),
            ("Int", Value::Float(value)) => Value::Int(value as i64),
            ("Int", Value::Bool(value)) => Value::Int(i64::from(value)),
            ("Float", Value::Int(value)) => Value::Float(value as f64),
            ("Float", Value::Float(value)) => Value::Float(value),
            ("Int", Value::Text(text)) => match text.trim().parse() {
                Ok(value) => Value::Int(value),
                Err(_) => {
                    let text = format!("cannot cast String \"{text}\" to Int");
                    return Err(self.raise(Value::Text(text)));
                }
            },
            (to, value) => panic!("{value} as {to}"),
        })
    }

    fn assign(&mut self, op: AssignOp, target: &Expr, value: &Expr) -> Result<(), Flow> {
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
    fn place(&mut self, target: &Expr) -> Result<(String, Vec<Step>), Flow> {
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

    fn step(&mut self, step: &PostfixOp) -> Result<Step, Flow> {
        match step {
            PostfixOp::Field(name) => Ok(Step::Field(name.text.clone())),
            PostfixOp::Index(index, _) => Ok(Step::Index(self.expr(index)?)),
            other => panic!("{other:?} in a place"),
        }
    }

    fn root(&mut self, name: &str) -> &mut Value {
        let found = self.env.iter_mut().rev().find(|(it, _)| it == name);
        &mut found.expect("the variable is there").1
    }

    fn postfix(&mut self, base: &Expr, steps: &[PostfixOp]) -> Outcome {
        // A call that changes its receiver, where the receiver is a place.
        if let Some((PostfixOp::Method { name, call, .. }, way)) = steps.split_last()
            && matches!(base.unwrapped().kind, ExprKind::Path(_))
            && way
                .iter()
                .all(|it| matches!(it, PostfixOp::Field(_) | PostfixOp::Index(..)))
            && self.changes(base, way, &name.text)?
        {
            let (root, mut steps) = self.place(base)?;
            for step in way {
                steps.push(self.step(step)?);
            }
            let mut arguments = Vec::new();
            for argument in &call.arguments {
                arguments.push(self.expr(&argument.value)?);
            }
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
                None => crate::operate::change(&mut receiver, &name.text, arguments)?,
            };
            place::set(self.root(&root), &steps, receiver)?;
            return Ok(value);
        }
        let (mut value, rest) = match (base.as_path(), steps) {
            (Some(path), [PostfixOp::Call(call), rest @ ..]) => {
                let mut arguments = Vec::new();
                for argument in &call.arguments {
                    arguments.push(self.expr(&argument.value)?);
                }
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
                    let mut arguments = Vec::new();
                    for argument in &call.arguments {
                        arguments.push(self.expr(&argument.value)?);
                    }
                    self.apply(&value, arguments)?
                }
                PostfixOp::Method { name, call, .. } => {
                    let mut arguments = Vec::new();
                    for argument in &call.arguments {
                        arguments.push(self.expr(&argument.value)?);
                    }
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

    /// Whether a method changes its receiver.
    fn changes(&mut self, base: &Expr, way: &[PostfixOp], name: &str) -> Result<bool, Flow> {
        if crate::operate::is_change(name) {
            return Ok(true);
        }
        let known = self.methods.iter().any(|((_, it), method)| {
            *it == name && method.signature.receiver == Some(Receiver::Mut)
        });
        let is_variable = base
            .unwrapped()
            .as_path()
            .is_some_and(|path| self.env.iter().any(|(it, _)| *it == path.text()));
        let _ = way;
        Ok(known && is_variable)
    }

    fn call_path(&mut self, path: &Path, arguments: Vec<Value>) -> Outcome {
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
