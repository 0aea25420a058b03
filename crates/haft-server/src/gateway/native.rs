//! A call of one of haft's own tools: parsed, checked, gated and run as a model's would be.

use std::sync::Arc;

use haft_catalog::Catalog;
use haft_core::{
    ApprovalRequest, Approver, BoxFuture, Decision, RawArguments, ToolCall, ToolObject, ToolRef,
    ToolSource,
};
use haft_engine::{CallRecord, CallStatus, EventKind, LoopOptions, execute_bound};
use haft_mcp::gateway::{BackendError, CallContext, CallOutcome, CallRequest, Confirmation};
use serde_json::Value;

use super::entry::structured_schema;

/// How much of the arguments is shown to whoever is asked.
const SHOWN_CHARS: usize = 1000;

pub(super) async fn call(
    catalog: &Catalog,
    tool: Arc<dyn ToolObject>,
    request: CallRequest,
    context: CallContext,
    limits: &LoopOptions,
) -> Result<CallOutcome, BackendError> {
    let failed = |text: String| BackendError::Failed(text);
    let definition = Arc::clone(tool.definition());
    let source = ToolRef::Tool(ToolSource::from(tool));
    let binding = catalog.snapshot().bind().tools([source]);
    let binding = binding.build().map_err(|error| failed(error.to_string()))?;
    let arguments = RawArguments::Json(Value::Object(request.arguments));
    let call = ToolCall::new(definition.name().as_str(), arguments);
    let cancel = context.cancel().clone();
    let told = context.clone();
    let record = execute_bound(binding, call, |run| {
        run.options(limits.clone())
            .cancel(cancel.clone())
            .approver(AskClient(context))
            .on_event(move |event| {
                if let EventKind::ToolProgress { progress, .. } = &event.kind {
                    told.progress(progress.clone());
                }
            })
    });
    let record = record.await.map_err(|error| failed(error.to_string()))?;
    let record = record.ok_or_else(|| BackendError::UnknownTool(request.tool.name.clone()))?;
    if cancel.is_cancelled() {
        return Err(BackendError::Cancelled);
    }
    Ok(outcome(record, structured_schema(&definition).is_some()))
}

fn outcome(record: CallRecord, is_structured: bool) -> CallOutcome {
    let has_succeeded = record.status == CallStatus::Succeeded;
    let mut outcome = CallOutcome::text(record.output());
    outcome.is_error = !has_succeeded;
    if has_succeeded && is_structured {
        outcome.structured = record.value;
    }
    outcome
}

/// Asks the person behind the client.
struct AskClient(CallContext);

impl Approver for AskClient {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            let question = question(
                request.definition.name().as_str(),
                &request.arguments,
                &request.reason,
            );
            match self.0.confirm(question).await {
                Confirmation::Yes => Decision::Allow,
                Confirmation::No => Decision::Deny(None),
                Confirmation::NotAsked(error) => Decision::Deny(Some(error.to_string())),
            }
        })
    }
}

/// What a person is asked.
pub(super) fn question(name: &str, arguments: &Value, reason: &str) -> String {
    let arguments = haft_mcp::visible(&arguments.to_string());
    let all = arguments.chars().count();
    if all <= SHOWN_CHARS {
        return format!("Run `{name}` with {arguments}, although {reason}?");
    }
    let head: String = arguments.chars().take(SHOWN_CHARS / 2).collect();
    let tail: String = arguments.chars().skip(all - SHOWN_CHARS / 2).collect();
    let hidden = all - SHOWN_CHARS;
    format!(
        "Run `{name}` with {head} [… {hidden} characters that are not shown …] {tail}, although {reason}?"
    )
}
