//! Calls outside the loop: ask a model once and run nothing, or run one call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use haft_catalog::{Binding, Catalog, Progress};
use haft_core::{
    Assembly, BoxFuture, Capabilities, Conversation, FunctionCall, HydrationResult, Item, Model,
    ModelError, ModelErrorKind, ModelRequest, ModelResponse, ModelStream, RawArguments, ToolCall,
    ToolContext, ToolDefinition, Usage,
};
use haft_hydrate::{CallIds, Hydrator};

use crate::calls::calls_of;
use crate::outcome::{CallRecord, ToolResult};
use crate::run::{Run, RunError};

/// What a model said to one request, its calls made safe and not run.
#[derive(Debug)]
pub struct ToolCallReply {
    /// What it said.
    pub text: String,
    /// What it called, in order: each a tool ready to run, or errors, and the record always.
    pub calls: Vec<HydrationResult>,
    /// What it cost.
    pub usage: Usage,
}

/// Offers tools to a model once and hydrates what it calls. No policy is asked and nothing is run:
/// the caller decides on `result.tool.run(…)`, on approval, or on showing the error.
pub async fn tool_call<M: Model + ?Sized>(
    model: &M,
    messages: impl Into<Conversation>,
    binding: &Binding,
) -> Result<ToolCallReply, ModelError> {
    let request = ModelRequest {
        conversation: messages.into(),
        tools: binding.specs().clone(),
        tool_choice: binding.tool_choice(Progress::NothingRan),
        ..ModelRequest::default()
    };
    let mut stream = model.send(request).await?;
    let mut assembly = Assembly::default();
    let response = loop {
        let Some(event) = stream.next().await else {
            let words = "the stream ended before the answer did";
            return Err(ModelError::new(ModelErrorKind::Protocol, words));
        };
        assembly.add(event?);
        if let Some(response) = assembly.take_finished() {
            break response;
        }
    };
    Ok(reply(model, &response, binding))
}

fn reply<M: Model + ?Sized>(
    model: &M,
    response: &ModelResponse,
    binding: &Binding,
) -> ToolCallReply {
    let hydrator = Hydrator::new();
    let mut ids = CallIds::default();
    let calls = calls_of(model, response);
    ToolCallReply {
        calls: hydrator.hydrate_all(&calls, binding, &mut ids),
        text: response.items.iter().map(Item::text).collect(),
        usage: Usage {
            requests: 1,
            ..response.usage.unwrap_or_default()
        },
    }
}

/// Hydrates, gates and runs one call by the tools of a catalogue; none if it holds no such name.
///
/// The call goes the same way as in a run: same checks, timeout, limits and texts.
pub async fn execute(
    catalog: &Catalog,
    call: ToolCall,
    context: ToolContext,
) -> Option<ToolResult> {
    let call_id = call.call_id.clone().unwrap_or_default();
    let record = execute_in(catalog, call, |run| run.context(context));
    let record = record.await.ok()??;
    Some(record.result.unwrap_or_else(|| ToolResult {
        output: format!(
            "Tool '{}' failed: it is a function of the caller and does not run here.",
            record.tool_name
        ),
        call_id,
        is_error: true,
    }))
}

/// [`execute`], in a run that `prepare` has its say in: who approves, which limits hold, who hears the
/// events. Gives the whole record of the call.
///
/// ```
/// # use haft_catalog::Catalog;
/// # use haft_core::{ToolCall, ToolDefinition, dynamic_tool};
/// use haft_engine::{CallStatus, execute_in};
/// # let definition = ToolDefinition::builder("ping").parameters(serde_json::json!({"type": "object"}));
/// # let catalog = Catalog::new();
/// # catalog.register(dynamic_tool(definition.build()?, |_, _| async { Ok("pong") }))?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let call = ToolCall::new("ping", serde_json::json!({}));
/// let record = execute_in(&catalog, call, |run| run.approve_destructive()).await?;
/// assert_eq!(record.map(|record| record.status), Some(CallStatus::Succeeded));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn execute_in(
    catalog: &Catalog,
    call: ToolCall,
    prepare: impl FnOnce(Run) -> Run,
) -> Result<Option<CallRecord>, RunError> {
    execute_bound(catalog.snapshot().bind().build()?, call, prepare).await
}

/// [`execute_in`], by the tools of a binding.
pub async fn execute_bound(
    binding: Binding,
    call: ToolCall,
    prepare: impl FnOnce(Run) -> Run,
) -> Result<Option<CallRecord>, RunError> {
    let is_called = |tool: &Arc<ToolDefinition>| tool.name().as_str() == call.name;
    if !binding.tools_for_llm().any(is_called) {
        return Ok(None);
    }
    let run = Run::new(OneCall::new(call)).binding(binding).user("");
    let outcome = prepare(run).await?;
    Ok(outcome.tool_calls.into_iter().next())
}

/// A model that calls one tool and has nothing else to say.
struct OneCall(Mutex<VecDeque<ModelResponse>>);

impl OneCall {
    fn new(call: ToolCall) -> Self {
        let arguments = match call.arguments {
            RawArguments::Text(text) => text,
            RawArguments::Json(value) => value.to_string(),
        };
        let item = Item::FunctionCall(FunctionCall {
            id: None,
            status: None,
            call_id: call.call_id.unwrap_or_default(),
            name: call.name,
            arguments,
            extra: serde_json::Map::new(),
        });
        let calls = ModelResponse {
            finish: call.finish,
            ..ModelResponse::of([item])
        };
        Self(Mutex::new([calls].into()))
    }
}

impl Model for OneCall {
    fn name(&self) -> &'static str {
        "one-call"
    }

    fn provider(&self) -> &'static str {
        "haft"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn send(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let next = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let response = next.unwrap_or_else(|| ModelResponse::of([]));
        Box::pin(async move { Ok(response.into_stream()) })
    }
}
