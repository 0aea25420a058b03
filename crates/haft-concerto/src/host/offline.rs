//! A host that reaches nothing: every model is the mock provider's or a test's mock. For `--mock`,
//! for tests of programs, and for programs that call no model.

use std::sync::Arc;

use serde_json::Value as Json;

use super::reply::{self, Answer};
use super::{TestOutcome, Unfit, mock_reply};
use crate::load::Program;
use crate::value::Value;
use crate::vm::{Effect, Failure, Fiber, Machine, ModelCall, Step};

/// Runs fibers of a machine to their end, without network and without processes.
pub struct Offline<'a> {
    machine: &'a mut Machine,
    emit: Box<Emit<'a>>,
}

/// Where emits go: channel and payload.
type Emit<'a> = dyn FnMut(&mut Machine, &str, &Value) + 'a;

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
            return TestOutcome::Failed(format!("there is no test number {place}"), None);
        };
        let ended = self.init().and_then(|()| {
            let fiber = self
                .machine
                .test(place)
                .map_err(|error| error.to_string())?;
            self.drive(fiber).map_err(|failure| failure.to_string())
        });
        TestOutcome::of(test, ended.map_err(|said| (said, None)))
    }

    /// Runs a fiber to its end.
    pub fn drive(&mut self, mut fiber: Fiber) -> Result<Value, Failure> {
        let mut step = fiber.run(self.machine);
        loop {
            let value = match step {
                Step::Done(value) => return Ok(value),
                Step::Failed(failure) => return Err(failure),
                // It runs in one slice.
                Step::Paused => {
                    step = fiber.run(self.machine);
                    continue;
                }
                Step::Effect(effect) => self.perform(effect),
            };
            let gone_on = match value {
                Ok(value) => fiber.resume(self.machine, value),
                Err(failure) => fiber.fail(self.machine, failure),
            };
            step = match gone_on {
                Some(step) => step,
                None => fiber.run(self.machine),
            };
        }
    }

    fn perform(&mut self, effect: Effect) -> Result<Value, Failure> {
        Ok(match effect {
            Effect::Emit {
                channel, payload, ..
            } => {
                (self.emit)(self.machine, &channel, &payload);
                Value::Nil
            }
            Effect::Model(call) => return self.model(&call),
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
        })
    }

    fn model(&mut self, call: &ModelCall) -> Result<Value, Failure> {
        let program = Arc::clone(self.machine.program());
        let declared = reply::declared(&program, &call.model);
        let answer = match reply::mocked(self.machine, call) {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => return Ok(refused(&error)),
            None => {
                let said = mock_reply(&call.prompt, json_schema(&program, call.schema.as_deref()));
                let base = declared.and_then(|model| model.config.base.clone());
                Answer {
                    text: said.text,
                    tokens_in: said.tokens_in,
                    tokens_out: said.tokens_out,
                    model: base.unwrap_or_default(),
                }
            }
        };
        let value = match reply::value(self.machine, call, &answer) {
            Ok(value) => value,
            Err(Unfit::Invalid(errors)) => return Ok(refused(&reply::invalid(1, &errors))),
            Err(Unfit::Failed(failure)) => return Err(*failure),
        };
        reply::remember(self.machine, call, &answer.text);
        if declared.is_some_and(reply::logs) {
            let payload = reply::log_entry(call, &answer, 1, 1);
            self.machine.note_emit("model:log", payload.clone());
            (self.emit)(self.machine, "model:log", &payload);
        }
        Ok(Value::ok(value))
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
