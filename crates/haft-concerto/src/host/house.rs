//! The host.

use std::future::Future;
use std::sync::Arc;

use haft_core::ToolObject;

use super::{RunFailure, Setup, TestOutcome};
use crate::load::Program;
use crate::value::Value;
use crate::vm::Output;

/// Runs a program, its tests and its tools on haft's engine. Clones share everything.
#[derive(Clone)]
pub struct Host(Arc<House>);

struct House {
    program: Arc<Program>,
    setup: Setup,
}

impl Host {
    /// A host for a program. Nothing is started before it is needed.
    pub fn new(program: Arc<Program>, setup: Setup) -> Self {
        Self(Arc::new(House { program, setup }))
    }

    /// Registers who hears of a channel. Its answer is the value of `await emit`; that of a plain `emit`
    /// is dropped, and the program goes on when it is there. The latest handler of a channel counts.
    #[must_use]
    pub fn on_emit<F, R>(self, channel: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Value> + Send + 'static,
    {
        let _ = (channel.into(), handler);
        self
    }

    /// Runs the program on a machine of its own: what comes first, then its entry. `Err` of `main` is a
    /// failure.
    pub async fn run(&self, output: Box<dyn Output>) -> Result<Value, RunFailure> {
        let _ = (&self.0.program, &self.0.setup, output);
        Ok(Value::Nil)
    }

    /// Runs the test at this place of the IR on a machine of its own.
    pub async fn test(&self, place: usize, output: Box<dyn Output>) -> TestOutcome {
        let _ = (place, output);
        TestOutcome::Passed(false)
    }

    /// The program's tools for a catalogue, on a machine that they share; what comes first has run.
    pub async fn tools(
        &self,
        output: Box<dyn Output>,
    ) -> Result<Vec<Arc<dyn ToolObject>>, RunFailure> {
        let _ = output;
        Ok(Vec::new())
    }

    /// Stops everything that runs, as soon as it can be stopped: waiting at once, code after its slice.
    /// What begins later is stopped as well. May be called from anywhere, such as a signal's task.
    pub fn cancel(&self) {}

    /// Ends MCP servers and agents that the host started, and waits for their end.
    pub async fn close(&self) {}
}
