//! A call of a server's tool, passed on and its result passed back as they are.

use std::sync::Arc;

use haft_mcp::gateway::{BackendError, CallContext, CallOutcome, CallRequest, Confirmation};
use haft_mcp::{Asker, CallOptions, Cause, OnLog, Server, ToolDef, ToolOutcome, TraceContext};
use serde_json::Value;

use super::monitor::ActiveCall;
use super::native::question;
use super::passing::AskCaller;

pub(super) async fn call(
    server: &Arc<Server>,
    tool: &ToolDef,
    request: CallRequest,
    context: CallContext,
    active: &ActiveCall,
    on_log: OnLog,
) -> Result<CallOutcome, BackendError> {
    if server.needs_approval(tool) {
        let arguments = Value::Object(request.arguments.clone());
        let reason = format!("calls of `{}` need an approval", server.label());
        let question = question(&request.tool.name, &arguments, &reason);
        match context.confirm(question).await {
            Confirmation::Yes => {}
            Confirmation::No => {
                active.denied();
                return Ok(CallOutcome::error(
                    "The call was not approved and did not run.",
                ));
            }
            Confirmation::NotAsked(error) => {
                active.denied();
                return Ok(CallOutcome::error(format!(
                    "The call did not run: it needs the approval of a person, and nobody can be asked \
                     ({error}). Use a client that shows questions (elicitation), or let the operator change \
                     `approve` of `[mcp.{}]`.",
                    server.label()
                )));
            }
        }
    }
    let told = context.clone();
    let mut tell = move |progress| told.progress(progress);
    let asker = Arc::new(AskCaller::new(context.clone()));
    let options = CallOptions {
        cancel: context.cancel().clone(),
        on_progress: Some(&mut tell),
        trace: trace_of(&context, active),
        asker: Some(Arc::clone(&asker) as Arc<dyn Asker>),
        log_level: context.log_level(),
        on_log: Some(on_log),
        ..CallOptions::default()
    };
    match server.call(&tool.name, request.arguments, options).await {
        Ok(outcome) => Ok(with_unasked(passed_on(&outcome), asker.unasked())),
        Err(error) if matches!(*error.cause, Cause::Cancelled) => Err(BackendError::Cancelled),
        Err(error) => {
            let reason = error.for_log();
            active.failed(reason);
            let text = format!(
                "MCP server `{}`: {}",
                error.server,
                error.cause.for_callers()
            );
            Ok(CallOutcome::error(text))
        }
    }
}

/// The result of a call whose server could not ask what it wanted to know: whatever it made of that, the
/// model reads what was missing.
fn with_unasked(mut outcome: CallOutcome, unasked: Option<String>) -> CallOutcome {
    let Some(text) = unasked else {
        return outcome;
    };
    let mut content = CallOutcome::error(text).content;
    content.append(&mut outcome.content);
    CallOutcome {
        content,
        is_error: true,
        ..outcome
    }
}

/// The trace for the server: the span of this call where it is recorded, else that of the client.
fn trace_of(context: &CallContext, active: &ActiveCall) -> TraceContext {
    let trace = client_trace(context);
    TraceContext {
        parent: active.traceparent().or(trace.parent),
        ..trace
    }
}

/// The trace of the client.
pub(super) fn client_trace(context: &CallContext) -> TraceContext {
    let said = |key: &str| context.trace().get(key).cloned();
    TraceContext {
        parent: said("traceparent"),
        state: said("tracestate"),
        baggage: said("baggage"),
    }
}

/// The result as the server wrote it. Only one that is not in the words of the protocol is put into them.
fn passed_on(outcome: &ToolOutcome) -> CallOutcome {
    let content = match outcome.raw.get("content") {
        Some(Value::Array(blocks)) => blocks.clone(),
        None if outcome.structured.is_some() => Vec::new(),
        _ => {
            let shown = outcome.render(&haft_mcp::RenderOptions::default());
            CallOutcome::text(shown.output.text_for_model()).content
        }
    };
    CallOutcome {
        content,
        structured: outcome.structured.clone(),
        is_error: outcome.is_error,
        meta: outcome.meta.clone(),
    }
}
