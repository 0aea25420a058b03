//! A host that reaches nothing: every model is the mock provider's or a test's mock. For `--mock`,
//! for tests of programs, and for programs that call no model.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{mock_reply, read_answer};
use crate::load::Program;
use crate::value::{Map, Value};
use crate::vm::{Effect, Failure, Fiber, Machine, ModelCall, Step};

/// Runs fibers of a machine to their end, without network and without processes.
pub struct Offline<'a> {
    machine: &'a mut Machine,
    emit: Box<Emit<'a>>,
}

/// Where emits go: channel and payload.
type Emit<'a> = dyn FnMut(&mut Machine, &str, &Value) + 'a;

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOutcome {
    /// As it should; `true` if it was to fail.
    Passed(bool),
    /// With this message.
    Failed(String),
}

impl<'a> Offline<'a> {
    /// A host whose emits go to `emit`.
    pub fn new(
        machine: &'a mut Machine,
        emit: impl FnMut(&mut Machine, &str, &Value) + 'a,
    ) -> Self {
        Self {
            machine,
            emit: Box::new(emit),
        }
    }

    /// Runs the program: constants, then the entry. `Err` of `main` is reported as a raised value.
    pub fn run(&mut self) -> Result<Value, String> {
        self.init()?;
        let fiber = self.machine.entry().map_err(|error| error.to_string())?;
        match self.drive(fiber) {
            Ok(Value::Err(error)) => Err(Failure::Raised(error.get().clone()).to_string()),
            Ok(value) => Ok(value),
            Err(failure) => Err(failure.to_string()),
        }
    }

    fn init(&mut self) -> Result<(), String> {
        match self.machine.init() {
            Some(fiber) => self
                .drive(fiber)
                .map(drop)
                .map_err(|failure| failure.to_string()),
            None => Ok(()),
        }
    }

    /// Runs a test, on a machine that nothing else has used.
    pub fn test(&mut self, place: usize) -> TestOutcome {
        self.machine.keep_emits();
        let program = Arc::clone(self.machine.program());
        let Some(test) = program.ir().tests.get(place) else {
            return TestOutcome::Failed(format!("there is no test number {place}"));
        };
        let ended = self.init().and_then(|()| {
            let fiber = self
                .machine
                .test(place)
                .map_err(|error| error.to_string())?;
            self.drive(fiber).map_err(|failure| failure.to_string())
        });
        match (ended, test.expect_fail, &test.expect_fail_message) {
            (Ok(_), false, _) => TestOutcome::Passed(false),
            (Ok(_), true, _) => TestOutcome::Failed("expected a failure, but it passed".into()),
            (Err(said), false, _) => TestOutcome::Failed(said),
            (Err(said), true, Some(part)) if !said.contains(part.as_str()) => {
                TestOutcome::Failed(format!("expected a failure with '{part}', got: {said}"))
            }
            (Err(_), true, _) => TestOutcome::Passed(true),
        }
    }

    /// Runs a fiber to its end.
    pub fn drive(&mut self, mut fiber: Fiber) -> Result<Value, Failure> {
        let mut step = fiber.run(self.machine);
        loop {
            let value = match step {
                Step::Done(value) => return Ok(value),
                Step::Failed(failure) => return Err(failure),
                Step::Effect(effect) => self.perform(effect),
            };
            step = match fiber.resume(self.machine, value) {
                Some(step) => step,
                None => fiber.run(self.machine),
            };
        }
    }

    fn perform(&mut self, effect: Effect) -> Value {
        match effect {
            Effect::Emit {
                channel, payload, ..
            } => {
                (self.emit)(self.machine, &channel, &payload);
                Value::Nil
            }
            Effect::Model(call) => self.model(&call),
            Effect::Sleep(time) => {
                std::thread::sleep(time);
                Value::Nil
            }
            Effect::Agent(call) => {
                refused(&format!("agent '{}' is not started offline", call.model))
            }
            Effect::Listen(listen) => refused(&format!(
                "agent '{}' is not started offline",
                listen.call.model
            )),
            Effect::Mcp(call) => refused(&format!(
                "MCP server '{}' is not started offline",
                call.server
            )),
            Effect::Http(request) => refused(&format!("{} is not asked offline", request.url)),
        }
    }

    fn model(&mut self, call: &ModelCall) -> Value {
        let program = Arc::clone(self.machine.program());
        let declared = program
            .ir()
            .models
            .iter()
            .find(|model| *model.name == *call.model);
        let schema = call.schema.as_deref();
        let mocked = self
            .machine
            .mock(&call.model)
            .map(|mock| mock.map(str::to_owned).map_err(str::to_owned));
        let (text, tokens_in, tokens_out, model) = match mocked {
            Some(Ok(text)) => (text, 0, 0, "mock".to_owned()),
            Some(Err(error)) => return Value::err(Value::text(error)),
            None => {
                let reply = mock_reply(&call.prompt, json_schema(&program, schema));
                let base = declared.and_then(|model| model.config.base.clone());
                (
                    reply.text,
                    reply.tokens_in,
                    reply.tokens_out,
                    base.unwrap_or_default(),
                )
            }
        };
        let answer = match schema {
            None => Value::record(
                "Response",
                vec![
                    ("text", Value::from(text.as_str())),
                    ("tokens_in", Value::Int(tokens_in)),
                    ("tokens_out", Value::Int(tokens_out)),
                    ("model", Value::text(model)),
                ],
            ),
            Some(schema) => match read_answer(self.machine, schema, &text) {
                Ok(value) => value,
                Err(errors) => {
                    return refused(&format!(
                        "schema validation failed after 1 attempts: {}",
                        errors.join("; ")
                    ));
                }
            },
        };
        if let Some((memory, true)) = call
            .builder
            .as_ref()
            .and_then(|builder| builder.memory.as_ref())
        {
            self.machine.stores().append(memory, "user", &call.prompt);
            self.machine.stores().append(memory, "assistant", &text);
        }
        let logs = declared.is_some_and(|model| {
            model
                .decorators
                .iter()
                .any(|decorator| decorator.name == "log")
        });
        if logs {
            self.log(call, tokens_in, tokens_out);
        }
        Value::ok(answer)
    }

    fn log(&mut self, call: &ModelCall, tokens_in: i64, tokens_out: i64) {
        let mut map = Map::default();
        map.insert("model", Value::from(&*call.model));
        map.insert("method", Value::from(&*call.method));
        map.insert("attempt", Value::Int(1));
        if call.schema.is_some() {
            map.insert("schema_attempt", Value::Int(1));
        }
        map.insert("tokens_in", Value::Int(tokens_in));
        map.insert("tokens_out", Value::Int(tokens_out));
        let payload = Value::map(map);
        self.machine.note_emit("model:log", payload.clone());
        (self.emit)(self.machine, "model:log", &payload);
    }
}

fn json_schema<'p>(program: &'p Program, name: Option<&str>) -> Option<&'p Json> {
    let schema = program
        .ir()
        .schemas
        .iter()
        .find(|schema| Some(schema.name.as_str()) == name)?;
    Some(&schema.json_schema)
}

fn refused(text: &str) -> Value {
    Value::err(Value::from(text))
}
