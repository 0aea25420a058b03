//! Who runs calls of tools that are only declared.

use std::future::Future;
use std::sync::Arc;

use haft_core::{
    BoxFuture, IntoToolOutput, ToolContext, ToolDefinition, ToolError, ToolKind, ToolOutput,
};
use serde_json::Value;

use crate::outcome::ToolResult;

/// A call for an executor, its arguments validated.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorCall {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as the schema admits them.
    pub arguments: Value,
}

/// Runs calls of tools that are declared in a binding and have no code of their own there.
///
/// Executors are asked in the order in which they were given to the run; the first that can, runs
/// the call. Hydration, gate, timeout and messages are those of any other tool.
pub trait ToolExecutor: Send + Sync + 'static {
    /// The kind of tools it handles.
    fn kind(&self) -> ToolKind;

    /// Whether it can run calls of this tool.
    fn can_execute(&self, definition: &ToolDefinition) -> bool;

    /// Runs one.
    fn execute<'a>(
        &'a self,
        call: ExecutorCall,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, ToolResult>;

    /// The same with everything that a tool may give back: values for code, images. Only
    /// executors that have more to give than text need to write it.
    fn run<'a>(
        &'a self,
        call: ExecutorCall,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let result = self.execute(call, context).await;
            Ok(if result.is_error {
                ToolOutput::failure(result.output)
            } else {
                ToolOutput::text(result.output)
            })
        })
    }
}

/// The executors of a run, in order.
#[derive(Clone, Default)]
pub(crate) struct Executors(Vec<Arc<dyn ToolExecutor>>);

impl Executors {
    pub(crate) fn push(&mut self, executor: Arc<dyn ToolExecutor>) {
        self.0.push(executor);
    }

    pub(crate) fn find(&self, definition: &ToolDefinition) -> Option<&Arc<dyn ToolExecutor>> {
        self.0.iter().find(|executor| {
            executor.kind() == *definition.kind()
                // One that panics on a definition cannot run its calls.
                && haft_core::caught(|| executor.can_execute(definition)).unwrap_or(false)
        })
    }
}

/// Runs the calls of one declared function by a closure.
pub(crate) struct NamedExecutor {
    name: String,
    run: Box<RunNamed>,
}

type RunNamed = dyn Fn(ExecutorCall, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
    + Send
    + Sync;

impl NamedExecutor {
    pub(crate) fn new<F, R, O>(name: String, run: F) -> Self
    where
        F: Fn(ExecutorCall, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoToolOutput,
    {
        Self {
            name,
            run: Box::new(move |call, context| {
                let running = run(call, context);
                Box::pin(async move { running.await?.into_tool_output() })
            }),
        }
    }
}

impl ToolExecutor for NamedExecutor {
    fn kind(&self) -> ToolKind {
        ToolKind::Function
    }

    fn can_execute(&self, definition: &ToolDefinition) -> bool {
        definition.name().as_str() == self.name
    }

    fn execute<'a>(
        &'a self,
        call: ExecutorCall,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, ToolResult> {
        let call_id = call.call_id.clone();
        let tool = call.name.clone();
        let running = self.run(call, context);
        Box::pin(async move {
            let (output, is_error) = match running.await {
                Ok(output) => (output.text_for_model(), !output.is_success()),
                Err(error) => (crate::texts::failed(&tool, error.message()), true),
            };
            ToolResult {
                call_id,
                output,
                is_error,
            }
        })
    }

    fn run<'a>(
        &'a self,
        call: ExecutorCall,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.run)(call, context.clone())
    }
}
