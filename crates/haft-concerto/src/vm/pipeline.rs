//! Pipelines (§18): a value goes through stages, each a boundary.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Effect, Failure, Next};
use crate::ir::{self, Retry};
use crate::load::Program;
use crate::value::{Map, Value};

/// A pipeline on its way.
#[derive(Debug)]
pub(crate) struct PipelineRun {
    program: Arc<Program>,
    name: Arc<str>,
    stage: usize,
    phase: Phase,
    /// The input of the current stage.
    value: Value,
    began: Instant,
    stage_began: Instant,
    attempt: u32,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Begun,
    StageBegun,
    /// The stage's function runs.
    Running,
    StageOver,
    Waited,
    Failed,
    Over,
}

impl PipelineRun {
    pub(crate) fn new(program: Arc<Program>, name: Arc<str>, value: Value) -> Self {
        Self {
            program,
            name,
            stage: 0,
            phase: Phase::Begun,
            value,
            began: Instant::now(),
            stage_began: Instant::now(),
            attempt: 1,
        }
    }

    /// The input of the current stage.
    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    fn stages(&self) -> &[crate::load::Stage] {
        self.program
            .pipelines
            .get(&self.name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The first thing to do.
    pub(crate) fn begin(&mut self) -> Next {
        let stages = i64::try_from(self.stages().len()).unwrap_or(i64::MAX);
        emit(
            "pipeline:start",
            [
                ("name", Value::from(&*self.name)),
                ("stages", Value::Int(stages)),
            ],
        )
    }

    /// What comes after a value: of the host, or of a stage.
    pub(crate) fn step(&mut self, value: Value) -> Next {
        match self.phase {
            Phase::Begun | Phase::StageOver => {
                let Some(stage) = self.stages().get(self.stage) else {
                    self.phase = Phase::Over;
                    let spent = milliseconds(self.began);
                    return emit(
                        "pipeline:complete",
                        [("name", Value::from(&*self.name)), ("duration_ms", spent)],
                    );
                };
                let name = Value::from(&*stage.name);
                self.phase = Phase::StageBegun;
                self.attempt = 1;
                emit(
                    "pipeline:stage_start",
                    [("pipeline", Value::from(&*self.name)), ("stage", name)],
                )
            }
            Phase::Waited if self.left() == Some(Duration::ZERO) => self.expired(),
            Phase::StageBegun | Phase::Waited => {
                // The time of a stage is that of all its attempts.
                if matches!(self.phase, Phase::StageBegun) {
                    self.stage_began = Instant::now();
                }
                self.phase = Phase::Running;
                let Some(stage) = self.stages().get(self.stage) else {
                    return Next::Done(Value::Nil);
                };
                let function = &self.program.functions[stage.function as usize];
                let arguments = if function.arity == 0 {
                    Vec::new()
                } else {
                    vec![self.value.clone()]
                };
                Next::Enter(stage.function, arguments)
            }
            Phase::Running => {
                if self.left() == Some(Duration::ZERO) {
                    return self.expired();
                }
                let value = match value {
                    Value::Err(error) => return self.failure(&error.get().to_string()),
                    Value::Ok(inner) => inner.get().clone(),
                    other => other,
                };
                self.value = value;
                let name = self
                    .stages()
                    .get(self.stage)
                    .map(|stage| Value::from(&*stage.name));
                let spent = milliseconds(self.stage_began);
                self.stage += 1;
                self.phase = Phase::StageOver;
                emit(
                    "pipeline:stage_complete",
                    [
                        ("pipeline", Value::from(&*self.name)),
                        ("stage", name.unwrap_or_default()),
                        ("duration_ms", spent),
                    ],
                )
            }
            Phase::Failed => Next::Done(Value::err(self.value.take())),
            Phase::Over => Next::Done(Value::ok(self.value.take())),
        }
    }

    /// The stage raised or had a fault.
    pub(crate) fn failed(&mut self, failure: &Failure) -> Next {
        self.failure(&match failure {
            Failure::Raised(value) => value.to_string(),
            other => other.to_string(),
        })
    }

    fn failure(&mut self, text: &str) -> Next {
        if let Some(pause) = self.retry() {
            self.attempt += 1;
            self.phase = Phase::Waited;
            let pause = self.left().map_or(pause, |left| left.min(pause));
            return Next::Effect(Effect::Sleep(pause));
        }
        self.give_up(text)
    }

    /// The time of the stage is over: it is not tried again.
    pub(crate) fn expired(&mut self) -> Next {
        let seconds = self.timeout().unwrap_or_default().as_secs_f64();
        self.give_up(&format!("timeout exceeded ({seconds}s)"))
    }

    /// How much time the running stage has left, if it is limited.
    pub(crate) fn left(&self) -> Option<Duration> {
        let whole = self.timeout()?;
        Some(whole.saturating_sub(self.stage_began.elapsed()))
    }

    fn give_up(&mut self, text: &str) -> Next {
        let stage = self
            .stages()
            .get(self.stage)
            .map(|stage| stage.name.clone());
        let stage = stage.unwrap_or_else(|| Arc::from(""));
        self.phase = Phase::Failed;
        self.value = Value::text(format!(
            "pipeline '{}' failed at stage '{stage}': {text}",
            self.name
        ));
        emit(
            "pipeline:error",
            [
                ("pipeline", Value::from(&*self.name)),
                ("stage", Value::from(&*stage)),
                ("error", Value::from(text)),
            ],
        )
    }

    fn decorators(&self) -> &[ir::Decorator] {
        let stage = self.stages().get(self.stage);
        stage.map(|stage| &*stage.decorators).unwrap_or_default()
    }

    fn timeout(&self) -> Option<Duration> {
        ir::Decorator::timeout(self.decorators())
    }

    /// How long to wait before the stage is tried again, if it is.
    fn retry(&self) -> Option<Duration> {
        Retry::of(self.decorators())?.wait(self.attempt)
    }
}

fn emit<const N: usize>(channel: &str, members: [(&str, Value); N]) -> Next {
    Next::Effect(Effect::Emit {
        channel: channel.to_owned(),
        payload: Value::map(members.into_iter().collect::<Map>()),
        wait: false,
    })
}

fn milliseconds(since: Instant) -> Value {
    Value::Int(i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX))
}
