//! What a program shares: constants, stores, mocks, permissions, output.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use serde_json::{Map as JsonMap, Value as Json};
use thiserror::Error;

use super::{
    Canceller, Failure, Fault, FaultKind, Fiber, Limits, Meter, Outcome, Step, Stop, Watch,
};
use crate::load::Program;
use crate::natives::{Permissions, Stores};
use crate::value::{RefKind, Reference, Sizer, Text, Value};

/// Where a program's words go.
pub trait Output: Send {
    /// `print` and `println`: to standard output.
    fn print(&mut self, text: &str);
    /// `std::log`: to standard error, a line.
    fn log(&mut self, line: &str);
}

/// Why a call cannot begin.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// A program without entry.
    #[error("the program has no function `{0}` to begin with")]
    Entry(String),
    /// A tool that is not there.
    #[error("tool `{0}` has no method `{1}`")]
    Tool(String, String),
    /// A test that is not there.
    #[error("there is no test number {0}")]
    Test(usize),
}

/// What replaces a model in a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MockAnswer {
    Response(String),
    Error(String),
}

/// What a program shares between all that it runs.
pub struct Machine {
    pub(crate) program: Arc<Program>,
    pub(crate) globals: Vec<Value>,
    pub(crate) stores: Stores,
    pub(crate) mocks: HashMap<Arc<str>, MockAnswer>,
    /// All emits so far, if they are kept.
    pub(crate) emits: Option<Vec<(String, Value)>>,
    pub(crate) permissions: Permissions,
    pub(crate) limits: Limits,
    pub(crate) meter: Meter,
    /// What fibers held when they were measured last.
    fibers: Vec<Weak<AtomicUsize>>,
    /// How many defaults are being computed within each other.
    nesting: usize,
    /// A buffer for texts that are put together.
    pub(crate) scratch: String,
    pub(crate) output: Box<dyn Output>,
}

impl Machine {
    /// A machine for a program.
    pub fn new(
        program: Arc<Program>,
        permissions: Permissions,
        limits: Limits,
        output: Box<dyn Output>,
    ) -> Self {
        Self {
            globals: vec![Value::Nil; program.globals.len()],
            stores: Stores::new(&program.ir),
            mocks: HashMap::new(),
            emits: None,
            permissions,
            limits,
            meter: Meter::new(&limits, Canceller::default()),
            fibers: Vec::new(),
            nesting: 0,
            scratch: String::new(),
            output,
            program,
        }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Stops this machine from outside.
    pub fn canceller(&self) -> Canceller {
        self.meter.canceller()
    }

    /// Whom an instruction that takes long asks whether to stop: with the steps that it has made and
    /// nobody has counted yet. Gives who was asked before.
    #[cfg_attr(not(feature = "host"), allow(dead_code, reason = "for the host"))]
    pub(crate) fn watched(&mut self, watch: Option<Watch>) -> Option<Watch> {
        self.meter.watched(watch)
    }

    /// The display form of a value for the host, whole: within the limits.
    #[cfg_attr(not(feature = "host"), allow(dead_code, reason = "for the host"))]
    pub(crate) fn shown(&mut self, value: &Value) -> Outcome<Text> {
        let repeats = self.meter.repeating(false);
        let shown = self.meter.shown(value);
        self.meter.repeating(repeats);
        self.meter.settle(0);
        shown
    }

    /// What must run before anything else, if there is anything.
    pub fn init(&self) -> Option<Fiber> {
        Some(Fiber::new(
            self,
            self.program.function("$init")?,
            Vec::new(),
        ))
    }

    /// The program's entry.
    pub fn entry(&self) -> Result<Fiber, StartError> {
        let name = &self.program.ir.metadata.entry_point;
        let function = self
            .program
            .function(name)
            .ok_or_else(|| StartError::Entry(name.clone()))?;
        Ok(Fiber::new(self, function, Vec::new()))
    }

    /// A function of the program, by name, such as a model's `system_prompt_fn`.
    pub fn function(&self, name: &str, arguments: Vec<Value>) -> Result<Fiber, StartError> {
        let function = self
            .program
            .function(name)
            .ok_or_else(|| StartError::Entry(name.to_owned()))?;
        Ok(Fiber::new(self, function, arguments))
    }

    /// A function value, such as a handler of `listen`.
    pub fn call(&self, function: &Value, arguments: Vec<Value>) -> Outcome<Fiber> {
        match function {
            Value::Function(closure) => Ok(Fiber::with_captures(
                self,
                closure.function,
                arguments,
                &closure.captures,
            )),
            other => Err(Fault::type_error(format!(
                "cannot call {}",
                other.type_name()
            ))),
        }
    }

    /// A test, by its place in the IR.
    pub fn test(&self, place: usize) -> Result<Fiber, StartError> {
        let function = self
            .program
            .tests
            .get(place)
            .ok_or(StartError::Test(place))?;
        Ok(Fiber::new(self, *function, Vec::new()))
    }

    /// A method of a tool with arguments by name, as a model calls it (§9.1): what is absent is None
    /// or the default, a JSON integer for a `Float` becomes one.
    pub fn tool(
        &self,
        tool: &str,
        method: &str,
        arguments: &JsonMap<String, Json>,
    ) -> Result<Fiber, StartError> {
        let missing = || StartError::Tool(tool.to_owned(), method.to_owned());
        let methods = self.program.tools.get(tool).ok_or_else(missing)?;
        let number = *methods.get(method).ok_or_else(missing)?;
        let function = &self.program.functions[number as usize];
        let declared = self
            .program
            .ir
            .tools
            .iter()
            .find(|declared| declared.name == tool)
            .and_then(|declared| {
                declared
                    .methods
                    .iter()
                    .find(|declared| declared.name.rsplit("::").next() == Some(method))
            })
            .ok_or_else(missing)?;
        let mut values = Vec::with_capacity(function.arity);
        if function.has_self {
            values.push(Value::Ref(Arc::new(Reference {
                kind: RefKind::Tool,
                name: Arc::from(tool),
            })));
        }
        for param in &declared.params {
            let kind = param.kind.as_str().unwrap_or_default();
            let given = arguments
                .get(&param.name)
                .filter(|json| !(json.is_null() && kind.starts_with("Option<")));
            values.push(match given {
                Some(json) => argument(json, kind),
                None if param.optional => Value::Absent,
                None if kind.starts_with("Option") => Value::None,
                None => Value::Nil,
            });
        }
        Ok(Fiber::new(self, number, values))
    }

    /// Lets stores hold three quarters of the memory at most, so that calls which share them always have the
    /// rest.
    #[cfg_attr(not(feature = "host"), allow(dead_code, reason = "for the host"))]
    pub(crate) fn keep_room_for_calls(&mut self) {
        self.meter.keep_room_for_calls();
    }

    /// Keeps all emits from now on, for `test_emits`. A program that runs for long must not.
    pub fn keep_emits(&mut self) {
        self.emits.get_or_insert_default();
    }

    /// Notes an emit that the host makes itself, such as `model:log`.
    pub fn note_emit(&mut self, channel: &str, payload: Value) {
        if let Some(emits) = &mut self.emits {
            emits.push((channel.to_owned(), payload));
        }
    }

    /// What a test put in the place of a model: its text, or its error.
    pub fn mock(&self, model: &str) -> Option<Result<&str, &str>> {
        Some(match self.mocks.get(model)? {
            MockAnswer::Response(text) => Ok(text),
            MockAnswer::Error(text) => Err(text),
        })
    }

    /// What all fibers hold together, this one as well, as far as they were measured.
    pub(super) fn held_by_fibers(&mut self, this: &Arc<AtomicUsize>) -> usize {
        self.fibers.retain(|it| it.strong_count() > 0);
        let is_known = |it: &Weak<AtomicUsize>| std::ptr::eq(it.as_ptr(), Arc::as_ptr(this));
        if !self.fibers.iter().any(is_known) {
            self.fibers.push(Arc::downgrade(this));
        }
        let all = self.fibers.iter().filter_map(Weak::upgrade);
        all.fold(0, |sum, it| sum.saturating_add(it.load(Ordering::Relaxed)))
    }

    /// What a default of a schema's field is: the value of a function without parameters. It is computed in
    /// the middle of an instruction, so it takes no long time and waits for nobody.
    pub(crate) fn default_value(&mut self, function: &str) -> Outcome<Value> {
        const DEEPEST: usize = 16;
        const SLICE: u64 = 500_000;
        const SLICES: u64 = 20;
        if self.nesting >= DEEPEST {
            return Err(Fault::type_error("defaults of schemas need each other"));
        }
        let fiber = self.function(function, Vec::new());
        let fiber = fiber.map_err(|error| Fault::type_error(error.to_string()))?;
        let mut fiber = fiber.in_slices(SLICE);
        self.nesting += 1;
        let mut step = fiber.run(self);
        for _ in 1..SLICES {
            if !matches!(step, Step::Paused) {
                break;
            }
            step = fiber.run(self);
        }
        self.nesting -= 1;
        match step {
            Step::Done(value) => Ok(value),
            Step::Failed(failure) => Err(Box::new(failure)),
            Step::Paused => Err(Failure::stop(Stop::Work(SLICE * SLICES))),
            Step::Effect(_) => Err(Fault::type_error(
                "the default of a schema's field cannot emit or wait for somebody",
            )),
        }
    }

    /// The stores.
    pub fn stores(&mut self) -> &mut Stores {
        &mut self.stores
    }

    /// The words of a program go here.
    pub fn output(&mut self) -> &mut dyn Output {
        &mut *self.output
    }

    pub(crate) fn tool_state(&mut self, tool: &str, field: &str) -> Outcome<&mut Value> {
        self.tool_place(tool, field).map(|(place, _)| place)
    }

    /// The state of a tool, to change under the meter.
    pub(crate) fn tool_place(
        &mut self,
        tool: &str,
        field: &str,
    ) -> Outcome<(&mut Value, &mut Meter)> {
        let global = self
            .program
            .globals
            .get(format!("{tool}.{field}").as_str())
            .copied();
        let place = global.and_then(|global| self.globals.get_mut(global as usize));
        let place = place.ok_or_else(|| {
            Fault::of(
                FaultKind::Field,
                format!("no field '{field}' on tool {tool}"),
            )
        })?;
        Ok((place, &mut self.meter))
    }

    /// Adds what all share.
    pub(crate) fn measure(&self, sizer: &mut Sizer) {
        sizer.add(&self.globals);
        let emits = self.emits.iter().flatten();
        sizer.add(emits.map(|(_, payload)| payload));
        self.stores.measure(sizer);
    }
}

/// The Int that a Float is, if it is one.
#[allow(clippy::cast_possible_truncation)] // what is out of range is none
fn whole(value: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    let is_whole = value.fract().abs() < f64::MIN_POSITIVE;
    (is_whole && (-END..END).contains(&value)).then_some(value as i64)
}

/// An argument of a model's call as the value that its parameter's type asks for.
#[allow(clippy::cast_precision_loss)] // the nearest double
fn argument(json: &Json, kind: &str) -> Value {
    if let Some(inner) = kind
        .strip_prefix("Option<")
        .and_then(|rest| rest.strip_suffix('>'))
    {
        return Value::some(argument(json, inner));
    }
    match (Value::from_json(json), kind) {
        (Value::Int(value), "Float") => Value::Float(value as f64),
        // `5.0` is an integer by the schema that let it through.
        (Value::Float(value), "Int") if whole(value).is_some() => {
            Value::Int(whole(value).unwrap_or_default())
        }
        (Value::Array(array), kind) => {
            match kind
                .strip_prefix("Array<")
                .and_then(|rest| rest.strip_suffix('>'))
            {
                Some(inner) if matches!(json, Json::Array(_)) => Value::array(
                    json.as_array()
                        .into_iter()
                        .flatten()
                        .map(|item| argument(item, inner))
                        .collect(),
                ),
                _ => Value::Array(array),
            }
        }
        (value, _) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_become_what_their_parameters_are() {
        for (json, kind, shown) in [
            (json!(5.0), "Int", "5"),
            (json!([1.0, 2]), "Array<Int>", "[1, 2]"),
            (json!(2), "Option<Float>", "Some(2)"),
            (json!(1e30), "Int", "1000000000000000000000000000000"),
        ] {
            assert_eq!(argument(&json, kind).to_string(), shown, "{kind}");
        }
        assert!(matches!(argument(&json!(5.0), "Int"), Value::Int(5)));
        assert!(matches!(argument(&json!(5), "Float"), Value::Float(_)));
    }
}
